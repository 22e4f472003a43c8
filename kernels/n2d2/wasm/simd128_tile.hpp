// The matrix product of the panels with SIMD of WebAssembly: pairs of 16-bit integers (i32x4.dot_i16x8_s).
//
// A word of a panel is loaded for four outputs, and its pairs of weights are taken apart once for all pixels of a tile. A pair of inputs
// is spread over a vector. Bytes are widened when windows are gathered (halfwords.hpp). Sums are modulo 2^32, as is the bias.
#pragma once

#include <wasm_simd128.h>

#include "n2d2/halfwords.hpp"
#include "n2d2/panels/microkernel.hpp"
#include "n2d2/vectors/channels.hpp"

namespace n2d2 {
namespace simd128 {

// The first Count bytes, the others 0.
template <int Count>
N2D2_INLINE v128_t some(const void* from) {
    v128_t x = wasm_i32x4_const(0, 0, 0, 0);
    std::memcpy(&x, from, Count);
    return x;
}

// The weights of a word for Count <= 4 outputs: a vector for each pair of inputs.
template <int Count>
N2D2_INLINE void pairs(const std::int8_t* from, v128_t (&to)[2]) {
    const v128_t all = some<4 * Count>(from);
    const v128_t apart = wasm_i8x16_shuffle(all, all, 0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    to[0] = wasm_i16x8_extend_low_i8x16(apart);
    to[1] = wasm_i16x8_extend_high_i8x16(apart);
}
template <int Count>
N2D2_INLINE void pairs(const std::int8_t* from, v128_t (&to)[1]) {
    to[0] = wasm_i16x8_extend_low_i8x16(some<2 * Count>(from));
}
template <int Count>
N2D2_INLINE void pairs(const std::int16_t* from, v128_t (&to)[1]) {
    to[0] = some<4 * Count>(from);
}

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue, class Weight = std::int8_t>
struct Tile {
    static_assert(Panels == 1, "a tile is one panel");
    enum : int {
        Each = WordOf<In, Weight>::Each,
        Pairs = Each / 2,
        Vectors = (LastOutputs + 3) / 4,
        Rest = LastOutputs - 4 * (Vectors - 1),  // outputs of the last vector
        First = least(LastOutputs, 8),           // outputs of the first two, and of the others
        Second = largest(LastOutputs - 8, 1)
    };

    template <long Pitch, class At>
    static N2D2_NOINLINE void run(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output, const At& at) {
        v128_t sums[Pixels][4] = {};
        N2D2_UNROLL_FOR(v, Vectors) {
            const std::int32_t* const from = bias + output + 4 * v;
            const v128_t first = v == Vectors - 1 ? some<4 * Rest>(from) : some<16>(from);
            N2D2_UNROLL_FOR(p, Pixels)
                sums[p][v] = first;
        }
        for (int q = 0; q < Words; ++q, w += LastOutputs * Each, x += 4 * Pairs) {
            v128_t weights[Vectors][Pairs];
            N2D2_UNROLL_FOR(v, Vectors) {
                if (v == Vectors - 1)
                    pairs<Rest>(w + 4 * v * Each, weights[v]);
                else
                    pairs<4>(w + 4 * v * Each, weights[v]);
            }
            N2D2_UNROLL_FOR(p, Pixels)
                N2D2_UNROLL_FOR(i, Pairs) {
                    const v128_t inputs = wasm_v128_load32_splat(x + p * Pitch + 4 * i);
                    N2D2_UNROLL_FOR(v, Vectors)
                        sums[p][v] = wasm_i32x4_add(sums[p][v], wasm_i32x4_dot_i16x8(inputs, weights[v][i]));
                }
        }
        const vectors::EightFinish<Epilogue, First> low(output, output + 4);
        const vectors::EightFinish<Epilogue, Second> high(output + least(8, LastOutputs - 1),
                                                          output + least(12, LastOutputs - 1));
        N2D2_UNROLL_FOR(p, Pixels) {
            vectors::Ints all[2];
            std::memcpy(all, sums[p], sizeof all);
            low.store(all[0], at(p) + output);
            if (LastOutputs > 8)
                high.store(all[1], at(p) + output + 8);
        }
    }
};

// In 16 registers: 8 sums, 4 weight vectors, a pair of inputs, a product.
struct Microkernel : OnePanelTiles<2> {
    typedef WideWeights<Microkernel, simd128::Tile> Wide;
    template <class In, int Words>
    struct Windows : Halfwords<In, Words> {};
    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Tile : simd128::Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue> {};
};

}  // namespace simd128
}  // namespace n2d2
