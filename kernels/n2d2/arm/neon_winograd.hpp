// The vectors of a Winograd convolution with NEON: smlal (vmlal), four products of 16-bit integers at a time, exactly.
//
// A word of a row of weights, [8 outputs][2 inputs], is loaded with its inputs taken apart; each is multiplied with one input of a tile. Bytes
// count as signed ones, unsigned ones - 128, as the bias of the panels expects on ARM.
#pragma once

#include "n2d2/arm/neon_finish.hpp"
#include "n2d2/panels/winograd_products.hpp"

namespace n2d2 {
namespace neon {

// sums += w * input Lane of x, for four outputs, or the lower and the upper ones of eight.
template <int Lane>
N2D2_INLINE int32x4_t multiplyLow(int32x4_t sums, int16x8_t w, int16x8_t x) {
#if defined(__aarch64__)
    return vmlal_laneq_s16(sums, vget_low_s16(w), x, Lane);
#else
    return vmlal_lane_s16(sums, vget_low_s16(w), Lane < 4 ? vget_low_s16(x) : vget_high_s16(x), Lane % 4);
#endif
}
template <int Lane>
N2D2_INLINE int32x4_t multiplyHigh(int32x4_t sums, int16x8_t w, int16x8_t x) {
#if defined(__aarch64__)
    return vmlal_high_laneq_s16(sums, w, x, Lane);
#else
    return vmlal_lane_s16(sums, vget_high_s16(w), Lane < 4 ? vget_low_s16(x) : vget_high_s16(x), Lane % 4);
#endif
}

// 4 sums of a tile, its inputs, four vectors of weights: 29 of 32 registers, or 14 of 16.
#if defined(__aarch64__)
enum : int { WinogradTiles = 5 };
#else
enum : int { WinogradTiles = 2 };
#endif

// The primitives (panels/vec.hpp), of weights that are transformed on the stack (panels/winograd_stack_panel.hpp), inputs and sums.
struct WinogradVec {
    typedef int16x8_t Ints;
    enum : int { Size = 16 };
    static N2D2_INLINE int16x8_t load(const std::int8_t* from) { return vreinterpretq_s16_s8(vld1q_s8(from)); }
    static N2D2_INLINE void storeAligned(int16x8_t x, void* to) { vst1q_s16(elementsOf<std::int16_t>(to), x); }
    static N2D2_INLINE void storeAligned(int32x4_t x, std::int32_t* to) { vst1q_s32(to, x); }
    static N2D2_INLINE int32x4_t loadAligned(const std::int32_t* from) { return vld1q_s32(from); }
    // Count bytes as 16-bit integers from -128 to 127, unsigned ones - 128.
    template <class In, int Count>
    static N2D2_INLINE int16x8_t widened(const In* from) {
        std::uint8_t all[8] = {};
        if (Count < 8)
            std::memcpy(all, from, Count);
        const uint8x8_t x = vld1_u8(Count < 8 ? all : reinterpret_cast<const std::uint8_t*>(from));
        return std::numeric_limits<In>::is_signed ? vmovl_s8(vreinterpret_s8_u8(x)) :
                                                    vreinterpretq_s16_u16(vsubl_u8(x, vdup_n_u8(128)));
    }
    static N2D2_INLINE int32x4_t zero() { return vdupq_n_s32(0); }
    static N2D2_INLINE int32x4_t spread(std::int32_t x) { return vdupq_n_s32(x); }
    static N2D2_INLINE int32x4_t plus(int32x4_t a, int32x4_t b) { return vaddq_s32(a, b); }
    static N2D2_INLINE int32x4_t minus(int32x4_t a, int32x4_t b) { return vsubq_s32(a, b); }
    template <int Bits>
    static N2D2_INLINE int32x4_t left(int32x4_t a) {
        return vshlq_n_s32(a, Bits);
    }
    template <int Bits>
    static N2D2_INLINE int16x8_t left16(int16x8_t a) {
        return vshlq_n_s16(a, Bits);
    }
    static N2D2_INLINE int16x8_t plus16(int16x8_t a, int16x8_t b) { return vaddq_s16(a, b); }
    static N2D2_INLINE int16x8_t minus16(int16x8_t a, int16x8_t b) { return vsubq_s16(a, b); }
    static N2D2_INLINE int16x8_t plus8(int16x8_t a, int16x8_t b) {
        return vreinterpretq_s16_s8(vaddq_s8(vreinterpretq_s8_s16(a), vreinterpretq_s8_s16(b)));
    }
    static N2D2_INLINE int16x8_t minus8(int16x8_t a, int16x8_t b) {
        return vreinterpretq_s16_s8(vsubq_s8(vreinterpretq_s8_s16(a), vreinterpretq_s8_s16(b)));
    }
    template <int Half>
    static N2D2_INLINE int16x8_t pairOf(int16x8_t x) {
        const uint32x4_t fours = vreinterpretq_u32_s16(x);
        return vmovl_s8(vreinterpret_s8_u16(Half == 0 ? vmovn_u32(fours) : vshrn_n_u32(fours, 16)));
    }
};

struct WinogradMicrokernel : TransformedWeights {
    typedef WinogradVec Vec;
    typedef int16x8_t Inputs;
    typedef int32x4_t Sums;
    enum : int { Lanes = 8, SumLanes = 4, StepWords = 4, GroupTiles = WinogradTiles };

