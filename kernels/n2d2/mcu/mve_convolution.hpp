// Dense convolution by MVE (mve.hpp): one function for all layers, which reads their shapes from constants.
//
// Pixels are taken in the order of their lines, four at a time, the last of a line with the first of the next. All windows are
// gathered before a result is stored, so that the order of lines is that of the portable kernel (convolution.hpp).
#ifndef N2D2_MCU_MVE_CONVOLUTION_HPP
#define N2D2_MCU_MVE_CONVOLUTION_HPP

#include "n2d2/mcu/lane_convolution.hpp"
#include "n2d2/mcu/mve.hpp"

namespace n2d2 {
namespace mve {

// Where things lie that a layer needs while it runs.
struct Buffers {
    unsigned char* window;   // 4 * inputs bytes, these a multiple of 16
    unsigned char* bytes;    // inputs, of layers whose channels are no multiple of 16
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

template <int = 0>
N2D2_MCU_FAST void convolution(const lanes::Shape& s, const Results& stored, const unsigned char* in, unsigned char* out,
                               const signed char* stream, const Buffers& buffers, std::uint32_t turn, int begin, int end) {
    const int pixels = s.out.width, count = (end - begin) * pixels, step = s.reverse ? -1 : 1;
    const int pairs = (s.outputs + 1) / 2, used = s.kernelHeight * s.kernelWidth * s.channels;
    const int line = s.kernelWidth * s.channels, last = s.packed ? s.in.width - s.kernelWidth : -1;
    const int next = step * s.out.stride, move = step * s.strideWidth;
    const int leftmost = s.reverse ? (pixels - 1) * s.strideWidth - s.padLeft : -s.padLeft;
    const bool vectors = s.channels % Bytes == 0, point = s.point;
    const std::int32_t stride = s.in.stride;
    const unsigned char* sources[4];
    const Piece bytes = {buffers.bytes, 0};
    Work work;
    work.window = buffers.window;
    work.end = buffers.window + 4 * s.inputs;
    work.stream = stream;
    work.streamEnd = stream + pairs * (2 * s.inputs + 2 * Bytes);
    work.skip = skipOf(s.inputs / Bytes);
    work.results = stored;
    std::memset(buffers.padded, s.padding, static_cast<std::size_t>(line));
    int y = s.reverse ? s.out.height - begin : begin - 1, x = 0;  // x: pixels that a line has left
    int left = leftmost, at = 0;
    const unsigned char* source = nullptr;
    unsigned char *to = nullptr, *place = nullptr;
    for (int i = 0; i < count; i += 4) {
        unsigned char *places[4], *first = buffers.results;
        for (int j = 0; j < 4; ++j) {
            if (i + j < count) {  // else the last one again
                if (x == 0) {
                    x = pixels;
                    y += step;
                    left = leftmost;
                    to = out + s.out.at(y) + (s.reverse ? (pixels - 1) * s.out.stride : 0);
                    int from = y * s.strideHeight - s.padTop;
                    for (int u = 0; u < s.kernelHeight; ++u, from += s.dilationHeight)
                        buffers.lines[u] =
                            from < 0 || from >= s.in.height ? Piece{buffers.padded, 0} : Piece{in + s.in.at(from), stride};
                }
                at = left;
                if (point)
                    source = buffers.lines[0].from + at * stride;
                else if (!vectors)
                    joinBytes(s, buffers, at, used);
                else if (at < 0 || at > last)
                    mve::place(s, buffers, at);
                place = to;
                to += next;
                left += move;
                --x;
            }
            sources[j] = source;
            places[j] = place;
            unsigned char* const window = buffers.window + j * Bytes;
            if (point)
                continue;
            if (!vectors)
                spread(&bytes, 1, window, used, turn, 0);
            else if (at < 0 || at > last)
                spread(buffers.taps, s.kernelHeight * s.kernelWidth, window, s.channels, turn, 0);
            else
                spread(buffers.lines, s.kernelHeight, window, line, turn, at);
        }
        if (point)
            spreadFour(sources, buffers.window, s.channels, turn);
        std::uint32_t from[4];
        if (!buffers.results) {  // lines that wrap are not in order
            first = places[0] < places[3] ? places[0] : places[3];
            first = places[1] < first ? places[1] : first;
            first = places[2] < first ? places[2] : first;
        }
        for (int j = 0; j < 4; ++j)
            from[j] = static_cast<std::uint32_t>(buffers.results ? 2 * pairs * j : places[j] - first);
        work.out = first;
        work.places[0] = from[0] | from[2] << 16;
        work.places[1] = work.places[0] + 0x00010001u;
        work.places[2] = from[1] | from[3] << 16;
        work.places[3] = work.places[2] + 0x00010001u;
        four(&work);
        if (buffers.results)
            for (int j = 0; j < 4 && i + j < count; ++j)
                std::memcpy(places[j], buffers.results + 2 * pairs * j, static_cast<std::size_t>(s.outputs));
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

// A layer whose constants are a stream for vectors (Cfg::Vectors); the others have what the DSP extension has.
template <class Cfg, class Found = void>
struct MveConvolution : LaneConvolution<Cfg> {};

template <class Cfg>
struct MveConvolution<Cfg, typename Exists<Cfg::Vectors>::Type> {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    enum : int {
        C = Input::Channels,
        O = Output::Channels,
        Run = int(Cfg::KernelWidth) * C,
        K = (int(Cfg::KernelHeight) * Run + mve::Bytes - 1) / mve::Bytes * mve::Bytes,
        // Places are 16 bits; an output without a second one beside it may not be stored with it.
        Apart = O % 2 != 0 || long(mve::Extent<Output>::value) > 65535 - O
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*, const Rows& rows = Rows::all<Output>()) {
        static constexpr lanes::Shape shape = lanes::shapeOf<Cfg>(K);
        static constexpr mve::Results stored = mve::resultsOf<Cfg>();
        unsigned char window[4 * K], bytes[C % mve::Bytes ? K : 1], padded[Run], results[Apart ? 4 * (O + O % 2) : 1];
        mve::Piece lines[Cfg::KernelHeight], taps[Cfg::KernelHeight * Cfg::KernelWidth];
        const mve::Buffers buffers = {window, bytes, padded, Apart ? results : nullptr, lines, taps};
        mve::convolution(shape, stored, in, out, reinterpret_cast<const signed char*>(weights), buffers,
                         mve::turnOf<typename Input::Type>(), rows.begin, rows.end);
    }
};

}  // namespace n2d2

#endif  // N2D2_MCU_MVE_CONVOLUTION_HPP
