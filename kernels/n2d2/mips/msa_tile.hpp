// The matrix product of the panels with MIPS MSA: dot products of two bytes (dotp_s.h), added in pairs to sums of 32 bits (dpadd_s.w).
//
// A word of a window is multiplied with the weights of four outputs in one vector. Bytes are signed, unsigned ones - 128. Two products
// of bytes fit 16 bits unless both weights are -128; layers with such a weight (FullWeights) multiply the even and the odd inputs of a
// word one after the other. Integers of 16 bits are multiplied in pairs at once.
#pragma once

#include "n2d2/mips/msa_channels.hpp"
#include "n2d2/panels/microkernel.hpp"
#include "n2d2/vectors/byte_window.hpp"

namespace n2d2 {
namespace msa {

// Adds the two products of each place of 32 bits. With GCC's __msa_dpadd_s_w (12.2) other uses of `sums` may see the result.
N2D2_INLINE v4i32 addProducts(v4i32 sums, v8i16 a, v8i16 b) {
    __asm__("dpadd_s.w %w0, %w1, %w2" : "+f"(sums) : "f"(a), "f"(b));
    return sums;
}

// Words of four bytes.
template <class In, class Weight, bool FullWeights, int = WordOf<In, Weight>::Each>
struct Word {
    typedef v16i8 Vector;
    enum : int { Each = 4, Parts = FullWeights ? 2 : 1 };
    static N2D2_INLINE Vector weights(v16i8 w) { return w; }
    static N2D2_INLINE v16i8 part(int part, v4i32 x) {
        const std::int32_t inputs = !FullWeights ? -1 : part == 0 ? 0x00ff00ff : ~0x00ff00ff;
        return reinterpret_cast<v16i8>(x & __msa_fill_w(inputs));
    }
    static N2D2_INLINE v4i32 add(v4i32 sums, Vector w, v16i8 x) {
        return addProducts(sums, __msa_dotp_s_h(w, x), __msa_ldi_h(1));
    }
};
// Words of two integers of 16 bits.
template <class In, class Weight, bool FullWeights>
struct Word<In, Weight, FullWeights, 2> {
    typedef v8i16 Vector;
    enum : int { Each = 2, Parts = 1 };
    static N2D2_INLINE Vector weights(v16i8 w) {
        return sizeof(Weight) == 2 ? reinterpret_cast<v8i16>(w) : __msa_srai_h(reinterpret_cast<v8i16>(__msa_ilvr_b(w, w)), 8);
    }
    static N2D2_INLINE v8i16 part(int, v4i32 x) { return reinterpret_cast<v8i16>(x); }
    static N2D2_INLINE v4i32 add(v4i32 sums, Vector w, v8i16 x) { return addProducts(sums, w, x); }
};

template <class In, int Pixels, int Words, int LastOutputs, class Epilogue, class Weight, bool FullWeights>
struct Tile {
    typedef Word<In, Weight, FullWeights> W;
    enum : int {
        Vectors = (LastOutputs + 3) / 4,
        Last = LastOutputs - 4 * (Vectors - 1),  // outputs of the last vector
        OutputBytes = static_cast<int>(W::Each * sizeof(Weight)),
        Second = LastOutputs > 8 ? 8 : 0,  // where the second eight outputs begin
        Count = LastOutputs - Second       // of them, or of the first ones
    };

    // Four outputs of Bytes bytes each from one on, as many as vector v has.
    template <int Bytes>
    static N2D2_INLINE v16i8 four(const void* from, int v) {
        const char* const at = static_cast<const char*>(from) + 4 * Bytes * v;
        return v < Vectors - 1 ? some<4 * Bytes>(at) : some<Last * Bytes>(at);
    }

    template <long Pitch, class At>
    static N2D2_NOINLINE void run(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output, const At& at) {
        v4i32 sums[Pixels][4] = {};
        N2D2_UNROLL_FOR(v, Vectors) {
            const v4i32 first = reinterpret_cast<v4i32>(four<4>(bias + output, v));
            N2D2_UNROLL_FOR(p, Pixels)
                sums[p][v] = first;
        }
        for (int q = 0; q < Words; ++q, x += 4, w += W::Each * LastOutputs) {
            v4i32 words[Pixels];
            N2D2_UNROLL_FOR(p, Pixels) {
                words[p] = __msa_fill_w(Unaligned<std::int32_t>::load(x + p * Pitch));
            }
            N2D2_UNROLL_FOR(part, W::Parts)
                N2D2_UNROLL_FOR(v, Vectors) {
                    const typename W::Vector weights = W::weights(four<OutputBytes>(w, v));
                    N2D2_UNROLL_FOR(p, Pixels)
                        sums[p][v] = W::add(sums[p][v], weights, W::part(part, words[p]));
                }
        }
        const Finish<Epilogue, (Second > 0 ? 8 : int(Count))> low(output, output + 4);
        const Finish<Epilogue, Count> high(output + Second, output + Second + 4);
        N2D2_UNROLL_FOR(p, Pixels) {
            low.store(Eight<std::int32_t>{sums[p][0], sums[p][1]}, at(p) + output);
            if (Second > 0)
                high.store(Eight<std::int32_t>{sums[p][2], sums[p][3]}, at(p) + output + 8);
        }
    }
};

// 4 sums of a pixel and its word, weights, products, ones: 28 of 32 registers.
template <bool FullWeights>
struct Microkernel : OnePanelTiles<4> {
    template <class In, int Words>
    struct Windows : vectors::ByteWindow<In, Words, true> {};
    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue, class Weight = std::int8_t>
    struct Tile : msa::Tile<In, Pixels, Words, LastOutputs, Epilogue, Weight, FullWeights> {
        static_assert(Panels == 1, "a tile is one panel");
    };
    typedef WideWeights<Microkernel, Tile> Wide;
};

}  // namespace msa
}  // namespace n2d2
