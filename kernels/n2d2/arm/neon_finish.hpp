// The last stage with NEON: four sums at a time, rescaled in floating point to bytes or 16-bit integers.
//
// As in rescale.hpp: float(sum) * factor, clamped to integer limits, then rounded to nearest, ties to even. Other stages
// are applied element by element.
#ifndef N2D2_ARM_NEON_FINISH_HPP
#define N2D2_ARM_NEON_FINISH_HPP

#include <arm_neon.h>
#include <cstring>

#include "n2d2/output.hpp"

namespace n2d2 {
namespace neon {

// Four sums plus their bias (modulo 2^32), with the constants of outputs `index` to `index` + 3, stored at `out`.
template <class Stage>
struct Four {
    enum : bool { Vector = false };
    static N2D2_INLINE void store(int32x4_t sums, int index, typename Stage::Type* out) {
        alignas(16) std::int32_t values[4];
        vst1q_s32(values, sums);
        for (int i = 0; i < 4; ++i)
            out[i] = Stage::apply(values[i], index + i);
    }
};

template <class T, const float* Factors, int Count, bool Bounded, std::int64_t Low, std::int64_t High>
struct Four<Requantized<T, FloatRescale<Factors, Count, Bounded>, Low, High> > {
    static_assert(sizeof(T) <= 2, "the clamp lies within 16 bits, which float holds exactly");
    enum : bool { Vector = true };

    static N2D2_INLINE int32x4_t rescaled(int32x4_t sums, int index) {
        const float32x4_t factors = Count == 1 ? vdupq_n_f32(Factors[0]) : vld1q_f32(Factors + index);
        float32x4_t x = vmulq_f32(vcvtq_f32_s32(sums), factors);
        x = vmaxq_f32(vminq_f32(x, vdupq_n_f32(static_cast<float>(High))), vdupq_n_f32(static_cast<float>(Low)));
#if defined(__aarch64__)
        return vcvtnq_s32_f32(x);
#else
        const float32x4_t magic = vdupq_n_f32(12582912.0f);  // 1.5 * 2^23
        return vcvtq_s32_f32(vsubq_f32(vaddq_f32(x, magic), magic));
#endif
    }
    static N2D2_INLINE void store(int32x4_t sums, int index, T* out) {
        const int16x4_t halves = vmovn_s32(rescaled(sums, index));
        if (sizeof(T) == 2) {
            std::memcpy(out, &halves, 8);
        } else {
            const int8x8_t bytes = vmovn_s16(vcombine_s16(halves, halves));
            std::memcpy(out, &bytes, 4);
        }
    }
    // Sixteen bytes at once.
    static N2D2_INLINE void sixteen(const int32x4_t* sums, int index, T* out) {
        int16x4_t part[4];
        for (int i = 0; i < 4; ++i)
            part[i] = vmovn_s32(rescaled(sums[i], index + 4 * i));
        const int8x16_t bytes = vcombine_s8(vmovn_s16(vcombine_s16(part[0], part[1])),
                                            vmovn_s16(vcombine_s16(part[2], part[3])));
        std::memcpy(out, &bytes, 16);
    }
};

// Requantizations beyond 16 bits keep the integer clamp.
template <const float* Factors, int Count, bool Bounded, std::int64_t Low, std::int64_t High>
struct Four<Requantized<std::int32_t, FloatRescale<Factors, Count, Bounded>, Low, High> > {
    typedef Requantized<std::int32_t, FloatRescale<Factors, Count, Bounded>, Low, High> Stage;
    enum : bool { Vector = false };
    static N2D2_INLINE void store(int32x4_t sums, int index, std::int32_t* out) {
        alignas(16) std::int32_t values[4];
        vst1q_s32(values, sums);
        for (int i = 0; i < 4; ++i)
            out[i] = Stage::apply(values[i], index + i);
    }
};

// The first Count of 4 sums.
template <class Stage, int Count>
N2D2_INLINE void some(int32x4_t sums, const std::int32_t* bias, int index, typename Stage::Type* out) {
    if (Count >= 4) {
        Four<Stage>::store(vaddq_s32(sums, vld1q_s32(bias + index)), index, out);
        return;
    }
    alignas(16) std::int32_t values[4];
    vst1q_s32(values, sums);
    for (int i = 0; i < Count; ++i)
        out[i] = Stage::apply(static_cast<std::int32_t>(static_cast<std::uint32_t>(values[i]) +
                                                        static_cast<std::uint32_t>(bias[index + i])), index + i);
}

template <class Stage, bool Vector>
struct Sixteen {
    static N2D2_INLINE void apply(const int32x4_t* sums, const std::int32_t* bias, int index, typename Stage::Type* out) {
        for (int v = 0; v < 4; ++v)
            some<Stage, 4>(sums[v], bias, index + 4 * v, out + 4 * v);
    }
};

template <class Stage>
struct Sixteen<Stage, true> {
    static N2D2_INLINE void apply(const int32x4_t* sums, const std::int32_t* bias, int index, typename Stage::Type* out) {
        int32x4_t all[4];
        for (int v = 0; v < 4; ++v)
            all[v] = vaddq_s32(sums[v], vld1q_s32(bias + index + 4 * v));
        Four<Stage>::sixteen(all, index, out);
    }
};

// sums + bias of Outputs outputs, rescaled and stored.
template <int Outputs, class Stage>
N2D2_INLINE void finish(const int32x4_t* sums, const std::int32_t* bias, int output, typename Stage::Type* out) {
    if (Outputs == 16) {
        Sixteen<Stage, bool(Four<Stage>::Vector) && sizeof(typename Stage::Type) == 1>::apply(sums, bias, output,
                                                                                              out + output);
        return;
    }
    for (int v = 0; v < Outputs / 4; ++v)
        some<Stage, 4>(sums[v], bias, output + 4 * v, out + output + 4 * v);
    some<Stage, Outputs % 4>(sums[Outputs / 4 % 4], bias, output + Outputs / 4 * 4, out + output + Outputs / 4 * 4);
}

}  // namespace neon
}  // namespace n2d2

#endif  // N2D2_ARM_NEON_FINISH_HPP
