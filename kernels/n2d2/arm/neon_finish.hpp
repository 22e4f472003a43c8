// The epilogue with NEON: four sums at a time, rescaled in floating point to bytes or 16-bit integers.
//
// As in rescale.hpp: float(sum) * factor, clamped to integer limits, then rounded to nearest, ties to even. aarch64 rounds first, with an
// instruction that saturates, and clamps what was narrowed with saturation: the limits are integers, so the result is the same.
// Fixed-point rescales are products of 64 bits. Other epilogues are applied element by element.
#pragma once

#include <arm_neon.h>

#include "n2d2/output.hpp"

namespace n2d2 {
namespace neon {

// The first `count` of four integers, the others 0.
N2D2_INLINE int32x4_t four(const std::int32_t* from, int count) {
    if (count >= 4)
        return vld1q_s32(from);
    std::int32_t some[4] = {};
    for (int i = 0; i < count; ++i)
        some[i] = from[i];
    return vld1q_s32(some);
}
N2D2_INLINE float32x4_t four(const float* from, int count) {
    if (count >= 4)
        return vld1q_f32(from);
    float some[4] = {};
    for (int i = 0; i < count; ++i)
        some[i] = from[i];
    return vld1q_f32(some);
}

// The constants of `count` outputs from `index` on. apply() rescales their sums; what is narrowed with saturation then goes through clamp().
// Narrow: the outputs have 16 bits at most.
template <class Epilogue, bool Narrow = (sizeof(typename Epilogue::Type) <= 2)>
struct Epilogue4 {
    int first, count;
    N2D2_INLINE void load(int index, int some) {
        first = index;
        count = some;
    }
    N2D2_INLINE int32x4_t apply(int32x4_t sums) const {
        alignas(16) std::int32_t values[4];
        vst1q_s32(values, sums);
        for (int i = 0; i < count; ++i)
            values[i] = static_cast<std::int32_t>(Epilogue::apply(values[i], first + i));
        return vld1q_s32(values);
    }
    template <class Vector>
    static N2D2_INLINE Vector clamp(Vector x) {
        return x;
    }
};

// The addend of four sums.
template <class Addend>
struct Addend4 {
    N2D2_INLINE void load(int, int) {}
    N2D2_INLINE float32x4_t apply(float32x4_t sums) const { return sums; }
};
template <const float* Fractions, int Count>
struct Addend4<Fraction<Fractions, Count> > {
    float32x4_t fractions;
    N2D2_INLINE void load(int index, int count) {
        fractions = Count == 1 ? vdupq_n_f32(Fractions[0]) : four(Fractions + index, count);
    }
    N2D2_INLINE float32x4_t apply(float32x4_t sums) const { return vaddq_f32(sums, fractions); }
};

// In floating point, which holds the clamp exactly; a zero point is added to the rounded numbers.
template <class T, const float* Factors, int Count, bool Bounded, class Addend, std::int64_t Low, std::int64_t High, int Zero>
struct Epilogue4<Requantized<T, FloatRescale<Factors, Count, Bounded, Addend>, Low, High, Zero>, true> {
    float32x4_t factors;
    Addend4<Addend> addend;

