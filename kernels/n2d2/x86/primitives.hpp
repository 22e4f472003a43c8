// The primitives of panels/vec.hpp that x86 names alike in 128, 256 and 512 bits: the members of a Vec for intrinsics MM##_..., integers SI.
#pragma once

#include "n2d2/x86/intrinsics.hpp"

#define N2D2_X86_PRIMITIVES(MM, SI)                                                                                  \
    static N2D2_INLINE Ints load(const void* from) { return MM##_loadu_##SI(static_cast<const Ints*>(from)); }       \
    static N2D2_INLINE void store(Ints x, void* to) { MM##_storeu_##SI(static_cast<Ints*>(to), x); }                 \
    static N2D2_INLINE Ints loadAligned(const void* from) { return MM##_load_##SI(static_cast<const Ints*>(from)); } \
    static N2D2_INLINE void storeAligned(Ints x, void* to) { MM##_store_##SI(static_cast<Ints*>(to), x); }           \
    static N2D2_INLINE Ints zero() { return MM##_setzero_##SI(); }                                                   \
    static N2D2_INLINE Ints spread(std::int32_t x) { return MM##_set1_epi32(x); }                                    \
    static N2D2_INLINE Ints spread16(std::int16_t x) { return MM##_set1_epi16(x); }                                  \
    static N2D2_INLINE Ints plus(Ints a, Ints b) { return MM##_add_epi32(a, b); }                                    \
    static N2D2_INLINE Ints minus(Ints a, Ints b) { return MM##_sub_epi32(a, b); }                                   \
    static N2D2_INLINE Ints times(Ints a, Ints b) { return MM##_mullo_epi32(a, b); }                                 \
    template <int Count>                                                                                             \
    static N2D2_INLINE Ints left(Ints x) {                                                                           \
        return MM##_slli_epi32(x, Count);                                                                            \
    }                                                                                                                \
    template <int Count>                                                                                             \
    static N2D2_INLINE Ints right(Ints x) {                                                                          \
        return MM##_srai_epi32(x, Count);                                                                            \
    }                                                                                                                \
    static N2D2_INLINE Ints plus16(Ints a, Ints b) { return MM##_add_epi16(a, b); }                                  \
    static N2D2_INLINE Ints plus8(Ints a, Ints b) { return MM##_add_epi8(a, b); }                                    \
    static N2D2_INLINE Ints minus8(Ints a, Ints b) { return MM##_sub_epi8(a, b); }                                   \
    static N2D2_INLINE Ints minus16(Ints a, Ints b) { return MM##_sub_epi16(a, b); }                                 \
    template <int Count>                                                                                             \
    static N2D2_INLINE Ints left16(Ints x) {                                                                         \
        return MM##_slli_epi16(x, Count);                                                                            \
    }                                                                                                                \
    template <int Count>                                                                                             \
    static N2D2_INLINE Ints right16(Ints x) {                                                                        \
        return MM##_srai_epi16(x, Count);                                                                            \
    }                                                                                                                \
    static N2D2_INLINE Ints lowBytes(Ints x) { return MM##_and_##SI(x, MM##_set1_epi16(0xff)); }                     \
    static N2D2_INLINE Ints highBytes(Ints x) { return MM##_srli_epi16(x, 8); }                                      \
    static N2D2_INLINE Ints lowPairs(Ints a, Ints b) { return MM##_unpacklo_epi16(a, b); }                           \
    static N2D2_INLINE Ints highPairs(Ints a, Ints b) { return MM##_unpackhi_epi16(a, b); }                          \
    static N2D2_INLINE Floats toFloats(Ints x) { return MM##_cvtepi32_ps(x); }                                       \
    static N2D2_INLINE Ints toInts(Floats x) { return MM##_cvtps_epi32(x); }                                         \
    static N2D2_INLINE Floats asFloats(Ints x) { return MM##_cast##SI##_ps(x); }                                     \
    static N2D2_INLINE Floats spreadFloat(float x) { return MM##_set1_ps(x); }                                       \
    static N2D2_INLINE Floats product(Floats a, Floats b) { return MM##_mul_ps(a, b); }                              \
    static N2D2_INLINE Floats sum(Floats a, Floats b) { return MM##_add_ps(a, b); }                                  \
    static N2D2_INLINE Floats smaller(Floats a, Floats b) { return MM##_min_ps(a, b); }                              \
    static N2D2_INLINE Floats larger(Floats a, Floats b) { return MM##_max_ps(a, b); }                               \
    static N2D2_INLINE Ints word(const std::uint8_t* from) {                                                         \
        std::int32_t four;                                                                                           \
        std::memcpy(&four, from, 4);                                                                                 \
        return MM##_set1_epi32(four);                                                                                \
    }

// The larger and the smaller of each byte of type T and a value; pairs of vectors of 16-bit integers to bytes, saturated, in each 128 bits.
#define N2D2_X86_BYTE_LIMITS(MM, Bytes)                                                              \
    template <class T>                                                                               \
    static N2D2_INLINE Bytes largerBytes(Bytes x, char value) {                                      \
        return std::numeric_limits<T>::is_signed ? MM##_max_epi8(x, MM##_set1_epi8(value)) :         \
                                                   MM##_max_epu8(x, MM##_set1_epi8(value));          \
    }                                                                                                \
    template <class T>                                                                               \
    static N2D2_INLINE Bytes smallerBytes(Bytes x, char value) {                                     \
        return std::numeric_limits<T>::is_signed ? MM##_min_epi8(x, MM##_set1_epi8(value)) :         \
                                                   MM##_min_epu8(x, MM##_set1_epi8(value));          \
    }                                                                                                \
    template <class T>                                                                               \
    static N2D2_INLINE Bytes packedBytes(Bytes a, Bytes b) {                                         \
        return std::numeric_limits<T>::is_signed ? MM##_packs_epi16(a, b) : MM##_packus_epi16(a, b); \
    }

// Those of 128 and of 256 bits.
#define N2D2_X86_BYTE_PRIMITIVES(MM, SI)                                                                                \
    template <int Half>                                                                                                 \
    static N2D2_INLINE Ints pairOf(Ints x) {                                                                            \
        return MM##_srai_epi16(MM##_shuffle_epi8(x, inEach(bytes::pairOrder<Half>())), 8);                              \
    }                                                                                                                   \
    static N2D2_INLINE Ints addPairs(Ints sums, Ints a, Ints b) { return MM##_add_epi32(sums, MM##_madd_epi16(a, b)); } \
    static N2D2_INLINE Ints byteProducts(Ints a, Ints b) { return MM##_maddubs_epi16(a, b); }                           \
    template <class In>                                                                                                 \
    static N2D2_INLINE Ints flipped(Ints x) {                                                                           \
        return std::numeric_limits<In>::is_signed ? MM##_xor_##SI(x, MM##_set1_epi8(static_cast<char>(0x80))) : x;      \
    }                                                                                                                   \
    template <class In, int Count>                                                                                      \
    static N2D2_INLINE Ints widened(const In* from) {                                                                   \
        return MM##_cvtepu8_epi16(bytes::flipped<In>(bytes::loadBytes<Count>(from)));                                   \
    }                                                                                                                   \
    template <int Count>                                                                                                \
    static N2D2_INLINE __m128i sixteen(const void* from) {                                                              \
        return bytes::loadBytes<Count>(from);                                                                           \
    }                                                                                                                   \
    template <class In, int Count>                                                                                      \
    static N2D2_INLINE Ints halfwords(const In* from) {                                                                 \
        if (sizeof(In) == 1)                                                                                            \
            return wide<In>(bytes::loadBytes<Count>(from));                                                             \
        const Ints x = loadSome<2 * Count>(from);                                                                       \
        return std::numeric_limits<In>::is_signed ? x : MM##_xor_##SI(x, MM##_set1_epi16(-32768));                      \
    }                                                                                                                   \
    template <class T>                                                                                                  \
    static N2D2_INLINE Ints wide(__m128i x) {                                                                           \
        return std::numeric_limits<T>::is_signed ? MM##_cvtepi8_epi16(x) : MM##_cvtepu8_epi16(x);                       \
    }

// Functions of panels/float_vector.hpp, for vectors of any width.
#define N2D2_X86_FLOATS(MM)                                                    \
    N2D2_INLINE Vector load(const float* from) { return MM##_loadu_ps(from); } \
    N2D2_INLINE void store(Vector x, float* to) { MM##_storeu_ps(to, x); }     \
    N2D2_INLINE Vector spread(float x) { return MM##_set1_ps(x); }
