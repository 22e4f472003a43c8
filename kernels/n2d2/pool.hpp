// Maximum and mean over a window, channel by channel; a global pool is a window as large as the input.
//
//   poolMax      out[y][x][c] = Epilogue(largest in over the part of the window inside the input)
//   poolAverage  integers: Epilogue(sum of (in - InputZero), index); floating point: Epilogue(sum / count)
//   poolMean     integers as real numbers: Epilogue(sum of ((in - InputZero) * scale) / count), in float
//
// A position outside the input never wins a maximum and adds nothing to a sum. `count` is the whole window
// with CountPad, else the part of it inside the input. With integers the division is part of the rescale, whose
// constants are then one (PerCount = 0) or one for each possible count, at index count - 1.
//
// The sums of poolMean round, so that their order counts (Order): 0 a window that is the whole input in four sums over
// every fourth position, added (0 + 2) + (1 + 3), then the positions that are left; 1 each column from the top, then
// these sums from the left; 2 one position after the other.
//
// in, out: planes in HWC with equal Channels. The innermost loop runs over channels.
// Config: planes Input, Output; types Sum (poolAverage), Epilogue, Isa; enum KernelHeight, KernelWidth,
// StrideHeight, StrideWidth, PadTop, PadLeft, Serial, Reverse, and for poolAverage InputZero, CountPad, PerCount; for
// poolMean InputZero, CountPad, Order and the type Scale, a struct { static constexpr float scale(); }.
// Line order: out line y is stored while in lines >= y*SH - T are intact; with Reverse, from the last line on, while
// those that lines <= y read are.
//
// poolMaxLines and poolAverageLines are global pools that take some lines of the input at a time, from the first to the
// last, and keep their partial results, one for each channel, from byte Cfg::Kept of the output's base on. The call with the last line
// stores the output.
#pragma once

#include "n2d2/line_order.hpp"
#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/pointwise.hpp"

namespace n2d2 {

// The part of a window that lies inside an axis of `size`: [begin, end) in input coordinates.
struct Span {
    int begin;
    int end;

    static N2D2_INLINE Span of(int start, int extent, int size) {
        const Span span = {largest(start, 0), least(start + extent, size)};
        return span;
    }
    N2D2_INLINE int count() const { return end > begin ? end - begin : 0; }
};

// A Reducer has, of Count channels: start(values) of type Partial, add(in, rows, columns, channel, values) what lies in a window,
// finish(values, positions inside, channel, out pixel).
template <class Cfg, class Reducer>
struct PoolWindows {
    N2D2_PLANES(Cfg);
    enum : int {
        C = Input::Channels,
        Tile = C < 64 ? int(C) : 64,
        Tiles = (C + Tile - 1) / Tile,
        LastTile = C - (Tiles - 1) * Tile
    };
    static_assert(int(Input::Channels) == int(Output::Channels), "a pool keeps the number of channels");

