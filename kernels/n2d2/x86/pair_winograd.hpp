// The vectors of a Winograd convolution where pmaddwd multiplies 16-bit integers exactly, two to a sum.
#pragma once

#include "n2d2/panels/vec.hpp"
#include "n2d2/panels/winograd_products.hpp"

namespace n2d2 {

// Microkernel: that of the direct form, with Vec, and whose Tile has store(), the epilogue of some pixels. Tiles: those whose sums the
// registers hold beside the weights of a word, the word and a product.
template <class Microkernel, int Tiles>
struct PairWinograd : TransformedWeights {
    typedef typename Microkernel::Vec Vec;
    typedef typename Vec::Ints Inputs;
    typedef typename Vec::Ints Sums;
    enum : int {
        Lanes = 2 * Vec::Lanes,
        SumLanes = Vec::Lanes,
        GroupTiles = N2D2_SMALL_CODE ? least(Tiles, 4) : Tiles,
        StepWords = 1
    };

    template <int>
    using Step = WinogradWords<PairWinograd>;
    template <int Outputs>
    struct Row {
        enum : int { Vectors = (Outputs + Vec::Lanes - 1) / Vec::Lanes, Bytes = 32 * ((Outputs + 7) / 8) };
        Inputs weights[Vectors];
        N2D2_INLINE explicit Row(const std::int8_t* from) {
            N2D2_UNROLL_FOR(v, Vectors)
                weights[v] = Vec::load(from + Vec::Size * v);
        }
        template <int>
        N2D2_INLINE void add(Sums (&sums)[Vectors], Inputs inputs) const {
            N2D2_UNROLL_FOR(v, Vectors) {
                sums[v] = Vec::addPairs(sums[v], inputs, weights[v]);
                Vec::pin(sums[v]);
            }
        }
    };

    template <int Bits>
    static N2D2_INLINE Sums plusQuotient(Sums bias, Sums a, Sums inverse) {
        return Vec::plus(bias, Vec::template right<Bits>(Vec::times(a, inverse)));
    }

    // The epilogue of Pixels pixels of Outputs outputs.
    template <class Epilogue, int Outputs, int Pixels>
    struct Finish {
        typedef typename Microkernel::template Tile<std::uint8_t, Pixels, 1, 1, Outputs, Epilogue> Tile;
        enum : int { Vectors = Row<Outputs>::Vectors, Rest = Outputs - Vec::Lanes * (Vectors - 1) };
        static N2D2_INLINE Sums bias(const std::int32_t* from, int v) {
            const std::int32_t* const first = from + Vec::Lanes * v;
            return v == Vectors - 1 ? Vec::template some<Rest>(first, first + 4) :
                                      Vec::template some<Vec::Lanes>(first, first + 4);
        }
        template <class At>
        static N2D2_INLINE void store(const Sums (&sums)[Pixels][Vectors], int output, const At& at) {
            Tile::store(sums, output, at);
        }
    };
};

}  // namespace n2d2
