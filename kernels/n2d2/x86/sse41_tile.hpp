// The matrix product of the panels with SSE4.1, as in avx2_tile.hpp with half as long vectors.
#ifndef N2D2_X86_SSE41_TILE_HPP
#define N2D2_X86_SSE41_TILE_HPP

#include "n2d2/x86/split_window.hpp"
#include "n2d2/x86/sse41.hpp"

namespace n2d2 {
namespace sse41 {

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue, class Weight = std::int8_t>
struct Tile {
    enum : bool { Wide = sizeof(Weight) == 2, Pairs = sizeof(In) == 2 || bool(Wide) };
    enum : int {
        Each = Pairs ? 2 : 4,
        Vectors = 4 * (Panels - 1) + (LastOutputs + 3) / 4,  // of four sums
        Rest = LastOutputs - (LastOutputs - 1) / 4 * 4       // outputs of the last vector
    };
    enum : long { PanelWeights = 16L * Each * Words, Odd = 4L * Words };

    // The weights of a vector in a word.
    template <int Count>
    static N2D2_INLINE __m128i some(const Weight* from) {
        return Pairs && !Wide ? _mm_cvtepi8_epi16(loadBytes<2 * Count>(from)) : loadBytes<4 * Count>(from);
    }
    static N2D2_INLINE __m128i weights(const Weight* w, int vector, int word) {
        const int panel = vector / 4;
        const int outputs = panel == Panels - 1 ? LastOutputs : 16;
        const Weight* const from = w + panel * PanelWeights + (word * outputs + vector % 4 * 4) * Each;
        return vector == Vectors - 1 ? some<Rest>(from) : some<4>(from);
    }

    static N2D2_INLINE __m128i word(const std::uint8_t* x) {
        std::int32_t value;
        std::memcpy(&value, x, 4);
        return _mm_shuffle_epi32(_mm_cvtsi32_si128(value), 0);
    }

    template <long Pitch>
    static N2D2_INLINE void add(const std::uint8_t* x, const __m128i (&w)[Vectors], __m128i (&sums)[Pixels][Vectors]) {
        N2D2_UNROLL
        for (int p = 0; p < Pixels; ++p) {
            const __m128i inputs = word(x + p * Pitch);
            N2D2_UNROLL
            for (int v = 0; v < Vectors; ++v)
                sums[p][v] = _mm_add_epi32(sums[p][v], _mm_madd_epi16(inputs, w[v]));
        }
    }

    template <long Pitch>
    static N2D2_INLINE void sum(const std::uint8_t* x, const Weight* w, __m128i (&sums)[Pixels][Vectors]) {
        for (int q = 0; q < Words; ++q) {
            __m128i all[Vectors], part[Vectors];
            N2D2_UNROLL
            for (int v = 0; v < Vectors; ++v) {
                all[v] = weights(w, v, q);
                part[v] = bool(Pairs) ? all[v] : _mm_srai_epi16(_mm_slli_epi16(all[v], 8), 8);
            }
            add<Pitch>(x + 4 * q, part, sums);
            if (Pairs)
                continue;
            N2D2_UNROLL
            for (int v = 0; v < Vectors; ++v)
                part[v] = _mm_srai_epi16(all[v], 8);
            add<Pitch>(x + Odd + 4 * q, part, sums);
        }
    }

    // A function of its own, so that no constant of the epilogue takes a register from the sums. Product::sum adds the products.
    template <class Product, long Pitch, class At>
    static N2D2_NOINLINE void multiply(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output,
                                       const At& at) {
        __m128i sums[Pixels][Vectors];
        N2D2_UNROLL
        for (int v = 0; v < Vectors; ++v) {
            const std::int32_t* const from = bias + output + 4 * v;
            const __m128i first = v == Vectors - 1 ? four<Rest>(from) : four<4>(from);
            N2D2_UNROLL
            for (int p = 0; p < Pixels; ++p)
                sums[p][v] = first;
        }
        Product::template sum<Pitch>(x, w, sums);
        store(sums, output, at);
    }

    template <class At>
    static N2D2_INLINE void store(const __m128i (&sums)[Pixels][Vectors], int output, const At& at) {
        N2D2_UNROLL
        for (int p = 0; p < Pixels; ++p) {
            N2D2_UNROLL
            for (int n = 0; n < Panels; ++n) {
                if (n == Panels - 1)
                    finish<Epilogue, LastOutputs>(sums[p] + 4 * n, output + 16 * n, at(p) + output + 16 * n);
                else
                    finish<Epilogue, 16>(sums[p] + 4 * n, output + 16 * n, at(p) + output + 16 * n);
            }
        }
    }

    template <long Pitch, class At>
    static N2D2_INLINE void run(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output, const At& at) {
        multiply<Tile, Pitch>(x, w, bias, output, at);
    }
};

// 8 sums of four outputs, four weight vectors, a word, a product.
struct WideMicrokernel;
struct Microkernel : SplitMicrokernel<sse41::Vec, sse41::Tile, 2, 2> {
    typedef WideMicrokernel Wide;
};
struct WideMicrokernel : WideWeights<Microkernel, sse41::Tile> {};

}  // namespace sse41
}  // namespace n2d2

#endif  // N2D2_X86_SSE41_TILE_HPP