    template <int Count>
    static N2D2_INLINE void window(const unsigned char* in, Span rows, Span columns, int channel, Out* out) {
        typename Reducer::Partial values[Count];
        Reducer::template start<Count>(values);
        Reducer::template add<Count>(in, rows, columns, channel, values);
        Reducer::template finish<Count>(values, rows.count() * columns.count(), channel, out);
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Rows& lines = Rows::all<Output>()) {
        constexpr long work = static_cast<long>(Cfg::KernelHeight) * Cfg::KernelWidth * Tile * int(Output::Width);
        typedef LineOrder<Input, Output, Cfg::StrideHeight, Cfg::PadTop, Cfg::KernelHeight, (Cfg::Reverse != 0),
                          (Cfg::Streamed != 0)>
            Order;
        LayerTasks<Cfg, Tiles, work, Order>::run(lines, [=](int y, int tile) N2D2_INLINE_LAMBDA {
            typename Output::Type* const to = line<Output>(out, y);
            const Span rows = Span::of(y * Cfg::StrideHeight - Cfg::PadTop, Cfg::KernelHeight, Input::Height);
            for (int x = 0; x < Output::Width; ++x) {
                const Span columns = Span::of(x * Cfg::StrideWidth - Cfg::PadLeft, Cfg::KernelWidth, Input::Width);
                if (tile + 1 < Tiles)
                    window<Tile>(in, rows, columns, tile * Tile, to + x * Output::Stride);
                else
                    window<LastTile>(in, rows, columns, tile * Tile, to + x * Output::Stride);
            }
        });
    }
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct PoolMax {
    N2D2_PLANES(Cfg);
    typedef In Partial;

    template <int Count>
    static N2D2_INLINE void start(In* best) {
        typedef std::numeric_limits<In> Limits;
        for (int i = 0; i < Count; ++i)
            best[i] = Limits::has_infinity ? static_cast<In>(-Limits::infinity()) : Limits::lowest();
    }

    template <int Count>
    static N2D2_INLINE void add(const unsigned char* in, Span rows, Span columns, int channel, In* best) {
        for (int v = rows.begin; v < rows.end; ++v) {
            const In* const row = line<Input>(in, v) + channel;
            for (int u = columns.begin; u < columns.end; ++u) {
                const In* const from = row + u * Input::Stride;
                if (std::numeric_limits<In>::has_infinity && Count <= 16) {
                    N2D2_KEEP_LOOP
                    for (int i = 0; i < Count; ++i)
                        best[i] = higher(best[i], from[i]);
                } else
                    for (int i = 0; i < Count; ++i)
                        best[i] = higher(best[i], from[i]);
            }
        }
    }

    template <int Count>
    static N2D2_INLINE void finish(const In* best, int, int channel, Out* out) {
        store<typename Cfg::Epilogue, Count>(best, channel, out + channel);
    }
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct PoolAverage {
    N2D2_PLANES(Cfg);
    typedef typename Cfg::Sum Sum;
    typedef typename Cfg::Epilogue Epilogue;
    typedef Sum Partial;
    enum : bool { Integer = std::numeric_limits<Sum>::is_integer };

    template <int Count>
    static N2D2_INLINE void start(Sum* sums) {
        for (int i = 0; i < Count; ++i)
            sums[i] = Sum(0);
    }

    template <int Count>
    static N2D2_INLINE void add(const unsigned char* in, Span rows, Span columns, int channel, Sum* sums) {
        for (int v = rows.begin; v < rows.end; ++v) {
            const In* const row = line<Input>(in, v) + channel;
            for (int u = columns.begin; u < columns.end; ++u) {
                const In* const from = row + u * Input::Stride;
                for (int i = 0; i < Count; ++i)
                    sums[i] += static_cast<Sum>(from[i]);
            }
        }
    }

    template <int Count>
    static N2D2_INLINE void finish(const Sum* sums, int inside, int channel, Out* out) {
        const int counted = Cfg::CountPad ? Cfg::KernelHeight * Cfg::KernelWidth : inside;
        const int index = Cfg::PerCount ? largest(counted, 1) - 1 : 0;
        const Sum zero = static_cast<Sum>(Cfg::InputZero) * static_cast<Sum>(inside);
        const Sum divisor = Integer ? Sum(1) : static_cast<Sum>(counted);
        Sum centred[Count];
        for (int i = 0; i < Count; ++i)
            centred[i] = Integer ? static_cast<Sum>(sums[i] - zero) : sums[i] / divisor;
        Last<(Cfg::PerCount != 0)>::template run<Count>(centred, index, out + channel);
    }

    // The epilogue; with the constants of one count of several, which no vector of constants is made for, in portable form.
    template <bool, class Any = void>
    struct Last : EpilogueRun<Epilogue, false, Isa> {};
    template <class Any>
    struct Last<true, Any> : PortableRun<Epilogue, false> {};
};

template <class Cfg, class Reducer>
struct PoolLines {
    N2D2_PLANES(Cfg);
    typedef typename Reducer::Partial Partial;
    typedef PoolWindows<Cfg, Reducer> Windows;
    static_assert(int(Output::Height) == 1 && int(Output::Width) == 1 && int(Cfg::KernelHeight) == int(Input::Height) &&
                      int(Cfg::KernelWidth) == int(Input::Width),
                  "only a global pool takes its input line by line");

    template <int Count>
    static N2D2_INLINE void part(const unsigned char* in, unsigned char* out, const Rows& rows, int channel) {
        constexpr int height = Input::Height, width = Input::Width;
        unsigned char* const kept = out + Cfg::Kept + static_cast<long>(channel) * static_cast<int>(sizeof(Partial));
        const Span lines = {rows.begin, rows.end}, columns = {0, width};
        Partial values[Count];
        if (rows.begin == 0)
            Reducer::template start<Count>(values);
        else
            copyBytes(values, kept, sizeof(values));
        Reducer::template add<Count>(in, lines, columns, channel, values);
        if (rows.end == height)
            Reducer::template finish<Count>(values, height * width, channel, line<Output>(out, 0));
        else
            copyBytes(kept, values, sizeof(values));
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Rows& rows) {
        for (int tile = 0; tile + 1 < Windows::Tiles; ++tile)
            part<Windows::Tile>(in, out, rows, tile * Windows::Tile);
        part<Windows::LastTile>(in, out, rows, (Windows::Tiles - 1) * Windows::Tile);
    }
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct PoolMean {
    N2D2_PLANES(Cfg);
    typedef float Partial;

    static N2D2_INLINE float real(In x) {
        return unfused((static_cast<float>(x) - static_cast<float>(Cfg::InputZero)) * Cfg::Scale::scale());
    }

    template <int Count>
    static N2D2_INLINE void start(float* sums) {
        for (int i = 0; i < Count; ++i)
            sums[i] = 0.0f;
    }

    template <int Count>
    static N2D2_INLINE void addPixel(const unsigned char* in, int v, int u, int channel, float* sums) {
        const In* const from = line<Input>(in, v) + u * Input::Stride + channel;
        for (int i = 0; i < Count; ++i)
            sums[i] += real(from[i]);
    }

    template <int Count>
    static N2D2_INLINE void lanes(const unsigned char* in, Span rows, Span columns, int channel, float* sums) {
        constexpr int width = Cfg::KernelWidth, whole = Cfg::KernelHeight * width / 4 * 4;
        float parts[4][Count];
        for (int l = 0; l < 4; ++l)
            start<Count>(parts[l]);
        for (int p = 0; p < whole; ++p)
            addPixel<Count>(in, rows.begin + p / width, columns.begin + p % width, channel, parts[p % 4]);
        for (int i = 0; i < Count; ++i)
            sums[i] = (parts[0][i] + parts[2][i]) + (parts[1][i] + parts[3][i]);
        for (int p = whole; p < Cfg::KernelHeight * width; ++p)
            addPixel<Count>(in, rows.begin + p / width, columns.begin + p % width, channel, sums);
    }

    template <int Count>
    static N2D2_INLINE void columnSums(const unsigned char* in, Span rows, Span columns, int channel, float* sums) {
        for (int u = columns.begin; u < columns.end; ++u) {
            float column[Count];
            start<Count>(column);
            for (int v = rows.begin; v < rows.end; ++v)
                addPixel<Count>(in, v, u, channel, column);
            for (int i = 0; i < Count; ++i)
                sums[i] += column[i];
        }
    }

    template <int Count>
    static N2D2_INLINE void add(const unsigned char* in, Span rows, Span columns, int channel, float* sums) {
        if (Cfg::Order == 0)
            lanes<Count>(in, rows, columns, channel, sums);
        else if (Cfg::Order == 1)
            columnSums<Count>(in, rows, columns, channel, sums);
        else
            for (int v = rows.begin; v < rows.end; ++v)
                for (int u = columns.begin; u < columns.end; ++u)
                    addPixel<Count>(in, v, u, channel, sums);
    }

    template <int Count>
    static N2D2_INLINE void finish(const float* sums, int inside, int channel, Out* out) {
        const float counted = static_cast<float>(Cfg::CountPad ? Cfg::KernelHeight * Cfg::KernelWidth : inside);
        for (int i = 0; i < Count; ++i)
            out[channel + i] = Cfg::Epilogue::apply(sums[i] / counted, 0);
    }
};

N2D2_LAYER(poolMean, PoolWindows<Cfg, PoolMean<Cfg> >)

N2D2_LAYER(poolMax, PoolWindows<Cfg, PoolMax<Cfg> >)

N2D2_LAYER(poolAverage, PoolWindows<Cfg, PoolAverage<Cfg> >)

// rows: lines of the input.
N2D2_LAYER(poolMaxLines, PoolLines<Cfg, PoolMax<Cfg, Portable> >)
N2D2_LAYER(poolAverageLines, PoolLines<Cfg, PoolAverage<Cfg, Portable> >)

}  // namespace n2d2

#define N2D2_BIND_POOL
#include "n2d2/bindings.hpp"
#undef N2D2_BIND_POOL
