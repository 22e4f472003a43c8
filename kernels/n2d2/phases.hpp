// A transposed convolution as convolutions of stride 1, one for each phase of its stride.
//
// Output positions that agree modulo the stride gather the same taps of the kernel: those u with (position + pad - u) a multiple of the
// stride, from neighbouring input positions. A phase is thus a convolution with these taps, last first, whose outputs are every
// StrideHeight-th line and StrideWidth-th pixel of the plane.
#pragma once

#include "n2d2/convolution.hpp"

namespace n2d2 {

// The lines Top, Top + StrideHeight, ... and pixels Left, Left + StrideWidth, ... of a plane without a wrap. It has no lines in one
// run (Lines = 0), and its own distance of lines (Pitch).
template <class Plane, int StrideHeight, int StrideWidth, int Top, int Left>
struct PhasePlane {
    typedef typename Plane::Type Type;
    static_assert(int(Plane::Lines) >= int(Plane::Height), "a plane of phases has no wrap");
    enum : int {
        Height = (Plane::Height - Top + StrideHeight - 1) / StrideHeight,
        Width = (Plane::Width - Left + StrideWidth - 1) / StrideWidth,
        Channels = Plane::Channels,
        Stride = Plane::Stride * StrideWidth,
        Pitch = LinePitch<Plane>::value * StrideHeight,
        Lines = 0
    };
    enum : long {
        Offset = Plane::Offset +
                 (static_cast<long>(Top) * int(LinePitch<Plane>::value) + static_cast<long>(Left) * int(Plane::Stride)) *
                     static_cast<long>(sizeof(Type)),
        WrapOffset = Offset
    };
};

}  // namespace n2d2