    N2D2_INLINE void load(int index, int count) {
        factors = Count == 1 ? vdupq_n_f32(Factors[0]) : four(Factors + index, count);
        addend.load(index, count);
    }
    N2D2_INLINE int32x4_t apply(int32x4_t sums) const {
        const float32x4_t x = vmulq_f32(addend.apply(vcvtq_f32_s32(sums)), factors);
#if defined(__aarch64__)
        const int32x4_t rounded = vcvtnq_s32_f32(x);
#else
        const float32x4_t inside =
            vmaxq_f32(vminq_f32(x, vdupq_n_f32(static_cast<float>(High - Zero))), vdupq_n_f32(static_cast<float>(Low - Zero)));
        const float32x4_t magic = vdupq_n_f32(12582912.0f);  // 1.5 * 2^23
        const int32x4_t rounded = vcvtq_s32_f32(vsubq_f32(vaddq_f32(inside, magic), magic));
#endif
        return Zero == 0 ? rounded : vqaddq_s32(rounded, vdupq_n_s32(Zero));
    }

#if defined(__aarch64__)
    enum : bool{Lower = Low > std::int64_t(std::numeric_limits<T>::min()),
                Upper = High < std::int64_t(std::numeric_limits<T>::max())};
#define N2D2_CLAMP(Vector, Element, Suffix)                                                 \
    static N2D2_INLINE Vector clamp(Vector x) {                                             \
        x = Lower ? vmaxq_##Suffix(x, vdupq_n_##Suffix(static_cast<Element>(Low))) : x;     \
        return Upper ? vminq_##Suffix(x, vdupq_n_##Suffix(static_cast<Element>(High))) : x; \
    }
    N2D2_CLAMP(uint8x16_t, std::uint8_t, u8)
    N2D2_CLAMP(int8x16_t, std::int8_t, s8)
    N2D2_CLAMP(uint16x8_t, std::uint16_t, u16)
    N2D2_CLAMP(int16x8_t, std::int16_t, s16)
#undef N2D2_CLAMP
#else
    template <class Vector>
    static N2D2_INLINE Vector clamp(Vector x) {
        return x;
    }
#endif
};

// Rescaled integers, to which the zero point is added. What is narrowed behind them saturates to the limits of the type.
template <class T, std::int64_t Low, std::int64_t High, int Zero>
struct Stored4 {
    static N2D2_INLINE int32x4_t centred(int32x4_t x) {
        x = Zero != 0 ? vqaddq_s32(x, vdupq_n_s32(Zero)) : x;
        x = Low > std::int64_t(std::numeric_limits<T>::min()) ? vmaxq_s32(x, vdupq_n_s32(static_cast<std::int32_t>(Low))) : x;
        return High < std::int64_t(std::numeric_limits<T>::max()) ? vminq_s32(x, vdupq_n_s32(static_cast<std::int32_t>(High))) :
                                                                    x;
    }
    template <class Vector>
    static N2D2_INLINE Vector clamp(Vector x) {
        return x;
    }
};

// Products whose upper words are doubled, rounded or not, then shifted with rounding.
template <class T, const std::int32_t* Multipliers, const std::int32_t* Shifts, int Count, bool Twice, std::int64_t Low,
          std::int64_t High, int Zero, bool Narrow>
struct Epilogue4<Requantized<T, DoublingRescale<Multipliers, Shifts, Count, Twice, true>, Low, High, Zero>, Narrow>
    : Stored4<T, Low, High, Zero> {
    int32x4_t multipliers, left;

    N2D2_INLINE void load(int index, int count) {
        multipliers = Count == 1 ? vdupq_n_s32(Multipliers[0]) : four(Multipliers + index, count);
        left = vnegq_s32(Count == 1 ? vdupq_n_s32(Shifts[0]) : four(Shifts + index, count));
    }
    N2D2_INLINE int32x4_t apply(int32x4_t sums) const {
        const int32x4_t x = Twice ? vqrdmulhq_s32(sums, multipliers) : vqdmulhq_s32(sums, multipliers);
        return Stored4<T, Low, High, Zero>::centred(vrshlq_s32(Twice && Low < Zero ? vsraq_n_s32(x, x, 31) : x, left));
    }
};

// Products of 64 bits, shifted and rounded, with saturation to 32 bits.
template <class T, const std::int32_t* Multipliers, int Count, int Shift, std::int64_t Low, std::int64_t High, int Zero,
          bool Narrow>
struct Epilogue4<Requantized<T, FixedPointRescale<Multipliers, Count, Shift>, Low, High, Zero>, Narrow>
    : Stored4<T, Low, High, Zero> {
    int32x4_t multipliers;

    N2D2_INLINE void load(int index, int count) {
        multipliers = Count == 1 ? vdupq_n_s32(Multipliers[0]) : four(Multipliers + index, count);
    }
    static N2D2_INLINE int32x2_t half(int32x2_t sums, int32x2_t by) {
        const int64x2_t x = vmull_s32(sums, by);
        return vqmovn_s64(Shift > 0 ? vrshrq_n_s64(x, Shift > 0 ? Shift : 1) : x);
    }
    N2D2_INLINE int32x4_t apply(int32x4_t sums) const {
        return Stored4<T, Low, High, Zero>::centred(vcombine_s32(half(vget_low_s32(sums), vget_low_s32(multipliers)),
                                                                 half(vget_high_s32(sums), vget_high_s32(multipliers))));
    }
};

N2D2_INLINE int16x8_t narrowed(int32x4_t a, int32x4_t b) {
#if defined(__aarch64__)
    return vqmovn_high_s32(vqmovn_s32(a), b);
#else
    return vcombine_s16(vqmovn_s32(a), vqmovn_s32(b));
#endif
}

// Count elements of 16 bytes.
template <int Count, class T>
N2D2_INLINE void storeSome(uint8x16_t x, T* out) {
    constexpr int bytes = Count * static_cast<int>(sizeof(T));
    alignas(16) std::uint8_t all[16];
    if (bytes == 16) {
        vst1q_u8(reinterpret_cast<std::uint8_t*>(out), x);
    } else if (bytes == 8) {
        vst1_u8(reinterpret_cast<std::uint8_t*>(out), vget_low_u8(x));
    } else if (bytes == 4) {
        const std::uint32_t word = vgetq_lane_u32(vreinterpretq_u32_u8(x), 0);
        std::memcpy(out, &word, 4);
    } else {
        vst1q_u8(all, x);
        std::memcpy(out, all, bytes);
    }
}

// The first Count of 16 results, four in each of the vectors that there are.
template <class Epilogue, int Count>
N2D2_INLINE void storeResults(const int32x4_t* x, std::int8_t* out) {
    const int16x8_t low = narrowed(x[0], x[Count > 4]),
                    high = Count > 8 ? narrowed(x[Count > 8 ? 2 : 0], x[Count > 12 ? 3 : 0]) : low;
    storeSome<Count>(vreinterpretq_u8_s8(Epilogue::clamp(vcombine_s8(vqmovn_s16(low), vqmovn_s16(high)))), out);
}
template <class Epilogue, int Count>
N2D2_INLINE void storeResults(const int32x4_t* x, std::uint8_t* out) {
    const int16x8_t low = narrowed(x[0], x[Count > 4]),
                    high = Count > 8 ? narrowed(x[Count > 8 ? 2 : 0], x[Count > 12 ? 3 : 0]) : low;
    storeSome<Count>(Epilogue::clamp(vcombine_u8(vqmovun_s16(low), vqmovun_s16(high))), out);
}
template <class Epilogue, int Count>
N2D2_INLINE void storeResults(const int32x4_t* x, std::int16_t* out) {
    storeSome<(Count < 8 ? Count : 8)>(vreinterpretq_u8_s16(Epilogue::clamp(narrowed(x[0], x[Count > 4]))), out);
    if (Count > 8)
        storeSome<(Count > 8 ? Count - 8 : 1)>(
            vreinterpretq_u8_s16(Epilogue::clamp(narrowed(x[Count > 8 ? 2 : 0], x[Count > 12 ? 3 : 0]))), out + 8);
}
template <class Epilogue, int Count>
N2D2_INLINE void storeResults(const int32x4_t* x, std::uint16_t* out) {
    const uint16x8_t low = vcombine_u16(vqmovun_s32(x[0]), vqmovun_s32(x[Count > 4]));
    storeSome<(Count < 8 ? Count : 8)>(vreinterpretq_u8_u16(Epilogue::clamp(low)), out);
    if (Count > 8) {
        const uint16x8_t high = vcombine_u16(vqmovun_s32(x[Count > 8 ? 2 : 0]), vqmovun_s32(x[Count > 12 ? 3 : 0]));
        storeSome<(Count > 8 ? Count - 8 : 1)>(vreinterpretq_u8_u16(Epilogue::clamp(high)), out + 8);
    }
}
template <class Epilogue, int Count>
N2D2_INLINE void storeResults(const int32x4_t* x, std::int32_t* out) {
    N2D2_UNROLL_FOR(v, Count / 4)
        vst1q_s32(out + 4 * v, x[v]);
    if (Count % 4 != 0)
        storeSome<(Count % 4 != 0 ? Count % 4 : 1)>(vreinterpretq_u8_s32(x[Count / 4 % 4]), out + Count / 4 * 4);
}

// The epilogue of a panel of Outputs outputs: its constants, loaded before anything is stored, which might be they.
template <class Epilogue, int Outputs>
struct PanelEpilogue {
    enum : int { Vectors = (Outputs + 3) / 4, Rest = Outputs - 4 * (Vectors - 1) };
    Epilogue4<Epilogue> parts[Vectors];

