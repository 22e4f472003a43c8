// Convolution as a matrix product of windows and panels of weights, in tiles held in registers (PanelTiles): who makes which tile, when.
//
// Threads: the tiles times the groups of panels are cut into one piece for each thread, of equal size to one tile with one group.
//
// Line order: all windows of a block are read before the first of its outputs is stored, and blocks come in
// order (with Reverse from the last), so that an output line is stored while the input lines that later lines need
// are intact. With Serial, threads share the work of one block: all windows are gathered before any of them stores; but where
// more tiles than those of a block cover nothing that is still read (LineOrder), they are shared like those of any layer. What a line
// of a layer that runs by lines (Streamed) stores covers nothing that it reads.
// Scratch: BlockBytes + 64, for each thread; for a serial layer those of all groups, which its threads share.
#pragma once

#include "n2d2/line_order.hpp"
#include "n2d2/packed.hpp"
#include "n2d2/panels/panel_tiles.hpp"
#include "n2d2/parallel.hpp"

namespace n2d2 {

template <class Cfg, class Microkernel, class Product = PanelTiles<Cfg, typename ForWeights<Cfg, Microkernel>::Type> >
struct PanelConvolution {
    typedef PanelIm2col<Cfg, typename ForWeights<Cfg, Microkernel>::Type> Im2col;
    typedef typename Cfg::Output Output;
    typedef typename PackedWeights<Cfg>::Stored Stored;
    typedef typename Cfg::Sum Sum;

    enum : int {
        C = Product::C,
        O = Product::O,
        OW = Product::OW,
        Window = Product::Window,
        Streamed = Product::Streamed,
        Ordered = Product::Ordered,
        Weights = Product::Weights,
        Groups = Product::Groups,
        Tiles = Product::Tiles,
        PerBlock = Product::PerBlock,
        Blocks = Product::Blocks,
        BlockBytes = Product::BlockBytes
    };

    static N2D2_INLINE constexpr int firstPixel(int tile) { return Product::firstPixel(tile); }

    typedef WeightPanels<PackedWeights<Cfg>, Cfg::Groups * O, Product::Words, Im2col::Each, Im2col::K> AllWeights;

