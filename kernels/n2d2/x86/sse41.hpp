// What the SSE4.1 kernels share: the output stages on 4 sums at once, as in avx2.hpp.
#ifndef N2D2_X86_SSE41_HPP
#define N2D2_X86_SSE41_HPP

#include "n2d2/output.hpp"
#include "n2d2/x86/bytes.hpp"

namespace n2d2 {
namespace sse41 {

using bytes::flipped;
using bytes::four;
using bytes::loadBytes;
using bytes::packedBytes;
using bytes::storeBytes;

// Any stage: element by element. The constants are those of Count outputs from `first` on.
template <class Stage, int Count>
struct Stage4 {
    int first;
    N2D2_INLINE explicit Stage4(int a) : first(a) {}
    template <bool>
    N2D2_INLINE __m128i apply(__m128i sums) const {
        alignas(16) std::int32_t values[4];
        _mm_store_si128(reinterpret_cast<__m128i*>(values), sums);
        for (int i = 0; i < Count; ++i)
            values[i] = static_cast<std::int32_t>(Stage::apply(values[i], first + i));
        return _mm_load_si128(reinterpret_cast<const __m128i*>(values));
    }
    static N2D2_INLINE __m128i clampBytes(__m128i x) { return x; }
};

// Saturated: the caller packs the result with saturation to the limits of T and passes the bytes to clampBytes().
template <class T, const float* Factors, int FactorCount, bool Bounded, std::int64_t Low, std::int64_t High, int Count>
struct FloatStage4 {
    static_assert(sizeof(T) < 4, "the limits are exact in float");
    __m128 factors;

    N2D2_INLINE explicit FloatStage4(int first)
        : factors(FactorCount == 1 ? _mm_set1_ps(Factors[0]) : _mm_castsi128_ps(four<Count>(Factors + first))) {}
    template <bool Saturated>
    N2D2_INLINE __m128i apply(__m128i sums) const {
        __m128 x = _mm_mul_ps(_mm_cvtepi32_ps(sums), factors);
        if (!Saturated || !Bounded)
            x = _mm_min_ps(x, _mm_set1_ps(static_cast<float>(High)));
        if (!Saturated)
            x = _mm_max_ps(x, _mm_set1_ps(static_cast<float>(Low)));
        return _mm_cvtps_epi32(x);  // beyond 32 bits: the lowest integer, which is right below
    }
    static N2D2_INLINE __m128i clampBytes(__m128i x) {
        const __m128i low = _mm_set1_epi8(static_cast<char>(Low)), high = _mm_set1_epi8(static_cast<char>(High));
        x = std::numeric_limits<T>::is_signed ? _mm_max_epi8(x, low) : _mm_max_epu8(x, low);
        return std::numeric_limits<T>::is_signed ? _mm_min_epi8(x, high) : _mm_min_epu8(x, high);
    }
};

#define N2D2_FLOAT_STAGE(Type)                                                                                        \
    template <const float* Factors, int FactorCount, bool Bounded, std::int64_t Low, std::int64_t High, int Count>    \
    struct Stage4<Requantized<Type, FloatRescale<Factors, FactorCount, Bounded>, Low, High>, Count>                   \
        : FloatStage4<Type, Factors, FactorCount, Bounded, Low, High, Count> {                                        \
        N2D2_INLINE explicit Stage4(int first)                                                                        \
            : FloatStage4<Type, Factors, FactorCount, Bounded, Low, High, Count>(first) {}                            \
    };
N2D2_FLOAT_STAGE(std::int8_t)
N2D2_FLOAT_STAGE(std::uint8_t)
N2D2_FLOAT_STAGE(std::int16_t)
N2D2_FLOAT_STAGE(std::uint16_t)
#undef N2D2_FLOAT_STAGE

// Bytes with a zero point, as in avx2.hpp.
#define N2D2_ZERO_STAGE(Type)                                                                                                    \
    template <const float* Factors, int FactorCount, bool Bounded, std::int64_t Low, std::int64_t High, int Zero, int Count>     \
    struct Stage4<Requantized<Type, FloatRescale<Factors, FactorCount, Bounded>, Low, High, Zero>, Count> {                      \
        const FloatStage4<std::int16_t, Factors, FactorCount, Bounded, Low - Zero, High - Zero, Count> centred;                  \
        N2D2_INLINE explicit Stage4(int first) : centred(first) {}                                                               \
        template <bool>                                                                                                          \
        N2D2_INLINE __m128i apply(__m128i sums) const {                                                                          \
            return _mm_add_epi32(centred.template apply<false>(sums), _mm_set1_epi32(Zero));                                     \
        }                                                                                                                        \
        static N2D2_INLINE __m128i clampBytes(__m128i x) { return x; }                                                           \
    };
N2D2_ZERO_STAGE(std::int8_t)
N2D2_ZERO_STAGE(std::uint8_t)
#undef N2D2_ZERO_STAGE

// The outputs [0, Count) of a panel from four vectors of rescaled sums.
template <class Stage, int Count, class T>
N2D2_INLINE void storePanel(const __m128i* values, T* out) {
    alignas(16) std::int32_t all[16];
    for (int v = 0; v < (Count + 3) / 4; ++v)
        _mm_store_si128(reinterpret_cast<__m128i*>(all + 4 * v), values[v]);
    for (int i = 0; i < Count; ++i)
        out[i] = static_cast<T>(all[i]);
}
template <class Stage, int Count, class T>
N2D2_INLINE void storeBytePanel(const __m128i* values, T* out) {
    const __m128i low = _mm_packs_epi32(values[0], values[Count > 4 ? 1 : 0]);
    const __m128i high = Count > 8 ? _mm_packs_epi32(values[Count > 8 ? 2 : 0], values[Count > 12 ? 3 : 0]) : low;
    storeBytes<Count>(Stage4<Stage, 4>::clampBytes(packedBytes<T>(low, high)), out);
}
template <class Stage, int Count>
N2D2_INLINE void storePanel(const __m128i* values, std::uint8_t* out) { storeBytePanel<Stage, Count>(values, out); }
template <class Stage, int Count>
N2D2_INLINE void storePanel(const __m128i* values, std::int8_t* out) { storeBytePanel<Stage, Count>(values, out); }

// Rescales the sums of a panel of Count outputs, those from `output` on, and stores them.
template <class Stage, int Count>
N2D2_INLINE void finish(const __m128i* sums, int output, typename Stage::Type* out) {
    constexpr bool saturated = sizeof(typename Stage::Type) == 1;
    constexpr int vectors = (Count + 3) / 4, last = Count - 4 * (vectors - 1);
    __m128i values[4];
    N2D2_UNROLL
    for (int v = 0; v < vectors; ++v)
        values[v] = v == vectors - 1 ? Stage4<Stage, last>(output + 4 * v).template apply<saturated>(sums[v])
                                     : Stage4<Stage, 4>(output + 4 * v).template apply<saturated>(sums[v]);
    storePanel<Stage, Count>(values, out);
}

}  // namespace sse41
}  // namespace n2d2

#endif  // N2D2_X86_SSE41_HPP
