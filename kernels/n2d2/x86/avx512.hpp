// AVX-512: what its kernels share, masks, copies, its vectors (panels/vec.hpp), and the epilogues on 16 sums at once.
#pragma once

#include "n2d2/panels/vec.hpp"
#include "n2d2/x86/epilogues.hpp"
#include "n2d2/x86/primitives.hpp"

namespace n2d2 {
namespace avx512 {

N2D2_INLINE constexpr __mmask16 first16(int count) {
    return static_cast<__mmask16>(count >= 16 ? 0xffffu : (1u << count) - 1u);
}

N2D2_INLINE constexpr __mmask32 first32(int count) {
    return static_cast<__mmask32>(count >= 32 ? 0xffffffffull : (1ull << count) - 1ull);
}

N2D2_INLINE constexpr __mmask64 first64(int count) {
    return static_cast<__mmask64>(count >= 64 ? ~0ull : (1ull << count) - 1ull);
}

// Operands of the dot product instructions: unsigned bytes with signed ones, or signed 16-bit integers. An input of
// the other signedness is moved by half its range, which flips its highest bit; the exporter has taken that from the
// bias.
template <class T>
struct Flip {
    static_assert(sizeof(T) <= 2 && std::numeric_limits<T>::is_integer, "8 or 16-bit integers");
    enum : bool { Bytes = sizeof(T) == 1, value = std::numeric_limits<T>::is_signed == bool(Bytes) };

    static N2D2_INLINE __m512i all(int element) {
        return Bytes ? _mm512_set1_epi8(static_cast<char>(element)) : _mm512_set1_epi16(static_cast<short>(element));
    }
    static N2D2_INLINE __m512i apply(__m512i x) { return bool(value) ? _mm512_xor_si512(x, all(Bytes ? 0x80 : 0x8000)) : x; }
};

// Count bytes of memory, the others zero.
template <int Count>
N2D2_INLINE __m512i loadBytes(const void* from) {
    if (Count <= 16)
        return _mm512_castsi128_si512(_mm_maskz_loadu_epi8(first16(Count), from));
    if (Count <= 32)
        return _mm512_castsi256_si512(_mm256_maskz_loadu_epi8(first32(Count), from));
    return Count < 64 ? _mm512_maskz_loadu_epi8(first64(Count), from) : _mm512_loadu_si512(from);
}

// Writes Count bytes and some behind them, up to 64 in all.
template <int Count>
N2D2_INLINE void storeAtLeast(__m512i x, std::uint8_t* to) {
    if (Count <= 16)
        store128(to, _mm512_castsi512_si128(x));
    else if (Count <= 32)
        store256(to, _mm512_castsi512_si256(x));
    else
        _mm512_storeu_si512(to, x);
}

#if defined(__clang__) || defined(N2D2_EMULATED_AVX512VNNI)
N2D2_DOT_BY_INTRINSIC(dot, __m512i, _mm512_dpbusd_epi32)
N2D2_DOT_BY_INTRINSIC(dotPairs, __m512i, _mm512_dpwssd_epi32)
#else
N2D2_DOT_BY_NAME(dot, __m512i, "v", "vpdpbusd")
N2D2_DOT_BY_NAME(dotPairs, __m512i, "v", "vpdpwssd")
#endif

// Which outputs sixteen lanes are: `count` from `first` on.
struct Row {
    int first, count;
    N2D2_INLINE __mmask16 mask() const { return first16(count); }
    N2D2_INLINE int channel(int i) const { return first + i; }
    N2D2_INLINE __m512 floats(const float* all) const { return _mm512_maskz_loadu_ps(mask(), all + first); }
    N2D2_INLINE __m512i ints(const std::int32_t* all) const { return _mm512_maskz_loadu_epi32(mask(), all + first); }
    N2D2_INLINE __m512i bytes(const std::uint8_t* all) const {
        return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask(), all + first));
    }
    N2D2_INLINE void longs(const std::int64_t* all, __m512i (&to)[2]) const {
        const __mmask8 high = static_cast<__mmask8>(mask() >> 8);
        to[0] = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(mask() & 0xff), all + first);
        to[1] = _mm512_maskz_loadu_epi64(high, all + first + (high ? 8 : 0));
    }
};

