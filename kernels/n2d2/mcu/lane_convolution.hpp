// Dense convolution by lanes (lanes.hpp): one function for all layers, which reads their shapes from constants.
//
// Pixels are taken in the order of their lines, two at a time, the last of a line with the first of the next. Both windows are
// spread before a result is stored, so that the order of lines is that of the portable kernel (convolution.hpp).
#ifndef N2D2_MCU_LANE_CONVOLUTION_HPP
#define N2D2_MCU_LANE_CONVOLUTION_HPP

#include "n2d2/mcu/lane_shape.hpp"
#include "n2d2/mcu/lanes.hpp"
#include "n2d2/parallel.hpp"

namespace n2d2 {
namespace lanes {

// Four bytes at a time, of any alignment: compilers make words of them where a core has unaligned accesses.
N2D2_INLINE void copyRun(unsigned char* to, const unsigned char* from, int bytes) {
    for (; bytes >= 4; bytes -= 4, to += 4, from += 4) {
        const unsigned char a = from[0], b = from[1], c = from[2], d = from[3];
        to[0] = a, to[1] = b, to[2] = c, to[3] = d;
    }
    for (; bytes > 0; --bytes) {
        *to++ = *from++;
        __asm__("" : "+r"(to));  // else GCC calls memcpy
    }
}

// One pixel of the input, of the bytes of a window: kernelWidth * channels for each line.
N2D2_INLINE void gather(const Shape& s, const unsigned char* in, int y, int x, unsigned char* window) {
    const int left = x * s.strideWidth - s.padLeft, run = s.kernelWidth * s.channels;
    int from = y * s.strideHeight - s.padTop;
    for (int u = 0; u < s.kernelHeight; ++u, from += s.dilationHeight, window += run) {
        if (from < 0 || from >= s.in.height) {
            std::memset(window, s.padding, static_cast<std::size_t>(run));
            continue;
        }
        const unsigned char* const line = in + s.in.at(from);
        if (s.packed && left >= 0 && left + s.kernelWidth <= s.in.width) {
            copyRun(window, line + left * s.channels, run);
            continue;
        }
        for (int v = 0; v < s.kernelWidth; ++v) {
            const int column = left + v * s.dilationWidth;
            unsigned char* const to = window + v * s.channels;
            if (column >= 0 && column < s.in.width)
                copyRun(to, line + column * s.in.stride, s.channels);
            else
                std::memset(to, s.padding, static_cast<std::size_t>(s.channels));
        }
    }
}

// The windows of two pixels, of layers whose pixels are words. `padded`: a run of kernelWidth * channels zero points.
template <bool Signed>
N2D2_INLINE void spreadBoth(const Shape& s, const unsigned char* in, int y, int x, int y2, int x2, const unsigned char* padded,
                            std::uint32_t* window) {
    const int left = x * s.strideWidth - s.padLeft, left2 = x2 * s.strideWidth - s.padLeft;
    const int quads = s.channels >> 2, last = s.in.width - s.kernelWidth;
    const bool inside = s.packed && left >= 0 && left <= last && left2 >= 0 && left2 <= last;
    int from = y * s.strideHeight - s.padTop, from2 = y2 * s.strideHeight - s.padTop;
    for (int u = 0; u < s.kernelHeight; ++u, from += s.dilationHeight, from2 += s.dilationHeight) {
        const unsigned char* const line = from < 0 || from >= s.in.height ? nullptr : in + s.in.at(from);
        const unsigned char* const line2 = from2 < 0 || from2 >= s.in.height ? nullptr : in + s.in.at(from2);
        if (inside) {
            window = spread<Signed>(line ? line + left * s.channels : padded, line2 ? line2 + left2 * s.channels : padded,
                                    quads * s.kernelWidth, window);
            continue;
        }
        for (int v = 0; v < s.kernelWidth; ++v) {
            const int column = left + v * s.dilationWidth, column2 = left2 + v * s.dilationWidth;
            const bool there = line && column >= 0 && column < s.in.width;
            const bool there2 = line2 && column2 >= 0 && column2 < s.in.width;
            window = spread<Signed>(there ? line + column * s.in.stride : padded,
                                    there2 ? line2 + column2 * s.in.stride : padded, quads, window);
        }
    }
}

// `window`: inputs words. `bytes`: 2 * inputs bytes where pixels are not words, else kernelWidth * channels.
// `results`: two pixels of outputs, rounded up to four, where these are not words.
template <bool Signed, int Rounding>
N2D2_MCU_FAST void convolution(const Shape& s, const unsigned char* in, unsigned char* out, const std::uint32_t* stream,
                               std::uint32_t* window, unsigned char* bytes, unsigned char* results, int begin, int end) {
    const bool quads = s.quads, point = quads && s.point, whole = s.whole;
    const int pixels = s.out.width, count = (end - begin) * pixels, columns = s.outputs;
    Work work;
    work.window = window;
    work.stream = stream;
    work.end = window + s.inputs;
    work.blocks = (s.outputs + 3) >> 2;
    work.zero = s.zero;
    work.mask = s.mask;
    work.low = s.low;
    work.room = s.room;
    enter(work, s.inputs);
    if (quads)
        std::memset(bytes, s.padding, static_cast<std::size_t>(s.kernelWidth * s.channels));
    else
        std::memset(bytes, 0, static_cast<std::size_t>(2 * s.inputs));
    for (int i = 0; i < s.inputs; ++i)
        window[i] = 0;
    const int step = s.reverse ? -1 : 1;
    int y = s.reverse ? s.out.height - 1 - begin : begin, x = s.reverse ? pixels - 1 : 0;
    for (int i = 0; i < count; i += 2) {
        const bool both = i + 1 < count;
        int y2 = y, x2 = x;
        if (both) {
            x2 += step;
            if (x2 < 0 || x2 == pixels) {
                x2 = s.reverse ? pixels - 1 : 0;
                y2 += step;
            }
        }
        if (point) {
            spread<Signed>(in + s.in.at(y * s.strideHeight) + x * s.strideWidth * s.in.stride,
                           in + s.in.at(y2 * s.strideHeight) + x2 * s.strideWidth * s.in.stride, s.channels >> 2, window);
        } else if (quads) {
            spreadBoth<Signed>(s, in, y, x, y2, x2, bytes, window);
        } else {
            gather(s, in, y, x, bytes);
            gather(s, in, y2, x2, bytes + s.inputs);
            spread<Signed>(bytes, bytes + s.inputs, s.inputs >> 2, window);
        }
        unsigned char* const first = out + s.out.at(y) + x * s.out.stride;
        unsigned char* const second = out + s.out.at(y2) + x2 * s.out.stride;
        work.first = whole ? first : results;
        work.second = whole ? second : results + 4 * work.blocks;
        if (both)
            Kernels<Rounding>::template two<>(&work);
        else
            Kernels<Rounding>::template one<>(&work);
        if (!whole) {
            const unsigned char* const other = results + 4 * work.blocks;
            for (int o = 0; o < columns; ++o)
                first[o] = results[o];
            if (both)
                for (int o = 0; o < columns; ++o)
                    second[o] = other[o];
        }
        x = x2 + step;
        y = y2;
        if (x < 0 || x == pixels) {
            x = s.reverse ? pixels - 1 : 0;
            y += step;
        }
    }
}

}  // namespace lanes

// A layer whose constants are a stream (Cfg::Lanes); the others have the portable kernel.
template <class Cfg, class Found = void>
struct LaneConvolution : Convolution<Cfg, Portable> {};

template <class Cfg>
struct LaneConvolution<Cfg, typename Exists<Cfg::Lanes>::Type> {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    enum : int {
        C = Input::Channels,
        O = Output::Channels,
        K = (Cfg::KernelHeight * Cfg::KernelWidth * C + 7) / 8 * 8,
        Bytes = !Cfg::WordInput || C % 4 ? 2 * K : int(Cfg::KernelWidth) * C
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*, const Rows& rows = Rows::all<Output>()) {
        static constexpr lanes::Shape shape = lanes::shapeOf<Cfg>(K);
        std::uint32_t window[K];
        std::uint32_t bytes[(Bytes + 3) / 4];
        std::uint32_t results[!Cfg::WordOutput || O % 4 ? 2 * ((O + 3) / 4) : 1];
        lanes::convolution<std::numeric_limits<typename Input::Type>::is_signed, Cfg::Rounding>(
            shape, in, out, elementsOf<std::uint32_t>(weights), window, reinterpret_cast<unsigned char*>(bytes),
            reinterpret_cast<unsigned char*>(results), rows.begin, rows.end);
    }
};

}  // namespace n2d2

#endif  // N2D2_MCU_LANE_CONVOLUTION_HPP
