// Depthwise convolution of bytes with NEON: panels/channel_columns.hpp with the constants of panels/panel_depthwise.hpp.
//
// A column of the input is widened once and multiplied with all taps of the kernel that lie on it (smlal). The bias expects signed inputs
// to be + 128; they are multiplied as they are, and 128 times the weights are added to it once for each line. With the dot product
// instructions, see neon_dot_depthwise.hpp.
#ifndef N2D2_ARM_NEON_DEPTHWISE_HPP
#define N2D2_ARM_NEON_DEPTHWISE_HPP

#include "n2d2/arm/neon_channels.hpp"
#include "n2d2/panels/channel_columns.hpp"
#include "n2d2/panels/panel_depthwise.hpp"

namespace n2d2 {
namespace neon {

// Eight channels of a panel of 16.
template <class Cfg>
struct ByteColumns : ChannelPanels<Cfg, 8, Channels::most(Cfg::KernelHeight* Cfg::KernelWidth)> {
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

    // Four lines of a column of eight channels, [channel][line]; lines beyond the last and channels beyond Count are zeros.
    template <int Count>
    static N2D2_INLINE int8x8x4_t word(const Place& place, const std::int8_t* all, int tap) {
        std::int8_t four[32] = {};
        if (place.panel + 1 < Panels::Panels || int(Panels::LastChannels) == 16) {
            std::memcpy(four, Panels::weightsAt(all, place.first, tap), 16);
            std::memcpy(four + 16, Panels::weightsAt(all, place.second, tap), 16);
        } else {
            const long before = static_cast<long>(place.panel) * Taps * 64 + tap * Panels::LastChannels * 4;
            std::memcpy(four, all + before + place.half * 32, Count * 4);
        }
        return vld4_s8(four);
    }
    template <int Count>
    static N2D2_INLINE void taps(const Place& place, const unsigned char* all, int16x8_t* to, Channels::Sums& bias) {
        for (int f = 0; f < Panels::Fours; ++f)
            for (int t = 0; t < KW; ++t) {
                const int8x8x4_t lines = word<Count>(place, reinterpret_cast<const std::int8_t*>(all), f * KW + t);
                N2D2_UNROLL
                for (int u = 0; u < 4; ++u)
                    if (4 * f + u < KH)
                        to[(4 * f + u) * KW + t] = vmovl_s8(lines.val[u]);
            }
        for (int t = 0; std::numeric_limits<typename Panels::In>::is_signed && t < KH * KW; ++t)
            Channels::add(bias, vdupq_n_s16(128), to[t]);
    }
};

template <class Cfg>
struct Depthwise : ChannelColumns<Cfg, Channels, ByteColumns<Cfg> > {};

}  // namespace neon
}  // namespace n2d2

#endif  // N2D2_ARM_NEON_DEPTHWISE_HPP
