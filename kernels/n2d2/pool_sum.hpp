// Maximum over a window plus another tensor, in one pass over memory.
//
//   out[y][x][c] = Stage(largest in over the part of the window inside the input + other[y][x][c])
//
// Axes on which the pooled image, or `other`, has length 1 are repeated. A position outside the input never wins: a window
// that has none is the lowest value. Types: floating point, or integers whose sums fit.
//
// in, other, out: planes in HWC, output apart from the inputs. The innermost loop runs over channels, with the taps of a
// whole window unrolled, so that maxima stay in registers. Windows on the border take the part that is inside.
// Config: planes Input, Other, Output; types Stage, Isa; enum KernelHeight, KernelWidth, StrideHeight, StrideWidth,
// PadTop, PadLeft, PooledHeight, PooledWidth.
#ifndef N2D2_POOL_SUM_HPP
#define N2D2_POOL_SUM_HPP

#include "n2d2/pool.hpp"

namespace n2d2 {

template <class Cfg, class Isa = typename Cfg::Isa>
struct PoolSum {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Other Other;
    typedef typename Cfg::Output Output;
    typedef typename Input::Type T;
    enum : int {
        KH = Cfg::KernelHeight,
        KW = Cfg::KernelWidth,
        C = Output::Channels,
        Tile = C < 32 ? int(C) : 32,
        Rest = C % Tile,
        OnePooledChannel = int(Input::Channels) != int(C),
        OneOtherChannel = int(Other::Channels) != int(C),
        OnePooledLine = int(Cfg::PooledHeight) != int(Output::Height),
        OnePooledColumn = int(Cfg::PooledWidth) != int(Output::Width),
        OneOtherLine = int(Other::Height) != int(Output::Height),
        OneOtherColumn = int(Other::Width) != int(Output::Width),
        Unrolled = KH * KW <= 25
    };
    static_assert((!int(OnePooledChannel) || int(Input::Channels) == 1) && (!int(OneOtherChannel) || int(Other::Channels) == 1) &&
                      (!int(OneOtherLine) || int(Other::Height) == 1) && (!int(OneOtherColumn) || int(Other::Width) == 1),
                  "operands have the shape of the output but for axes of length 1");

    static N2D2_INLINE constexpr T lowest() {
        return std::numeric_limits<T>::has_infinity ? static_cast<T>(-std::numeric_limits<T>::infinity())
                                                    : std::numeric_limits<T>::lowest();
    }
    static N2D2_INLINE T largest(T a, T b) { return a < b ? b : a; }

    template <int Count>
    static N2D2_INLINE void finish(const T* best, const T* other, int channel, T* out) {
        T values[Count];
        for (int i = 0; i < Count; ++i)
            values[i] = Cfg::Stage::apply(static_cast<T>(best[i] + other[OneOtherChannel ? 0 : i]), channel + i);
        for (int i = 0; i < Count; ++i)
            out[i] = values[i];
    }

    // A window inside the image; rows: its lines, at its first column and the first channel of the tile.
    template <int Count>
    static N2D2_INLINE void whole(const T* const* rows, const T* other, int channel, T* out) {
        T best[Count];
        for (int i = 0; i < Count; ++i) {
            const int c = OnePooledChannel ? 0 : i;
            T value = rows[0][c];
            for (int v = 0; v < KH; ++v)
                for (int u = 0; u < KW; ++u)
                    value = largest(value, rows[v][u * Input::Stride + c]);
            best[i] = value;
        }
        finish<Count>(best, other, channel, out);
    }

    template <int Count>
    static N2D2_INLINE void part(const unsigned char* in, Span lines, Span columns, const T* other, int channel, T* out) {
        T best[Count];
        for (int i = 0; i < Count; ++i)
            best[i] = lowest();
        for (int v = lines.begin; v < lines.end; ++v) {
            const T* const row = line<Input>(in, v) + (OnePooledChannel ? 0 : channel);
            for (int u = columns.begin; u < columns.end; ++u)
                for (int i = 0; i < Count; ++i)
                    best[i] = largest(best[i], row[u * Input::Stride + (OnePooledChannel ? 0 : i)]);
        }
        finish<Count>(best, other, channel, out);
    }

    template <int Count>
    static N2D2_INLINE void tile(const unsigned char* in, int y, int x, const T* other, int channel, T* out) {
        const int top = (OnePooledLine ? 0 : y) * Cfg::StrideHeight - Cfg::PadTop;
        const int left = (OnePooledColumn ? 0 : x) * Cfg::StrideWidth - Cfg::PadLeft;
        if (Unrolled && top >= 0 && top + KH <= Input::Height && left >= 0 && left + KW <= Input::Width) {
            const T* rows[KH];
            for (int v = 0; v < KH; ++v)
                rows[v] = line<Input>(in, top + v) + left * Input::Stride + (OnePooledChannel ? 0 : channel);
            whole<Count>(rows, other, channel, out);
        } else {
            part<Count>(in, Span::of(top, KH, Input::Height), Span::of(left, KW, Input::Width), other, channel, out);
        }
    }

    static N2D2_INLINE void run(const unsigned char* in, const unsigned char* more, unsigned char* out) {
        constexpr int width = Output::Width, rest = Rest;
        constexpr long work = static_cast<long>(KH) * KW * C * width;
        Tasks<false, Output::Height, 1, work>::run([=](int y, int) N2D2_INLINE_LAMBDA {
            const T* const others = line<Other>(more, OneOtherLine ? 0 : y);
            T* const to = line<Output>(out, y);
            for (int x = 0; x < width; ++x) {
                const T* const other = others + (OneOtherColumn ? 0 : x) * Other::Stride;
                T* const pixel = to + x * Output::Stride;
                for (int c = 0; c + Tile <= C; c += Tile)
                    tile<Tile>(in, y, x, other + (OneOtherChannel ? 0 : c), c, pixel + c);
                if (rest > 0)
                    tile<(rest > 0 ? rest : 1)>(in, y, x, other + (OneOtherChannel ? 0 : C - rest), C - rest,
                                                pixel + C - rest);
            }
        });
    }
};

template <class Cfg>
N2D2_INLINE void poolSum(const unsigned char* in, const unsigned char* other, unsigned char* out) {
    PoolSum<Cfg>::run(in, other, out);
}

}  // namespace n2d2

#endif  // N2D2_POOL_SUM_HPP
