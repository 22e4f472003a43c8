// Scalar products with rows of signed bytes (n2d2/x86/row_dots.hpp), by the dot products of AVX-512 VNNI. Unsigned bytes are multiplied as
// they are.
#ifndef N2D2_X86_ROW_DOTS512_HPP
#define N2D2_X86_ROW_DOTS512_HPP

#include "n2d2/x86/avx512.hpp"
#include "n2d2/x86/row_dots.hpp"
#include "n2d2/x86/row_panels.hpp"

namespace n2d2 {

struct Rows512 {
    typedef __m512i Ints;

    static N2D2_INLINE Ints zero() { return _mm512_setzero_si512(); }
    static N2D2_INLINE void totals(const Ints (&s)[8], std::int32_t (&to)[8]) {
        __m256i halves[8];
        for (int r = 0; r < 8; ++r)
            halves[r] = _mm256_add_epi32(_mm512_castsi512_si256(s[r]), _mm512_extracti64x4_epi64(s[r], 1));
        PairRows256::totals(halves, to);
    }
};

struct PairRows512 : Rows512 {
    enum : int { Lanes = 32 };

    static N2D2_INLINE Ints load(const std::int16_t* from) { return _mm512_loadu_si512(from); }
    static N2D2_INLINE Ints load(const std::int8_t* from) { return _mm512_cvtepi8_epi16(load256(from)); }
    template <int Count, class In>
    static N2D2_INLINE Ints some(const In* from) {
        return _mm512_maskz_mov_epi16(~std::uint32_t(0) << (32 - Count), load(from));
    }
    static N2D2_INLINE void add(Ints& sums, Ints a, Ints b) { avx512::dotPairs(sums, a, b); }
};

struct ByteRows512 : Rows512 {
    enum : int { Lanes = 64 };

    static N2D2_INLINE Ints load(const void* from) { return _mm512_loadu_si512(from); }
    template <int Count>
    static N2D2_INLINE Ints some(const void* from) {
        return _mm512_maskz_mov_epi8(~std::uint64_t(0) << (64 - Count), load(from));
    }
    static N2D2_INLINE void add(Ints& sums, Ints a, Ints b) { avx512::dot(sums, a, b); }
};

struct RowDots512 : VectorRowDots<PairRows512> {
    using VectorRowDots<PairRows512>::run;
    template <int Count>
    static N2D2_INLINE void run(const std::uint8_t* x, const std::int8_t* weights, std::int32_t (&sums)[8]) {
        constexpr bool whole = Count >= 64;
        if (whole)
            VectorRowDots<ByteRows512>::eight<(whole ? Count : 64)>(x, weights, sums);
        else
            few<Count>(x, weights, sums);
    }

    // Rows of less than a vector.
    template <int Count>
    static N2D2_INLINE void few(const std::uint8_t* x, const std::int8_t* weights, std::int32_t (&sums)[8]) {
        const __m512i v = _mm512_maskz_loadu_epi8(avx512::first64(Count), x);
        __m512i s[8];
        for (int r = 0; r < 8; ++r) {
            s[r] = Rows512::zero();
            avx512::dot(s[r], v, _mm512_maskz_loadu_epi8(avx512::first64(Count), weights + static_cast<long>(r) * Count));
        }
        Rows512::totals(s, sums);
    }
};

struct PanelRows512 : avx512::Vec {
    enum : int { Most = 128 };

    template <int Count>
    static N2D2_INLINE Ints load(const void* from) {
        return Count < 16 ? _mm512_maskz_loadu_epi32(avx512::first16(Count), from) : _mm512_loadu_si512(from);
    }
    template <int Count>
    static N2D2_INLINE void store(Ints x, std::int32_t* to) {
        _mm512_mask_storeu_epi32(to, avx512::first16(Count), x);
    }
    static N2D2_INLINE Ints word(const std::uint8_t* from) {
        std::int32_t four;
        std::memcpy(&four, from, 4);
        return spread(four);
    }
    static N2D2_INLINE void dot(Ints& sums, Ints x, Ints w) { avx512::dot(sums, x, w); }
    static N2D2_INLINE Ints joined(Ints low, Ints high) { return plus(low, left<8>(high)); }
};

}  // namespace n2d2

#endif  // N2D2_X86_ROW_DOTS512_HPP
