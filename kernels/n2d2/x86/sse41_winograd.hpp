// The vectors of a Winograd convolution with SSE4.1, as in avx2_winograd.hpp with half as long ones.
#ifndef N2D2_X86_SSE41_WINOGRAD_HPP
#define N2D2_X86_SSE41_WINOGRAD_HPP

#include "n2d2/panels/winograd_products.hpp"
#include "n2d2/x86/sse41.hpp"

namespace n2d2 {
namespace sse41 {

struct WinogradMachine {
    typedef __m128i Inputs;
    typedef __m128i Sums;
    enum : int { Lanes = 8, SumLanes = 4, GroupTiles = 2, StepWords = 1 };  // 8 sums, four weight vectors, a word, a product

    // Count bytes as 16-bit integers from 0 to 255, signed ones + 128.
    template <int Count, class In>
    static N2D2_INLINE __m128i load(const In* from) {
        return _mm_cvtepu8_epi16(bytes::flipped<In>(loadBytes<Count>(from)));
    }
    static N2D2_INLINE __m128i add(__m128i a, __m128i b) { return _mm_add_epi16(a, b); }
    static N2D2_INLINE __m128i subtract(__m128i a, __m128i b) { return _mm_sub_epi16(a, b); }
    static N2D2_INLINE void store(__m128i x, std::uint8_t* to) { _mm_store_si128(reinterpret_cast<__m128i*>(to), x); }

    // Products.
    static N2D2_INLINE __m128i word(const std::uint8_t* from) {
        std::int32_t value;
        std::memcpy(&value, from, 4);
        return _mm_shuffle_epi32(_mm_cvtsi32_si128(value), 0);
    }
    template <int, int Tile>
    struct Step : WinogradWords<WinogradMachine, Tile> {
        N2D2_INLINE explicit Step(const std::uint8_t* from) : WinogradWords<WinogradMachine, Tile>(from) {}
    };
    template <int Outputs>
    struct Row {
        enum : int { Vectors = (Outputs + 3) / 4, Bytes = 32 * ((Outputs + 7) / 8) };
        __m128i weights[Vectors];
        N2D2_INLINE explicit Row(const std::int8_t* from) {
            N2D2_UNROLL
            for (int v = 0; v < Vectors; ++v)
                weights[v] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16 * v));
        }
        template <int>
        N2D2_INLINE void add(__m128i (&sums)[Vectors], __m128i inputs) const {
            N2D2_UNROLL
            for (int v = 0; v < Vectors; ++v)
                sums[v] = _mm_add_epi32(sums[v], _mm_madd_epi16(inputs, weights[v]));
        }
    };

    static N2D2_INLINE __m128i zero() { return _mm_setzero_si128(); }
    static N2D2_INLINE void keep(__m128i x, std::int32_t* to) { _mm_store_si128(reinterpret_cast<__m128i*>(to), x); }
    static N2D2_INLINE __m128i sums(const std::int32_t* from) {
        return _mm_load_si128(reinterpret_cast<const __m128i*>(from));
    }
    static N2D2_INLINE __m128i plus(__m128i a, __m128i b) { return _mm_add_epi32(a, b); }
    static N2D2_INLINE __m128i minus(__m128i a, __m128i b) { return _mm_sub_epi32(a, b); }
    static N2D2_INLINE __m128i plusQuarter(__m128i bias, __m128i a) { return _mm_add_epi32(_mm_srai_epi32(a, 2), bias); }

    // The last stage of Pixels pixels of Outputs outputs.
    template <class Stage, int Outputs, int Pixels>
    struct Finish {
        enum : int { Vectors = (Outputs + 3) / 4, Rest = Outputs - 4 * (Vectors - 1) };
        static N2D2_INLINE __m128i bias(const std::int32_t* from, int v) {
            return v == Vectors - 1 ? four<Rest>(from + 4 * v) : four<4>(from + 4 * v);
        }
        template <class At>
        static N2D2_INLINE void store(const __m128i (&sums)[Pixels][Vectors], int output, const At& at) {
            N2D2_UNROLL
            for (int p = 0; p < Pixels; ++p)
                sse41::finish<Stage, Outputs>(sums[p], output, at(p) + output);
        }
    };
};

}  // namespace sse41
}  // namespace n2d2

#endif  // N2D2_X86_SSE41_WINOGRAD_HPP
