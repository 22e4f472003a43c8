// Dense convolution by lanes (lanes.hpp): one function for all layers, which reads their shapes from constants.
//
// A line is computed by chunks of pixels, the first half of a chunk beside the second one. Columns of inputs are spread once for all windows
// that have them: a window is a run of columns, and a column the pixels of all lines of the kernel. Where outputs of a line are odd and lines
// have no order, the second half is the next line. All windows of a chunk are spread before a result is stored.
#pragma once

#include "n2d2/mcu/lane_shape.hpp"
#include "n2d2/mcu/lanes.hpp"
#include "n2d2/parallel.hpp"

namespace n2d2 {
namespace lanes {

// A run of pixels of a line: the first one, and the bytes to the next, 0 for zero points outside the input.
struct Pixels {
    const unsigned char* from;
    std::int32_t step;
};

// Spreads columns of pixels that are not words, from pixels of each line of the kernel.
typedef void (*SpreadBytes)(const Pixels* lines, int columns, std::uint32_t* to);

template <bool Signed, int Lines, int Channels>
N2D2_MCU_FAST void spreadBytes(const Pixels* lines, int columns, std::uint32_t* to) {
    enum : int { Values = Lines * Channels, InRegisters = Lines <= 4 };
    const unsigned char* from[Lines];
    std::int32_t steps[Lines];
    for (int u = 0; u < Lines; ++u) {
        from[u] = lines[u].from;
        steps[u] = lines[u].step;
    }
    for (; columns > 0; --columns, to += (Values + 1) / 2 * 2) {
        N2D2_UNROLL
        for (int i = 0; i < Values; i += 2) {
            const int next = i + 1 < Values ? i + 1 : i;  // the last one has weights of 0
            to[i] = pairOf<Signed>(from[i / Channels][i % Channels], from[next / Channels][next % Channels]);
        }
        N2D2_UNROLL_FOR(u, Lines)
            from[u] += InRegisters ? steps[u] : lines[u].step;
    }
}

// A layer, and how columns of its inputs lie in a buffer.
struct Columns {
    Shape shape;
    std::int32_t inputs;                     // of a column, an even number
    std::int16_t step, pixel, phases, most;  // as in ColumnsOf
    SpreadBytes bytes;                       // null where pixels are words
};

// The buffers of a layer while it runs, which follow each other in one array.
struct Buffers {
    std::uint32_t* window;        // the columns of a chunk
    const unsigned char** lines;  // of both halves: 2 * kernelHeight
    Pixels* pixels;               // kernelHeight
    unsigned char* results;       // two pixels of outputs, rounded up to four
    unsigned char* padded;        // zero points of a pixel

    N2D2_INLINE Buffers(const Shape& s, const Columns& columns, std::uint32_t* room)
        : window(room),
          lines(reinterpret_cast<const unsigned char**>(room +
                                                        ((columns.most - 1) * columns.pixel + s.kernelWidth) * columns.inputs)),
          pixels(reinterpret_cast<Pixels*>(lines + 2 * s.kernelHeight)),
          results(reinterpret_cast<unsigned char*>(pixels + s.kernelHeight)),
          padded(results + (s.whole ? 0 : (s.outputs + 3) / 4 * 8)) {}
    template <class Cfg, class Layout>
    static constexpr int words() {
        return int(Layout::Words) + 4 * int(Cfg::KernelHeight) +
               (Cfg::WordOutput && Cfg::Output::Channels % 4 == 0 ? 0 : (int(Cfg::Output::Channels) + 3) / 4 * 2) +
               (int(Cfg::Input::Channels) + 3) / 4;
    }
};

// A half of a chunk: the lines of its windows, null outside the input, and the first pixel.
struct Side {
    const unsigned char** lines;
    std::int32_t left;  // the first column of its window
    unsigned char* out;
};

template <bool Signed, int Rounding, bool Clamped>
struct ConvolutionLayer {
    const Shape& s;
    const Columns& columns;
    const Buffers buffers;
    Work work;

    N2D2_INLINE ConvolutionLayer(const Columns& layout, std::uint32_t* room, const std::uint32_t* stream)
        : s(layout.shape), columns(layout), buffers(s, layout, room) {
        work.stream = stream;
        work.blocks = (s.outputs + 3) >> 2;
        work.zero = s.zero;
        work.low = work.room = 0;
        if (Clamped)
            limit(work, s);
        work.move = columns.pixel * columns.inputs * 4;
        work.next = columns.phases * s.out.stride;
        enter(work, s.inputs);
    }

    static N2D2_INLINE void spreadPixels(const unsigned char* from, std::uint32_t* to, const Along& along) {
        (Signed ? spreadSigned<> : spreadUnsigned<>)(from, to, &along);
    }

