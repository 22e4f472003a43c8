// AVX2: its vectors (panels/vec.hpp), and what its kernels share.
#pragma once

#include "n2d2/panels/vec.hpp"
#include "n2d2/x86/bytes.hpp"
#include "n2d2/x86/epilogues.hpp"
#include "n2d2/x86/primitives.hpp"

namespace n2d2 {
namespace avx2 {

using bytes::four;
using bytes::loadBytes;
using bytes::storeBytes;

// Stores the first Count of 8 values that fit into the type, of 16 or 32 bits.
template <int Count, class T>
N2D2_INLINE void store8(__m256i values, T* out) {
    if (sizeof(T) == 2) {
        const __m256i low = _mm256_and_si256(values, _mm256_set1_epi32(0xffff));
        const __m256i x = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
        storeBytes<2 * Count>(_mm256_castsi256_si128(x), out);
    } else if (Count >= 8) {
        store256(out, values);
    } else {
        const __m256i some = _mm256_cmpgt_epi32(_mm256_set1_epi32(Count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        _mm256_maskstore_epi32(elementsOf<int>(out), some, values);
    }
}

struct Vec {
    typedef __m256i Ints;
    typedef __m256 Floats;
    enum : int { Lanes = 8, Size = 32 };
    enum : bool { Masked = false };
    template <class S, int Count>
    using Epilogue = OutputsEpilogue<Vec, S, Count>;

    static N2D2_INLINE Ints inEach(__m128i x) { return _mm256_broadcastsi128_si256(x); }
    N2D2_X86_PRIMITIVES(_mm256, si256)
    N2D2_X86_BYTE_PRIMITIVES(_mm256, si256)
    N2D2_X86_BYTE_LIMITS(_mm256, Ints)
    N2D2_X86_BYTE_LIMITS(_mm, __m128i)
    template <int Count>
    static N2D2_INLINE Ints some(const void* first, const void* second) {
        if (Count <= 4)
            return _mm256_zextsi128_si256(four<Count>(first));
        return _mm256_inserti128_si256(_mm256_castsi128_si256(four<4>(first)), four<(Count > 4 ? Count - 4 : 1)>(second), 1);
    }
    template <int Count>
    static N2D2_INLINE Ints loadSome(const void* from) {
        if (Count >= Size)
            return load(from);
        if (Count <= 16)
            return _mm256_zextsi128_si256(loadBytes<(Count < 16 ? Count : 16)>(from));
        return _mm256_inserti128_si256(_mm256_castsi128_si256(loadBytes<16>(from)),
                                       loadBytes<(Count > 16 ? Count - 16 : 1)>(static_cast<const unsigned char*>(from) + 16),
                                       1);
    }
    // The first eight bytes of both in turns, as 16-bit integers.
    static N2D2_INLINE Ints bytePairs(Ints a, Ints b) {
        return _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(_mm256_castsi256_si128(a), _mm256_castsi256_si128(b)));
    }
    static N2D2_INLINE void pin(Ints& x) { __asm__("" : "+x"(x)); }

    template <class T>
    static N2D2_INLINE Ints packed(Ints a, Ints b, Ints c, Ints d) {
        const Ints bytes = packedBytes<T>(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    }
    // Up to eight rescaled sums in order.
    template <class S, int Count, class T>
    static N2D2_INLINE void storeOne(Ints a, T* to) {
        if (sizeof(T) != 1) {
            store8<Count>(a, to);
            return;
        }
        const __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
        avx2::storeBytes<Count>(OutputsEpilogue<Vec, S, 8>::clampBytes(packedBytes<T>(half, half)), to);
    }
    template <int Count, class S>
    static N2D2_INLINE void storeBytes(const Epilogue<S, 8>& epilogue, Ints sums, typename S::Type* to) {
        storeOne<S, Count>(epilogue.template apply<true>(sums), to);
    }

    // Rescaled sums: channels 0 to 3 and 8 to 11, and the others.
    template <class S, int Count, class T>
    static N2D2_INLINE void storeTwo(Ints a, Ints b, T* to) {
        if (sizeof(T) == 1) {
            const Ints halves = _mm256_packs_epi32(a, b);
            const Ints bytes = _mm256_permute4x64_epi64(packedBytes<T>(halves, halves), 0x08);
            avx2::storeBytes<Count>(OutputsEpilogue<Vec, S, 8>::clampBytes(_mm256_castsi256_si128(bytes)), to);
        } else if (sizeof(T) == 2) {
            storeTwoHalves<Count>(std::numeric_limits<T>::is_signed ? _mm256_packs_epi32(a, b) : _mm256_packus_epi32(a, b), to);
        } else {
            store8<(Count < 8 ? Count : 8)>(_mm256_permute2x128_si256(a, b, 0x20), to);
            if (Count > 8)
                store8<(Count > 8 ? Count - 8 : 1)>(_mm256_permute2x128_si256(a, b, 0x31), to + 8);
        }
    }
    template <int Count>
    static N2D2_INLINE void storeTwoHalves(Ints x, void* to) {
        if (Count >= 16) {
            store(x, to);
            return;
        }
        avx2::storeBytes<(Count < 8 ? 2 * Count : 16)>(_mm256_castsi256_si128(x), to);
        if (Count > 8)
            avx2::storeBytes<(Count > 8 ? 2 * Count - 16 : 1)>(_mm256_extracti128_si256(x, 1),
                                                               static_cast<unsigned char*>(to) + 16);
    }

    template <class A, class B>
    static N2D2_INLINE void pairsOf(__m128i a, __m128i b, Ints (&to)[2]) {
        const Ints wideA = wide<A>(a), wideB = wide<B>(b);
        to[0] = _mm256_unpacklo_epi16(wideA, wideB);
        to[1] = _mm256_unpackhi_epi16(wideA, wideB);
    }
    template <int Count, class S>
    static N2D2_INLINE void storeSixteen(const Epilogue<S, 8>& epilogue, const Ints (&sums)[2], typename S::Type* to) {
        const Ints halves = _mm256_packs_epi32(epilogue.template apply<true>(sums[0]), epilogue.template apply<true>(sums[1]));
        const __m128i x = packedBytes<typename S::Type>(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
        avx2::storeBytes<Count>(epilogue.clampBytes(x), to);
    }
};

}  // namespace avx2

// 64-bit products of the even and of the odd elements. AVX2 shifts 64 bits only logically: 2^62 makes them positive.
template <class T, const std::int32_t* Multipliers, int FactorCount, int Shift, std::int64_t Low, std::int64_t High,
          class Place, bool Narrow>
struct VectorEpilogue<avx2::Vec, Requantized<T, FixedPointRescale<Multipliers, FactorCount, Shift>, Low, High>, Place, Narrow>
    : EpilogueInRange {
    __m256i multipliers;
    N2D2_INLINE explicit VectorEpilogue(const Place& place)
        : multipliers(FactorCount == 1 ? _mm256_set1_epi32(Multipliers[0]) : place.ints(Multipliers)) {}
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

// The low words of the 64-bit products of even and odd elements, doubled: a logical shift gives them.
template <class T, const std::int32_t* Multipliers, const std::int32_t* Shifts, int FactorCount, bool Twice, std::int64_t Low,
          std::int64_t High, int Zero, class Place, bool Narrow>
struct VectorEpilogue<
    avx2::Vec, Requantized<T, DoublingRescale<Multipliers, Shifts, FactorCount, Twice, true>, Low, High, Zero>, Place, Narrow>
    : EpilogueInRange {
    __m256i multipliers, shifts, halves;
    N2D2_INLINE explicit VectorEpilogue(const Place& place)
        : multipliers(FactorCount == 1 ? _mm256_set1_epi32(Multipliers[0]) : place.ints(Multipliers)),
          shifts(FactorCount == 1 ? _mm256_set1_epi32(Shifts[0]) : place.ints(Shifts)),
          halves(_mm256_srli_epi32(_mm256_sllv_epi32(_mm256_set1_epi32(1), shifts), 1)) {}
    static N2D2_INLINE __m256i product(__m256i sums, __m256i factors) {
        const __m256i x = _mm256_mul_epi32(sums, factors);
        return Twice ? _mm256_add_epi64(x, _mm256_set1_epi64x(1 << 30)) : x;
    }
    template <bool>
    N2D2_INLINE __m256i apply(__m256i sums) const {
        const __m256i odd = product(_mm256_srli_epi64(sums, 32), _mm256_srli_epi64(multipliers, 32));
        __m256i x = _mm256_blend_epi32(_mm256_srli_epi64(product(sums, multipliers), 31), _mm256_slli_epi64(odd, 1), 0xaa);
        if (Twice && Low < Zero)
            x = _mm256_add_epi32(x, _mm256_srai_epi32(x, 31));
        x = _mm256_srav_epi32(_mm256_add_epi32(x, halves), shifts);
        x = _mm256_min_epi32(x, _mm256_set1_epi32(static_cast<std::int32_t>(High - Zero)));
        return _mm256_add_epi32(_mm256_max_epi32(x, _mm256_set1_epi32(static_cast<std::int32_t>(Low - Zero))),
                                _mm256_set1_epi32(Zero));
    }
};

}  // namespace n2d2
