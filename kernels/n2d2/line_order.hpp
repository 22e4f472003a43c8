// The lines of a layer that may be computed together although its output overlaps its input.
//
// A line may be stored over what no later line reads. Lines y to y + n - 1 need no order among themselves where
// none of them is stored over what any line from y on reads. Offsets and line lengths are constants, so this is known when
// the layer is compiled: an expansion that begins at the start of the arena, say, has most of its lines in two groups.
#pragma once

#include "n2d2/plane.hpp"

namespace n2d2 {

// Output line y reads input lines [y * Stride - Pad, y * Stride - Pad + Extent) inside the input. Steps count lines in the order in
// which they are made, with Reverse from the last.
template <class Input, class Output, int Stride, int Pad, int Extent, bool Reverse, bool Streamed = false>
struct LineOrder {
    enum : bool { Known = int(Input::Lines) >= int(Input::Height) && int(Output::Lines) >= int(Output::Height) && !Streamed };
    enum : int { Lines = Output::Height, Some = 64 };
    enum : long {
        Pixel = long(Output::Stride) * static_cast<long>(sizeof(typename Output::Type)),
        Line = long(LinePitch<Output>::value) * static_cast<long>(sizeof(typename Output::Type)),
        InputLine = long(LinePitch<Input>::value) * static_cast<long>(sizeof(typename Input::Type)),
        Distance = long(Input::Offset) - long(Output::Offset)
    };

    static N2D2_INLINE constexpr long inside(long y) { return largest(0L, least(long(Input::Height), y)); }
    // Bytes from the start of the output to what output line y and those behind it read,
    static N2D2_INLINE constexpr long first(int y) { return Distance + inside(long(y) * Stride - Pad) * InputLine; }
    // and to the end of what line y and those before it read.
    static N2D2_INLINE constexpr long stop(int y) { return Distance + inside(long(y) * Stride - Pad + Extent) * InputLine; }

    // Units of `size` bytes of the output before what lines from y on read, at least none.
    static N2D2_INLINE constexpr long before(int y, long size) { return first(y) > 0 ? first(y) / size : 0; }
    // The first unit behind what lines up to y read.
    static N2D2_INLINE constexpr long behind(int y, long size) { return stop(y) > 0 ? (stop(y) + size - 1) / size : 0; }

    static N2D2_INLINE constexpr int atLeastOne(long lines, int most) {
        return static_cast<int>(largest(1L, least(long(most), lines)));
    }
    static N2D2_INLINE constexpr int together(int step) {
        return !Known ? 1 :
                        atLeastOne(Reverse ? Lines - step - behind(Lines - 1 - step, Line) : before(step, Line) - step,
                                   Lines - step);
    }
    static N2D2_INLINE constexpr int groupsFrom(int step, int count) {
        return step >= Lines ? count : count >= Some ? count + Lines - step : groupsFrom(step + together(step), count + 1);
    }
    static N2D2_INLINE constexpr int groups(int) { return groupsFrom(0, 0); }
};

// The same for convolutions.
template <class Cfg>
struct WindowOrder : LineOrder<typename Cfg::Input, typename Cfg::Output, Cfg::StrideHeight, Cfg::PadTop,
                               (Cfg::KernelHeight - 1) * Cfg::DilationHeight + 1, (Cfg::Reverse != 0), (Cfg::Streamed != 0)> {};

}  // namespace n2d2
