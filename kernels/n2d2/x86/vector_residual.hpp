// The sum in the epilogue of a convolution (n2d2/residual.hpp), in vectors: pairs of 16-bit integers times the pair of multipliers.
#pragma once

#include "n2d2/panels/vec.hpp"

namespace n2d2 {

template <class Vec, class Epilogue>
struct VectorResidual;

template <class Vec, class First, class Operand, class Last>
struct VectorResidual<Vec, Added<First, Operand, Last> > {
    typedef typename Vec::Ints Ints;
    typedef typename Vec::template Epilogue<Last, Vec::Lanes> LastEpilogue;
    typedef PairedWeights<Operand> Weights;
    const Ints weights, high, offset;
    const LastEpilogue last;

    N2D2_INLINE VectorResidual()
        : weights(Vec::spread(Weights::low())),
          high(Vec::spread(Weights::high())),
          offset(Vec::spread(Operand::offset())),
          last(0, 0) {}

    N2D2_INLINE Ints sum(Ints pairs) const {
        if (!Weights::Wide)
            return Vec::addPairs(offset, pairs, weights);
        const Ints above = Vec::template left<15>(Vec::addPairs(Vec::zero(), pairs, high));
        return Vec::addPairs(Vec::plus(above, offset), pairs, weights);
    }

    template <int Count>
    N2D2_INLINE void sixteen(const typename First::Type* own, typename Last::Type* out) const {
        constexpr int vectors = 16 / Vec::Lanes;
        Ints sums[vectors];
        Vec::template pairsOf<typename First::Type, typename Operand::Old>(Vec::template sixteen<16>(own),
                                                                           Vec::template sixteen<Count>(out), sums);
        N2D2_UNROLL_FOR(v, vectors)
            sums[v] = sum(sums[v]);
        Vec::template storeSixteen<Count>(last, sums, out);
    }
};

}  // namespace n2d2
