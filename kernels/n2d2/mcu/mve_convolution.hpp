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
    const unsigned char** rows;  // kernelHeight
    const unsigned char** runs;  // kernelHeight * kernelWidth
};

// Where the runs of a window begin whose first column is `left`, a tap or a line of taps each; returns the end of the list.
N2D2_INLINE const unsigned char** taps(const lanes::Shape& s, const Buffers& buffers, int left, bool inside) {
    const unsigned char** runs = buffers.runs;
    const int at = left * s.in.stride;
    for (int u = 0; u < s.kernelHeight; ++u) {
        const unsigned char* const row = buffers.rows[u];
        if (inside) {
            *runs++ = row ? row + at : buffers.padded;
            continue;
        }
        int column = left;
        for (int v = 0; v < s.kernelWidth; ++v, column += s.dilationWidth)
            *runs++ = row && column >= 0 && column < s.in.width ? row + column * s.in.stride : buffers.padded;
    }
    return runs;
}

template <int = 0>
N2D2_MCU_FAST void convolution(const lanes::Shape& s, const Results& stored, const unsigned char* in, unsigned char* out,
                               const signed char* stream, const Buffers& buffers, std::uint32_t turn, int begin, int end) {
    const int pixels = s.out.width, count = (end - begin) * pixels, step = s.reverse ? -1 : 1;
    const int pairs = (s.outputs + 1) / 2, used = s.kernelHeight * s.kernelWidth * s.channels;
    const int line = s.kernelWidth * s.channels, last = s.packed ? s.in.width - s.kernelWidth : -1;
    const int next = step * s.out.stride, move = step * s.strideWidth;
    const int leftmost = s.reverse ? (pixels - 1) * s.strideWidth - s.padLeft : -s.padLeft;
    const bool vectors = s.channels % Bytes == 0;
    const unsigned char *sources[4], *const bytes = buffers.bytes;
    Work work;
    work.window = buffers.window;
    work.end = buffers.window + 4 * s.inputs;
    work.stream = stream;
    work.streamEnd = stream + pairs * (2 * s.inputs + 2 * Bytes);
    work.skip = skipOf(s.inputs / Bytes);
    work.results = stored;
    std::memset(buffers.padded, s.padding, static_cast<std::size_t>(line));
    int y = s.reverse ? s.out.height - begin : begin - 1, x = 0, left = leftmost,
        run = s.channels;  // x: pixels that a line has left
    const unsigned char* const* runs = buffers.runs;
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
                        buffers.rows[u] = from < 0 || from >= s.in.height ? nullptr : in + s.in.at(from);
                }
                if (s.point) {
                    source = buffers.rows[0] + left * s.in.stride;
                } else {
                    const bool inside = left >= 0 && left <= last;
                    run = inside ? line : s.channels;
                    runs = taps(s, buffers, left, inside);
                    if (!vectors)
                        join(buffers.runs, runs, buffers.bytes, run);
                }
                place = to;
                to += next;
                left += move;
                --x;
            }
            sources[j] = source;
            places[j] = place;
            unsigned char* const window = buffers.window + j * Bytes;
            if (!s.point && vectors)
                spread(buffers.runs, runs, window, run, turn);
            else if (!s.point)
                spread(&bytes, &bytes + 1, window, used, turn);
        }
        if (s.point)
            spreadFour(sources, buffers.window, s.channels, turn);
        std::uint32_t at[4];
        if (!buffers.results) {  // lines that wrap are not in order
            first = places[0] < places[3] ? places[0] : places[3];
            first = places[1] < first ? places[1] : first;
            first = places[2] < first ? places[2] : first;
        }
        for (int j = 0; j < 4; ++j)
            at[j] = static_cast<std::uint32_t>(buffers.results ? 2 * pairs * j : places[j] - first);
        work.out = first;
        work.places[0] = at[0] | at[2] << 16;
        work.places[1] = work.places[0] + 0x00010001u;
        work.places[2] = at[1] | at[3] << 16;
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
        const unsigned char *lines[Cfg::KernelHeight], *runs[Cfg::KernelHeight * Cfg::KernelWidth];
        const mve::Buffers buffers = {window, bytes, padded, Apart ? results : nullptr, lines, runs};
        mve::convolution(shape, stored, in, out, reinterpret_cast<const signed char*>(weights), buffers,
                         mve::turnOf<typename Input::Type>(), rows.begin, rows.end);
    }
};

}  // namespace n2d2

#endif  // N2D2_MCU_MVE_CONVOLUTION_HPP
