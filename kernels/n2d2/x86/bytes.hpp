// Vectors of bytes with SSE4.1: loads and stores of a few of them, and the windows of the kernels without byte products.
#pragma once

#include "n2d2/halfwords.hpp"
#include "n2d2/x86/intrinsics.hpp"

namespace n2d2 {
namespace bytes {

// Signed bytes + 128 as unsigned ones.
template <class In>
N2D2_INLINE __m128i flipped(__m128i x) {
    return std::numeric_limits<In>::is_signed ? _mm_xor_si128(x, _mm_set1_epi8(static_cast<char>(0x80))) : x;
}
// The first Count bytes of memory as an integer, the others zero.
template <int Count>
N2D2_INLINE long long loadWord(const void* from) {
    const unsigned char* const at = static_cast<const unsigned char*>(from);
    if (Count > 4 && Count < 8) {  // two words that overlap, not bytes that wait for each other in memory
        std::uint32_t low, high;
        std::memcpy(&low, at, 4);
        std::memcpy(&high, at + Count - 4, 4);
        return static_cast<long long>(low | static_cast<std::uint64_t>(high) << (8 * (Count - 4)));
    }
    long long x = 0;
    std::memcpy(&x, at, static_cast<std::size_t>(Count < 8 ? Count : 8));
    return x;
}

// The first Count <= 16 bytes of memory, the others zero.
template <int Count>
N2D2_INLINE __m128i loadBytes(const void* from) {
    if (Count >= 16)
        return _mm_loadu_si128(static_cast<const __m128i*>(from));
    if (Count <= 8)
        return _mm_cvtsi64_si128(loadWord<(Count < 8 ? Count : 8)>(from));
    constexpr int last = Count > 8 && Count < 16 ? Count - 8 : 8;
    const unsigned char* const at = static_cast<const unsigned char*>(from);
    const std::uint64_t high = static_cast<std::uint64_t>(loadWord<8>(at + last)) >> (64 - 8 * last) % 64;
    return _mm_set_epi64x(static_cast<long long>(high), loadWord<8>(at));
}

// Stores the first Count of 16 bytes.
template <int Count>
N2D2_INLINE void storeBytes(__m128i x, void* to) {
    if (Count >= 16) {
        _mm_storeu_si128(static_cast<__m128i*>(to), x);
    } else if (Count >= 8) {
        _mm_storel_epi64(static_cast<__m128i*>(to), x);
        const long long rest = _mm_extract_epi64(x, 1);
        std::memcpy(static_cast<unsigned char*>(to) + 8, &rest, static_cast<std::size_t>(Count >= 8 ? Count - 8 : 0));
    } else {
        const long long rest = _mm_cvtsi128_si64(x);
        std::memcpy(to, &rest, static_cast<std::size_t>(Count < 8 ? Count : 0));
    }
}

// Count elements of 32 bits, the others zero.
template <int Count>
N2D2_INLINE __m128i four(const void* from) {
    if (Count >= 4)
        return _mm_loadu_si128(static_cast<const __m128i*>(from));
    return loadBytes<(Count > 0 ? 4 * Count : 4)>(from);
}

// For pshufb: of each four bytes the first two, or (Half 1) the other two, as the upper bytes of 16-bit integers.
template <int Half>
N2D2_INLINE __m128i pairOrder() {
    constexpr char a = 2 * Half, b = 2 * Half + 1, none = -1;
    return _mm_setr_epi8(none, a, none, b, none, a + 4, none, b + 4, none, a + 8, none, b + 8, none, a + 12, none, b + 12);
}

}  // namespace bytes
}  // namespace n2d2
