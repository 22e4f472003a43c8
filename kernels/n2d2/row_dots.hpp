// Scalar products of a vector with some rows of weights: sums[r] = x with row r of Rows, of Count weights each.
//
// RowDots<Isa> is that of a set, which its header binds (n2d2/bindings.hpp); types that a set has nothing for take PlainRowDots.
//
// RowProducts multiplies a vector of Count inputs with some of All rows of weights, Run of them (a gate) after the other: it takes the
// vector once, for all rows. A set that has panels of rows specialises it for the weights and sums that it has them for (isa.py,
// ROW_PANELS).
#pragma once

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

// Calls body.run<Size>(first) for pieces of at most Most of Count.
template <int Count, int Most, class Body>
N2D2_INLINE void inPieces(const Body& body) {
    constexpr int count = Count, piece = count < Most ? count : Most, last = count % piece;
    int first = 0;
    for (; first + piece <= count; first += piece)
        body.template run<piece>(first);
    if (last > 0)
        body.template run<(last > 0 ? last : 1)>(first);
}

// Most: rows at a time; Aligned: pieces begin with a Run.
template <class Isa, class In, class Weight, class Sum, int Count, int Run, int All>
struct RowProducts {
    enum : bool { Aligned = false };
    enum : int { Most = 8 };

    const In* const x;
    const Weight* const weights;
    N2D2_INLINE RowProducts(const In* inputs, const Weight* rows) : x(inputs), weights(rows) {}

    struct Piece {
        const In* x;
        const Weight* weights;
        Sum* to;
        template <int Rows>
        N2D2_INLINE void run(int first) const {
            Sum(&sums)[Rows] = *reinterpret_cast<Sum(*)[Rows]>(to + first);
            RowDots<Isa>::template run<Count>(x, weights + static_cast<long>(first) * Count, sums);
        }
    };
    // The products with Rows rows from `row` on.
    template <int Rows>
    N2D2_INLINE void run(int row, Sum (&sums)[Rows]) const {
        const Piece body = {x, weights + static_cast<long>(row) * Count, sums};
        inPieces<Rows, Most>(body);
    }
};

}  // namespace n2d2

#define N2D2_BIND_ROW_DOTS
#include "n2d2/bindings.hpp"
#undef N2D2_BIND_ROW_DOTS