    template <int Count>
    struct Step {
        int16x8_t x[Count];
        N2D2_INLINE Step(const std::uint8_t* from, int tile) {
            N2D2_UNROLL_FOR(t, Count)
                x[t] = vld1q_s16(elementsOf<std::int16_t>(from + t * static_cast<long>(tile)));
        }
        template <int>
        N2D2_INLINE int16x8_t at(int t) const {
            return x[t];
        }
    };
    template <int Outputs>
    struct Row {
        enum : int { Vectors = (Outputs + 3) / 4, Eights = (Outputs + 7) / 8, Bytes = 32 * Eights };
        int16x8_t first[Eights], second[Eights];
        N2D2_INLINE explicit Row(const std::int8_t* from) {
            N2D2_UNROLL_FOR(e, Eights) {
                const int16x8x2_t apart = vld2q_s16(elementsOf<std::int16_t>(from + 32 * e));
                first[e] = apart.val[0];  // GCC keeps an array of pairs on the stack
                second[e] = apart.val[1];
            }
        }
        template <int Index>
        N2D2_INLINE void add(int32x4_t (&sums)[Vectors], int16x8_t x) const {
            N2D2_UNROLL_FOR(v, Vectors) {
                const int16x8_t a = first[v / 2], b = second[v / 2];
                sums[v] = v % 2 == 0 ? multiplyLow<2 * Index>(sums[v], a, x) : multiplyHigh<2 * Index>(sums[v], a, x);
                sums[v] = v % 2 == 0 ? multiplyLow<2 * Index + 1>(sums[v], b, x) : multiplyHigh<2 * Index + 1>(sums[v], b, x);
                __asm__ volatile("" : "+w"(sums[v]));  // GCC loads the weights of all words first otherwise, sums on the stack
            }
        }
    };

    template <int Bits>
    static N2D2_INLINE int32x4_t plusQuotient(int32x4_t bias, int32x4_t a, int32x4_t inverse) {
        return vsraq_n_s32(bias, vmulq_s32(a, inverse), Bits);
    }

    // The epilogue of Pixels pixels of Outputs outputs.
    template <class Epilogue, int Outputs, int Pixels>
    struct Finish {
        enum : int { Vectors = (Outputs + 3) / 4, Rest = Outputs - 4 * (Vectors - 1) };
        static N2D2_INLINE int32x4_t bias(const std::int32_t* from, int v) {
            return four(from + 4 * v, v == Vectors - 1 ? int(Rest) : 4);
        }
        template <class At>
        static N2D2_INLINE void store(const int32x4_t (&sums)[Pixels][Vectors], int output, const At& at) {
            const InOrder first = {output};
            const PanelEpilogue<Epilogue, Outputs> epilogue(first);
            N2D2_UNROLL_FOR(p, Pixels)
                epilogue.store(sums[p], at(p) + output);
        }
    };
};

}  // namespace neon
}  // namespace n2d2
