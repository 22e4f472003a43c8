// The shape of a layer as constants that one function reads for all layers.
#pragma once

#include "n2d2/plane.hpp"

// Functions that must be fast at -Os too.
#if defined(__GNUC__) && !defined(__clang__)
#define N2D2_MCU_FAST __attribute__((optimize("O2"), noinline, noclone))
#else
#define N2D2_MCU_FAST __attribute__((noinline))
#endif

// Assembly: an instruction for each of some registers, or other words, in whose place it has \x.
#define N2D2_ASM_EACH(words, instruction) ".irp x," words "\n\t" instruction "\n\t.endr\n\t"

// A function in assembly for Cortex-M, which pushes `saved` and lr. FrameBytes: of the stack, for `make size`, as the compiler does not know
// them. A template, so that a program has it once wherever it is included.
// clang-format off
#define N2D2_ASM_FUNCTION(bytes, declaration, saved, ...)   \
    template <int FrameBytes = bytes>                       \
    __attribute__((naked, noinline)) declaration {          \
        __asm__ volatile(                                   \
            ".syntax unified\n\t"                           \
            "push   {" saved ", lr}\n\t"                    \
            __VA_ARGS__                                     \
            "pop    {" saved ", pc}\n\t");                  \
    }
// clang-format on

// The kernel of layers whose constants are a stream for it, which Cfg::Constant says; the others have the last argument.
#define N2D2_STREAM_KERNEL(Name, Constant, ...) \
    template <class Cfg, class Found = void>    \
    struct Name : __VA_ARGS__ {};               \
    template <class Cfg>                        \
    struct Name<Cfg, typename Exists<Cfg::Constant>::Type>

namespace n2d2 {
namespace lanes {

// The rescale of sums in a kernel (`Rounding` of a layer): (sum * m + 2^31) >> 32, or as DoublingRescale of rescale.hpp does: twice, twice where
// ties below 0 count, once.
enum Rounding : int { HighWord, Twice, TwiceSigned, Once };

// The zero point and the limits of stored results.
struct Results {
    std::int32_t zero, low, high;
};

// The layout of the lines of a plane of bytes.
struct Lines {
    std::int32_t offset, wrapOffset, pitch;
    std::int16_t lines;  // before the wrap; below 0 for a ring of so many
    std::int16_t height, width;
    std::uint16_t stride;

    template <class Plane>
    static constexpr Lines of() {
        typedef PlaneTraits<Plane> Traits;
        return Lines{static_cast<std::int32_t>(Plane::Offset),
                     static_cast<std::int32_t>(Plane::WrapOffset),
                     Traits::LineElements,
                     int(Traits::Lines) >= int(Traits::Height) ? int(Traits::Height) :
                     int(Traits::Ring)                         ? -int(Traits::Lines) :
                                                                 int(Traits::Lines),
                     Traits::Height,
                     Traits::Width,
                     Traits::Stride};
    }

    N2D2_INLINE std::int32_t at(int y) const {
        if (y < lines)
            return offset + y * pitch;
        return lines < 0 ? offset + y % -lines * pitch : wrapOffset + (y - lines) * pitch;
    }
};

// The same, once in a program, where few lines are asked for.
template <int = 0>
N2D2_MCU_FAST std::int32_t offsetOf(const Lines& lines, int y) {
    return lines.at(y);
}

struct Shape {
    Lines in, out;
    std::int32_t inputs;  // of a window, filled up for the kernel
    std::int16_t kernelHeight, kernelWidth, strideHeight, strideWidth, dilationHeight, dilationWidth, padTop, padLeft;
    std::uint16_t channels, outputs;
    std::int16_t zero;
    unsigned char low, high;  // the limits of results
    unsigned char padding;    // the input's zero point
    bool turned;              // signed results, which are computed 128 higher
    bool ordered, reverse;    // whether lines are stored in their order, from the last one
    bool packed;
    bool point;         // 1 x 1 without padding
    bool flat;          // of a stride of 1, between tensors that are runs of bytes
    bool shortLines;    // windows of three lines, runs of 3 or 9 bytes
    bool quads, whole;  // pixels of the input, of the output are words
};

// Limits of four results in a word, and the bits that turn them.
struct Limits {
    std::uint32_t low, room, mask;

    explicit N2D2_INLINE Limits(const Shape& s)
        : low(s.low * 0x01010101u), room((255u - s.high) * 0x01010101u), mask(s.turned ? 0x80808080u : 0u) {}
};

// The zero point and the limits of a layer, for a kernel.
template <class Work>
N2D2_INLINE void limit(Work& work, const Shape& s) {
    const Limits limits(s);
    work.zero = s.zero;
    work.low = limits.low;
    work.room = limits.room;
    work.mask = limits.mask;
}

// Of a layer whose windows have `inputs` inputs.
template <class Cfg>
constexpr Shape shapeOf(int inputs) {
    return Shape{Lines::of<typename Cfg::Input>(),
                 Lines::of<typename Cfg::Output>(),
                 inputs,
                 Cfg::KernelHeight,
                 Cfg::KernelWidth,
                 Cfg::StrideHeight,
                 Cfg::StrideWidth,
                 Cfg::DilationHeight,
                 Cfg::DilationWidth,
                 Cfg::PadTop,
                 Cfg::PadLeft,
                 Cfg::Input::Channels,
                 Cfg::Output::Channels,
                 Cfg::LaneZero,
                 static_cast<unsigned char>(Cfg::LaneLow),
                 static_cast<unsigned char>(Cfg::LaneHigh),
                 static_cast<unsigned char>(Cfg::InputZero & 255),
                 Cfg::LaneSigned != 0,
                 Cfg::Serial || Cfg::Reverse,
                 Cfg::Reverse != 0,
                 static_cast<int>(PlaneTraits<typename Cfg::Input>::Packed) && Cfg::DilationWidth == 1,
                 Cfg::KernelHeight == 1 && Cfg::KernelWidth == 1 && Cfg::PadTop == 0 && Cfg::PadLeft == 0 &&
                     (int(Cfg::Output::Height) - 1) * Cfg::StrideHeight < int(Cfg::Input::Height) &&
                     (int(Cfg::Output::Width) - 1) * Cfg::StrideWidth < int(Cfg::Input::Width),
                 Cfg::StrideHeight == 1 && Cfg::StrideWidth == 1 && static_cast<int>(PlaneTraits<typename Cfg::Input>::Whole) &&
                     static_cast<int>(PlaneTraits<typename Cfg::Output>::Whole),
                 static_cast<int>(PlaneTraits<typename Cfg::Input>::Packed) && Cfg::DilationWidth == 1 &&
                     Cfg::KernelHeight == 3 && Cfg::KernelWidth == 3 &&
                     (Cfg::Input::Channels == 1 || Cfg::Input::Channels == 3),
                 Cfg::WordInput != 0 && Cfg::Input::Channels % 4 == 0,
                 Cfg::WordOutput != 0 && Cfg::Output::Channels % 4 == 0};
}

// The taps of output column x; `padded` for those outside the input.
N2D2_INLINE void placeTaps(const Shape& s, const unsigned char* const* rows, int x, const unsigned char* padded,
                           const unsigned char** taps) {
    const int left = x * s.strideWidth - s.padLeft;
    for (int u = 0; u < s.kernelHeight; ++u) {
        int column = left;
        for (int v = 0; v < s.kernelWidth; ++v, column += s.dilationWidth)
            *taps++ = rows[u] && column >= 0 && column < s.in.width ? rows[u] + column * s.in.stride : padded;
    }
}

}  // namespace lanes
}  // namespace n2d2
