// Dense convolution by MVE (mve.hpp): one function for all layers, which reads their shapes from constants.
//
// Pixels are taken in the order of their lines, four at a time, the last of a line with the first of the next. All windows are
// gathered before a result is stored, so that the order of lines is that of the portable kernel (convolution.hpp).
#pragma once

#include "n2d2/mcu/lane_convolution.hpp"
#include "n2d2/mcu/mve.hpp"

namespace n2d2 {
namespace mve {

// The buffers of a layer while it runs.
struct Buffers {
    unsigned char* window;   // 4 * inputs bytes, these a multiple of 16, and 16 more that are read
    unsigned char* bytes;    // those of a window, of layers whose channels are no multiple of 16
    unsigned char* padded;   // kernelWidth * channels
    unsigned char* results;  // four pixels of outputs, rounded up to two, or null where results are stored where they belong
    Piece* lines;            // kernelHeight
    Piece* taps;             // kernelHeight * kernelWidth
};

// Each tap as a piece, for windows that are partly outside.
N2D2_INLINE void place(const lanes::Shape& s, const Buffers& buffers, int left) {
    Piece* to = buffers.taps;
    for (int u = 0; u < s.kernelHeight; ++u) {
        const Piece row = buffers.lines[u];
        int column = left;
        for (int v = 0; v < s.kernelWidth; ++v, column += s.dilationWidth, ++to) {
            const bool there = row.step && column >= 0 && column < s.in.width;
            to->from = there ? row.from + column * row.step : buffers.padded;
            to->step = 0;
        }
    }
}

// The window of a pixel whose channels are no vectors, one byte behind the other.
N2D2_INLINE void joinBytes(const lanes::Shape& s, const Buffers& buffers, int left, int used) {
    const int line = s.kernelWidth * s.channels;
    const int begin = left > 0 ? left : 0, end = left + s.kernelWidth < s.in.width ? left + s.kernelWidth : s.in.width;
    if (!s.packed) {
        place(s, buffers, left);
        join(buffers.taps, s.kernelHeight * s.kernelWidth, buffers.bytes, s.channels, s.channels, 0);
        return;
    }
    if (end - begin < s.kernelWidth)
        std::memset(buffers.bytes, s.padding, static_cast<std::size_t>(used));
    if (end > begin)
        join(buffers.lines, s.kernelHeight, buffers.bytes + (begin - left) * s.channels, (end - begin) * s.channels, line,
             begin);
}

// The window of three lines of 3 or 9 bytes to one vector, or two that are 64 bytes apart. `bytes`: 34 at least.
template <int Line>
N2D2_MCU_FAST void spreadLines(const Piece* lines, int at, unsigned char* bytes, unsigned char* to, std::uint32_t turn) {
    const unsigned char *const a = lines[0].from + at, *const b = lines[1].from + at, *const c = lines[2].from + at;
    __asm__ volatile(
        "vctp.8   %[line]\n\t"
        "vpsttt\n\t"
        "vldrbt.8 q0, [%[a]]\n\t"
        "vldrbt.8 q1, [%[b]]\n\t"
        "vldrbt.8 q2, [%[c]]\n\t"
        "vstrb.8  q0, [%[bytes]]\n\t"
        "vstrb.8  q1, [%[bytes], #%c[second]]\n\t"
        "vstrb.8  q2, [%[bytes], #%c[third]]"
        :
        : [a] "r"(a), [b] "r"(b), [c] "r"(c), [bytes] "r"(bytes), [line] "r"(Line), [second] "i"(Line), [third] "i"(2 * Line)
        : "q0", "q1", "q2", "memory");
    __asm__ volatile(
        "vldrb.8  q0, [%[bytes]]\n\t"
        "vdup.32  q3, %[turn]\n\t"
        "veor     q0, q0, q3\n\t"
        ".if      %c[vectors] == 2\n\t"
        "vldrb.8  q1, [%[bytes], #16]\n\t"
        "veor     q1, q1, q3\n\t"
        ".endif\n\t"
        "vstrb.8  q0, [%[to]]\n\t"
        ".if      %c[vectors] == 2\n\t"
        "vstrb.8  q1, [%[to], #64]\n\t"
        ".endif"
        :
        : [bytes] "r"(bytes), [to] "r"(to), [turn] "r"(turn), [vectors] "i"(3 * Line <= Bytes ? 1 : 2)
        : "q0", "q1", "q3", "memory");
}

// Gathers the window whose first column is `at`, one of four.
N2D2_INLINE void gather(const lanes::Shape& s, const Buffers& buffers, int at, unsigned char* window, std::uint32_t turn) {
    const int line = s.kernelWidth * s.channels;
    const Piece* const lines = buffers.lines;
    if (s.shortLines && at >= 0 && at + s.kernelWidth <= s.in.width && lines[0].step && lines[1].step && lines[2].step) {
        if (line == 9)
            spreadLines<9>(lines, 3 * at, buffers.bytes, window, turn);
        else
            spreadLines<3>(lines, at, buffers.bytes, window, turn);
    } else if (s.channels % Bytes != 0) {
        const Piece bytes = {buffers.bytes, 0};
        joinBytes(s, buffers, at, s.kernelHeight * line);
        spread(&bytes, 1, window, s.kernelHeight * line, turn, 0);
    } else if (s.packed && at >= 0 && at + s.kernelWidth <= s.in.width) {
        spread(buffers.lines, s.kernelHeight, window, line, turn, at);
    } else {
        place(s, buffers, at);
        spread(buffers.taps, s.kernelHeight * s.kernelWidth, window, s.channels, turn, 0);
    }
}

// For `four`: where the results of its pixels lie, from the first address.
N2D2_INLINE void setPlaces(Work& work, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
    work.places[0] = a | c << 16;
    work.places[1] = work.places[0] + 0x00010001u;
    work.places[2] = b | d << 16;
    work.places[3] = work.places[2] + 0x00010001u;
}

template <int Rounding, int Range>
N2D2_MCU_FAST void convolution(const lanes::Shape& s, const Results& stored, const unsigned char* in, unsigned char* out,
                               const signed char* stream, const Buffers& buffers, std::uint32_t turn, int begin, int end) {
    const int step = s.reverse ? -1 : 1, pairs = (s.outputs + 1) / 2;
    const int pixels = s.out.width * (s.point && s.flat ? end - begin : 1);  // of a line, or of all
    const int next = step * s.out.stride, move = step * s.strideWidth, ahead = next < 0 ? 3 * next : 0;
    const int first = s.reverse ? s.out.width - 1 : 0;
    const bool point = s.point;
    const std::int32_t stride = s.in.stride, channels = s.channels;
    const unsigned char* sources[4];
    Work work;
    work.window = buffers.window;
    work.end = buffers.window + 4 * s.inputs;
    work.stream = stream;
    work.streamEnd = stream + pairs * (2 * s.inputs + (1 + Kernels<Rounding, Range>::Words) * Bytes);
    work.skip = skipOf(s.inputs / Bytes);
    work.results = stored;
    std::memset(buffers.padded, s.padding, static_cast<std::size_t>(s.kernelWidth * channels));
    // Places of pixels in the order of addresses: all those of a line.
    Work row = work;
    setPlaces(row, static_cast<std::uint32_t>(-ahead), static_cast<std::uint32_t>(next - ahead),
              static_cast<std::uint32_t>(2 * next - ahead), static_cast<std::uint32_t>(3 * next - ahead));
    int count = (end - begin) * s.out.width, left = 0, x = 0;  // x: pixels that the line has left
    int y = s.reverse ? s.out.height - begin : begin - 1;
    unsigned char* to = nullptr;
    while (count > 0) {
        if (x >= 4 && !buffers.results) {
            if (point) {
                const unsigned char* const source = buffers.lines[0].from + left * stride;
                const int apart = move * stride;
                sources[0] = source;
                sources[1] = source + apart;
                sources[2] = source + 2 * apart;
                sources[3] = source + 3 * apart;
                spreadFour(sources, buffers.window, channels, turn);
            } else {
                for (int j = 0; j < 4; ++j)
                    gather(s, buffers, left + j * move, buffers.window + j * Bytes, turn);
            }
            row.out = to + ahead;
            Kernels<Rounding, Range>::template four<>(&row);
            to += 4 * next;
            left += 4 * move;
            x -= 4;
            count -= 4;
            continue;
        }
        unsigned char* places[4];
        int at = left;
        for (int j = 0; j < 4; ++j) {
            if (j < count) {  // else the last one again
                if (x == 0) {
                    x = pixels;
                    y += step;
                    left = first * s.strideWidth - s.padLeft;
                    to = out + s.out.at(y) + first * s.out.stride;
                    int from = y * s.strideHeight - s.padTop;
                    for (int u = 0; u < s.kernelHeight; ++u, from += s.dilationHeight)
                        buffers.lines[u] =
                            from < 0 || from >= s.in.height ? Piece{buffers.padded, 0} : Piece{in + s.in.at(from), stride};
                    if (j == 0 && x >= 4 && !buffers.results)
                        break;
                }
                at = left;
                places[j] = to;
                sources[j] = point ? buffers.lines[0].from + at * stride : nullptr;
                to += next;
                left += move;
                --x;
            } else {
                places[j] = places[j - 1];
                sources[j] = sources[j - 1];
            }
            if (!point)
                gather(s, buffers, at, buffers.window + j * Bytes, turn);
        }
        if (x == pixels)
            continue;  // a line with room for four
        if (point)
            spreadFour(sources, buffers.window, channels, turn);
        if (buffers.results) {
            const std::uint32_t each = static_cast<std::uint32_t>(2 * pairs);
            work.out = buffers.results;
            setPlaces(work, 0, each, 2 * each, 3 * each);
        } else {
            unsigned char* low = places[0] < places[3] ? places[0] : places[3];  // lines that wrap are not in order
            low = places[1] < low ? places[1] : low;
            low = places[2] < low ? places[2] : low;
            work.out = low;
            setPlaces(work, static_cast<std::uint32_t>(places[0] - low), static_cast<std::uint32_t>(places[1] - low),
                      static_cast<std::uint32_t>(places[2] - low), static_cast<std::uint32_t>(places[3] - low));
        }
        Kernels<Rounding, Range>::template four<>(&work);
        if (buffers.results)
            for (int j = 0; j < 4 && j < count; ++j)
                copyBytes(places[j], buffers.results + 2 * pairs * j, static_cast<std::size_t>(s.outputs));
        count -= 4;
    }
}

// The bytes from the first to behind the last element of a plane.
template <class Plane>
struct Extent {
    typedef PlaneTraits<Plane> Traits;
    enum : long {
        Lines = static_cast<long>(Traits::LineElements) * Traits::Height * Traits::Size,
        Gap = long(Plane::WrapOffset) > long(Plane::Offset) ? long(Plane::WrapOffset) - long(Plane::Offset) :
                                                              long(Plane::Offset) - long(Plane::WrapOffset),
        value = Lines + (int(Traits::Lines) < int(Traits::Height) ? long(Gap) : 0)
    };
};

}  // namespace mve

N2D2_STREAM_KERNEL(MveConvolution, Vectors, LaneConvolution<Cfg>) {
    N2D2_PLANES(Cfg);
    enum : int {
        C = Input::Channels,
        O = Output::Channels,
        Run = int(Cfg::KernelWidth) * C,
        K = (int(Cfg::KernelHeight) * Run + mve::Bytes - 1) / mve::Bytes * mve::Bytes,
        Joined = C % mve::Bytes == 0  ? 1 :
                 Run == 3 || Run == 9 ? largest(int(K), 34) :
                                        int(K),
        // Places are 16 bits; an output without a second one beside it may not be stored with it.
        Apart = O % 2 != 0 || long(mve::Extent<Output>::value) > 65535 - O
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*, const Rows& rows = Rows::all<Output>()) {
        static constexpr lanes::Shape shape = lanes::shapeOf<Cfg>(K);
        static constexpr mve::Results stored = mve::resultsOf<Cfg>();
        unsigned char window[4 * K + mve::Bytes], bytes[Joined], padded[Run], results[Apart ? 4 * (O + O % 2) : 1];
        mve::Piece lines[Cfg::KernelHeight], taps[Cfg::KernelHeight * Cfg::KernelWidth];
        const mve::Buffers buffers = {window, bytes, padded, Apart ? results : nullptr, lines, taps};
        mve::convolution<Cfg::Rounding, mve::rangeOf<Cfg>()>(shape, stored, in, out,
                                                             reinterpret_cast<const signed char*>(weights), buffers,
                                                             mve::turnOf<typename Input::Type>(), rows.begin, rows.end);
    }
};

}  // namespace n2d2
