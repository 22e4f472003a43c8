// Eight channels with NEON, as panels/channel_columns.hpp wants them: inputs and weights of 16 bits, multiply-accumulate to 32 (smlal).
#pragma once

#include "n2d2/arm/neon_finish.hpp"

namespace n2d2 {
namespace neon {

struct Channels {
    struct Sums {
        int32x4_t low, high;
    };
    typedef int16x8_t Inputs;
    typedef int16x8_t Weights;
#if defined(__aarch64__)
    static constexpr int most(int taps) { return taps > 9 ? 8 : 5; }
#else
    static constexpr int most(int) { return 4; }
#endif

    // Count bytes, and zeros up to 16.
    template <int Count>
    static N2D2_INLINE uint8x16_t some(const unsigned char* from) {
        if (Count >= 16)
            return vld1q_u8(from);
        if (Count == 8)
            return vcombine_u8(vld1_u8(from), vdup_n_u8(0));
        unsigned char all[16] = {};
        std::memcpy(all, from, Count);
        return vld1q_u8(all);
    }
    template <class In, int Count>
    static N2D2_INLINE Inputs inputs(const In* in) {
        constexpr int bytes = Count * static_cast<int>(sizeof(In));
        const uint8x16_t from = some<bytes>(reinterpret_cast<const unsigned char*>(in));
        if (sizeof(In) == 1)
            return std::numeric_limits<In>::is_signed ? vmovl_s8(vget_low_s8(vreinterpretq_s8_u8(from))) :
                                                        vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(from)));
        const int16x8_t x = vreinterpretq_s16_u8(from);
        return std::numeric_limits<In>::is_signed ? x : veorq_s16(x, vdupq_n_s16(-32768));
    }
    static N2D2_INLINE void weights(const unsigned char* a, const unsigned char* b, Weights& first, Weights& second) {
        const int16x4x2_t low = vld2_s16(elementsOf<std::int16_t>(a)), high = vld2_s16(elementsOf<std::int16_t>(b));
        first = vcombine_s16(low.val[0], high.val[0]);
        second = vcombine_s16(low.val[1], high.val[1]);
    }
    // Four lines of a column of bytes, [channel][line].
    static N2D2_INLINE void lines(const std::int8_t* from, Weights (&to)[4]) {
        const int8x8x4_t bytes = vld4_s8(from);
        for (int u = 0; u < 4; ++u)
            to[u] = vmovl_s8(bytes.val[u]);
    }
    static N2D2_INLINE Inputs spread(std::int16_t x) { return vdupq_n_s16(x); }
    template <int Count>
    static N2D2_INLINE Sums bias(const std::int32_t* from, int first, int second) {
        return Sums{four(from + first, Count), Count > 4 ? four(from + second, Count - 4) : vdupq_n_s32(0)};
    }
    static N2D2_INLINE void add(Sums& sums, Inputs x, Weights w) {
        sums.low = vmlal_s16(sums.low, vget_low_s16(x), vget_low_s16(w));
#if defined(__aarch64__)
        sums.high = vmlal_high_s16(sums.high, x, w);
#else
        sums.high = vmlal_s16(sums.high, vget_high_s16(x), vget_high_s16(w));
#endif
    }

    template <class S, int Count>
    struct Epilogue {
        PanelEpilogue<S, Count> panel;
        struct At {
            int first, second;
            N2D2_INLINE int operator()(int v) const { return v == 0 ? first : second; }
        };
        N2D2_INLINE Epilogue(int first, int second) : panel(At{first, second}) {}
        N2D2_INLINE void store(const Sums& sums, typename S::Type* to) const {
            const int32x4_t both[2] = {sums.low, sums.high};
            panel.store(both, to);
        }
    };
};

}  // namespace neon
}  // namespace n2d2
