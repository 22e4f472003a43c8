// Maximum over a window plus another tensor, in one pass over memory.
//
//   out[y][x][c] = Epilogue(largest in over the part of the window inside the input + other[y][x][c])
//
// Axes on which the pooled image, or `other`, has length 1 are repeated. A position outside the input never wins, and every window has one
// inside. Types: floating point, or integers, whose sums are modulo 2^bits.
//
// in, other, out: planes in HWC, output apart from the inputs. The innermost loop runs over channels. A line of the output
// reads its lines of the input from left to right; the maxima of the columns that the next window has too are kept (one
// third of the loads of a 3 x 3 window of stride 2). A maximum does not change when a value counts twice, so windows on the border
// take the nearest line or column inside for one outside. With Streaming the output passes the caches.
// Stack: two pixels of a tile, and the columns kept.
// Config: planes Input, Other, Output; types Epilogue, Isa; enum KernelHeight, KernelWidth, StrideHeight, StrideWidth,
// PadTop, PadLeft, PooledHeight, PooledWidth, Streaming.
#pragma once

#include <type_traits>

#include "n2d2/pool.hpp"

#if !defined(N2D2_ISA_PORTABLE) && defined(__GNUC__) && defined(__SSE2__)
#define N2D2_STREAM
#include <emmintrin.h>
#endif

