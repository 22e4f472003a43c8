// The sum in the epilogue of a convolution (n2d2/residual.hpp) with AVX-512: 64 elements at a time, whose order packing restores.
#pragma once

#include "n2d2/x86/avx512.hpp"
#include "n2d2/x86/vector_residual.hpp"

namespace n2d2 {
namespace avx512 {

template <class Epilogue>
struct Residual;

template <class First, class Operand, class Last>
struct Residual<Added<First, Operand, Last> > : VectorResidual<Vec, Added<First, Operand, Last> > {
    enum : bool { SixtyFour = true };

    // The bytes of T, of which eight of each 128 bits are to be had: the lower or the higher ones, as 16-bit integers.
    template <class T>
    static N2D2_INLINE __m512i words(__m512i bytes, bool high) {
        const __m512i zero = _mm512_setzero_si512();
        if (std::numeric_limits<T>::is_signed)
            return _mm512_srai_epi16(high ? _mm512_unpackhi_epi8(zero, bytes) : _mm512_unpacklo_epi8(zero, bytes), 8);
        return high ? _mm512_unpackhi_epi8(bytes, zero) : _mm512_unpacklo_epi8(bytes, zero);
    }
    N2D2_INLINE __m512i result(__m512i pairs) const { return this->last.template apply<true>(this->sum(pairs)); }
    N2D2_INLINE void sixtyFour(const typename First::Type* own, typename Last::Type* out) const {
        typedef typename First::Type Own;
        typedef typename Operand::Old Old;
        const __m512i a = _mm512_loadu_si512(own), b = _mm512_loadu_si512(out);
        const __m512i aLow = words<Own>(a, false), aHigh = words<Own>(a, true);
        const __m512i bLow = words<Old>(b, false), bHigh = words<Old>(b, true);
        const __m512i bytes = packed<typename Last::Type>(
            result(_mm512_unpacklo_epi16(aLow, bLow)), result(_mm512_unpackhi_epi16(aLow, bLow)),
            result(_mm512_unpacklo_epi16(aHigh, bHigh)), result(_mm512_unpackhi_epi16(aHigh, bHigh)));
        _mm512_storeu_si512(out, Epilogue16<Last>::clampBytes(bytes));
    }
};

}  // namespace avx512
}  // namespace n2d2
