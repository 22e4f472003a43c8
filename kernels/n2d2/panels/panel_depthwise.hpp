// Shared by the depthwise kernels on panels of channels: the positions of the constants.
//
// The weights of a tap are four lines to a word, [channel][line]. In each whole block of 64 channels, channels 16 l + 4 j to
// 16 l + 4 j + 3 are at position 16 j + 4 l (depthwise_order of the exporter), behind the blocks they are in order.
#pragma once

#include "n2d2/line_order.hpp"
#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

template <class Cfg>
struct PanelDepthwise {
    N2D2_WINDOWS(Cfg);
    static_assert(sizeof(In) == 1 && sizeof(typename Cfg::Weight) == 1 && sizeof(typename Cfg::Sum) == 4,
                  "8-bit inputs and weights, 32-bit sums");

    enum : int {
        C = Input::Channels,
        Fours = (KH + 3) / 4,
        Taps = Fours * KW,
        Panels = (C + 15) / 16,
        LastChannels = C - 16 * (Panels - 1),
        Whole = C / 64 * 4  // panels of the whole blocks of 64 channels
    };

    // The position, among the constants, of channels 4 j to 4 j + 3 of panel `panel`.
    static N2D2_INLINE int position(int panel, int j) {
        return panel < Whole ? panel / 4 * 64 + 16 * j + panel % 4 * 4 : panel * 16 + 4 * j;
    }

    // The weights of a tap (four lines of a column) of four channels from a position on; not those of a last panel.
    static N2D2_INLINE const std::int8_t* weightsAt(const std::int8_t* w, int position, int tap) {
        return w + static_cast<long>(position / 16) * Taps * 64 + tap * 64 + position % 16 * 4;
    }
};

}  // namespace n2d2
