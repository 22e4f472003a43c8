// The matrix product of the panels with SSE4.1, as in avx2_tile.hpp with half as long vectors.
#pragma once

#include "n2d2/x86/byte_tile.hpp"
#include "n2d2/x86/split_window.hpp"
#include "n2d2/x86/sse41.hpp"

namespace n2d2 {
namespace sse41 {

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue, class Weight = std::int8_t>
struct Tile : SplitTile<Vec, In, Pixels, Panels, Words, LastOutputs, Weight> {
    typedef SplitTile<Vec, In, Pixels, Panels, Words, LastOutputs, Weight> Base;
    enum : int { Vectors = Base::Vectors };

    template <class At>
    static N2D2_INLINE void store(const __m128i (&sums)[Pixels][Vectors], int output, const At& at) {
        N2D2_UNROLL_FOR(p, Pixels)
            N2D2_UNROLL_FOR(n, Panels) {
                if (n == Panels - 1)
                    finish<Epilogue, LastOutputs>(sums[p] + 4 * n, output + 16 * n, at(p) + output + 16 * n);
                else
                    finish<Epilogue, 16>(sums[p] + 4 * n, output + 16 * n, at(p) + output + 16 * n);
            }
    }

    template <long Pitch, class At>
    static N2D2_INLINE void run(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output, const At& at) {
        Base::template multiply<Tile, Pitch>(x, w, bias, output, at);
    }
};

// 8 sums of four outputs, four weight vectors, a word, a product.
struct Microkernel : SplitMicrokernel<sse41::Vec, sse41::Tile, 2, 2> {};

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
struct ByteProducts : Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue> {
    typedef Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue> Base;
    typedef sse41::Vec Vec;
    enum : int { TilePixels = Pixels, Vectors = Base::Vectors };

    // Count words from q on.
    template <int Count, long Pitch>
    static N2D2_INLINE void add(const std::uint8_t* x, const std::int8_t* w, int q, __m128i (&sums)[Pixels][Vectors]) {
        const __m128i ones = _mm_set1_epi16(1);
        __m128i words[Pixels][Count];
        N2D2_UNROLL_FOR(p, Pixels)
            N2D2_UNROLL_FOR(i, Count)
                words[p][i] = Base::word(x + p * Pitch + 4 * (q + i));
        N2D2_UNROLL_FOR(v, Vectors) {
            __m128i weights[Count];
            N2D2_UNROLL_FOR(i, Count)
                weights[i] = Base::weights(w, v, q + i);
            N2D2_UNROLL_FOR(p, Pixels) {
                __m128i sum = _mm_maddubs_epi16(words[p][0], weights[0]);
                if (Count > 1)
                    sum = _mm_add_epi16(sum, _mm_maddubs_epi16(words[p][Count - 1], weights[Count - 1]));
                sums[p][v] = _mm_add_epi32(sums[p][v], _mm_madd_epi16(sum, ones));
            }
        }
    }
};

}  // namespace sse41
}  // namespace n2d2
