// Matrix products of two activations, integers or float32:
//
//   out[...][m][n] = Epilogue(sum over k of (left[...][m][k] - LeftZero) * (right[...][k][n] - RightZero))
//
// Config: planes Left, Right, Output, of one pixel; Axes, the loops over the leading axes, whose steps are those of left, right and
// output; types Sum, Epilogue, Isa; enum Rows, Depth, Columns, LeftFirst, LeftRow, LeftDepth, LeftZero, RightFirst, RightDepth,
// RightColumn, RightZero, OutFirst, OutRow, OutColumn: where the first element lies, and the steps of each axis.
// The output lies apart from both inputs.
#pragma once

#include "n2d2/array.hpp"
#include "n2d2/pointwise.hpp"

namespace n2d2 {

template <class Cfg>
struct PortableProduct {
    typedef typename Cfg::Left::Type Left;
    typedef typename Cfg::Right::Type Right;
    typedef typename Cfg::Output::Type Out;
    typedef typename Cfg::Sum Sum;
    enum : int { Piece = 16, Last = Cfg::Columns % Piece };

    static N2D2_INLINE Sum left(Left x) { return static_cast<Sum>(x) - static_cast<Sum>(Cfg::LeftZero); }
    static N2D2_INLINE Sum right(Right x) { return static_cast<Sum>(x) - static_cast<Sum>(Cfg::RightZero); }

    // Count columns of a row.
    template <int Count>
    static N2D2_INLINE void some(const Left* a, const Right* b, Out* out) {
        constexpr long leftStep = Cfg::LeftDepth, depthStep = Cfg::RightDepth, columnStep = Cfg::RightColumn;
        Sum sums[Count] = {};
        if (columnStep == 1) {
            for (long k = 0; k < Cfg::Depth; ++k)
                for (int n = 0; n < Count; ++n)
                    sums[n] += left(a[k * leftStep]) * right(b[k * depthStep + n]);
        } else {
            for (int n = 0; n < Count; ++n)
                for (long k = 0; k < Cfg::Depth; ++k)
                    sums[n] += left(a[k * leftStep]) * right(b[k * depthStep + n * columnStep]);
        }
        Out results[Count];
        PortableRun<typename Cfg::Epilogue, false>::template run<Count>(sums, 0, results);
        for (int n = 0; n < Count; ++n)
            out[n * static_cast<long>(Cfg::OutColumn)] = results[n];
    }

    static N2D2_INLINE void matrix(const Left* a, const Right* b, Out* out) {
        constexpr int rows = Cfg::Rows, columns = Cfg::Columns, piece = Piece, last = Last;
        Loop<static_cast<long>(rows) * columns * Cfg::Depth, (rows > 1)>::run(rows, [=](int m) N2D2_INLINE_LAMBDA {
            const Left* const from = a + m * static_cast<long>(Cfg::LeftRow);
            Out* const to = out + m * static_cast<long>(Cfg::OutRow);
            long n = 0;
            for (; n + piece <= columns; n += piece)
                some<piece>(from, b + n * Cfg::RightColumn, to + n * Cfg::OutColumn);
            if (last > 0)
                some<(last > 0 ? last : 1)>(from, b + n * Cfg::RightColumn, to + n * Cfg::OutColumn);
        });
    }
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct Product : PortableProduct<Cfg> {};

template <class Cfg>
N2D2_INLINE void product(const unsigned char* left, const unsigned char* right, unsigned char* out) {
    typedef Product<Cfg> P;
    const typename P::Left* const a = elements<typename Cfg::Left>(left) + Cfg::LeftFirst;
    const typename P::Right* const b = elements<typename Cfg::Right>(right) + Cfg::RightFirst;
    typename P::Out* const c = elements<typename Cfg::Output>(out) + Cfg::OutFirst;
    const auto body = [=](long i, long j, long o, long) N2D2_INLINE_LAMBDA { P::matrix(a + i, b + j, c + o); };
    Cfg::Axes::run(body, 0, 0, 0, 0);
}

}  // namespace n2d2

#if N2D2_FLOAT_VECTORS
#include "n2d2/panels/float_product.hpp"
#endif
#define N2D2_BIND_PRODUCT
#include "n2d2/bindings.hpp"
#undef N2D2_BIND_PRODUCT
