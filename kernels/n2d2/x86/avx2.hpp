// What the AVX2 kernels share: loads of a few elements, and the output stages on 8 sums at once.
//
// A stage object has the constants of 8 outputs: four from index `first` on, four from `second` on. apply() gives the
// integers of output.hpp, bit for bit: _mm256_cvtepi32_ps, the product, the clamp and _mm256_cvtps_epi32 round
// as the portable code does.
#ifndef N2D2_X86_AVX2_HPP
#define N2D2_X86_AVX2_HPP

#include "n2d2/output.hpp"
#include "n2d2/x86/bytes.hpp"

namespace n2d2 {
namespace avx2 {

using bytes::flipped;
using bytes::four;
using bytes::loadBytes;
using bytes::packedBytes;
using bytes::storeBytes;

template <class In>
N2D2_INLINE __m256i flipped(__m256i x) {
    return std::numeric_limits<In>::is_signed ? _mm256_xor_si256(x, _mm256_set1_epi8(static_cast<char>(0x80))) : x;
}

// Lanes of a vector of 32-bit elements that are among Count.
template <int Count>
N2D2_INLINE __m256i lanes() {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(Count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// Count elements of 32 bits from `first` on, those beyond four from `second` on; the others zero.
template <int Count>
N2D2_INLINE __m256i eight(const void* first, const void* second) {
    if (Count <= 4)
        return _mm256_zextsi128_si256(four<Count>(first));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(four<4>(first)), four<(Count > 4 ? Count - 4 : 1)>(second), 1);
}

// ---- rescales ------------------------------------------------------------------------------
// Any stage whose values are within the limits as they come.
struct StageInRange {
    static N2D2_INLINE __m128i clampBytes(__m128i x) { return x; }
    static N2D2_INLINE __m256i clampBytes(__m256i x) { return x; }
};

// Any stage: element by element.
template <class Stage, int Count>
struct Stage8 : StageInRange {
    int first, second;
    N2D2_INLINE Stage8(int a, int b) : first(a), second(b) {}
    template <bool>
    N2D2_INLINE __m256i apply(__m256i sums) const {
        alignas(32) std::int32_t values[8];
        _mm256_store_si256(reinterpret_cast<__m256i*>(values), sums);
        for (int i = 0; i < Count; ++i)
            values[i] = static_cast<std::int32_t>(Stage::apply(values[i], i < 4 ? first + i : second + i - 4));
        return _mm256_load_si256(reinterpret_cast<const __m256i*>(values));
    }
};

// Saturated: the caller packs the result with saturation to the limits of T and passes the bytes to clampBytes().
template <class T, const float* Factors, int FactorCount, bool Bounded, std::int64_t Low, std::int64_t High>
struct FloatStage8 {
    static_assert(sizeof(T) < 4, "the limits are exact in float");
    __m256 factors;

    template <int Count>
    static N2D2_INLINE __m256 load(int first, int second) {
        return FactorCount == 1 ? _mm256_set1_ps(Factors[0])
                                : _mm256_castsi256_ps(eight<Count>(Factors + first, Factors + second));
    }
    N2D2_INLINE explicit FloatStage8(__m256 all) : factors(all) {}
    template <bool Saturated>
    N2D2_INLINE __m256i apply(__m256i sums) const {
        __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), factors);
        if (!Saturated || !Bounded)
            x = _mm256_min_ps(x, _mm256_set1_ps(static_cast<float>(High)));
        if (!Saturated)
            x = _mm256_max_ps(x, _mm256_set1_ps(static_cast<float>(Low)));
        return _mm256_cvtps_epi32(x);  // beyond 32 bits: the lowest integer, which is right below
    }
    enum : bool {
        FromLow = Low > static_cast<std::int64_t>(std::numeric_limits<T>::min()),
        ToHigh = High < static_cast<std::int64_t>(std::numeric_limits<T>::max()),
        Signed = std::numeric_limits<T>::is_signed
    };
    static N2D2_INLINE __m256i clampBytes(__m256i x) {
        const __m256i low = _mm256_set1_epi8(static_cast<char>(Low)), high = _mm256_set1_epi8(static_cast<char>(High));
        if (FromLow)
            x = bool(Signed) ? _mm256_max_epi8(x, low) : _mm256_max_epu8(x, low);
        if (ToHigh)
            x = bool(Signed) ? _mm256_min_epi8(x, high) : _mm256_min_epu8(x, high);
        return x;
    }
    static N2D2_INLINE __m128i clampBytes(__m128i x) {
        return _mm256_castsi256_si128(clampBytes(_mm256_castsi128_si256(x)));
    }
};

#define N2D2_FLOAT_STAGE(Type)                                                                                        \
    template <const float* Factors, int FactorCount, bool Bounded, std::int64_t Low, std::int64_t High, int Count>    \
    struct Stage8<Requantized<Type, FloatRescale<Factors, FactorCount, Bounded>, Low, High>, Count>                   \
        : FloatStage8<Type, Factors, FactorCount, Bounded, Low, High> {                                               \
        typedef FloatStage8<Type, Factors, FactorCount, Bounded, Low, High> Base;                                     \
        N2D2_INLINE Stage8(int first, int second) : Base(Base::template load<Count>(first, second)) {}                \
    };
N2D2_FLOAT_STAGE(std::int8_t)
N2D2_FLOAT_STAGE(std::uint8_t)
N2D2_FLOAT_STAGE(std::int16_t)
N2D2_FLOAT_STAGE(std::uint16_t)
#undef N2D2_FLOAT_STAGE

// Bytes with a zero point: clamped as 16-bit integers to the limits less it, which it is added to.
#define N2D2_ZERO_STAGE(Type)                                                                                                    \
    template <const float* Factors, int FactorCount, bool Bounded, std::int64_t Low, std::int64_t High, int Zero, int Count>     \
    struct Stage8<Requantized<Type, FloatRescale<Factors, FactorCount, Bounded>, Low, High, Zero>, Count> : StageInRange {       \
        typedef FloatStage8<std::int16_t, Factors, FactorCount, Bounded, Low - Zero, High - Zero> Centred;                       \
        Centred centred;                                                                                                         \
        N2D2_INLINE Stage8(int first, int second) : centred(Centred::template load<Count>(first, second)) {}                     \
        template <bool>                                                                                                          \
        N2D2_INLINE __m256i apply(__m256i sums) const {                                                                          \
            return _mm256_add_epi32(centred.template apply<false>(sums), _mm256_set1_epi32(Zero));                               \
        }                                                                                                                        \
    };
N2D2_ZERO_STAGE(std::int8_t)
N2D2_ZERO_STAGE(std::uint8_t)
#undef N2D2_ZERO_STAGE

// 64-bit products of the even and of the odd elements. AVX2 shifts 64 bits only logically: 2^62 makes them positive.
template <class T, const std::int32_t* Multipliers, int FactorCount, int Shift, std::int64_t Low, std::int64_t High,
          int Count>
struct Stage8<Requantized<T, FixedPointRescale<Multipliers, FactorCount, Shift>, Low, High>, Count> : StageInRange {
    __m256i multipliers;
    N2D2_INLINE Stage8(int first, int second)
        : multipliers(FactorCount == 1 ? _mm256_set1_epi32(Multipliers[0])
                                       : eight<Count>(Multipliers + first, Multipliers + second)) {}
    static N2D2_INLINE __m256i half(__m256i sums, __m256i factors) {
        constexpr long long lift = 1ll << 62, rounding = (1ll << Shift) >> 1;
        const __m256i low = _mm256_set1_epi64x(Low), high = _mm256_set1_epi64x(High);
        __m256i x = _mm256_add_epi64(_mm256_mul_epi32(sums, factors), _mm256_set1_epi64x(lift + rounding));
        x = _mm256_sub_epi64(_mm256_srli_epi64(x, Shift), _mm256_set1_epi64x(lift >> Shift));
        x = _mm256_blendv_epi8(x, high, _mm256_cmpgt_epi64(x, high));
        return _mm256_blendv_epi8(x, low, _mm256_cmpgt_epi64(low, x));
    }
    template <bool>
    N2D2_INLINE __m256i apply(__m256i sums) const {
        const __m256i even = half(sums, multipliers);
        const __m256i odd = half(_mm256_srli_epi64(sums, 32), _mm256_srli_epi64(multipliers, 32));
        return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
    }
};

// ---- stores --------------------------------------------------------------------------------
// Stores the first Count of 8 values that fit into the type.
template <int Count>
N2D2_INLINE void store8(__m256i values, std::int32_t* out) {
    if (Count >= 8)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), values);
    else
        _mm256_maskstore_epi32(out, lanes<Count>(), values);
}

template <int Count>
N2D2_INLINE void storeHalves(__m256i values, void* out) {
    const __m256i low = _mm256_and_si256(values, _mm256_set1_epi32(0xffff));
    const __m256i x = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
    storeBytes<2 * Count>(_mm256_castsi256_si128(x), out);
}
template <int Count>
N2D2_INLINE void store8(__m256i values, std::int16_t* out) { storeHalves<Count>(values, out); }
template <int Count>
N2D2_INLINE void store8(__m256i values, std::uint16_t* out) { storeHalves<Count>(values, out); }

// Pairs of vectors of 16-bit integers to bytes, saturated to the type, in each half of 128 bits.
template <class T>
N2D2_INLINE __m256i packedBytes(__m256i a, __m256i b) {
    return std::numeric_limits<T>::is_signed ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
}

}  // namespace avx2
}  // namespace n2d2

#endif  // N2D2_X86_AVX2_HPP
