// The same elements, in channel, line, column order, as another shape.
//
//   with n = (c * Height + y) * Width + x counted in the output's shape, out[y][x][c] = Stage(in at element n
//   counted in the input's shape)
//
// Both planes are HWC in memory, so elements move whenever more than one axis is longer than 1. Input and output
// are disjoint. Config: planes Input, Output; types Stage, Isa.
#ifndef N2D2_RESHAPE_HPP
#define N2D2_RESHAPE_HPP

#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

template <class Cfg, class Isa = typename Cfg::Isa>
struct Reshape {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    enum : int {
        C = Output::Channels,
        H = Output::Height,
        W = Output::Width,
        InputHeight = Input::Height,
        InputWidth = Input::Width
    };
    static_assert(C * H * W == static_cast<int>(Input::Channels) * InputHeight * InputWidth,
                  "a reshape keeps the number of elements");

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out) {
        Tasks<false, H, 1, 4L * C * W>::run([=](int y, int) N2D2_INLINE_LAMBDA {
            typename Output::Type* const to = line<Output>(out, y);
            for (int x = 0; x < W; ++x)
                for (int c = 0; c < C; ++c) {
                    const int n = (c * H + y) * W + x;
                    const int column = n % InputWidth, row = n / InputWidth % InputHeight;
                    const int channel = n / (InputWidth * InputHeight);
                    to[x * Output::Stride + c] =
                        Cfg::Stage::apply(line<Input>(in, row)[column * Input::Stride + channel], c);
                }
        });
    }
};

template <class Cfg>
N2D2_INLINE void reshape(const unsigned char* in, unsigned char* out) {
    Reshape<Cfg>::run(in, out);
}

}  // namespace n2d2

#endif  // N2D2_RESHAPE_HPP