    // Spreads `count` columns from `column` on, or as many of zero points, to every other word from `to`; returns their end.
    N2D2_MCU_FAST std::uint32_t* spread(const Side& half, bool inside, int column, int count, std::uint32_t* to) {
        if (count <= 0)
            return to;
        const int from = column * s.in.stride, step = columns.step * s.in.stride, run = s.channels;
        const bool bytes = columns.bytes != nullptr;
        for (int u = 0; u < s.kernelHeight; ++u) {
            const unsigned char* const line = inside ? half.lines[u] : nullptr;
            const Pixels pixels = {line ? line + from : buffers.padded, line ? step : 0};
            if (bytes) {
                buffers.pixels[u] = pixels;
                continue;
            }
            const Along along = {pixels.step - run, 4 * (columns.inputs - run), run >> 2, count};
            spreadPixels(pixels.from, to + u * run, along);
        }
        if (bytes)
            columns.bytes(buffers.pixels, count, to);
        return to + count * columns.inputs;
    }

    // The same of all columns of `outputs` windows.
    N2D2_MCU_FAST void spread(const Side& half, int outputs, std::uint32_t* to) {
        if (s.point && !columns.bytes) {
            const Along along = {columns.step * s.in.stride - s.channels, 0, s.channels >> 2, outputs};
            spreadPixels(half.lines[0] + half.left * s.in.stride, to, along);
            return;
        }
        const int count = (outputs - 1) * columns.pixel + s.kernelWidth, step = columns.step, left = half.left;
        const int begin = left >= 0 ? 0 : least<int>(count, (step - 1 - left) / step);
        const int inside = s.point ? count : left >= s.in.width ? 0 : (s.in.width - 1 - left) / step + 1;
        const int end = largest(begin, least<int>(count, inside));
        to = spread(half, false, 0, begin, to);
        to = spread(half, true, left + begin * step, end - begin, to);
        spread(half, false, 0, count - end, to);
    }

    // The lines of the windows of an output line.
    N2D2_MCU_FAST void place(const unsigned char* in, int y, const unsigned char** lines) {
        int from = y * s.strideHeight - s.padTop;
        for (int u = 0; u < s.kernelHeight; ++u, from += s.dilationHeight)
            lines[u] = from < 0 || from >= s.in.height ? nullptr : in + offsetOf(s.in, from);
    }

    // The results of some pairs from that of number `at` on, or of the first one of a pair for no pairs.
    N2D2_MCU_FAST void products(int at, unsigned char* first, unsigned char* second, int pairs) {
        work.window = buffers.window + at * columns.pixel * columns.inputs;
        work.end = work.window + s.inputs;
        work.first = first;
        work.second = second;
        work.pixels = pairs;
        if (!Clamped)
            work.mask = pairs == 0 ? 0 : static_cast<std::uint32_t>(128 + 256 * s.zero);
        if (pairs == 0)
            Kernels<Rounding>::template one<>(&work);
        else
            Clamped ? Kernels<Rounding>::template twoClamped<>(&work) : Kernels<Rounding>::template two<>(&work);
    }

