// The layout of a tensor in memory.
//
// A plane struct describes Height lines of Width pixels of Channels elements of Type (HWC order).
// One pixel starts every Stride elements (more than Channels when the tensor is a slice of a
// wider one); useful elements are only the first Channels. Lines [0, Lines) start at byte Offset from the
// base, the others at byte WrapOffset: a plane has at most one wrap, and it lies between two lines. A plane that
// wraps to its own Offset is a ring of Lines lines: line y is at slot y % Lines, where line y - Lines was.
//
//   struct conv1_plane {
//       typedef std::uint8_t Type;
//       enum : int { Height = 16, Width = 16, Channels = 32, Stride = 32, Lines = 16 };
//       enum : long { Offset = 0, WrapOffset = 0 };
//   };
//
// Kernels ask for the address of a line and never step from one line to another by arithmetic. A constant Pitch, where a plane
// has one, is the distance of two lines in elements; Width * Stride otherwise.
#pragma once

#include "n2d2/env.hpp"

namespace n2d2 {

N2D2_OPTIONAL(int, LinePitch, Pitch, Class::Width* Class::Stride);

// Input, Output: the planes of a layer; In, Out: their elements.
#define N2D2_PLANES(Cfg)                 \
    typedef typename Cfg::Input Input;   \
    typedef typename Cfg::Output Output; \
    typedef typename Input::Type In;     \
    typedef typename Output::Type Out

// The same of a layer with windows, and the sizes of these and of both planes.
#define N2D2_WINDOWS(Cfg)       \
    N2D2_PLANES(Cfg);           \
    enum : int {                \
        KH = Cfg::KernelHeight, \
        KW = Cfg::KernelWidth,  \
        H = Input::Height,      \
        W = Input::Width,       \
        OH = Output::Height,    \
        OW = Output::Width      \
    }

// The types of a layer with weights.
#define N2D2_WEIGHTS(Cfg)                \
    typedef typename Cfg::Weight Weight; \
    typedef typename Cfg::Sum Sum;       \
    typedef typename Cfg::Epilogue Epilogue

template <class Plane>
struct PlaneTraits {
    typedef typename Plane::Type Type;
    enum : int {
        Size = static_cast<int>(sizeof(Type)),
        Height = Plane::Height,
        Width = Plane::Width,
        Channels = Plane::Channels,
        Stride = Plane::Stride,
        Lines = Plane::Lines,
        LineElements = LinePitch<Plane>::value,
        Ring = Lines > 0 && int(Lines) < int(Height) && long(Plane::WrapOffset) == long(Plane::Offset),
        Packed = Stride == Channels,  // a line is one run of Width * Channels elements
        // The lines are all there and follow each other.
        Flat = int(LineElements) == int(Width) * int(Stride) && int(Lines) >= int(Height),
        Whole = Packed && Flat  // the plane is one run
    };
    static_assert(Height > 0 && Width > 0 && Channels > 0, "a plane has at least one element");
    static_assert(Stride >= Channels, "a pixel must fit into its stride");
    static_assert(long(Plane::Offset) % int(Size) == 0 && long(Plane::WrapOffset) % int(Size) == 0,
                  "the elements of a plane must be aligned");
};

// Byte offset of line y, 0 <= y < Height.
template <class Plane>
N2D2_INLINE long lineOffset(int y) {
    typedef PlaneTraits<Plane> Traits;
    constexpr long bytes = static_cast<long>(Traits::LineElements) * Traits::Size;
    constexpr int lines = Traits::Lines;
    constexpr int height = Traits::Height;
    constexpr bool ring = Traits::Ring;
    if (ring)
        return static_cast<long>(Plane::Offset) + y % largest(lines, 1) * bytes;
    if (lines >= height || y < lines)
        return static_cast<long>(Plane::Offset) + y * bytes;
    return static_cast<long>(Plane::WrapOffset) + (y - lines) * bytes;
}

// First element of line y of a plane that is read.
template <class Plane>
N2D2_INLINE const typename Plane::Type* line(const unsigned char* base, int y) {
    return elementsOf<typename Plane::Type>(base + lineOffset<Plane>(y));
}

// First element of line y of a plane that is written.
template <class Plane>
N2D2_INLINE typename Plane::Type* line(unsigned char* base, int y) {
    return elementsOf<typename Plane::Type>(base + lineOffset<Plane>(y));
}

// The runs of elements of a plane that follow each other, in order: all of it, lines, or pixels.
template <class Plane>
struct PlaneRuns {
    typedef PlaneTraits<Plane> Traits;
    enum : int {
        Line = Traits::Packed ? 1 : int(Traits::Width),  // runs of a line
        Count = Traits::Whole ? 1 : Traits::Height * Line,
        All = Traits::Height * Traits::Width * Traits::Channels,
        Length = All / Count  // elements of a run
    };
    static N2D2_INLINE const typename Plane::Type* at(const unsigned char* base, int run) {
        return line<Plane>(base, run / Line) + run % Line * Plane::Stride;
    }
};

// rows[u]: line u of the window of output line y of a convolution, null outside the input.
template <class Cfg>
N2D2_INLINE void windowRows(const unsigned char* in, int y, const typename Cfg::Input::Type** rows) {
    for (int u = 0; u < Cfg::KernelHeight; ++u) {
        const int from = y * Cfg::StrideHeight - Cfg::PadTop + u * Cfg::DilationHeight;
        rows[u] = from >= 0 && from < Cfg::Input::Height ? line<typename Cfg::Input>(in, from) : nullptr;
    }
}

// The distance of the places at(p) of the pixels of a tile, which say so by At::Step; 0: not always the same.
N2D2_OPTIONAL(long, StepOf, Step, 0);

}  // namespace n2d2
