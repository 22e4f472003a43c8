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

// The window of one pixel, whose channels are whole vectors. `padded`: a run of kernelWidth * channels zero points.
template <int = 0>
N2D2_MCU_FAST void gather(const lanes::Shape& s, const unsigned char* in, int y, int x, const unsigned char* padded,
                          unsigned char* window, std::uint32_t turn) {
    const int left = x * s.strideWidth - s.padLeft, run = s.kernelWidth * s.channels;
    const bool inside = s.packed && left >= 0 && left + s.kernelWidth <= s.in.width;
    int from = y * s.strideHeight - s.padTop;
    for (int u = 0; u < s.kernelHeight; ++u, from += s.dilationHeight) {
        if (from < 0 || from >= s.in.height) {
            window = spread(padded, window, run, turn);
            continue;
        }
        const unsigned char* const line = in + s.in.at(from);
        if (inside) {
            window = spread(line + left * s.channels, window, run, turn);
            continue;
        }
        for (int v = 0; v < s.kernelWidth; ++v) {
            const int column = left + v * s.dilationWidth;
            const bool there = column >= 0 && column < s.in.width;
            window = spread(there ? line + column * s.in.stride : padded, window, s.channels, turn);
        }
    }
}

// The same for any number of channels, one byte behind the other.
template <int = 0>
N2D2_MCU_FAST void gatherBytes(const lanes::Shape& s, const unsigned char* in, int y, int x, const unsigned char* padded,
                               unsigned char* window) {
    const int left = x * s.strideWidth - s.padLeft, run = s.kernelWidth * s.channels;
    const bool inside = s.packed && left >= 0 && left + s.kernelWidth <= s.in.width;
    int from = y * s.strideHeight - s.padTop;
    for (int u = 0; u < s.kernelHeight; ++u, from += s.dilationHeight, window += run) {
        if (from < 0 || from >= s.in.height) {
            copy(padded, window, run, 0);
            continue;
        }
        const unsigned char* const line = in + s.in.at(from);
        if (inside) {
            copy(line + left * s.channels, window, run, 0);
            continue;
        }
        for (int v = 0; v < s.kernelWidth; ++v) {
            const int column = left + v * s.dilationWidth;
            const bool there = column >= 0 && column < s.in.width;
            copy(there ? line + column * s.in.stride : padded, window + v * s.channels, s.channels, 0);
        }
    }
}

// Where things lie that a layer needs while it runs.
struct Buffers {
    unsigned char* window;   // 4 * inputs bytes, these a multiple of 16
    unsigned char* bytes;    // inputs, of layers whose channels are no multiple of 16
    unsigned char* padded;   // kernelWidth * channels
    unsigned char* results;  // four pixels of outputs, rounded up to two, or null where results are stored where they belong
};

template <int = 0>
N2D2_MCU_FAST void convolution(const lanes::Shape& s, const Results& stored, const unsigned char* in, unsigned char* out,
                               const signed char* stream, const Buffers& buffers, std::uint32_t turn, int begin, int end) {
    const int pixels = s.out.width, count = (end - begin) * pixels, step = s.reverse ? -1 : 1;
    const int pairs = (s.outputs + 1) / 2, used = s.kernelHeight * s.kernelWidth * s.channels;
    const bool vectors = s.channels % Bytes == 0;
    Work work;
    work.window = buffers.window;
    work.end = buffers.window + 4 * s.inputs;
    work.stream = stream;
    work.streamEnd = stream + pairs * (2 * s.inputs + 2 * Bytes);
    work.skip = skipOf(s.inputs / Bytes);
    work.results = stored;
    std::memset(buffers.padded, s.padding, static_cast<std::size_t>(s.kernelWidth * s.channels));
    int y = s.reverse ? s.out.height - 1 - begin : begin, x = s.reverse ? pixels - 1 : 0;
    for (int i = 0; i < count; i += 4) {
        unsigned char *place[4], *first = nullptr;
        for (int j = 0; j < 4; ++j) {  // the last one again where fewer are left
            unsigned char* const window = buffers.window + j * Bytes;
            if (s.point && vectors) {
                spread(in + s.in.at(y * s.strideHeight) + x * s.strideWidth * s.in.stride, window, s.channels, turn);
            } else if (vectors) {
                gather(s, in, y, x, buffers.padded, window, turn);
            } else if (s.point) {
                spread(in + s.in.at(y * s.strideHeight) + x * s.strideWidth * s.in.stride, window, s.channels, turn);
            } else {
                gatherBytes(s, in, y, x, buffers.padded, buffers.bytes);
                spread(buffers.bytes, window, used, turn);
            }
            place[j] = out + s.out.at(y) + x * s.out.stride;
            first = j == 0 || place[j] < first ? place[j] : first;
            if (i + j + 1 < count) {
                x += step;
                if (x < 0 || x == pixels) {
                    x = s.reverse ? pixels - 1 : 0;
                    y += step;
                }
            }
        }
        work.out = buffers.results ? buffers.results : first;
        for (int j = 0; j < 4; ++j) {
            const std::ptrdiff_t from = buffers.results ? 2 * pairs * j : place[j] - first;
            const int at = 4 * (j & 1) + (j >> 1);
            work.places[at] = static_cast<std::uint16_t>(from);
            work.places[at + 2] = static_cast<std::uint16_t>(from + 1);
        }
        four(&work);
        if (buffers.results)
            for (int j = 0; j < 4 && i + j < count; ++j)
                std::memcpy(place[j], buffers.results + 2 * pairs * j, static_cast<std::size_t>(s.outputs));
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
        const mve::Buffers buffers = {window, bytes, padded, Apart ? results : nullptr};
        mve::convolution(shape, stored, in, out, reinterpret_cast<const signed char*>(weights), buffers,
                         mve::turnOf<typename Input::Type>(), rows.begin, rows.end);
    }
};

}  // namespace n2d2

#endif  // N2D2_MCU_MVE_CONVOLUTION_HPP