// Every sixteenth four of a line of pixels of C channels, from channel `first` on: those four in each part of four lanes, or, of 32
// channels, these and those 16 behind in turn.
template <int C>
struct Fours {
    static_assert(C == 4 || C == 8 || C == 16 || C == 32, "pixels of whole fours, lines of 64 bytes of whole pixels");
    enum : bool { Two = C == 32 };
    enum : int { count = 16 };
    int first;
    N2D2_INLINE int channel(int i) const { return first + i % 4 + (Two && i % 8 >= 4 ? 16 : 0); }
    // Four elements of 32 bits at `a`, and at `b`.
    static N2D2_INLINE __m512i parts(const void* a, const void* b) {
        const __m512i x = _mm512_broadcast_i32x4(_mm_loadu_si128(static_cast<const __m128i*>(a)));
        return Two ? _mm512_mask_broadcast_i32x4(x, 0xf0f0, _mm_loadu_si128(static_cast<const __m128i*>(b))) : x;
    }
    N2D2_INLINE int second() const { return Two ? first + 16 : first; }
    N2D2_INLINE __m512i ints(const std::int32_t* all) const { return parts(all + first, all + second()); }
    N2D2_INLINE __m512 floats(const float* all) const { return _mm512_castsi512_ps(parts(all + first, all + second())); }
    N2D2_INLINE __m512i bytes(const std::uint8_t* all) const {
        std::int32_t a, b;
        std::memcpy(&a, all + first, 4);
        std::memcpy(&b, all + second(), 4);
        return _mm512_cvtepu8_epi32(_mm_setr_epi32(a, b, a, b));
    }
    N2D2_INLINE void longs(const std::int64_t* all, __m512i (&to)[2]) const {
        to[0] = _mm512_inserti64x4(_mm512_castsi256_si512(load256(all + first)), load256(all + second()), 1);
        to[1] = to[0];
    }
};

// Stores the first Count of 16 values that fit into the type.
template <int Count, class T>
N2D2_INLINE void store16(__m512i values, T* out) {
    if (sizeof(T) == 4)
        _mm512_mask_storeu_epi32(out, first16(Count), values);
    else if (sizeof(T) == 2 && Count < 16)
        _mm256_mask_storeu_epi16(out, first16(Count), _mm512_cvtepi32_epi16(values));
    else if (sizeof(T) == 2)
        store256(out, _mm512_cvtepi32_epi16(values));
    else if (Count < 16)
        _mm_mask_storeu_epi8(out, first16(Count), _mm512_cvtepi32_epi8(values));
    else
        store128(out, _mm512_cvtepi32_epi8(values));
}

// Four vectors of 16 values to bytes, saturated; the 128-bit parts come out as a0 b0 c0 d0 a1 ...
template <class T>
N2D2_INLINE __m512i packed(__m512i a, __m512i b, __m512i c, __m512i d) {
    const __m512i low = _mm512_packs_epi32(a, b), high = _mm512_packs_epi32(c, d);
    return std::numeric_limits<T>::is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
}

// The same in the order a b c d.
template <class T>
N2D2_INLINE __m512i packedInOrder(__m512i a, __m512i b, __m512i c, __m512i d) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, packed<T>(a, b, c, d));
}

struct Vec {
    typedef __m512i Ints;
    typedef __m512 Floats;
    enum : int { Lanes = 16, Size = 64 };
    enum : bool { Masked = true };
    template <class S, int Count>
    struct Epilogue : VectorEpilogue<Vec, S, Row> {
        N2D2_INLINE Epilogue(int first, int) : VectorEpilogue<Vec, S, Row>(Row{first, Count}) {}
    };

