// Matrix products of two activations (n2d2/product.hpp) in float32: up to TilePanels panels of 16 columns are packed as [Depth][16] when they
// are there, and multiplied with tiles of rows as a 1x1 convolution does (float_tile.hpp).
#pragma once

#include "n2d2/panels/float_tile.hpp"

namespace n2d2 {

template <class Cfg>
struct FloatProduct {
    typedef float Left;
    typedef float Right;
    typedef float Out;
    enum : int {
        M = Cfg::Rows,
        K = Cfg::Depth,
        N = Cfg::Columns,
        Wide = 16 * largest(1, least(least(int(floats::TilePanels), (N + 15) / 16), 4096 / K)),  // columns at once
        Rows = least(int(floats::TilePixels), int(M)),
    };
    struct OutRows {
        float* out;
        N2D2_INLINE float* operator()(int row) const { return out + row * static_cast<long>(Cfg::OutRow); }
    };

    // Count columns of some rows.
    template <int Some, int Count>
    static N2D2_INLINE void tile(const float* left, const float* panels, float* out) {
        constexpr int count = (Count + 15) / 16;
        constexpr long pitch = 4L * Cfg::LeftRow;
        const float zeros[16 * count] = {};
        const OutRows rows = {out};
        floats::Tile<Some, count, K, Count - 16 * (count - 1), typename Cfg::Epilogue>::template run<pitch>(
            reinterpret_cast<const std::uint8_t*>(left), panels, zeros, 0, rows);
    }

    // Count columns, in panels that zeros fill up.
    template <int Count>
    static N2D2_INLINE void columns(const float* left, const float* right, float* out) {
        constexpr int step = Rows, rest = M % step, wide = (Count + 15) / 16 * 16;
        float panels[wide * K];
        for (int n = 0; n < wide; n += 16)
            for (int k = 0; k < K; ++k)
                for (int i = 0; i < 16; ++i)
                    panels[n * K + 16 * k + i] =
                        n + i < Count ?
                            right[k * static_cast<long>(Cfg::RightDepth) + (n + i) * static_cast<long>(Cfg::RightColumn)] :
                            0.0f;
        const float* const packed = panels;
        Loop<static_cast<long>(M) * Count * K, (M > step)>::run(M / step, [=](int block) N2D2_INLINE_LAMBDA {
            const long m = static_cast<long>(block) * step;
            tile<step, Count>(left + m * Cfg::LeftRow, packed, out + m * Cfg::OutRow);
        });
        constexpr long last = M - rest;
        if (rest > 0)
            tile<(rest > 0 ? rest : 1), Count>(left + last * Cfg::LeftRow, packed, out + last * Cfg::OutRow);
    }

    static N2D2_INLINE void matrix(const float* left, const float* right, float* out) {
        constexpr int wide = Wide, rest = N % wide;
        long n = 0;
        for (; n + wide <= N; n += wide)
            columns<wide>(left, right + n * Cfg::RightColumn, out + n * Cfg::OutColumn);
        if (rest > 0)
            columns<(rest > 0 ? rest : 1)>(left, right + n * Cfg::RightColumn, out + n * Cfg::OutColumn);
    }
};

// Of rows whose elements follow each other. The panels of a deeper product would not fit the stack.
template <class Cfg>
struct Product<Cfg, RealVectors> : Choice<int(Cfg::LeftDepth) == 1 && int(Cfg::OutColumn) == 1 && int(Cfg::Depth) <= 4096,
                                          FloatProduct<Cfg>, PortableProduct<Cfg> >::Type {};

}  // namespace n2d2
