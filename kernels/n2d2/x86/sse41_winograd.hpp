// The vectors and matrix products of a Winograd convolution with SSE4.1, as in avx2_winograd.hpp with half as long vectors.
#ifndef N2D2_X86_SSE41_WINOGRAD_HPP
#define N2D2_X86_SSE41_WINOGRAD_HPP

#include "n2d2/x86/sse41.hpp"

namespace n2d2 {
namespace sse41 {

template <int Count, int Group, int Depth, int Words, int Outputs>
struct WinogradProducts {
    enum : int { Vectors = (Outputs + 3) / 4, Row = 32 * ((Outputs + 7) / 8), Position = 2 * Depth, Tile = 16 * Position };

    // A function of its own, which layers of the same depth share.
    static N2D2_NOINLINE void run(const std::uint8_t* x, const std::int8_t* w, std::int32_t* products) {
        for (int position = 0; position < 16; ++position, x += Position, products += 16 * Group) {
            __m128i sums[Count][Vectors];
            N2D2_UNROLL
            for (int t = 0; t < Count; ++t)
                N2D2_UNROLL
                for (int v = 0; v < Vectors; ++v)
                    sums[t][v] = _mm_setzero_si128();
            for (int q = 0; q < Words; ++q, w += Row) {
                __m128i part[Vectors];
                N2D2_UNROLL
                for (int v = 0; v < Vectors; ++v)
                    part[v] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w + 16 * v));
                N2D2_UNROLL
                for (int t = 0; t < Count; ++t) {
                    std::int32_t word;
                    std::memcpy(&word, x + t * Tile + 4 * q, 4);
                    const __m128i inputs = _mm_shuffle_epi32(_mm_cvtsi32_si128(word), 0);
                    N2D2_UNROLL
                    for (int v = 0; v < Vectors; ++v)
                        sums[t][v] = _mm_add_epi32(sums[t][v], _mm_madd_epi16(inputs, part[v]));
                }
            }
            N2D2_UNROLL
            for (int t = 0; t < Count; ++t)
                N2D2_UNROLL
                for (int v = 0; v < Vectors; ++v)
                    _mm_store_si128(reinterpret_cast<__m128i*>(products + 16 * t + 4 * v), sums[t][v]);
        }
    }
};

struct WinogradMachine {
    typedef __m128i Inputs;
    typedef __m128i Sums;
    enum : int { Lanes = 8, SumLanes = 4, GroupTiles = 2 };  // 8 sums, four weight vectors, a word, a product

    // Count bytes as 16-bit integers from 0 to 255, signed ones + 128.
    template <int Count, class In>
    static N2D2_INLINE __m128i load(const In* from) {
        return _mm_cvtepu8_epi16(bytes::flipped<In>(loadBytes<Count>(from)));
    }
    static N2D2_INLINE __m128i add(__m128i a, __m128i b) { return _mm_add_epi16(a, b); }
    static N2D2_INLINE __m128i subtract(__m128i a, __m128i b) { return _mm_sub_epi16(a, b); }
    static N2D2_INLINE void store(__m128i x, std::uint8_t* to) { _mm_store_si128(reinterpret_cast<__m128i*>(to), x); }

    static N2D2_INLINE __m128i sums(const std::int32_t* from) {
        return _mm_load_si128(reinterpret_cast<const __m128i*>(from));
    }
    static N2D2_INLINE __m128i plus(__m128i a, __m128i b) { return _mm_add_epi32(a, b); }
    static N2D2_INLINE __m128i minus(__m128i a, __m128i b) { return _mm_sub_epi32(a, b); }
    static N2D2_INLINE __m128i quarter(__m128i a) { return _mm_srai_epi32(a, 2); }

    // A group of `tiles` tiles.
    template <int Depth, int Words, int Outputs>
    struct Multiply {
        static N2D2_INLINE void run(int tiles, const std::uint8_t* x, const std::int8_t* w, std::int32_t* products) {
            if (tiles == GroupTiles)
                WinogradProducts<GroupTiles, GroupTiles, Depth, Words, Outputs>::run(x, w, products);
            else
                WinogradProducts<1, GroupTiles, Depth, Words, Outputs>::run(x, w, products);
        }
    };

    // The last stage of four pixels of Outputs outputs.
    template <class Stage, int Outputs>
    struct Finish {
        enum : int { Vectors = (Outputs + 3) / 4, Rest = Outputs - 4 * (Vectors - 1) };
        static N2D2_INLINE __m128i bias(const std::int32_t* from, int v) {
            return v == Vectors - 1 ? four<Rest>(from + 4 * v) : four<4>(from + 4 * v);
        }
        template <class At>
        static N2D2_INLINE void store(const __m128i (&sums)[4][Vectors], int output, const At& at) {
            N2D2_UNROLL
            for (int p = 0; p < 4; ++p)
                sse41::finish<Stage, Outputs>(sums[p], output, at(p) + output);
        }
    };
};

}  // namespace sse41
}  // namespace n2d2

#endif  // N2D2_X86_SSE41_WINOGRAD_HPP
