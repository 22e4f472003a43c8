// Matrix products of two activations (n2d2/product.hpp) in vectors: both are packed when they are there, without their zero points, as
// pairs of 16-bit integers, whose products are exact for all bytes.
//
// A block of rows is packed as [rows][pairs][2], 16 columns of the other matrix as [pairs][16][2], up to Deepest of the depth at a time.
// A tile is TileRows rows of 16 sums in registers.
#pragma once

#include "n2d2/panels/vec.hpp"

namespace n2d2 {

template <class Cfg, class Vec, int TileRows>
struct PanelProduct {
    typedef typename Cfg::Left::Type Left;
    typedef typename Cfg::Right::Type Right;
    typedef typename Cfg::Output::Type Out;
    typedef typename Cfg::Epilogue Epilogue;
    typedef typename Vec::Ints Ints;
    enum : int {
        M = Cfg::Rows,
        K = Cfg::Depth,
        N = Cfg::Columns,
        Deepest = 512,
        Depth = K < int(Deepest) ? K : int(Deepest),  // of a block
        Pairs = (Depth + 1) / 2,
        DepthBlocks = (K + Depth - 1) / Depth,
        Most = least(96, largest(1, 8192 / (2 * Pairs))),
        Tiles = least((M + TileRows - 1) / TileRows, largest(1, int(Most) / TileRows)),
        BlockRows = int(Tiles) * TileRows,
        Blocks = (M + BlockRows - 1) / BlockRows,
        Vectors = 16 / Vec::Lanes
    };

    struct Packed {
        alignas(64) std::int16_t right[Pairs * 32];
        alignas(64) std::int32_t sums[BlockRows * 16];
        alignas(64) std::int16_t left[BlockRows * Pairs * 2];
    };

    // Rows of the block [k, k + depth) of the depth; what is beyond the matrix is 0.
    static N2D2_INLINE void packLeft(const Left* from, int rows, int depth, std::int16_t* to) {
        for (int m = 0; m < rows; ++m, to += 2 * Pairs) {
            const Left* const row = from + m * static_cast<long>(Cfg::LeftRow);
            for (int k = 0; k < depth; ++k)
                to[k] = static_cast<std::int16_t>(row[k * static_cast<long>(Cfg::LeftDepth)] - Cfg::LeftZero);
            for (int k = depth; k < 2 * Pairs; ++k)
                to[k] = 0;
        }
        std::memset(to, 0, static_cast<std::size_t>(BlockRows - rows) * 2 * Pairs * sizeof(std::int16_t));
    }

    static N2D2_INLINE std::int16_t centred(const Right* from, long k, long n) {
        return static_cast<std::int16_t>(from[k * Cfg::RightDepth + n * Cfg::RightColumn] - Cfg::RightZero);
    }
    template <int Columns>
    static N2D2_INLINE void packRight(const Right* from, int depth, std::int16_t* to) {
        if (Columns < 16)
            std::memset(to, 0, sizeof(std::int16_t) * 32 * Pairs);
        if (int(Cfg::RightDepth) == 1) {
            for (int n = 0; n < Columns; ++n)
                for (int q = 0; q < depth / 2; ++q) {
                    to[32 * q + 2 * n] = centred(from, 2 * q, n);
                    to[32 * q + 2 * n + 1] = centred(from, 2 * q + 1, n);
                }
        } else {
            for (int q = 0; q < depth / 2; ++q)
                for (int n = 0; n < Columns; ++n) {
                    to[32 * q + 2 * n] = centred(from, 2 * q, n);
                    to[32 * q + 2 * n + 1] = centred(from, 2 * q + 1, n);
                }
        }
        if (depth % 2 != 0)
            for (int n = 0; n < Columns; ++n) {
                to[16 * (depth - 1) + 2 * n] = centred(from, depth - 1, n);
                to[16 * (depth - 1) + 2 * n + 1] = 0;
            }
    }