    // at(v): the first output of vector v.
    template <class At>
    N2D2_INLINE explicit PanelEpilogue(const At& at) {
        N2D2_UNROLL_FOR(v, Vectors)
            parts[v].load(at(v), v == Vectors - 1 ? int(Rest) : 4);
    }
    // The sums have their bias.
    N2D2_INLINE void store(const int32x4_t* sums, typename Epilogue::Type* out) const {
        int32x4_t results[Vectors];
        N2D2_UNROLL_FOR(v, Vectors)
            results[v] = parts[v].apply(sums[v]);
        storeResults<Epilogue4<Epilogue>, Outputs>(results, out);
    }
};

// Outputs one after the other.
struct InOrder {
    int first;
    N2D2_INLINE int operator()(int v) const { return first + 4 * v; }
};

// sums + bias of Outputs outputs (modulo 2^32) from `output` on, of Pixels pixels, rescaled and stored; at(p): the outputs of pixel p. Constants
// are loaded once for all pixels.
template <int Outputs, class Epilogue, int Pixels, class At>
N2D2_INLINE void finish(const int32x4_t (&sums)[Pixels][4], const std::int32_t* bias, int output, const At& at) {
    typedef PanelEpilogue<Epilogue, Outputs> Panel;
    const InOrder order = {output};
    const Panel epilogue(order);
    int32x4_t biases[Panel::Vectors];
    N2D2_UNROLL_FOR(v, Panel::Vectors)
        biases[v] = four(bias + order(v), v == Panel::Vectors - 1 ? int(Panel::Rest) : 4);
    N2D2_UNROLL_FOR(p, Pixels) {
        int32x4_t all[Panel::Vectors];
        N2D2_UNROLL_FOR(v, Panel::Vectors)
            all[v] = vaddq_s32(sums[p][v], biases[v]);
        epilogue.store(all, at(p) + output);
    }
}

}  // namespace neon
}  // namespace n2d2