    N2D2_X86_PRIMITIVES(_mm512, si512)
    N2D2_X86_BYTE_LIMITS(_mm512, Ints)
    template <int Count>
    static N2D2_INLINE Ints some(const void* from, const void*) {
        return Count < 16 ? _mm512_maskz_loadu_epi32(first16(Count), from) : load(from);
    }
    template <int Count>
    static N2D2_INLINE void store(Ints x, std::int32_t* to) {
        store16<Count>(x, to);
    }
    static N2D2_INLINE void pin(Ints&) {}  // one instruction multiplies and adds
    static N2D2_INLINE void dot(Ints& sums, Ints x, Ints w) { avx512::dot(sums, x, w); }
    static N2D2_INLINE Ints addPairs(Ints sums, Ints a, Ints b) {
        dotPairs(sums, a, b);
        return sums;
    }
    template <class T>
    static N2D2_INLINE Ints packed(Ints a, Ints b, Ints c, Ints d) {
        return packedInOrder<T>(a, b, c, d);
    }
    template <class In, int Count>
    static N2D2_INLINE Ints halfwords(const In* from) {
        if (sizeof(In) == 2)
            return Flip<In>::apply(avx512::loadBytes<2 * Count>(from));
        const __m256i x = _mm512_castsi512_si256(avx512::loadBytes<Count>(from));
        return std::numeric_limits<In>::is_signed ? _mm512_cvtepi8_epi16(x) : _mm512_cvtepu8_epi16(x);
    }
    template <class S, int Count, class T>
    static N2D2_INLINE void storeTwo(Ints a, Ints b, T* to) {
        constexpr bool isSigned = std::numeric_limits<T>::is_signed;
        if (sizeof(T) == 1) {
            const Ints halves = _mm512_packs_epi32(a, b), order = _mm512_setr_epi64(0, 2, 4, 6, 0, 2, 4, 6);
            const Ints x = isSigned ? _mm512_packs_epi16(halves, zero()) : _mm512_packus_epi16(halves, zero());
            const Ints bytes = Epilogue<S, 16>::clampBytes(_mm512_permutexvar_epi64(order, x));
            if (Count >= 32)
                store256(to, _mm512_castsi512_si256(bytes));
            else
                _mm256_mask_storeu_epi8(to, first32(Count), _mm512_castsi512_si256(bytes));
        } else if (sizeof(T) == 2) {
            const Ints x = isSigned ? _mm512_packs_epi32(a, b) : _mm512_packus_epi32(a, b);
            if (Count >= 32)
                store(x, to);
            else
                _mm512_mask_storeu_epi16(to, first32(Count), x);
        } else {
            const Ints low = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
            store16<(Count < 16 ? Count : 16)>(_mm512_permutex2var_epi32(a, low, b), to);
            if (Count > 16)
                store16<(Count > 16 ? Count - 16 : 1)>(_mm512_permutex2var_epi32(a, _mm512_add_epi32(low, spread(8)), b),
                                                       to + 16);
        }
    }
    template <int Count, class S, int Outputs>
    static N2D2_INLINE void storeBytes(const Epilogue<S, Outputs>& epilogue, Ints sums, typename S::Type* to) {
        store16<Count>(epilogue.template apply<false>(sums), to);
    }
    template <int Count>
    static N2D2_INLINE __m128i sixteen(const void* from) {
        return _mm512_castsi512_si128(avx512::loadBytes<Count>(from));
    }
    template <class A, class B>
    static N2D2_INLINE void pairsOf(__m128i a, __m128i b, Ints (&to)[1]) {
        to[0] = _mm512_mask_blend_epi16(0xaaaaaaaau, wide<A>(a), _mm512_slli_epi32(wide<B>(b), 16));
    }
    template <class T>
    static N2D2_INLINE Ints wide(__m128i x) {
        return std::numeric_limits<T>::is_signed ? _mm512_cvtepi8_epi32(x) : _mm512_cvtepu8_epi32(x);
    }
    template <int Count, class S>
    static N2D2_INLINE void storeSixteen(const Epilogue<S, 16>& epilogue, const Ints (&sums)[1], typename S::Type* to) {
        store16<Count>(epilogue.template apply<false>(sums[0]), to);
    }
};

template <class Epilogue>
struct Epilogue16 : VectorEpilogue<Vec, Epilogue, Row> {
    N2D2_INLINE Epilogue16(int first, int count) : VectorEpilogue<Vec, Epilogue, Row>(Row{first, count}) {}
};

template <std::int64_t Low, std::int64_t High>
N2D2_INLINE __m256i clamped(__m512i x) {
    x = _mm512_max_epi64(_mm512_min_epi64(x, _mm512_set1_epi64(High)), _mm512_set1_epi64(Low));
    return _mm512_cvtepi64_epi32(x);
}

N2D2_INLINE __m512i joined(__m256i low, __m256i high) { return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1); }

}  // namespace avx512

template <class T, const std::int32_t* Multipliers, int Count, int Shift, std::int64_t Low, std::int64_t High, class Place,
          bool Narrow>