namespace n2d2 {

// Stores that bypass the caches, for results that are not read soon: no cache line is fetched to be overwritten.
//
//   streamed<Bytes>(to)        whether `to` can be stored to in this way: 16 bytes at a time, aligned
//   stream<Bytes>(from, to)    Bytes bytes
//   streamEnd()                behind the last of them, before another thread reads
#if defined(N2D2_STREAM)
template <int Bytes>
N2D2_INLINE bool streamed(const void* to) {
    return Bytes % 16 == 0 && reinterpret_cast<std::uintptr_t>(to) % 16 == 0;
}
template <int Bytes>
N2D2_INLINE void stream(const void* from, void* to) {
    for (int i = 0; i < Bytes / 16; ++i)
        _mm_stream_si128(static_cast<__m128i*>(to) + i, _mm_loadu_si128(static_cast<const __m128i*>(from) + i));
}
N2D2_INLINE void streamEnd() { _mm_sfence(); }
#else
template <int Bytes>
N2D2_INLINE bool streamed(const void*) {
    return false;
}
template <int Bytes>
N2D2_INLINE void stream(const void*, void*) {}
N2D2_INLINE void streamEnd() {}
#endif

// a + b; of integers modulo 2^bits.
template <class T, bool Integer = std::numeric_limits<T>::is_integer>
struct PoolAdd {
    static N2D2_INLINE T sum(T a, T b) { return a + b; }
};
template <class T>
struct PoolAdd<T, true> {
    static N2D2_INLINE T sum(T a, T b) {
        typedef typename std::make_unsigned<T>::type Bits;
        return static_cast<T>(static_cast<Bits>(a) + static_cast<Bits>(b));
    }
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct PoolSum {
    N2D2_WINDOWS(Cfg);
    typedef typename Cfg::Other Other;
    typedef typename Input::Type T;
    enum : int {
        SW = Cfg::StrideWidth,
        C = Output::Channels,
        Most = 256 / int(sizeof(T)),
        Tile = int(C) < int(Most) ? int(C) : int(Most),
        Rest = C % Tile,
        Shared = KW > SW ? KW - SW : 0,
        Kept = Shared <= 4 ? int(Shared) : 0,
        OnePooledChannel = int(Input::Channels) != int(C),
        OneOtherChannel = int(Other::Channels) != int(C),
        OnePooledLine = int(Cfg::PooledHeight) != int(Output::Height),
        OnePooledColumn = int(Cfg::PooledWidth) != int(Output::Width),
        OneOtherLine = int(Other::Height) != int(Output::Height),
        OneOtherColumn = int(Other::Width) != int(Output::Width)
    };
    static_assert(Cfg::PadTop < int(KH) && (Cfg::PooledHeight - 1) * Cfg::StrideHeight - Cfg::PadTop < int(H) &&
                      Cfg::PadLeft < int(KW) && (Cfg::PooledWidth - 1) * SW - Cfg::PadLeft < int(W),
                  "every window has a position inside");
    static_assert((!int(OnePooledChannel) || int(Input::Channels) == 1) &&
                      (!int(OneOtherChannel) || int(Other::Channels) == 1) && (!int(OneOtherLine) || int(Other::Height) == 1) &&
                      (!int(OneOtherColumn) || int(Other::Width) == 1),
                  "operands have the shape of the output but for axes of length 1");

    static N2D2_INLINE constexpr int nearest(int i, int size) { return i < 0 ? 0 : i < size ? i : size - 1; }

    template <int Count>
    static N2D2_INLINE void finish(const T* best, const T* other, int channel, T* out, bool streaming) {
        alignas(16) T values[Count];
        for (int i = 0; i < Count; ++i)
            values[i] = Cfg::Epilogue::apply(PoolAdd<T>::sum(best[OnePooledChannel ? 0 : i], other[OneOtherChannel ? 0 : i]),
                                             channel + i);
        if (streaming) {
            stream<int(sizeof(T)) * Count>(values, out);
            return;
        }
        for (int i = 0; i < Count; ++i)
            out[i] = values[i];
    }

    // The largest of a column of the window; rows: its lines.
    static N2D2_INLINE T column(const T* const* rows, int at) {
        T value = rows[0][at];
        for (int v = 1; v < KH; ++v)
            value = higher(value, rows[v][at]);
        return value;
    }

    // The windows of a line from left to right, Count channels from `channel`.
    template <int Count>
    static N2D2_INLINE void windows(const T* const* rows, const T* others, int channel, T* to, bool streaming) {
        constexpr int pooled = OnePooledChannel ? 1 : Count, first = Kept > 0 ? Kept : 1, end = Output::Width;
        constexpr int width = OnePooledColumn ? 1 : end;
        T kept[first][pooled] = {};
        for (int u = 0; u < Kept; ++u)
            for (int i = 0; i < pooled; ++i)
                kept[u][i] = column(rows, nearest(u - Cfg::PadLeft, W) * Input::Stride + i);
        for (int x = 0; x < width; ++x) {
            int at[KW];
            for (int u = Kept; u < KW; ++u)
                at[u] = nearest(x * SW - Cfg::PadLeft + u, W) * Input::Stride;
            alignas(16) T best[pooled];
            for (int i = 0; i < pooled; ++i) {
                T columns[KW];
                for (int u = 0; u < KW; ++u)
                    columns[u] = u < Kept ? kept[u < Kept ? u : 0][i] : column(rows, at[u] + i);
                T value = columns[0];
                for (int u = 1; u < KW; ++u)
                    value = higher(value, columns[u]);
                for (int u = 0; u < Kept; ++u)
                    kept[u][i] = columns[u + SW < KW ? u + SW : 0];
                best[i] = value;
            }
            for (int step = 0; step < (OnePooledColumn ? end : 1); ++step)
                finish<Count>(best, others + (OneOtherColumn ? 0 : x + step) * Other::Stride, channel,
                              to + (x + step) * Output::Stride, streaming);
        }
    }

    // Count channels of a line of the output, from `channel`.
    template <int Count>
    static N2D2_INLINE void tile(const unsigned char* in, const unsigned char* more, int y, int channel, T* to) {
        const T* const others = line<Other>(more, OneOtherLine ? 0 : y) + (OneOtherChannel ? 0 : channel);
        const T* rows[KH];
        for (int v = 0; v < KH; ++v)
            rows[v] = line<Input>(in, nearest((OnePooledLine ? 0 : y) * Cfg::StrideHeight - Cfg::PadTop + v, H)) +
                      (OnePooledChannel ? 0 : channel);
        constexpr int size = sizeof(T), bytes = Count * size, pitch = Output::Stride * size;
        constexpr bool streaming = Cfg::Streaming != 0 && bytes % 16 == 0 && pitch % 16 == 0;
        if (streaming && streamed<bytes>(to + channel)) {
            windows<Count>(rows, others, channel, to + channel, true);
            streamEnd();
        } else {
            windows<Count>(rows, others, channel, to + channel, false);
        }
    }

    static N2D2_INLINE void run(const unsigned char* in, const unsigned char* more, unsigned char* out) {
        constexpr int width = Output::Width, rest = Rest;
        constexpr long work = static_cast<long>(KH) * KW * C * width;
        Tasks<false, Output::Height, 1, work>::run([=](int y, int) N2D2_INLINE_LAMBDA {
            T* const to = line<Output>(out, y);
            for (int c = 0; c + Tile <= C; c += Tile)
                tile<Tile>(in, more, y, c, to);
            if (rest > 0)
                tile<(rest > 0 ? rest : 1)>(in, more, y, C - rest, to);
        });
    }
};

N2D2_LAYER(poolSum, PoolSum<Cfg>)

}  // namespace n2d2
