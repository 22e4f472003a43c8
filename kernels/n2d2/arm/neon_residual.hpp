// The sum in the epilogue of a convolution with NEON: products of 16-bit integers and a multiplier, summed in 32 bits.
#pragma once

#include "n2d2/arm/neon_finish.hpp"

namespace n2d2 {
namespace neon {

N2D2_INLINE void widened(const std::int8_t* from, int16x8_t (&to)[2]) {
    const int8x16_t x = vld1q_s8(from);
    to[0] = vmovl_s8(vget_low_s8(x));
    to[1] = vmovl_s8(vget_high_s8(x));
}
N2D2_INLINE void widened(const std::uint8_t* from, int16x8_t (&to)[2]) {
    const uint8x16_t x = vld1q_u8(from);
    to[0] = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(x)));
    to[1] = vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(x)));
}

// The constants of a epilogue that has one of each for all outputs.
struct SameConstants {
    N2D2_INLINE int operator()(int) const { return 0; }
};

template <class Epilogue>
struct ResidualSum;

template <class First, class Operand, class Last>
struct ResidualSum<Added<First, Operand, Last> > {
    typedef typename Last::Type Out;

    static N2D2_INLINE int32x4_t sum(int32x4_t offset, int16x4_t a, int16x4_t b) {
        constexpr std::int32_t weight = Operand::weight(), other = Operand::oldWeight();
        if (PairedWeights<Operand>::Wide)
            return vmlaq_n_s32(vmlaq_n_s32(offset, vmovl_s16(a), weight), vmovl_s16(b), other);
        return vmlal_n_s16(vmlal_n_s16(offset, a, static_cast<std::int16_t>(weight)), b, static_cast<std::int16_t>(other));
    }

    template <int Count>
    N2D2_INLINE void sixteen(const typename First::Type* own, Out* out) const {
        typename Operand::Old old[16];
        std::memcpy(old, out, Count);
        if (Count < 16)
            std::memset(old + Count % 16, 0, 16 - Count % 16);
        int16x8_t a[2], b[2];
        widened(own, a);
        widened(old, b);
        const int32x4_t offset = vdupq_n_s32(Operand::offset());
        int32x4_t sums[4];
        for (int i = 0; i < 2; ++i) {
            sums[2 * i] = sum(offset, vget_low_s16(a[i]), vget_low_s16(b[i]));
            sums[2 * i + 1] = sum(offset, vget_high_s16(a[i]), vget_high_s16(b[i]));
        }
        const SameConstants constants = {};
        const PanelEpilogue<Last, Count> epilogue(constants);
        epilogue.store(sums, out);
    }
};

}  // namespace neon
}  // namespace n2d2
