// The matrix product of the panels with NEON's products of bytes, eight at a time: smull, smlal, sadalp (vmull, vmlal, vpadal).
//
// A word of a panel, [16 outputs][4 inputs], is multiplied with a word of a window in every place of a vector. Two such
// products of one output fit into 16 bits where no weight is -128: |127 * -128 * 2| = 32512; with FullWeights each is added by itself.
// Neighbours are added pairwise to sums of 32 bits, two of each output, which are joined at the end.
// Inputs are signed bytes, unsigned ones - 128 from when windows are gathered; the bias comes to match (`Array.dots` of
// the exporter). Inputs of 16 bits go the way of neon_tile.hpp.
#pragma once

#include "n2d2/arm/neon_tile.hpp"
#include "n2d2/vectors/byte_window.hpp"

namespace n2d2 {
namespace neonbytes {

// The weights of four outputs of a word of a panel of Bytes bytes; those that the last four lack are zeros. aarch64 loads those of 16 by one
// instruction.
template <int Bytes>
struct WordWeights {
    const std::int8_t* from;
    N2D2_INLINE explicit WordWeights(const std::int8_t* w) : from(w) {}
    N2D2_INLINE int8x16_t operator[](int v) const {
        if (Bytes % 16 == 0 || v < Bytes / 16)
            return vld1q_s8(from + 16 * v);
        return neon::bytes<(Bytes % 16 == 0 ? 16 : Bytes % 16)>(from + 16 * v);
    }
};
#if defined(__aarch64__)
template <>
struct WordWeights<64> {
    int8x16x4_t all;
    N2D2_INLINE explicit WordWeights(const std::int8_t* w) : all(vld1q_s8_x4(w)) {}
    N2D2_INLINE int8x16_t operator[](int v) const { return all.val[v]; }
};
#endif

// The outputs of a panel in pairs: eight bytes of a word, two sums of 32 bits for each.
template <int Pixels, int Words, int LastOutputs, bool FullWeights, class Epilogue>
struct Tile {
    enum : int { Pairs = (LastOutputs + 1) / 2, Vectors = (LastOutputs + 3) / 4, Bytes = LastOutputs * 4 };

    struct State {
        int32x4_t sums[Pixels][8];
    };

    // A word of a window, in every place.
    static N2D2_INLINE int8x16_t word(const std::uint8_t* from) {
        std::int32_t bits;
        std::memcpy(&bits, from, 4);
        return vreinterpretq_s8_s32(vld1q_dup_s32(&bits));
    }

    static N2D2_INLINE int16x8_t high(int8x16_t a, int8x16_t b) {
#if defined(__aarch64__)
        return vmull_high_s8(a, b);
#else
        return vmull_s8(vget_high_s8(a), vget_high_s8(b));
#endif
    }
    static N2D2_INLINE int16x8_t high(int16x8_t sum, int8x16_t a, int8x16_t b) {
#if defined(__aarch64__)
        return vmlal_high_s8(sum, a, b);
#else
        return vmlal_s8(sum, vget_high_s8(a), vget_high_s8(b));
#endif
    }
    static N2D2_INLINE int16x8_t low(int8x16_t a, int8x16_t b) { return vmull_s8(vget_low_s8(a), vget_low_s8(b)); }

    // Adds the pairs of `products` to a sum, which begins with them where they are the first.
    template <bool First>
    static N2D2_INLINE void add(int32x4_t& sum, int16x8_t products) {
        sum = First ? vpaddlq_s16(products) : vpadalq_s16(sum, products);
    }

