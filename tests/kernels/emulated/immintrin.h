// AVX-512 on any x86 machine, for the tests: stands before the compiler's <immintrin.h> and takes the instructions from
// SIMDe (libsimde-dev), with those that its version 0.7 lacks written out below. Slow, and exact.
//
// Use with -isystem of this folder and -DN2D2_EMULATED_AVX512VNNI.
#ifndef N2D2_TESTS_IMMINTRIN_H
#define N2D2_TESTS_IMMINTRIN_H

#include_next <immintrin.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#include <cmath>
#include <cstdint>
#include <cstring>

namespace emulated {

// The elements of a vector as an array.
template <class T, int Count>
struct Elements {
    T at[Count];
};

template <class T, class Vector>
inline Elements<T, static_cast<int>(sizeof(Vector) / sizeof(T))> elements(const Vector& vector) {
    Elements<T, static_cast<int>(sizeof(Vector) / sizeof(T))> values;
    std::memcpy(values.at, &vector, sizeof(vector));
    return values;
}

template <class Vector, class T, int Count>
inline Vector joined(const Elements<T, Count>& values) {
    static_assert(sizeof(Vector) == sizeof(values.at), "a vector has all elements");
    Vector vector;
    std::memcpy(&vector, values.at, sizeof(vector));
    return vector;
}

// Elements of `from` whose bit of the mask is set, the others zero and not read.
template <class Vector, class T>
inline Vector load(std::uint64_t mask, const void* from) {
    Elements<T, static_cast<int>(sizeof(Vector) / sizeof(T))> values = {};
    for (unsigned i = 0; i < sizeof(Vector) / sizeof(T); ++i)
        if (mask >> i & 1)
            std::memcpy(&values.at[i], static_cast<const char*>(from) + i * sizeof(T), sizeof(T));
    return joined<Vector>(values);
}

template <class T, class Vector>
inline void store(void* to, std::uint64_t mask, const Vector& vector) {
    const auto values = elements<T>(vector);
    for (unsigned i = 0; i < sizeof(Vector) / sizeof(T); ++i)
        if (mask >> i & 1)
            std::memcpy(static_cast<char*>(to) + i * sizeof(T), &values.at[i], sizeof(T));
}

// As many elements of `To` as there are of `From`, each converted (the low bits where To is narrower).
template <class Vector, class To, class From, class Source>
inline Vector converted(const Source& source) {
    const auto from = elements<From>(source);
    constexpr int count = static_cast<int>(sizeof(Source) / sizeof(From));
    constexpr int wide = static_cast<int>(sizeof(Vector) / sizeof(To));
    Elements<To, wide> values;
    for (int i = 0; i < wide && i < count; ++i)
        values.at[i] = static_cast<To>(from.at[i]);
    return joined<Vector>(values);
}

// As _mm512_alignr_epi32: the elements of low, then those of high, from element `by` on.
inline simde__m512i aligned(const simde__m512i& high, const simde__m512i& low, unsigned by) {
    const auto first = elements<std::int32_t>(low), second = elements<std::int32_t>(high);
    Elements<std::int32_t, 16> values;
    for (unsigned i = 0; i < 16; ++i)
        values.at[i] = i + by < 16 ? first.at[i + by] : second.at[i + by - 16];
    return joined<simde__m512i>(values);
}

inline simde__m512i rounded(const simde__m512& vector) {
    const auto from = elements<float>(vector);
    Elements<std::int32_t, 16> values;
    for (int i = 0; i < 16; ++i) {
        const double x = std::nearbyint(static_cast<double>(from.at[i]));
        const bool fits = x >= -2147483648.0 && x <= 2147483647.0;
        values.at[i] = fits ? static_cast<std::int32_t>(x) : INT32_MIN;
    }
    return joined<simde__m512i>(values);
}

template <class T, class Bits>
inline simde__m512i shifted(const simde__m512i& vector, const simde__m512i& by) {
    auto values = elements<T>(vector);
    const auto bits = elements<Bits>(by);
    const Bits most = 8 * sizeof(T) - 1;
    for (int i = 0; i < static_cast<int>(64 / sizeof(T)); ++i)
        values.at[i] >>= bits.at[i] > most ? most : bits.at[i];
    return joined<simde__m512i>(values);
}

}  // namespace emulated

