// The matrix product of the panels where pmaddubsw is exact: products of bytes.
//
// pmaddubsw saturates the sum of two products to 16 bits. Where the weights are such that no sum of two products can leave
// them (Sums = 1), or no sum of the products of two words in one place of 16 bits (Sums = 2), it is exact; the exporter proves
// it. pmaddwd with ones adds the pairs. For 64 products Sums = 2 takes five instructions, pmaddwd alone eight.
// Windows are bytes in order, unsigned inputs of 1x1 convolutions are read in place.
#ifndef N2D2_X86_BYTE_TILE_HPP
#define N2D2_X86_BYTE_TILE_HPP

#include "n2d2/x86/byte_window.hpp"

namespace n2d2 {

// Products: a tile, and add<Count, Pitch>(x, w, q, sums), which adds the products of Count words from q on.
template <int Sums, class Products, int Words>
struct ByteTile : Products {
    template <long Pitch, class All>
    static N2D2_INLINE void sum(const std::uint8_t* x, const std::int8_t* w, All& sums) {
        constexpr int whole = Words / Sums * Sums;
        if (Words <= 8) {  // the end of a short loop costs as much as a word
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

// By the constant ByteSums of a layer: Sums of its products of bytes, 0 where they may saturate.
template <class Microkernel, int Sums>
struct ByteMicrokernel : Microkernel {
    template <class In, int Words>
    struct Windows : bytes::ByteWindow<In, Words, typename Microkernel::Vec> {};

    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Tile
        : ByteTile<Sums, typename Microkernel::template Products<In, Pixels, Panels, Words, LastOutputs, Epilogue>, Words> {};
};
template <class Microkernel>
struct ByteMicrokernel<Microkernel, 0> : Microkernel {};

}  // namespace n2d2

#endif  // N2D2_X86_BYTE_TILE_HPP