    // Two words of the windows, or one; First: the first of all, which sums begin with.
    template <int Count, bool First, long Pitch>
    static N2D2_INLINE void words(State& state, const std::uint8_t* x, const std::int8_t* w) {
        int8x16_t first[Pixels], second[Pixels];
        N2D2_UNROLL_FOR(p, Pixels) {
            first[p] = word(x + p * Pitch);
            second[p] = Count > 1 ? word(x + p * Pitch + 4) : first[p];
        }
        products<Count, First>(state, first, second, w);
    }
    template <int Count, bool First>
    static N2D2_INLINE void products(State& state, const int8x16_t (&first)[Pixels], const int8x16_t (&second)[Pixels],
                                     const std::int8_t* w) {
        constexpr bool Alone = First && !(Count > 1 && FullWeights);  // no products were added before the last ones
        const WordWeights<Bytes> a(w), b(w + (Count > 1 ? int(Bytes) : 0));
        N2D2_UNROLL_FOR(v, Vectors)
            N2D2_UNROLL_FOR(p, Pixels) {
                int32x4_t* const sums = state.sums[p] + 2 * v;
                int16x8_t products = low(a[v], first[p]);
                if (Count > 1 && FullWeights) {
                    add<First>(sums[0], products);
                    products = low(b[v], second[p]);
                } else if (Count > 1) {
                    products = vmlal_s8(products, vget_low_s8(b[v]), vget_low_s8(second[p]));
                }
                add<Alone>(sums[0], products);
                if (2 * v + 1 >= Pairs)
                    continue;
                products = high(a[v], first[p]);
                if (Count > 1 && FullWeights) {
                    add<First>(sums[1], products);
                    products = high(b[v], second[p]);
                } else if (Count > 1) {
                    products = high(products, b[v], second[p]);
                }
                add<Alone>(sums[1], products);
                // One vector of weights after the other: GCC otherwise makes all products first, and keeps sums on the stack.
                __asm__ volatile("" : "+w"(sums[0]));
                __asm__ volatile("" : "+w"(sums[1]));
            }
    }

    // Two sums of each of four outputs to one.
    static N2D2_INLINE int32x4_t joined(int32x4_t low, int32x4_t high) {
#if defined(__aarch64__)
        return vpaddq_s32(low, high);
#else
        return vcombine_s32(vpadd_s32(vget_low_s32(low), vget_high_s32(low)),
                            vpadd_s32(vget_low_s32(high), vget_high_s32(high)));
#endif
    }

    template <long Pitch, class At>
    static N2D2_NOINLINE void run(const std::uint8_t* x, const std::int8_t* w, const std::int32_t* bias, int output,
                                  const At& at) {
        enum : int { Begun = Words >= 2 ? 2 : 1 };  // words that sums begin with
        State state;
        N2D2_UNROLL_FOR(p, Pixels) {
            N2D2_UNROLL
            for (int j = Pairs; j < 8; ++j)
                state.sums[p][j] = vdupq_n_s32(0);
        }
        words<Begun, true, Pitch>(state, x, w);
        int q = Begun;
        for (; q + 4 <= Words; q += 4) {
#if defined(__aarch64__)
            if (Pixels == 1) {  // by one load, for which more pixels have no registers
                int32x4_t four = vreinterpretq_s32_u8(vld1q_u8(x + q * 4));
                __asm__("" : "+w"(four));  // GCC otherwise loads its words one by one
                int8x16_t first[Pixels], second[Pixels];
                first[0] = vreinterpretq_s8_s32(vdupq_laneq_s32(four, 0));
                second[0] = vreinterpretq_s8_s32(vdupq_laneq_s32(four, 1));
                products<2, false>(state, first, second, w + q * Bytes);
                first[0] = vreinterpretq_s8_s32(vdupq_laneq_s32(four, 2));
                second[0] = vreinterpretq_s8_s32(vdupq_laneq_s32(four, 3));
                products<2, false>(state, first, second, w + (q + 2) * Bytes);
                continue;
            }
#endif
            words<2, false, Pitch>(state, x + q * 4, w + q * Bytes);
            words<2, false, Pitch>(state, x + q * 4 + 8, w + (q + 2) * Bytes);
        }
        if ((Words - Begun) % 4 >= 2)
            words<2, false, Pitch>(state, x + q * 4, w + q * Bytes);
        if (Words > 1 && Words % 2 != 0)
            words<1, false, Pitch>(state, x + (Words - 1) * 4, w + (Words - 1) * Bytes);
        int32x4_t sums[Pixels][4];
        N2D2_UNROLL_FOR(p, Pixels)
            N2D2_UNROLL_FOR(v, 4)
                sums[p][v] = joined(state.sums[p][2 * v], state.sums[p][2 * v + 1]);
        neon::finish<LastOutputs, Epilogue>(sums, bias, output, at);
    }
};

// 8 sums of a pixel and its two words: 20 of 32 registers, or 10 of 16.
template <bool FullWeights>
struct Microkernel : OnePanelTiles<neon::TilePixels / 2> {
    typedef neon::Microkernel::Wide Wide;
    template <class In, int Words>
    struct Windows : vectors::ByteWindow<In, Words, true> {};

    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Tile : Choice<sizeof(In) == 1, neonbytes::Tile<Pixels, Words, LastOutputs, FullWeights, Epilogue>,
                         neon::Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue> >::Type {
        static_assert(Panels == 1, "a tile is one panel");
    };
};

}  // namespace neonbytes
}  // namespace n2d2
