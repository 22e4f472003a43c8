// Dense convolution by lanes (lanes.hpp): one function for all layers, which reads their shapes from constants.
//
// Pixels are taken in the order of their lines, two at a time, the last of a line with the first of the next. Both windows are
// spread before a result is stored, so that the order of lines is that of the portable kernel (convolution.hpp).
#ifndef N2D2_MCU_LANE_CONVOLUTION_HPP
#define N2D2_MCU_LANE_CONVOLUTION_HPP

#include "n2d2/mcu/lane_shape.hpp"
#include "n2d2/mcu/lanes.hpp"
#include "n2d2/mcu/pixel_walk.hpp"
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

N2D2_INLINE unsigned char* fillRun(unsigned char* to, unsigned char value, int bytes) {
    for (; bytes > 0; --bytes) {
        *to++ = value;
        __asm__("" : "+r"(to));  // else GCC calls memset
    }
    return to;
}

// The bytes of the window of a pixel: kernelWidth * channels for each line.
N2D2_INLINE void gather(const Shape& s, const Place& place, unsigned char* window) {
    const int left = place.left, run = s.kernelWidth * s.channels;
    const int begin = largest(left, 0), end = least<int>(left + s.kernelWidth, s.in.width);  // of a line that is a run
    for (int u = 0; u < s.kernelHeight; ++u) {
        const unsigned char* const line = place.lines[u];
        if (!line || (s.packed && begin >= end)) {
            window = fillRun(window, s.padding, run);
        } else if (s.packed) {
            window = fillRun(window, s.padding, (begin - left) * s.channels);
            copyRun(window, line + begin * s.channels, (end - begin) * s.channels);
            window = fillRun(window + (end - begin) * s.channels, s.padding, (left + s.kernelWidth - end) * s.channels);
        } else {
            for (int v = 0; v < s.kernelWidth; ++v, window += s.channels) {
                const int column = left + v * s.dilationWidth;
                if (column >= 0 && column < s.in.width)
                    copyRun(window, line + column * s.in.stride, s.channels);
                else
                    fillRun(window, s.padding, s.channels);
            }
        }
    }
}

// A window of three lines of nine bytes, 3 x 3 pixels of three channels, to every other word of the window of two pixels.
template <bool Signed>
N2D2_MCU_FAST void spreadNines(const unsigned char* a, const unsigned char* b, const unsigned char* c, std::uint32_t* to) {
    const auto pair = [](unsigned char low, unsigned char high) N2D2_INLINE_LAMBDA { return pairOf<Signed>(low, high); };
    to[0] = pair(a[0], a[2]), to[2] = pair(a[1], a[3]), to[4] = pair(a[4], a[6]), to[6] = pair(a[5], a[7]);
    to[8] = pair(a[8], b[1]), to[10] = pair(b[0], b[2]), to[12] = pair(b[3], b[5]), to[14] = pair(b[4], b[6]);
    to[16] = pair(b[7], c[0]), to[18] = pair(b[8], c[1]), to[20] = pair(c[2], c[4]), to[22] = pair(c[3], c[5]);
    to[24] = pair(c[6], c[8]), to[26] = pair(c[7], 0);
}

// The window of a pixel, to every other word of that of two; `bytes`: those of a window. Lines of four bytes need no copy.
template <bool Signed>
N2D2_MCU_FAST void spreadAny(const Shape& s, const Place& place, unsigned char* bytes, std::uint32_t* window) {
    const int run = s.kernelWidth * s.channels, left = place.left * s.channels;
    if (s.packed && run == 4 && left >= 0 && place.left + s.kernelWidth <= s.in.width) {
        for (int u = 0; u < s.kernelHeight; ++u, window += 4) {
            const unsigned char* const p = place.lines[u] + left;
            const bool there = place.lines[u] != nullptr;
            window[0] = there ? pairOf<Signed>(p[0], p[2]) : pairOf<Signed>(s.padding, s.padding);
            window[2] = there ? pairOf<Signed>(p[1], p[3]) : pairOf<Signed>(s.padding, s.padding);
        }
        return;
    }
    gather(s, place, bytes);
    for (int i = 0; i < s.inputs; i += 4, bytes += 4, window += 4)
        halves<Signed>(alignedWord(bytes), window[0], window[2]);
}

// The same of layers whose channels are not words.
template <bool Signed>
N2D2_INLINE void spreadBytes(const Shape& s, const Place& place, unsigned char* bytes, std::uint32_t* window) {
    const unsigned char* const* const lines = place.lines;
    const int left = 3 * place.left;
    if (s.nines && left >= 0 && place.left + 3 <= s.in.width && lines[0] && lines[1] && lines[2])
        spreadNines<Signed>(lines[0] + left, lines[1] + left, lines[2] + left, window);
    else
        spreadAny<Signed>(s, place, bytes, window);
}