    // Adds the products of a tile to its sums, or to 0 where it is the first block of the depth.
    static N2D2_INLINE void tile(const std::int16_t* left, const std::int16_t* right, int pairs, bool first, std::int32_t* to) {
        Ints sums[TileRows][Vectors];
        N2D2_UNROLL_FOR(r, TileRows)
            N2D2_UNROLL_FOR(v, Vectors)
                sums[r][v] = first ? Vec::zero() : Vec::load(to + 16 * r + Vec::Lanes * v);
        for (int q = 0; q < pairs; ++q) {
            Ints columns[Vectors];
            N2D2_UNROLL_FOR(v, Vectors)
                columns[v] = Vec::load(right + 32 * q + 2 * Vec::Lanes * v);
            N2D2_UNROLL_FOR(r, TileRows) {
                std::int32_t pair;
                std::memcpy(&pair, left + r * 2 * Pairs + 2 * q, sizeof(pair));
                const Ints row = Vec::spread(pair);
                N2D2_UNROLL_FOR(v, Vectors) {
                    sums[r][v] = Vec::addPairs(sums[r][v], row, columns[v]);
                    Vec::pin(sums[r][v]);
                }
            }
        }
        N2D2_UNROLL_FOR(r, TileRows)
            N2D2_UNROLL_FOR(v, Vectors)
                Vec::store(sums[r][v], to + 16 * r + Vec::Lanes * v);
    }

    static N2D2_INLINE int depthOf(int block) { return least(int(Depth), K - block * int(Depth)); }

    // Columns of 16 of `rows` rows.
    template <int Columns>
    static N2D2_INLINE void columns(const Left* a, const Right* b, int rows, Packed& packed, Out* out) {
        constexpr int blocks = DepthBlocks, block = BlockRows, step = Depth;
        for (int d = 0; d < blocks; ++d) {
            const int depth = depthOf(d);
            if (blocks > 1)
                packLeft(a + d * step * static_cast<long>(Cfg::LeftDepth), rows, depth, packed.left);
            packRight<Columns>(b + d * step * static_cast<long>(Cfg::RightDepth), depth, packed.right);
            for (int m = 0; m < block && m < rows; m += TileRows)
                tile(packed.left + m * 2 * Pairs, packed.right, (depth + 1) / 2, d == 0, packed.sums + 16 * m);
        }
        for (int m = 0; m < rows; ++m) {
            Out* const to = out + m * static_cast<long>(Cfg::OutRow);
            if (Columns == 16 && int(Cfg::OutColumn) == 1) {
                EpilogueRun<Epilogue, false, typename Cfg::Isa>::template run<16>(packed.sums + 16 * m, 0, to);
                continue;
            }
            alignas(64) Out results[16];
            EpilogueRun<Epilogue, false, typename Cfg::Isa>::template run<16>(packed.sums + 16 * m, 0, results);
            for (int n = 0; n < Columns; ++n)
                to[n * static_cast<long>(Cfg::OutColumn)] = results[n];
        }
    }

    static N2D2_INLINE void matrix(const Left* a, const Right* b, Out* out) {
        constexpr int blocks = Blocks, block = BlockRows, whole = N / 16 * 16, last = N % 16, all = M, depths = DepthBlocks;
        Loop<static_cast<long>(M) * N * K, (blocks > 1)>::run(blocks, [=](int i) N2D2_INLINE_LAMBDA {
            Packed packed;
            const int rows = least(block, all - i * block);
            const Left* const left = a + i * block * static_cast<long>(Cfg::LeftRow);
            Out* const to = out + i * block * static_cast<long>(Cfg::OutRow);
            if (depths == 1)
                packLeft(left, rows, int(Depth), packed.left);
            for (long n = 0; n < whole; n += 16)
                columns<16>(left, b + n * Cfg::RightColumn, rows, packed, to + n * Cfg::OutColumn);
            if (last > 0)
                columns<(last > 0 ? last : 16)>(left, b + whole * static_cast<long>(Cfg::RightColumn), rows, packed,
                                                to + whole * static_cast<long>(Cfg::OutColumn));
        });
    }
};

}  // namespace n2d2
