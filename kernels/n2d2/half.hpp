// Weights in IEEE 754 binary16, widened to float where they are used: F16C, the conversions of AArch64, or portable C++,
// all with the same result. The exporter stores finite numbers only.
//
//   Half                     16 bits, converts to float and double
//   widen<Count>(from, to)   Count numbers
#pragma once

#include "n2d2/env.hpp"

#if !defined(N2D2_ISA_PORTABLE) && defined(__GNUC__) && defined(__F16C__)
#define N2D2_HALF_F16C 1
#include "n2d2/x86/intrinsics.hpp"
#endif
#if defined(__aarch64__) && N2D2_NEON
#define N2D2_HALF_NEON 1
#include <arm_neon.h>
#endif

namespace n2d2 {

// The exponent of a half counts from 15, that of a float from 127: the bits, moved up, stand for the number times 2^-112. The
// multiplication is exact, also where the half is subnormal.
N2D2_INLINE float fromHalf(std::uint16_t bits) {
    const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffu) << 13;
    float value;
    std::memcpy(&value, &magnitude, sizeof(value));
    value *= 5192296858534827628530496329220096.0f;  // 2^112
    std::uint32_t whole;
    std::memcpy(&whole, &value, sizeof(whole));
    whole |= static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    std::memcpy(&value, &whole, sizeof(value));
    return value;
}

struct Half {
    std::uint16_t bits;
    N2D2_INLINE operator float() const {
#if defined(N2D2_HALF_F16C)
        return _cvtsh_ss(bits);
#else
        return fromHalf(bits);
#endif
    }
};

template <int Count>
N2D2_INLINE void widen(const Half* from, float* to) {
    int i = 0;
#if defined(N2D2_HALF_F16C)
    for (; i + 8 <= Count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(load128(from + i)));
#elif defined(N2D2_HALF_NEON)
    for (; i + 4 <= Count; i += 4) {
        uint16x4_t bits;
        std::memcpy(&bits, from + i, sizeof(bits));
        vst1q_f32(to + i, vcvt_f32_f16(vreinterpret_f16_u16(bits)));
    }
#endif
    for (; i < Count; ++i)
        to[i] = from[i];
}

}  // namespace n2d2
