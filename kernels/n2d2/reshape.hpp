// The same elements, in channel, line, column order, as another shape.
//
//   with n = (c * Height + y) * Width + x counted in the output's shape, out[y][x][c] = Epilogue(in at element n
//   counted in the input's shape)
//
// Both planes are HWC in memory, so elements move whenever more than one axis is longer than 1. Input and output
// are disjoint. An image as a vector, and back, is a matrix of pixels and channels transposed (n2d2/transposed.hpp).
// Config: planes Input, Output; types Epilogue, Isa.
#pragma once

#include <type_traits>

#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"
#include "n2d2/transposed.hpp"

namespace n2d2 {

template <class Cfg, class Isa = typename Cfg::Isa>
struct Reshape {
    N2D2_PLANES(Cfg);
    enum : int {
        C = Output::Channels,
        H = Output::Height,
        W = Output::Width,
        InputHeight = Input::Height,
        InputWidth = Input::Width,
        Flat = bool(PlaneTraits<Input>::Flat) && bool(PlaneTraits<Output>::Flat) &&
               std::is_same<typename Cfg::Epilogue, Moved<typename Input::Type> >::value,
        ToVector = Flat && H * W == 1,
        ToImage = Flat && !ToVector && InputHeight * InputWidth == 1
    };
    static_assert(C * H * W == static_cast<int>(Input::Channels) * InputHeight * InputWidth,
                  "a reshape keeps the number of elements");

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out) {
        Form<ToVector ? 1 : ToImage ? 2 : 0>::run(in, out);
    }

    template <int, class Any = void>
    struct Form {
        static N2D2_INLINE void run(const unsigned char* in, unsigned char* out) { single(in, out); }
    };
    template <class Any>
    struct Form<1, Any> {
        static N2D2_INLINE void run(const unsigned char* in, unsigned char* out) {
            constexpr int pixels = InputHeight * InputWidth;
            Transposed<In, pixels, Input::Channels>::run(line<Input>(in, 0), Input::Stride, line<Output>(out, 0), pixels);
        }
    };
    template <class Any>
    struct Form<2, Any> {
        static N2D2_INLINE void run(const unsigned char* in, unsigned char* out) {
            Transposed<In, C, H * W>::run(line<Input>(in, 0), H * W, line<Output>(out, 0), Output::Stride);
        }
    };

    static N2D2_INLINE void single(const unsigned char* in, unsigned char* out) {
        Tasks<false, H, 1, 4L * C * W>::run([=](int y, int) N2D2_INLINE_LAMBDA {
            typename Output::Type* const to = line<Output>(out, y);
            for (int x = 0; x < W; ++x)
                for (int c = 0; c < C; ++c) {
                    const int n = (c * H + y) * W + x;
                    const int column = n % InputWidth, row = n / InputWidth % InputHeight;
                    const int channel = n / (InputWidth * InputHeight);
                    to[x * Output::Stride + c] =
                        Cfg::Epilogue::apply(line<Input>(in, row)[column * Input::Stride + channel], c);
                }
        });
    }
};

N2D2_LAYER(reshape, Reshape<Cfg>)

}  // namespace n2d2
