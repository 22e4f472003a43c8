// The matrix product of the panels where pmaddubsw is exact: products of bytes.
//
// pmaddubsw saturates the sum of two products to 16 bits. Where the weights are such that no sum of two products can leave
// them (Sums = 1), or no sum of the products of Sums words in one place of 16 bits, for words in runs of Sums, it is exact; the exporter
// proves it. pmaddwd with ones adds the pairs. For 64 products Sums = 2 takes five instructions, pmaddwd alone eight. Where eight words
// and more fit, as those of weights of 4 bits do, the registers hold sums of 16 bits, which are widened at the end of a run: four.
// Windows are bytes in order, unsigned inputs of 1x1 convolutions are read in place.
#pragma once

#include "n2d2/vectors/byte_window.hpp"

namespace n2d2 {

// Products: a tile, and add<Count, Pitch>(x, w, q, sums), which adds the products of Count <= 2 words from q on.
template <int Sums, class Products, int Words, bool Long = (Sums > 2)>
struct ByteTile : Products {
    template <long Pitch, class All>
    static N2D2_INLINE void sum(const std::uint8_t* x, const std::int8_t* w, All& sums) {
        constexpr int whole = Words / Sums * Sums;
        if (Words <= 8 && !N2D2_SMALL_CODE) {  // the end of a short loop costs as much as a word
            N2D2_UNROLL
            for (int q = 0; q < whole; q += Sums)
                Products::template add<Sums, Pitch>(x, w, q, sums);
        } else {
            for (int q = 0; q < whole; q += Sums)
                Products::template add<Sums, Pitch>(x, w, q, sums);
        }
        if (whole != Words)
            Products::template add<1, Pitch>(x, w, whole, sums);
    }

    template <long Pitch, class At>
    static N2D2_INLINE void run(const std::uint8_t* x, const std::int8_t* w, const std::int32_t* bias, int output,
                                const At at) {
        Products::template multiply<ByteTile, Pitch>(x, w, bias, output, at);
    }
};

// Sums of 16 bits in the registers; those of 32 bits wait on the stack meanwhile.
template <int Sums, class Products, int Words>
struct ByteTile<Sums, Products, Words, true> : Products {
    typedef typename Products::Vec Vec;
    typedef typename Vec::Ints Ints;
    enum : int { Pixels = Products::TilePixels, Vectors = Products::Vectors };

    // The products of word q; the first ones of a run are its sums.
    template <bool First, long Pitch>
    static N2D2_INLINE void word(const std::uint8_t* x, const std::int8_t* w, int q, Ints (&places)[Pixels][Vectors]) {
        Ints weights[Vectors];
        N2D2_UNROLL_FOR(v, Vectors)
            weights[v] = Products::weights(w, v, q);
        N2D2_UNROLL_FOR(p, Pixels) {
            const Ints inputs = Products::word(x + p * Pitch + 4 * q);
            N2D2_UNROLL_FOR(v, Vectors) {
                const Ints products = Vec::byteProducts(inputs, weights[v]);
                places[p][v] = First ? products : Vec::plus16(places[p][v], products);
                Vec::pin(places[p][v]);
            }
        }
    }

    // Count words from q on.
    template <int Count, long Pitch, class All>
    static N2D2_INLINE void run(const std::uint8_t* x, const std::int8_t* w, int q, All& sums) {
        Ints places[Pixels][Vectors];
        word<true, Pitch>(x, w, q, places);
        // The end of a loop costs as much as a third of a word, with GCC, which copies all sums there, as much as a word.
        constexpr int last = Count <= 16 ? 1 : 1 + (Count - 1) / 4 * 4;
        for (int i = 1; i < last; i += 4)
            N2D2_UNROLL_FOR(j, 4)
                word<false, Pitch>(x, w, q + i + j, places);
        N2D2_UNROLL
        for (int i = last; i < Count; ++i)
            word<false, Pitch>(x, w, q + i, places);
        const Ints ones = Vec::spread16(1);
        N2D2_UNROLL_FOR(p, Pixels)
            N2D2_UNROLL_FOR(v, Vectors)
                sums[p][v] = Vec::addPairs(sums[p][v], places[p][v], ones);
    }

    template <long Pitch, class All>
    static N2D2_INLINE void sum(const std::uint8_t* x, const std::int8_t* w, All& sums) {
        constexpr int whole = Words / Sums * Sums, rest = Words - whole;
        for (int q = 0; q < whole; q += Sums)
            run<(Sums < Words ? Sums : Words), Pitch>(x, w, q, sums);
        if (rest > 0)
            run<(rest > 0 ? rest : 1), Pitch>(x, w, whole, sums);
    }

    template <long Pitch, class At>
    static N2D2_INLINE void run(const std::uint8_t* x, const std::int8_t* w, const std::int32_t* bias, int output,
                                const At at) {
        Products::template multiply<ByteTile, Pitch>(x, w, bias, output, at);
    }
};

// By the constant ByteSums of a layer: Sums of its products of bytes, 0 where they may saturate.
template <class Microkernel, template <class, int, int, int, int, class> class Products, int Sums>
struct ByteMicrokernel : Microkernel {
    template <class In, int Words>
    struct Windows : vectors::ByteWindow<In, Words, false, Microkernel::Vec::Size> {};

    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Tile : ByteTile<Sums, Products<In, Pixels, Panels, Words, LastOutputs, Epilogue>, Words> {};
};
template <class Microkernel, template <class, int, int, int, int, class> class Products>
struct ByteMicrokernel<Microkernel, Products, 0> : Microkernel {};

}  // namespace n2d2
