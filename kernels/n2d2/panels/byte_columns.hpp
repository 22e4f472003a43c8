// The taps of a depthwise convolution of bytes for panels/channel_columns.hpp, from the constants of panels/panel_depthwise.hpp.
//
// A column of the input is widened once and multiplied with all taps of the kernel that lie on it. The bias expects signed inputs
// to be + 128; they are multiplied as they are, and 128 times the weights are added to it once for each line.
//
// Vec has besides lines(from, to), the weights of four lines of a column from [8 channels][4 lines], and spread(x), x for all channels.
#pragma once

#include "n2d2/panels/channel_columns.hpp"
#include "n2d2/panels/panel_depthwise.hpp"

namespace n2d2 {

// Eight channels of a panel of 16.
template <class Cfg, class Vec>
struct ByteColumns : ChannelPanels<Cfg, 8, Vec::most(Cfg::KernelHeight* Cfg::KernelWidth)> {
    typedef PanelDepthwise<Cfg> Panels;
    enum : int { KH = Panels::KH, KW = Panels::KW, Taps = Panels::Taps };

    struct Place {
        int panel, half, first, second;
        N2D2_INLINE explicit Place(int channel)
            : panel(channel / 16),
              half(channel % 16 / 8),
              first(Panels::position(panel, 2 * half)),
              second(Panels::position(panel, 2 * half + 1)) {}
    };

    // Four lines of a column of eight channels; lines beyond the last and channels beyond Count are zeros.
    template <int Count>
    static N2D2_INLINE void word(const Place& place, const std::int8_t* all, int tap, typename Vec::Weights (&to)[4]) {
        std::int8_t four[32] = {};
        if (place.panel + 1 < Panels::Panels || int(Panels::LastChannels) == 16) {
            std::memcpy(four, Panels::weightsAt(all, place.first, tap), 16);
            std::memcpy(four + 16, Panels::weightsAt(all, place.second, tap), 16);
        } else {
            const long before = static_cast<long>(place.panel) * Taps * 64 + tap * Panels::LastChannels * 4;
            std::memcpy(four, all + before + place.half * 32, Count * 4);
        }
        Vec::lines(four, to);
    }
    template <int Count>
    static N2D2_INLINE void taps(const Place& place, const unsigned char* all, typename Vec::Weights* to,
                                 typename Vec::Sums& bias) {
        for (int f = 0; f < Panels::Fours; ++f)
            for (int t = 0; t < KW; ++t) {
                typename Vec::Weights lines[4];
                word<Count>(place, reinterpret_cast<const std::int8_t*>(all), f * KW + t, lines);
                N2D2_UNROLL_FOR(u, 4)
                    if (4 * f + u < KH)
                        to[(4 * f + u) * KW + t] = lines[u];
            }
        for (int t = 0; std::numeric_limits<typename Panels::In>::is_signed && t < KH * KW; ++t)
            Vec::add(bias, Vec::spread(128), to[t]);
    }
};

}  // namespace n2d2
