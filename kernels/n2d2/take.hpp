// Chosen positions of each axis.
//
//   out[y][x][c] = Stage(in[Lines::at(y)][Columns::at(x)][Taken::at(c)])
//
// Input and output are disjoint. Config: planes Input, Output; types Lines, Columns, Taken, Stage, Isa.
#ifndef N2D2_TAKE_HPP
#define N2D2_TAKE_HPP

#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

// Positions First, First + Step, First + 2 Step, ...
template <int First, int Step>
struct TakeRange {
    static N2D2_INLINE int at(int i) { return First + i * Step; }
};

// Positions in a table.
template <const std::int32_t* Table>
struct TakeTable {
    static N2D2_INLINE int at(int i) { return Table[i]; }
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct Take {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    enum : int { C = Output::Channels, W = Output::Width };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out) {
        Tasks<false, Output::Height, 1, static_cast<long>(C) * W>::run([=](int y, int) N2D2_INLINE_LAMBDA {
            const typename Input::Type* const from = line<Input>(in, Cfg::Lines::at(y));
            typename Output::Type* const to = line<Output>(out, y);
            for (int x = 0; x < W; ++x) {
                const typename Input::Type* const pixel = from + Cfg::Columns::at(x) * Input::Stride;
                for (int c = 0; c < C; ++c)
                    to[x * Output::Stride + c] = Cfg::Stage::apply(pixel[Cfg::Taken::at(c)], c);
            }
        });
    }
};

template <class Cfg>
N2D2_INLINE void take(const unsigned char* in, unsigned char* out) {
    Take<Cfg>::run(in, out);
}

}  // namespace n2d2

#endif  // N2D2_TAKE_HPP
