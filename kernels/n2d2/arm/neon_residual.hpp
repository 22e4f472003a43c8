// The sum in the epilogue of a convolution with NEON: products of 16-bit integers and a multiplier, summed in 32 bits.
#ifndef N2D2_ARM_NEON_RESIDUAL_HPP
#define N2D2_ARM_NEON_RESIDUAL_HPP

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

    template <int Count>
    N2D2_INLINE void sixteen(const typename First::Type* own, Out* out) const {
        constexpr std::int16_t weight = static_cast<std::int16_t>(Operand::weight()),
                               other = static_cast<std::int16_t>(Operand::oldWeight());
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
            sums[2 * i] = vmlal_n_s16(vmlal_n_s16(offset, vget_low_s16(a[i]), weight), vget_low_s16(b[i]), other);
            sums[2 * i + 1] = vmlal_n_s16(vmlal_n_s16(offset, vget_high_s16(a[i]), weight), vget_high_s16(b[i]), other);
        }
        const SameConstants constants = {};
        const PanelEpilogue<Last, Count> epilogue(constants);
        epilogue.store(sums, out);
    }
};

}  // namespace neon
}  // namespace n2d2

#endif  // N2D2_ARM_NEON_RESIDUAL_HPP
