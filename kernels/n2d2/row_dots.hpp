// Scalar products of a vector with some rows of weights: sums[r] = x with row r of Rows, of Count weights each.
//
// RowDots<Isa> is that of a set, which its header binds (n2d2/bindings.hpp); types that a set has nothing for take PlainRowDots.
#ifndef N2D2_ROW_DOTS_HPP
#define N2D2_ROW_DOTS_HPP

#include "n2d2/dot.hpp"

namespace n2d2 {

struct PlainRowDots {
    template <int Count, int Rows, class In, class Weight, class Sum>
    static N2D2_INLINE void run(const In* x, const Weight* weights, Sum (&sums)[Rows]) {
        for (int r = 0; r < Rows; ++r)
            sums[r] = 0;
        dots<Sum, Rows>(Count, x, weights, Count, sums);
    }
};

template <class Isa>
struct RowDots : PlainRowDots {};

}  // namespace n2d2

#define N2D2_BIND_ROW_DOTS
#include "n2d2/bindings.hpp"

#endif  // N2D2_ROW_DOTS_HPP
