// The matrix product of the panels with AVX2 for weights with which vpmaddubsw is exact: products of bytes.
//
// vpmaddubsw saturates the sum of two products to 16 bits. Where the weights are such that no sum of two products can leave
// them (Sums = 1), or no sum of the products of two words in one place of 16 bits (Sums = 2), it is exact; the exporter proves
// it. vpmaddwd with ones adds the pairs. For 64 products Sums = 2 takes five instructions, vpmaddwd alone eight.
// Windows are bytes in order, unsigned inputs of 1x1 convolutions are read in place.
#ifndef N2D2_X86_AVX2_BYTE_TILE_HPP
#define N2D2_X86_AVX2_BYTE_TILE_HPP

#include "n2d2/x86/avx2_tile.hpp"
#include "n2d2/x86/byte_window.hpp"

namespace n2d2 {
namespace avx2 {

template <int Sums, class In, int Pixels, int Panels, int Words, int LastOutputs, class Stage>
struct ByteTile : Tile<In, Pixels, Panels, Words, LastOutputs, Stage> {
    typedef Tile<In, Pixels, Panels, Words, LastOutputs, Stage> Base;
    enum : int { Vectors = Base::Vectors };
    enum : bool { Part = Base::Rest < 8 };  // the last vector is put together

    // Count words from q on. Weights are operands in memory: there is no register for them.
    template <int Count, long Pitch>
    static N2D2_INLINE void add(const std::uint8_t* x, const std::int8_t* w, int q, __m256i (&sums)[Pixels][Vectors]) {
        const __m256i ones = _mm256_set1_epi16(1);
        __m256i last[Count];
        N2D2_UNROLL
        for (int i = 0; i < (Part ? Count : 0); ++i)
            last[i] = Base::weights(w, Vectors - 1, q + i);
        N2D2_UNROLL
        for (int p = 0; p < Pixels; ++p) {
            __m256i words[Count];
            N2D2_UNROLL
            for (int i = 0; i < Count; ++i)
                words[i] = Base::word(x + p * Pitch + 4 * (q + i));
            N2D2_UNROLL
            for (int v = 0; v < Vectors; ++v) {
                __m256i products[Count];
                N2D2_UNROLL
                for (int i = 0; i < Count; ++i)
                    products[i] = _mm256_maddubs_epi16(
                        words[i], Part && v == Vectors - 1 ? last[i] : Base::weights(w, v, q + i));
                const __m256i sum = Count > 1 ? _mm256_add_epi16(products[0], products[Count - 1]) : products[0];
                sums[p][v] = _mm256_add_epi32(sums[p][v], _mm256_madd_epi16(sum, ones));
                __asm__("" : "+x"(sums[p][v]));
            }
            __asm__("" : "+r"(w));
        }
    }

    template <long Pitch>
    static N2D2_INLINE void sum(const std::uint8_t* x, const std::int8_t* w, __m256i (&sums)[Pixels][Vectors]) {
        constexpr int whole = Words / Sums * Sums;
        if (Words <= 8) {  // the end of a short loop costs as much as a word
            N2D2_UNROLL
            for (int q = 0; q < whole; q += Sums)
                add<Sums, Pitch>(x, w, q, sums);
        } else {
            for (int q = 0; q < whole; q += Sums)
                add<Sums, Pitch>(x, w, q, sums);
        }
        if (whole != Words)
            add<1, Pitch>(x, w, whole, sums);
    }

    template <long Pitch, class At>
    static N2D2_INLINE void run(const std::uint8_t* x, const std::int8_t* w, const std::int32_t* bias, int output,
                                const At at) {
        Base::template multiply<ByteTile, Pitch>(x, w, bias, output, at);
    }
};

// By the constant ByteSums of a layer: Sums of its products of bytes, 0 where they may saturate.
template <int Sums>
struct ByteMachine : Machine {
    template <class In, int Words>
    struct Windows : bytes::ByteWindow<In, Words> {};

    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Stage>
    struct Tile : ByteTile<Sums, In, Pixels, Panels, Words, LastOutputs, Stage> {};
};
template <>
struct ByteMachine<0> : Machine {};

}  // namespace avx2
}  // namespace n2d2

#endif  // N2D2_X86_AVX2_BYTE_TILE_HPP