    // A chunk: `outputs` of the first half, of which the first `pairs` have one in the second half.
    N2D2_MCU_FAST void run(const Side& a, const Side& b, int outputs, int pairs) {
        spread(a, outputs, buffers.window);
        if (pairs > 0)
            spread(b, pairs, buffers.window + 1);
        if (s.whole) {
            if (pairs > 0)
                products(0, a.out, b.out, pairs);
            if (outputs > pairs)
                products(pairs, a.out + pairs * work.next, nullptr, 0);
            return;
        }
        unsigned char* const second = buffers.results + 4 * work.blocks;
        for (int at = 0; at < outputs; ++at) {
            products(at, buffers.results, second, at < pairs ? 1 : 0);
            copyBytes(a.out + at * work.next, buffers.results, static_cast<std::size_t>(s.outputs));
            if (at < pairs)
                copyBytes(b.out + at * work.next, second, static_cast<std::size_t>(s.outputs));
        }
    }
};

template <bool Signed, int Rounding, bool Clamped>
N2D2_MCU_FAST void convolution(const Columns& columns, const unsigned char* in, unsigned char* out, const std::uint32_t* stream,
                               std::uint32_t* room, int begin, int end) {
    const Shape& s = columns.shape;
    ConvolutionLayer<Signed, Rounding, Clamped> layer(columns, room, stream);
    const Buffers& buffers = layer.buffers;
    const bool flat = s.point && s.flat, odd = !flat && !s.ordered && columns.phases == 1 && (s.out.width & 1) != 0;
    const int phases = columns.phases;
    std::memset(buffers.padded, s.padding, static_cast<std::size_t>(s.channels));
    for (int turn = begin, count; turn < end; turn += count) {
        count = flat ? end - begin : odd && turn + 1 < end ? 2 : 1;
        const bool two = count == 2 && !flat;
        const int y = s.reverse ? s.out.height - turn - count : turn;
        layer.place(in, y, buffers.lines);
        if (two)
            layer.place(in, y + 1, buffers.lines + s.kernelHeight);
        unsigned char *const line = out + offsetOf(s.out, y), *const next = two ? out + offsetOf(s.out, y + 1) : line;
        for (int phase = 0; phase < phases; ++phase) {
            const int pixels = flat ? count * s.out.width : (s.out.width - phase + phases - 1) / phases;
            const int most = two ? columns.most : 2 * columns.most;
            for (int at = 0; at < pixels; at += most) {
                const int some = least<int>(most, pixels - at), outputs = two ? some : (some + 1) >> 1;
                const int x = phase + phases * (s.reverse ? pixels - at - some : at), x2 = two ? x : x + phases * outputs;
                const unsigned char** const lines = two ? buffers.lines + s.kernelHeight : buffers.lines;
                layer.run(Side{buffers.lines, x * s.strideWidth - s.padLeft, line + x * s.out.stride},
                          Side{lines, x2 * s.strideWidth - s.padLeft, next + x2 * s.out.stride}, outputs,
                          two ? some : some >> 1);
            }
        }
    }
}

constexpr int greatestDivisor(int a, int b) { return b == 0 ? a : greatestDivisor(b, a % b); }

template <class Cfg>
struct ColumnsOf {
    N2D2_PLANES(Cfg);
    enum : int {
        Bytes = !Cfg::WordInput || int(Input::Channels) % 4 != 0,
        Inputs = (int(Cfg::KernelHeight) * int(Input::Channels) + 1) / 2 * 2,
        K = Inputs * int(Cfg::KernelWidth),
        Single = Cfg::KernelWidth == 1,
        Divisor = greatestDivisor(Cfg::StrideWidth, Cfg::DilationWidth),
        Step = int(Single) ? int(Cfg::StrideWidth) : int(Cfg::DilationWidth),  // of the input, from a column to the next
        Pixel = int(Single) ? 1 : int(Cfg::StrideWidth) / int(Divisor),  // columns from an output to the next of its phase
        // Outputs whose columns are none of each other's, which are computed apart.
        Phases = int(Single) ? 1 : int(Cfg::DilationWidth) / int(Divisor),
        // Outputs of half of a chunk. Windows take 2,560 bytes at most and pixels 1,024, unless one of both halves takes more.
        Room = (int(Single) ? 1024 : 2560) / (4 * int(Inputs)),
        Fit = int(Room) < int(Cfg::KernelWidth) ? 1 : (int(Room) - int(Cfg::KernelWidth)) / int(Pixel) + 1,
        Most = least(least(8, int(Fit)), int(Output::Width)),
        Words = ((int(Most) - 1) * int(Pixel) + int(Cfg::KernelWidth)) * int(Inputs)
    };
    typedef typename Input::Type Type;
    template <bool OfBytes, class Found = void>
    struct Spread {
        static constexpr SpreadBytes function() { return nullptr; }
    };
    template <class Found>
    struct Spread<true, Found> {
        static constexpr SpreadBytes function() {
            return spreadBytes<std::numeric_limits<Type>::is_signed, Cfg::KernelHeight, Input::Channels>;
        }
    };
    static constexpr Columns columns() {
        return Columns{shapeOf<Cfg>(K), Inputs, Step, Pixel, Phases, Most, Spread<Bytes>::function()};
    }
};

}  // namespace lanes

N2D2_STREAM_KERNEL(LaneConvolution, Lanes, Convolution<Cfg, Portable>) {
    N2D2_PLANES(Cfg);
    typedef lanes::ColumnsOf<Cfg> Layout;

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*, const Rows& rows = Rows::all<Output>()) {
        static constexpr lanes::Columns columns = Layout::columns();
        std::uint32_t room[lanes::Buffers::words<Cfg, Layout>()];
        constexpr bool clamped = Cfg::LaneSigned || Cfg::LaneLow != 0 || Cfg::LaneHigh != 255 || !Cfg::LaneHalves;
        lanes::convolution<std::numeric_limits<typename Input::Type>::is_signed, Cfg::Rounding, clamped>(
            columns, in, out, elementsOf<std::uint32_t>(weights), room, rows.begin, rows.end);
    }
};

}  // namespace n2d2
