// The vectors of a Winograd convolution with AVX2: vpmaddwd, which multiplies 16-bit integers exactly.
#ifndef N2D2_X86_AVX2_WINOGRAD_HPP
#define N2D2_X86_AVX2_WINOGRAD_HPP

#include "n2d2/panels/winograd_products.hpp"
#include "n2d2/x86/avx2_tile.hpp"

namespace n2d2 {
namespace avx2 {

struct WinogradMachine {
    typedef __m256i Inputs;
    typedef __m256i Sums;
    enum : int { Lanes = 16, SumLanes = 8, GroupTiles = 6, StepWords = 1 };  // 12 sums, two weight vectors, a word, a product

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

    // Products.
    static N2D2_INLINE __m256i word(const std::uint8_t* from) {
        std::int32_t value;
        std::memcpy(&value, from, 4);
        return _mm256_set1_epi32(value);
    }
    template <int, int Tile>
    struct Step : WinogradWords<WinogradMachine, Tile> {
        N2D2_INLINE explicit Step(const std::uint8_t* from) : WinogradWords<WinogradMachine, Tile>(from) {}
    };
    template <int Outputs>
    struct Row {
        enum : int { Vectors = (Outputs + 7) / 8, Bytes = 32 * Vectors };
        __m256i weights[Vectors];
        N2D2_INLINE explicit Row(const std::int8_t* from) {
            N2D2_UNROLL
            for (int v = 0; v < Vectors; ++v)
                weights[v] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 32 * v));
        }
        template <int>
        N2D2_INLINE void add(__m256i (&sums)[Vectors], __m256i inputs) const {
            N2D2_UNROLL
            for (int v = 0; v < Vectors; ++v) {
                sums[v] = _mm256_add_epi32(sums[v], _mm256_madd_epi16(inputs, weights[v]));
                __asm__("" : "+x"(sums[v]));  // as in avx2_tile.hpp
            }
        }
    };

    static N2D2_INLINE __m256i zero() { return _mm256_setzero_si256(); }
    static N2D2_INLINE void keep(__m256i x, std::int32_t* to) { _mm256_store_si256(reinterpret_cast<__m256i*>(to), x); }
    static N2D2_INLINE __m256i sums(const std::int32_t* from) {
        return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
    }
    static N2D2_INLINE __m256i plus(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }
    static N2D2_INLINE __m256i minus(__m256i a, __m256i b) { return _mm256_sub_epi32(a, b); }
    static N2D2_INLINE __m256i plusQuarter(__m256i bias, __m256i a) { return _mm256_add_epi32(_mm256_srai_epi32(a, 2), bias); }

    // The last stage of Pixels pixels of Outputs outputs.
    template <class Stage, int Outputs, int Pixels>
    struct Finish {
        typedef typename Stage::Type Out;
        typedef avx2::Tile<std::uint8_t, Pixels, 1, 1, Outputs, Stage> Tile;
        enum : int { Vectors = Tile::Vectors };
        static N2D2_INLINE __m256i bias(const std::int32_t* from, int v) {
            return v == Vectors - 1 ? eight<Tile::Rest>(from + 8 * v, from + 8 * v + 4) : eight<8>(from + 8 * v, from + 8 * v + 4);
        }
        template <class At>
        static N2D2_INLINE void store(const __m256i (&sums)[Pixels][Vectors], int output, const At& at) {
            Tile::template Store<Out, static_cast<int>(sizeof(Out))>::run(sums, output, at);
        }
    };
};

}  // namespace avx2
}  // namespace n2d2

#endif  // N2D2_X86_AVX2_WINOGRAD_HPP
