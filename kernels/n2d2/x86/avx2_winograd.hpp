// The vectors and matrix products of a Winograd convolution with AVX2: vpmaddwd, which multiplies 16-bit integers exactly.
#ifndef N2D2_X86_AVX2_WINOGRAD_HPP
#define N2D2_X86_AVX2_WINOGRAD_HPP

#include "n2d2/x86/avx2_tile.hpp"

namespace n2d2 {
namespace avx2 {

// The products of Count tiles with a panel of Outputs outputs, summed over Words words of two channels; Group: tiles of a whole group.
template <int Count, int Group, int Depth, int Words, int Outputs>
struct WinogradProducts {
    enum : int { Vectors = (Outputs + 7) / 8, Position = 2 * Depth, Tile = 16 * Position };

    // A function of its own, which layers of the same depth share.
    static N2D2_NOINLINE void run(const std::uint8_t* x, const std::int8_t* w, std::int32_t* products) {
        for (int position = 0; position < 16; ++position, x += Position, products += 16 * Group) {
            __m256i sums[Count][Vectors];
            N2D2_UNROLL
            for (int t = 0; t < Count; ++t)
                N2D2_UNROLL
                for (int v = 0; v < Vectors; ++v)
                    sums[t][v] = _mm256_setzero_si256();
            for (int q = 0; q < Words; ++q, w += 32 * Vectors) {
                __m256i part[Vectors];
                N2D2_UNROLL
                for (int v = 0; v < Vectors; ++v)
                    part[v] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + 32 * v));
                N2D2_UNROLL
                for (int t = 0; t < Count; ++t) {
                    std::int32_t word;
                    std::memcpy(&word, x + t * Tile + 4 * q, 4);
                    const __m256i inputs = _mm256_set1_epi32(word);
                    N2D2_UNROLL
                    for (int v = 0; v < Vectors; ++v) {
                        sums[t][v] = _mm256_add_epi32(sums[t][v], _mm256_madd_epi16(inputs, part[v]));
                        __asm__("" : "+x"(sums[t][v]));  // as in avx2_tile.hpp
                    }
                }
            }
            N2D2_UNROLL
            for (int t = 0; t < Count; ++t)
                N2D2_UNROLL
                for (int v = 0; v < Vectors; ++v)
                    _mm256_store_si256(reinterpret_cast<__m256i*>(products + 16 * t + 8 * v), sums[t][v]);
        }
    }
};

struct WinogradMachine {
    typedef __m256i Inputs;
    typedef __m256i Sums;
    enum : int { Lanes = 16, SumLanes = 8, GroupTiles = 6 };  // 12 sums, two weight vectors, a word, a product

    // Count bytes as 16-bit integers from 0 to 255, signed ones + 128.
    template <int Count, class In>
    static N2D2_INLINE __m256i load(const In* from) {
        return _mm256_cvtepu8_epi16(bytes::flipped<In>(loadBytes<Count>(from)));
    }
    static N2D2_INLINE __m256i add(__m256i a, __m256i b) { return _mm256_add_epi16(a, b); }
    static N2D2_INLINE __m256i subtract(__m256i a, __m256i b) { return _mm256_sub_epi16(a, b); }
    static N2D2_INLINE void store(__m256i x, std::uint8_t* to) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(to), x);
    }

    static N2D2_INLINE __m256i sums(const std::int32_t* from) {
        return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
    }
    static N2D2_INLINE __m256i plus(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }
    static N2D2_INLINE __m256i minus(__m256i a, __m256i b) { return _mm256_sub_epi32(a, b); }
    static N2D2_INLINE __m256i quarter(__m256i a) { return _mm256_srai_epi32(a, 2); }

    // A group of `tiles` tiles.
    template <int Depth, int Words, int Outputs>
    struct Multiply {
        static N2D2_INLINE void run(int tiles, const std::uint8_t* x, const std::int8_t* w, std::int32_t* products) {
            switch (tiles) {
                case 1: WinogradProducts<1, GroupTiles, Depth, Words, Outputs>::run(x, w, products); break;
                case 2: WinogradProducts<2, GroupTiles, Depth, Words, Outputs>::run(x, w, products); break;
                case 3: WinogradProducts<3, GroupTiles, Depth, Words, Outputs>::run(x, w, products); break;
                case 4: WinogradProducts<4, GroupTiles, Depth, Words, Outputs>::run(x, w, products); break;
                case 5: WinogradProducts<5, GroupTiles, Depth, Words, Outputs>::run(x, w, products); break;
                default: WinogradProducts<6, GroupTiles, Depth, Words, Outputs>::run(x, w, products); break;
            }
        }
    };

    // The last stage of four pixels of Outputs outputs.
    template <class Stage, int Outputs>
    struct Finish {
        typedef typename Stage::Type Out;
        typedef avx2::Tile<std::uint8_t, 4, 1, 1, Outputs, Stage> Tile;
        enum : int { Vectors = Tile::Vectors };
        static N2D2_INLINE __m256i bias(const std::int32_t* from, int v) {
            return v == Vectors - 1 ? eight<Tile::Rest>(from + 8 * v, from + 8 * v + 4) : eight<8>(from + 8 * v, from + 8 * v + 4);
        }
        template <class At>
        static N2D2_INLINE void store(const __m256i (&sums)[4][Vectors], int output, const At& at) {
            Tile::template Store<Out, static_cast<int>(sizeof(Out))>::run(sums, output, at);
        }
    };
};

}  // namespace avx2
}  // namespace n2d2

#endif  // N2D2_X86_AVX2_WINOGRAD_HPP