// The windows of two pixels, of layers whose pixels are words. `padded`: a run of kernelWidth * channels zero points.
template <bool Signed>
N2D2_INLINE void spreadBoth(const Shape& s, const Place& a, const Place& b, const unsigned char* padded,
                            std::uint32_t* window) {
    const int quads = s.channels >> 2, last = s.in.width - s.kernelWidth, height = s.kernelHeight;
    if (s.packed && a.left >= 0 && a.left <= last && b.left >= 0 && b.left <= last) {
        const int from = a.left * s.channels, from2 = b.left * s.channels, run = quads * s.kernelWidth;
        for (int u = 0; u < height; ++u) {
            const unsigned char *const line = a.lines[u], *const line2 = b.lines[u];
            window = spread<Signed>(line ? line + from : padded, line2 ? line2 + from2 : padded, run, window);
        }
        return;
    }
    for (int u = 0; u < height; ++u) {
        const unsigned char *const line = a.lines[u], *const line2 = b.lines[u];
        int column = a.left, column2 = b.left;
        for (int v = 0; v < s.kernelWidth; ++v, column += s.dilationWidth, column2 += s.dilationWidth) {
            const bool there = line && column >= 0 && column < s.in.width;
            const bool there2 = line2 && column2 >= 0 && column2 < s.in.width;
            window = spread<Signed>(there ? line + column * s.in.stride : padded,
                                    there2 ? line2 + column2 * s.in.stride : padded, quads, window);
        }
    }
}

template <int Rounding, bool Clamped>
N2D2_INLINE void two(Work& work) {
    Clamped ? Kernels<Rounding>::template twoClamped<>(&work) : Kernels<Rounding>::template two<>(&work);
}

// Pairs of pixels of a line, of a layer of 1 x 1 windows whose pixels are words.
template <bool Signed, int Rounding, bool Clamped>
N2D2_INLINE void pointwise(const Shape& s, PixelWalk<2>& walk, Work& work, std::uint32_t* window) {
    const int step = s.reverse ? -1 : 1, next = step * s.out.stride, move = step * s.strideWidth * s.in.stride;
    const int quads = s.channels >> 2, pixels = walk.x & ~1;
    const unsigned char* from = walk.place.lines[0] + walk.place.left * s.in.stride;
    unsigned char* to = walk.place.out;
    walk.skip(pixels);
    for (const unsigned char* const end = walk.place.out; to != end; to += 2 * next, from += 2 * move) {
        spread<Signed>(from, from + move, quads, window);
        work.first = to;
        work.second = to + next;
        two<Rounding, Clamped>(work);
    }
}

// `window`: inputs words. `bytes`: inputs bytes where pixels are not words, else kernelWidth * channels.
// `results`: two pixels of outputs, rounded up to four, where these are not words. `lines`: 2 * kernelHeight.
template <bool Signed, int Rounding, bool Clamped>
N2D2_MCU_FAST void convolution(const Shape& s, const unsigned char* in, unsigned char* out, const std::uint32_t* stream,
                               std::uint32_t* window, unsigned char* bytes, unsigned char* results, const unsigned char** lines,
                               int begin, int end) {
    const bool quads = s.quads, point = quads && s.point, whole = s.whole;
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
        std::memset(bytes, 0, static_cast<std::size_t>(s.inputs));
    for (int i = 0; i < s.inputs; ++i)
        window[i] = 0;
    Place places[2];
    PixelWalk<2> walk(s, in, out, lines, begin, end, point && s.flat);
    for (;;) {
        if (point && whole && walk.x > 1)
            pointwise<Signed, Rounding, Clamped>(s, walk, work, window);
        const bool both = walk.count > 1;
        if (!walk.next(places))
            return;
        const Place &a = places[0], &b = places[1];
        if (point) {
            spread<Signed>(a.lines[0] + a.left * s.in.stride, b.lines[0] + b.left * s.in.stride, s.channels >> 2, window);
        } else if (quads) {
            spreadBoth<Signed>(s, a, b, bytes, window);
        } else {
            spreadBytes<Signed>(s, a, bytes, window);
            spreadBytes<Signed>(s, b, bytes, window + 1);
        }
        work.first = whole ? a.out : results;
        work.second = whole ? b.out : results + 4 * work.blocks;
        if (both)
            two<Rounding, Clamped>(work);
        else
            Kernels<Rounding>::template one<>(&work);
        if (!whole) {
            copyBytes(a.out, results, static_cast<std::size_t>(s.outputs));
            if (both)
                copyBytes(b.out, results + 4 * work.blocks, static_cast<std::size_t>(s.outputs));
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
        K = (Cfg::KernelHeight * Cfg::KernelWidth * C + 3) / 4 * 4,
        Bytes = !Cfg::WordInput || C % 4 ? int(K) : int(Cfg::KernelWidth) * C
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*, const Rows& rows = Rows::all<Output>()) {
        static constexpr lanes::Shape shape = lanes::shapeOf<Cfg>(K);
        std::uint32_t window[K];
        std::uint32_t bytes[(Bytes + 3) / 4];
        std::uint32_t results[!Cfg::WordOutput || O % 4 ? 2 * ((O + 3) / 4) : 1];
        const unsigned char* lines[2 * Cfg::KernelHeight];
        constexpr bool clamped = Cfg::LaneSigned || Cfg::LaneLow != 0 || Cfg::LaneHigh != 255;
        lanes::convolution<std::numeric_limits<typename Input::Type>::is_signed, Cfg::Rounding, clamped>(
            shape, in, out, elementsOf<std::uint32_t>(weights), window, reinterpret_cast<unsigned char*>(bytes),
            reinterpret_cast<unsigned char*>(results), lines, rows.begin, rows.end);
    }
};

}  // namespace n2d2

#endif  // N2D2_MCU_LANE_CONVOLUTION_HPP
