// Max unpooling: each value goes back to where a max pool found its maximum; all else is OutputZero.
//
//   out[argmax of window (i, j) of pooled[.][.][c]][c] = in[i][j][c]
//
// The positions are found again in `pooled`, what the pool read; the first of equal values counts, in line order.
// Floating-point values that meet are added; integer windows do not overlap. Every output line finds what lies
// on it by itself, so that lines are independent.
//
// Config: planes Input, Pooled, Output; types Epilogue, Isa; enum KernelHeight, KernelWidth, StrideHeight, StrideWidth,
// PadTop, PadLeft, OutputZero, Serial, Reverse.
// Line order: out line y is stored while the windows that hold it or a later line (with Reverse: an earlier one), and all that
// they cover of `pooled`, are intact.
#pragma once

#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

template <class Cfg, class Isa = typename Cfg::Isa>
struct Unpool {
    N2D2_WINDOWS(Cfg);
    typedef typename Cfg::Pooled Pooled;
    enum : int {
        SH = Cfg::StrideHeight,
        SW = Cfg::StrideWidth,
        C = Output::Channels,
        Integer = std::numeric_limits<Out>::is_integer
    };
    static_assert(int(Input::Channels) == int(Output::Channels) && int(Pooled::Channels) == int(Output::Channels),
                  "unpooling keeps the number of channels");
    static_assert(!Integer || (int(SH) >= int(KH) && int(SW) >= int(KW)), "windows of integers must not overlap");

    // The column of the maximum of channel c in the window at (top, left), -1 where it is not on line y.
    static N2D2_INLINE int columnOn(const unsigned char* pooled, int y, int top, int left, int c) {
        constexpr int height = Pooled::Height, width = Pooled::Width;
        int row = -1, column = -1;
        typename Pooled::Type best = typename Pooled::Type(0);
        for (int v = largest(top, 0); v < least(top + KH, height); ++v) {
            const typename Pooled::Type* const from = line<Pooled>(pooled, v) + c;
            for (int u = largest(left, 0); u < least(left + KW, width); ++u) {
                const typename Pooled::Type value = from[u * Pooled::Stride];
                if (row < 0 || best < value || (value != value && best == best)) {
                    best = value;
                    row = v;
                    column = u;
                }
            }
        }
        return row == y ? column : -1;
    }

    static N2D2_INLINE void put(Out& to, typename Input::Type value) {
        to = Integer ? static_cast<Out>(value) : static_cast<Out>(to + value);
    }

    static N2D2_INLINE void run(const unsigned char* in, const unsigned char* pooled, unsigned char* out,
                                const Rows& rows = Rows::all<Output>()) {
        constexpr int windows = Input::Height, columns = Input::Width, width = OW;
        LayerTasks<Cfg, 1, static_cast<long>(KH) * KW * C * OW>::run(rows, [=](int y, int) N2D2_INLINE_LAMBDA {
            Out* const to = line<Output>(out, y);
            for (int x = 0; x < OW; ++x)
                for (int c = 0; c < C; ++c)
                    to[x * Output::Stride + c] = static_cast<Out>(Cfg::OutputZero);
            for (int i = 0; i < windows; ++i) {
                const int top = i * SH - Cfg::PadTop;
                if (y < top || y >= top + KH)
                    continue;
                const typename Input::Type* const from = line<Input>(in, i);
                for (int j = 0; j < columns; ++j)
                    for (int c = 0; c < C; ++c) {
                        const int x = columnOn(pooled, y, top, j * SW - Cfg::PadLeft, c);
                        if (x >= 0 && x < width)
                            put(to[x * Output::Stride + c], from[j * Input::Stride + c]);
                    }
            }
            for (int x = 0; x < OW; ++x)
                for (int c = 0; c < C; ++c)
                    to[x * Output::Stride + c] = Cfg::Epilogue::apply(to[x * Output::Stride + c], c);
        });
    }
};

N2D2_LAYER(unpool, Unpool<Cfg>)

}  // namespace n2d2