#define N2D2_LOAD(vector, type) emulated::load<simde__m##vector, type>
#if !defined(_mm_maskz_loadu_epi8)
#define _mm_maskz_loadu_epi8(mask, from) N2D2_LOAD(128i, std::int8_t)(mask, from)
#endif
#if !defined(_mm256_maskz_loadu_epi8)
#define _mm256_maskz_loadu_epi8(mask, from) N2D2_LOAD(256i, std::int8_t)(mask, from)
#endif
#if !defined(_mm512_maskz_loadu_epi8)
#define _mm512_maskz_loadu_epi8(mask, from) N2D2_LOAD(512i, std::int8_t)(mask, from)
#endif
#if !defined(_mm512_mask_loadu_epi8)
#define _mm512_mask_loadu_epi8(others, mask, from) simde_mm512_mask_mov_epi8(others, mask, _mm512_maskz_loadu_epi8(mask, from))
#endif
#if !defined(_mm512_mask_storeu_epi8)
#define _mm512_mask_storeu_epi8(to, mask, vector) emulated::store<std::int8_t>(to, mask, vector)
#endif
#if !defined(_mm512_alignr_epi32)
#define _mm512_alignr_epi32(high, low, by) emulated::aligned(high, low, by)
#endif
#if !defined(_mm256_maskz_loadu_epi16)
#define _mm256_maskz_loadu_epi16(mask, from) N2D2_LOAD(256i, std::int16_t)(mask, from)
#endif
#if !defined(_mm512_maskz_loadu_epi32)
#define _mm512_maskz_loadu_epi32(mask, from) N2D2_LOAD(512i, std::int32_t)(mask, from)
#endif
#if !defined(_mm512_maskz_loadu_epi64)
#define _mm512_maskz_loadu_epi64(mask, from) N2D2_LOAD(512i, std::int64_t)(mask, from)
#endif
#if !defined(_mm512_maskz_loadu_ps)
#define _mm512_maskz_loadu_ps(mask, from) N2D2_LOAD(512, float)(mask, from)
#endif
#if !defined(_mm_mask_storeu_epi8)
#define _mm_mask_storeu_epi8(to, mask, vector) emulated::store<std::int8_t>(to, mask, vector)
#endif
#if !defined(_mm256_mask_storeu_epi16)
#define _mm256_mask_storeu_epi16(to, mask, vector) emulated::store<std::int16_t>(to, mask, vector)
#endif
#if !defined(_mm256_mask_storeu_epi8)
#define _mm256_mask_storeu_epi8(to, mask, vector) emulated::store<std::int8_t>(to, mask, vector)
#endif
#if !defined(_mm512_mask_storeu_epi16)
#define _mm512_mask_storeu_epi16(to, mask, vector) emulated::store<std::int16_t>(to, mask, vector)
#endif
#if !defined(_mm512_mask_storeu_epi32)
#define _mm512_mask_storeu_epi32(to, mask, vector) emulated::store<std::int32_t>(to, mask, vector)
#endif
#if !defined(_mm512_cvtepi32_epi8)
#define _mm512_cvtepi32_epi8(x) (emulated::converted<simde__m128i, std::int8_t, std::int32_t>(x))
#endif
#if !defined(_mm512_cvtepi32_epi16)
#define _mm512_cvtepi32_epi16(x) (emulated::converted<simde__m256i, std::int16_t, std::int32_t>(x))
#endif
#if !defined(_mm512_cvtepi32_epi64)
#define _mm512_cvtepi32_epi64(x) (emulated::converted<simde__m512i, std::int64_t, std::int32_t>(x))
#endif
#if !defined(_mm512_cvtepu32_epi64)
#define _mm512_cvtepu32_epi64(x) (emulated::converted<simde__m512i, std::uint64_t, std::uint32_t>(x))
#endif
#if !defined(_mm512_cvtepi8_epi16)
#define _mm512_cvtepi8_epi16(x) (emulated::converted<simde__m512i, std::int16_t, std::int8_t>(x))
#endif
#if !defined(_mm512_cvtepu8_epi16)
#define _mm512_cvtepu8_epi16(x) (emulated::converted<simde__m512i, std::uint16_t, std::uint8_t>(x))
#endif
#if !defined(_mm512_cvtepi8_epi32)
#define _mm512_cvtepi8_epi32(x) (emulated::converted<simde__m512i, std::int32_t, std::int8_t>(x))
#endif
#if !defined(_mm512_cvtepu8_epi32)
#define _mm512_cvtepu8_epi32(x) (emulated::converted<simde__m512i, std::uint32_t, std::uint8_t>(x))
#endif
#if !defined(_mm512_cvtepi32_ps)
#define _mm512_cvtepi32_ps(x) (emulated::converted<simde__m512, float, std::int32_t>(x))
#endif
#if !defined(_mm512_cvtps_epi32)
#define _mm512_cvtps_epi32(x) emulated::rounded(x)
#endif
#if !defined(_mm512_srav_epi64)
#define _mm512_srav_epi64(x, by) (emulated::shifted<std::int64_t, std::uint64_t>(x, by))
#endif
#if !defined(_mm512_srav_epi32)
#define _mm512_srav_epi32(x, by) (emulated::shifted<std::int32_t, std::uint32_t>(x, by))
#endif
#if !defined(_mm512_srai_epi32)
#define _mm512_srai_epi32(x, by) _mm512_srav_epi32(x, simde_mm512_set1_epi32(by))
#endif
#if !defined(_mm512_srai_epi64)
#define _mm512_srai_epi64(x, by) _mm512_srav_epi64(x, simde_mm512_set1_epi64(by))
#endif

#endif  // N2D2_TESTS_IMMINTRIN_H
