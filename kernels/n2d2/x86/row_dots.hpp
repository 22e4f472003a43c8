// Scalar products of a vector of bytes or 16-bit integers with rows of signed bytes, eight rows at a time (n2d2/row_dots.hpp).
//
// Bytes are widened to 16 bits, pairs of products added to 32-bit sums.
// A set gives Vector: Ints, Lanes (integers of a vector), zero(), load(from) of so many, add(sums, a, b) of products, and totals(sums, to),
// the sums of eight vectors. A row that ends within a vector has its last Lanes loaded, of whose inputs some<Count>(from) keeps the last
// Count. Shorter rows are added one by one.
#ifndef N2D2_X86_ROW_DOTS_HPP
#define N2D2_X86_ROW_DOTS_HPP

#include "n2d2/row_dots.hpp"
#include "n2d2/x86/intrinsics.hpp"

namespace n2d2 {

struct PairRows256 {
    typedef __m256i Ints;
    enum : int { Lanes = 16 };

    static N2D2_INLINE Ints zero() { return _mm256_setzero_si256(); }
    static N2D2_INLINE Ints load(const std::int16_t* from) { return load256(from); }
    static N2D2_INLINE Ints load(const std::int8_t* from) { return _mm256_cvtepi8_epi16(load128(from)); }
    static N2D2_INLINE Ints load(const std::uint8_t* from) { return _mm256_cvtepu8_epi16(load128(from)); }
    template <int Count, class In>
    static N2D2_INLINE Ints some(const In* from) {
        alignas(32) static const std::int16_t kept[32] = {0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
                                                          -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
        return _mm256_and_si256(load(from), load(kept + Count));
    }
    static N2D2_INLINE void add(Ints& sums, Ints a, Ints b) { sums = _mm256_add_epi32(sums, _mm256_madd_epi16(a, b)); }
    static N2D2_INLINE void totals(const Ints (&s)[8], std::int32_t (&to)[8]) {
        const Ints low = _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3]));
        const Ints high = _mm256_hadd_epi32(_mm256_hadd_epi32(s[4], s[5]), _mm256_hadd_epi32(s[6], s[7]));
        const Ints all =
            _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31));
        store256(to, all);
    }
};

template <class Vector>
struct VectorRowDots : PlainRowDots {
    typedef typename Vector::Ints Ints;
    enum : int { Lanes = Vector::Lanes };

    // The products of Count inputs with eight rows that lie Pitch apart.
    template <int Count, int Pitch, class In>
    struct Eight {
        static N2D2_INLINE void add(Ints x, const std::int8_t* weights, Ints (&s)[8]) {
            for (int r = 0; r < 8; ++r)
                Vector::add(s[r], x, Vector::load(weights + static_cast<long>(r) * Pitch));
        }
        static N2D2_INLINE void run(const In* x, const std::int8_t* weights, std::int32_t (&sums)[8]) {
            constexpr int rest = Count % Lanes, whole = Count - rest, last = Count - Lanes;
            Ints s[8];
            for (int r = 0; r < 8; ++r)
                s[r] = Vector::zero();
            for (int k = 0; k < whole; k += Lanes)
                add(Vector::load(x + k), weights + k, s);
            if (rest > 0)
                add(Vector::template some<(rest > 0 ? rest : int(Lanes))>(x + last), weights + last, s);
            Vector::totals(s, sums);
        }
    };

    template <int Count, class In>
    static N2D2_INLINE void eight(const In* x, const std::int8_t* weights, std::int32_t (&sums)[8]) {
        constexpr bool vectors = Count >= static_cast<int>(Lanes);
        if (vectors)
            Eight<(vectors ? Count : int(Lanes)), Count, In>::run(x, weights, sums);
        else
            PlainRowDots::run<Count>(x, weights, sums);
    }

    using PlainRowDots::run;
    template <int Count>
    static N2D2_INLINE void run(const std::int16_t* x, const std::int8_t* weights, std::int32_t (&sums)[8]) {
        eight<Count>(x, weights, sums);
    }
    template <int Count>
    static N2D2_INLINE void run(const std::int8_t* x, const std::int8_t* weights, std::int32_t (&sums)[8]) {
        eight<Count>(x, weights, sums);
    }
    template <int Count>
    static N2D2_INLINE void run(const std::uint8_t* x, const std::int8_t* weights, std::int32_t (&sums)[8]) {
        eight<Count>(x, weights, sums);
    }
};

}  // namespace n2d2

#endif  // N2D2_X86_ROW_DOTS_HPP