struct VectorEpilogue<avx512::Vec, Requantized<T, FixedPointRescale<Multipliers, Count, Shift>, Low, High>, Place, Narrow>
    : EpilogueInRange {
    __m512i multipliers;
    N2D2_INLINE explicit VectorEpilogue(const Place& place)
        : multipliers(Count == 1 ? _mm512_set1_epi32(Multipliers[0]) : place.ints(Multipliers)) {}
    static N2D2_INLINE __m256i half(__m256i sums, __m256i factors) {
        constexpr long long rounding = (1ll << Shift) >> 1;
        const __m512i product = _mm512_mul_epi32(_mm512_cvtepi32_epi64(sums), _mm512_cvtepi32_epi64(factors));
        return avx512::clamped<Low, High>(_mm512_srai_epi64(_mm512_add_epi64(product, _mm512_set1_epi64(rounding)), Shift));
    }
    template <bool>
    N2D2_INLINE __m512i apply(__m512i sums) const {
        return avx512::joined(half(_mm512_castsi512_si256(sums), _mm512_castsi512_si256(multipliers)),
                              half(_mm512_extracti64x4_epi64(sums, 1), _mm512_extracti64x4_epi64(multipliers, 1)));
    }
};

template <class T, const std::int32_t* Multipliers, const std::int32_t* Shifts, int Count, bool Twice, std::int64_t Low,
          std::int64_t High, int Zero, class Place, bool Narrow>
struct VectorEpilogue<avx512::Vec, Requantized<T, DoublingRescale<Multipliers, Shifts, Count, Twice, true>, Low, High, Zero>,
                      Place, Narrow> : EpilogueInRange {
    __m512i multipliers, shifts, halves;
    N2D2_INLINE explicit VectorEpilogue(const Place& place)
        : multipliers(Count == 1 ? _mm512_set1_epi32(Multipliers[0]) : place.ints(Multipliers)),
          shifts(Count == 1 ? _mm512_set1_epi32(Shifts[0]) : place.ints(Shifts)),
          halves(_mm512_srli_epi32(_mm512_sllv_epi32(_mm512_set1_epi32(1), shifts), 1)) {}
    static N2D2_INLINE __m512i product(__m512i sums, __m512i factors) {
        const __m512i x = _mm512_mul_epi32(sums, factors);
        return Twice ? _mm512_add_epi64(x, _mm512_set1_epi64(1 << 30)) : x;
    }
    template <bool>
    N2D2_INLINE __m512i apply(__m512i sums) const {
        const __m512i odd = product(_mm512_srli_epi64(sums, 32), _mm512_srli_epi64(multipliers, 32));
        __m512i x =
            _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(product(sums, multipliers), 31), _mm512_slli_epi64(odd, 1));
        if (Twice && Low < Zero)
            x = _mm512_add_epi32(x, _mm512_srai_epi32(x, 31));
        x = _mm512_srav_epi32(_mm512_add_epi32(x, halves), shifts);
        x = _mm512_min_epi32(x, _mm512_set1_epi32(static_cast<std::int32_t>(High - Zero)));
        return _mm512_add_epi32(_mm512_max_epi32(x, _mm512_set1_epi32(static_cast<std::int32_t>(Low - Zero))),
                                _mm512_set1_epi32(Zero));
    }
};

template <class T, const std::int64_t* Multipliers, const std::uint8_t* Shifts, int Count, std::int64_t Low, std::int64_t High,
          class Place, bool Narrow>
struct VectorEpilogue<avx512::Vec, Requantized<T, ShiftRescale<Multipliers, Shifts, Count>, Low, High>, Place, Narrow>
    : EpilogueInRange {
    __m512i multipliers[2], shifts[2];
    N2D2_INLINE explicit VectorEpilogue(const Place& place) {
        if (Count == 1) {
            multipliers[0] = multipliers[1] = _mm512_set1_epi64(Multipliers[0]);
            shifts[0] = shifts[1] = _mm512_set1_epi64(Shifts[0]);
            return;
        }
        const __m512i all = place.bytes(Shifts);
        shifts[0] = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(all));
        shifts[1] = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(all, 1));
        place.longs(Multipliers, multipliers);
    }
    N2D2_INLINE __m256i half(__m256i sums, int i) const {
        const __m512i rounding = _mm512_srli_epi64(_mm512_sllv_epi64(_mm512_set1_epi64(1), shifts[i]), 1);
        const __m512i product = _mm512_mullo_epi64(_mm512_cvtepi32_epi64(sums), multipliers[i]);
        return avx512::clamped<Low, High>(_mm512_srav_epi64(_mm512_add_epi64(product, rounding), shifts[i]));
    }
    template <bool>
    N2D2_INLINE __m512i apply(__m512i sums) const {
        return avx512::joined(half(_mm512_castsi512_si256(sums), 0), half(_mm512_extracti64x4_epi64(sums, 1), 1));
    }
};

}  // namespace n2d2
