// The matrix product of the panels with AVX2: windows of 16-bit integers, vpmaddwd.
//
// vpmaddubsw would multiply bytes, but saturates its sums of two products; 16-bit products summed in 32 bits are
// exact for all values. A vector of 32 weights, eight outputs times a word of four inputs, is split by shifts into the
// weights 0 and 2 of each output and its weights 1 and 3. Windows are split the same way when they are gathered:
// inputs 0 and 2 of all words, and behind them inputs 1 and 3, signed ones + 128 as the bias expects. A sum needs no
// more additions at the end.
#pragma once

#include "n2d2/x86/avx2.hpp"
#include "n2d2/x86/byte_tile.hpp"
#include "n2d2/x86/split_window.hpp"

namespace n2d2 {
namespace avx2 {

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue, class Weight = std::int8_t>
struct Tile : SplitTile<Vec, In, Pixels, Panels, Words, LastOutputs, Weight> {
    typedef SplitTile<Vec, In, Pixels, Panels, Words, LastOutputs, Weight> Base;
    typedef typename Epilogue::Type Out;
    enum : bool { Bytes = sizeof(Out) == 1 };
    enum : int { Vectors = Base::Vectors, Rest = Base::Rest };

    template <int Count>
    static N2D2_INLINE __m256i rescaled(__m256i sums, int output) {
        return Vec::Epilogue<Epilogue, Count>(output, output + 4).template apply<Bytes>(sums);
    }
    static N2D2_INLINE __m256i rescaled(const __m256i (&sums)[Vectors], int v, int output) {
        return v == Vectors - 1 ? rescaled<Rest>(sums[v], output + 8 * v) : rescaled<8>(sums[v], output + 8 * v);
    }

    // The outputs of a panel: the constants of the epilogue are loaded before anything is stored, which might be they.
    template <int Count>
    struct Finish {
        enum : int { Second = Count > 8 ? Count - 8 : 1 };
        const Vec::Epilogue<Epilogue, (Count < 8 ? Count : 8)> first;
        const Vec::Epilogue<Epilogue, Second> second;
        N2D2_INLINE explicit Finish(int output)
            : first(output, output + 4), second(Count > 8 ? output + 8 : output, Count > 8 ? output + 12 : output) {}

        // A pixel as 16-bit integers; the 128-bit parts come out as 0 to 3, 8 to 11, 4 to 7, ...
        N2D2_INLINE __m256i halves(const __m256i* sums) const {
            const __m256i a = first.template apply<Bytes>(sums[0]);
            return _mm256_packs_epi32(a, Count > 8 ? second.template apply<Bytes>(sums[Count > 8]) : a);
        }
    };

    template <int Count, class At>
    static N2D2_INLINE void finishPanel(const __m256i (&sums)[Pixels][Vectors], int panel, int output, const At& at) {
        const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        const Finish<Count> epilogue(output);
        N2D2_UNROLL
        for (int p = 0; p < Pixels; p += 2) {
            const int next = least(p + 1, Pixels - 1);
            const __m256i a = epilogue.halves(sums[p] + 2 * panel);
            const __m256i both = Vec::packedBytes<Out>(a, next == p ? a : epilogue.halves(sums[next] + 2 * panel));
            const __m256i bytes = Vec::Epilogue<Epilogue, 8>::clampBytes(_mm256_permutevar8x32_epi32(both, order));
            storeBytes<Count>(_mm256_castsi256_si128(bytes), at(p) + output);
            if (next != p)
                storeBytes<Count>(_mm256_extracti128_si256(bytes, 1), at(next) + output);
        }
    }
    template <class At>
    static N2D2_INLINE void store(const __m256i (&sums)[Pixels][Vectors], int output, const At& at) {
        if (Bytes) {
            N2D2_UNROLL_FOR(n, Panels - 1)
                finishPanel<16>(sums, n, output + 16 * n, at);
            finishPanel<LastOutputs>(sums, Panels - 1, output + 16 * (Panels - 1), at);
            return;
        }
        for (int p = 0; p < Pixels; ++p)
            N2D2_UNROLL_FOR(v, Vectors) {
                Out* const to = at(p) + output + 8 * v;
                if (v == Vectors - 1)
                    store8<Rest>(rescaled(sums[p], v, output), to);
                else
                    store8<8>(rescaled(sums[p], v, output), to);
            }
    }

    template <long Pitch, class At>
    static N2D2_INLINE void run(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output, const At at) {
        Base::template multiply<Tile, Pitch>(x, w, bias, output, at);
    }
};

// 12 sums of eight outputs, two weight vectors, a word, a product.
struct Microkernel : SplitMicrokernel<avx2::Vec, avx2::Tile, 6, 2> {};

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
struct ByteProducts : Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue> {
    typedef Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue> Base;
    typedef avx2::Vec Vec;
    enum : int { TilePixels = Pixels, Vectors = Base::Vectors };
    enum : bool { Part = Base::Rest < 8 };  // the last vector is put together

    // Count words from q on. Weights are operands in memory: there is no register for them.
    template <int Count, long Pitch>
    static N2D2_INLINE void add(const std::uint8_t* x, const std::int8_t* w, int q, __m256i (&sums)[Pixels][Vectors]) {
        const __m256i ones = _mm256_set1_epi16(1);
        __m256i last[Count];
        N2D2_UNROLL_FOR(i, (Part ? Count : 0))
            last[i] = Base::weights(w, Vectors - 1, q + i);
        N2D2_UNROLL_FOR(p, Pixels) {
            __m256i words[Count];
            N2D2_UNROLL_FOR(i, Count)
                words[i] = Base::word(x + p * Pitch + 4 * (q + i));
            N2D2_UNROLL_FOR(v, Vectors) {
                __m256i products[Count];
                N2D2_UNROLL_FOR(i, Count)
                    products[i] =
                        _mm256_maddubs_epi16(words[i], Part && v == Vectors - 1 ? last[i] : Base::weights(w, v, q + i));
                const __m256i sum = Count > 1 ? _mm256_add_epi16(products[0], products[Count - 1]) : products[0];
                sums[p][v] = _mm256_add_epi32(sums[p][v], _mm256_madd_epi16(sum, ones));
                __asm__("" : "+x"(sums[p][v]));
            }
            __asm__("" : "+r"(w));
        }
    }
};

}  // namespace avx2
}  // namespace n2d2