    // With weights as they are stored, or unpacked.
    template <class, bool Once>
    struct Weighted {
        static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Stored* weights, const Sum* bias,
                                    const Rows& rows) {
            lines(in, out, weights, bias, rows);
        }
    };
    template <class Any>
    struct Weighted<Any, true> {
        static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Stored* weights, const Sum* bias,
                                    const Rows& rows) {
            const AllWeights all(weights, 0);
            PanelConvolution<Unpacked<Cfg>, Microkernel>::run(in, out, all.first, bias, rows);
        }
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Stored* weights, const Sum* bias,
                                const Rows& rows = Rows::all<Output>()) {
        Weighted<Product, bool(Product::UnpacksOnce)>::run(in, out, weights, bias, rows);
    }

    static N2D2_INLINE void lines(const unsigned char* in, unsigned char* out, const Stored* weights, const Sum* bias,
                                  const Rows& rows) {
        if (Ordered) {
            serial(in, out, weights, bias);
            return;
        }
        const int end = Streamed ? rows.end : rows.begin + 1;
        for (int y = rows.begin; y < end; ++y)
            blocks(in, out, y, weights, bias);
    }

    // Multiply-accumulates of a layer, or of a line of a streamed one.
    static constexpr long Work = static_cast<long>(Cfg::Groups) * Weights * Product::Pixels / N2D2_SIMD_SPEED / Product::Faster;

    // All blocks of the sequence from line y on, in any order.
    static N2D2_INLINE void blocks(const unsigned char* in, unsigned char* out, int y, const Stored* weights, const Sum* bias) {
        Team<Work, (int(Cfg::Groups) * Tiles * Groups > 1)>::run([=](const Member& member) N2D2_INLINE_LAMBDA {
            Product::begin();
            shared(member, in, out, y, 0, Tiles, weights, bias);
            Product::end();
        });
    }

    // The share of a thread in tiles [first, stop): of their units, a tile with a group of panels, in rows of which a thread gets some
    // whole ones and parts of two others. Rows are tiles, so that windows are gathered once; where the weights are many, groups.
    static N2D2_INLINE void shared(const Member& member, const unsigned char* in, unsigned char* out, int y, int first,
                                   int stop, const Stored* weights, const Sum* bias) {
        Scratch<Cfg, int(BlockBytes) + 64>::run(in, out, member.self, [=](std::uint8_t* buffer) N2D2_INLINE_LAMBDA {
            shared(member, in, out, y, first, stop, weights, bias, buffer);
        });
    }
    static N2D2_INLINE void shared(const Member& member, const unsigned char* in, unsigned char* out, int y, int first,
                                   int stop, const Stored* weights, const Sum* bias, std::uint8_t* buffer) {
        constexpr bool byTiles = Weights <= 524288;
        const int columns = byTiles ? int(Groups) : stop - first;
        const long units = static_cast<long>(Groups) * (stop - first), all = Cfg::Groups * units;
        long begin = member.begin(all, member.self);
        const long end = member.begin(all, member.self + 1);
        while (begin < end) {
            const int channels = static_cast<int>(begin / units), row = static_cast<int>(begin % units / columns);
            const int column = static_cast<int>(begin % units % columns);
            const long left = least(end, (channels + 1) * units) - begin;
            const bool part = column > 0 || left < columns;
            const int rows = part ? 1 : static_cast<int>(left / columns);
            const int to = part ? static_cast<int>(least(long(columns), column + left)) : columns;
            if (byTiles)
                rectangle(in, out, y, first + row, first + row + rows, channels, column, to, weights, bias, buffer);
            else
                rectangle(in, out, y, first + column, first + to, channels, row, row + rows, weights, bias, buffer);
            begin += part ? to - column : static_cast<long>(rows) * columns;
        }
    }

    // Tiles [begin, end) with the groups of panels [from, to).
    static N2D2_NOINLINE void rectangle(const unsigned char* in, unsigned char* out, int y, int begin, int end, int channels,
                                        int from, int to, const Stored* weights, const Sum* bias, std::uint8_t* buffer) {
        for (; begin < end; begin += PerBlock)
            Product::block(in, out, y, begin, least(end, begin + PerBlock), channels, from, to, weights, bias, buffer);
    }

    static N2D2_INLINE void serial(const unsigned char* in, unsigned char* out, const Stored* weights, const Sum* bias) {
        // The tiles of a block are cut into parts, so that few groups of panels too are work for some threads.
        constexpr int all = Cfg::Groups * Groups, tilesOfBlock = least(int(PerBlock), int(Tiles));
        constexpr int parts = all >= 8 ? 1 : least(tilesOfBlock, 8 / all);
        // Work between two waits: that of a block, or where the order leaves most lines free, of a group of lines.
        constexpr long pieces = least(long(Blocks), long(WindowOrder<Cfg>::groups(0)));
        Scratch<Cfg, (Ordered ? int(Cfg::Groups) * int(BlockBytes) : 0) + 64>::run(
            in, out, 0, [=](std::uint8_t* windows) N2D2_INLINE_LAMBDA {
                Team<Work / pieces>::run([=](const Member& member) N2D2_INLINE_LAMBDA {
                    Product::begin();
                    for (int step = 0; step < Tiles;) {
                        const int free = member.alone() ? 0 : together(step);
                        const int count = free > PerBlock ? free : least(int(PerBlock), Tiles - step);
                        const int begin = Cfg::Reverse ? Tiles - step - count : step;
                        step += count;
                        if (free > PerBlock) {
                            shared(member, in, out, 0, begin, begin + count, weights, bias);
                            member.wait();
                            continue;
                        }
                        if (member.alone())  // what copying writes behind windows is written over by those that follow
                            for (int channels = 0; channels < Cfg::Groups; ++channels)
                                Im2col::im2col(in, 0, firstPixel(begin), firstPixel(begin + count), channels * C,
                                               windows + channels * BlockBytes);
                        else
                            member.share(Cfg::Groups * parts, [=](int index) N2D2_INLINE_LAMBDA {
                                part(in, begin, count, index / parts, index % parts, parts, windows);
                            });
                        member.wait();
                        member.share(all * parts, [=](int index) N2D2_INLINE_LAMBDA {
                            const int group = index / parts, first = begin + index % parts * count / parts;
                            const int offset = (firstPixel(first) - firstPixel(begin)) * Window;
                            Product::panels(windows + group / Groups * BlockBytes + offset, 0, first,
                                            begin + (index % parts + 1) * count / parts, group, out, weights, bias);
                        });
                        member.wait();
                    }
                    Product::end();
                });
            });
    }

    // The number of tiles from step `step` on, in the order of computation, that cover nothing that is still read.
    static N2D2_INLINE int together(int step) {
        typedef WindowOrder<Cfg> Order;
        if (!Order::Known)
            return 0;
        int tile = step;
        if (Cfg::Reverse) {
            const int stop = Tiles - step;
            const long limit = Order::behind((firstPixel(stop) - 1) / OW, Order::Pixel);
            for (tile = stop; tile > 0 && firstPixel(tile - 1) >= limit; --tile) {
            }
            return stop - tile;
        }
        const long limit = Order::before(firstPixel(step) / OW, Order::Pixel);
        while (tile < Tiles && firstPixel(tile + 1) <= limit)
            ++tile;
        return tile - step;
    }

    // The windows of one of `parts` parts of a block. What copying writes behind them belongs to the next part, so the
    // last window goes through a buffer of its own.
    static N2D2_NOINLINE void part(const unsigned char* in, int begin, int count, int channels, int index, int parts,
                                   std::uint8_t* windows) {
        const int first = firstPixel(begin + index * count / parts);
        const int last = firstPixel(begin + (index + 1) * count / parts) - 1;
        std::uint8_t* const to = windows + channels * BlockBytes + (first - firstPixel(begin)) * Window;
        if (last < first)
            return;
        Im2col::im2col(in, 0, first, last, channels * C, to);
        alignas(64) std::uint8_t window[Window + 64];
        Im2col::im2col(in, 0, last, last + 1, channels * C, window);
        std::memcpy(to + (last - first) * Window, window, Window);
    }
};

}  // namespace n2d2
