// The Winograd convolution of winograd.hpp, block by block: inputs transformed, 36 matrix products, outputs transformed.
//
// The output is one sequence of tiles of four by four pixels, line by line; the last column and the last line of tiles may have fewer.
// The inputs of a block of tiles are transformed into scratch (n2d2/scratch.hpp), [tile][36 positions][channels], 16 bits each. Then, for
// each panel of 16 outputs and each group of some tiles, the products of all positions are summed over the channels,
// [position][tile][output] in 32 bits, and become outputs while they are in the cache.
//
// Line order: all inputs of a block are transformed before the first of its outputs is stored. Where the output overlaps the input
// (Serial) a block has whole lines of tiles, and blocks come in order (with Reverse from the last): what later lines need is intact.
// Threads share the work of a block then; else each has a range of the tiles, block by block.
// Scratch: a pixel of the padding, 2,304 bytes for each tile of a group, BlockBytes.
//
// Microkernel: vectors of inputs (Inputs, Lanes of them) and of sums (Sums, SumLanes of them), Vec, their primitives;
// GroupTiles; Stored, the weights of the layer, and Panel<Cfg, Outputs>(weights, output), whose `first` are those of a panel, transformed;
// what winograd_products.hpp wants; Finish, the epilogue of some pixels.
#pragma once

#include "n2d2/output.hpp"
#include "n2d2/panels/winograd_products.hpp"
#include "n2d2/panels/winograd_transforms.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"
#include "n2d2/residual.hpp"
#include "n2d2/scratch.hpp"

namespace n2d2 {

template <class Cfg, class Microkernel>
struct PanelWinograd {
    N2D2_WINDOWS(Cfg);
    typedef typename Microkernel::Sums Sums;
    typedef typename Microkernel::Stored Stored;
    static_assert(Cfg::KernelHeight == 3 && Cfg::KernelWidth == 3 && Cfg::StrideHeight == 1 && Cfg::StrideWidth == 1 &&
                      Cfg::DilationHeight == 1 && Cfg::DilationWidth == 1 && Cfg::Groups == 1,
                  "3 x 3 windows of one group, stride 1");
    static_assert(sizeof(In) == 1 && sizeof(typename Cfg::Sum) == 4, "8-bit inputs and 32-bit sums");

    enum : int {
        C = Input::Channels,
        O = Output::Channels,
        Words = (C + 1) / 2,
        Lanes = Microkernel::Lanes,
        Depth = (C + Lanes - 1) / Lanes * Lanes,
        Rest = C - (Depth - Lanes),  // channels of the last vector
        TileBytes = WinogradPositions * 2 * Depth,
        SumBytes = 64 * WinogradPositions,  // products of a tile with a panel
        Columns = (OW + 3) / 4,
        Tiles = Columns * ((OH + 3) / 4),
        Panels = (O + 15) / 16,
        LastOutputs = O - 16 * (Panels - 1),
        Ordered = Cfg::Serial,
        PadBytes = (C + 63) / 64 * 64,
        Given = ScratchOf<Cfg>::Bytes <= 0 ? 0 : largest(1, ScratchOf<Cfg>::Bytes - PadBytes),  // 0: no limit
        GroupRoom = Ordered ? (Given - Columns * TileBytes) / SumBytes : Given / (SumBytes + TileBytes),
        Group = Given == 0 ? int(Microkernel::GroupTiles) : least(int(Microkernel::GroupTiles), largest(1, int(GroupRoom))),
        Unit = Ordered ? int(Columns) : int(Group),
        // Inputs that stay in a cache beside the weights of a panel, or beside those of all where they are few.
        Wanted = largest(int(Microkernel::BlockInputs), least(262144, C * 512)),
        // Parts of the channels; the products of all tiles of a block are kept where there are some.
        Pieces = Microkernel::template Parts<Cfg>::value,
        PerTile = TileBytes + (Pieces > 1 ? int(SumBytes) : 0),
        GroupBytes = Pieces > 1 ? 0 : Group* SumBytes,
        Budget = Given == 0 ? int(Wanted) : largest(1, least(int(Wanted), Given - GroupBytes)),
        AtMost = largest(1, Budget / (PerTile * Unit)),  // units of a block
        Units = (Tiles + Unit - 1) / Unit,
        Blocks = (Units + AtMost - 1) / AtMost,
        PerBlock = (Units + Blocks - 1) / Blocks * Unit,  // tiles of a block
        BlockTiles = least(int(PerBlock), int(Tiles)),
        BlockBytes = BlockTiles * TileBytes,
        Together = Pieces > 1 ? int(BlockTiles) : int(Group),  // tiles whose products lie side by side
        ProductBytes = SumBytes * Together,
        ScratchBytes = PadBytes + ProductBytes + BlockBytes
    };
    // Scratch: of all threads the pixel, then of each products, then inputs, in a serial layer those of the first thread for all.
    typedef Scratch<Cfg, int(ScratchBytes)> Buffer;
    enum : long { TileWork = long(WinogradPositions) * C * (O + 8) };

    // Those of tiles [begin, end).
    static N2D2_NOINLINE void transform(const unsigned char* in, const In* pad, int begin, int end, std::uint8_t* to) {
        int x = begin % Columns, y = begin / Columns * 4;
        for (; begin < end; x = 0, y += 4) {
            WinogradLines<In> lines;
            lines.pad = pad;
            for (int u = 0; u < 6; ++u) {
                const int from = y - Cfg::PadTop + u;
                const bool inside = from >= 0 && from < H;
                lines.at[u] = inside ? n2d2::line<Input>(in, from) : pad;
                lines.step[u] = inside ? Input::Stride : 0;
            }
            const int count = least(Columns - x, end - begin), left = 4 * x - Cfg::PadLeft;
            int channel = 0;
            for (; channel + Lanes < C || (N2D2_SMALL_CODE && channel + Lanes == C); channel += Lanes)
                WinogradInputs<Microkernel, In, Lanes, sharedSize(Depth)>::run(lines, left, W, count, channel, to, Depth);
            if (!N2D2_SMALL_CODE || int(Rest) < int(Lanes))
                WinogradInputs<Microkernel, In, Rest, sharedSize(Depth)>::run(lines, left, W, count, channel, to, Depth);
            to += static_cast<long>(count) * TileBytes;
            begin += count;
        }
    }

    static N2D2_INLINE const In* padding(std::uint8_t* scratch) {
        In* const pad = reinterpret_cast<In*>(scratch);
        for (int i = 0; i < C; ++i)
            pad[i] = static_cast<In>(Cfg::InputZero);
        return pad;
    }

    // The outputs of a panel of tiles [begin, end), whose transformed inputs are at x; groups of nearly equal size.
    template <int Outputs>
    static N2D2_INLINE void panel(const std::uint8_t* x, std::int32_t* products, int begin, int end, int output,
                                  unsigned char* out, const Stored* weights, const std::int32_t* bias) {
        part<Outputs, false>(x, products, begin, end, output, out, weights, bias, 0);
        for (int index = 1; index < Pieces; ++index)
            part<Outputs, (Pieces > 1)>(x, products, begin, end, output, out, weights, bias, index);
    }
    // The products of a part of the channels, with Onto added to those of the others; with the last one they become outputs.
    template <int Outputs, bool Onto>
    static N2D2_INLINE void part(const std::uint8_t* x, std::int32_t* products, int begin, int end, int output,
                                 unsigned char* out, const Stored* weights, const std::int32_t* bias, int index) {
        constexpr int words = Words / Pieces;
        const int count = end - begin, groups = (count + Group - 1) / Group;
        const typename Microkernel::template Panel<Cfg, Outputs> transformed(weights, output, index);
        for (int group = 0; group < groups; ++group) {
            const int from = N2D2_SMALL_CODE ? group * Group : count * group / groups;
            const int size = (N2D2_SMALL_CODE ? least(count, from + Group) : count * (group + 1) / groups) - from;
            std::int32_t* const to = products + (Pieces > 1 ? 16 * from : 0);
            WinogradGroup<Microkernel, Group, Together, Depth, words, Outputs, Onto>::run(
                size, x + static_cast<long>(from) * TileBytes + 4 * words * index, transformed.first, to);
            if (index + 1 == Pieces)
                WinogradOutputs<Cfg, Microkernel, Outputs, Together, Columns>::run(to, begin + from, size, output, out, bias);
        }
    }
    static N2D2_INLINE void panel(const std::uint8_t* x, std::uint8_t* scratch, int begin, int end, int index,
                                  unsigned char* out, const Stored* weights, const std::int32_t* bias) {
        std::int32_t* const products = elementsOf<std::int32_t>(scratch);
        if (index + 1 < Panels)
            panel<16>(x, products, begin, end, 16 * index, out, weights, bias);
        else
            panel<LastOutputs>(x, products, begin, end, 16 * index, out, weights, bias);
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Stored* weights, const std::int32_t* bias) {
        if (Ordered || (Microkernel::OnStack && !N2D2_SMALL_CODE))
            serial(in, out, weights, bias);
        else
            shared(in, out, weights, bias);
    }

    // All tiles, shared among the threads.
    static N2D2_INLINE void shared(const unsigned char* in, unsigned char* out, const Stored* weights,
                                   const std::int32_t* bias) {
        Team<TileWork * Tiles / N2D2_SIMD_SPEED>::run([=](const Member& member) N2D2_INLINE_LAMBDA {
            const int begin = static_cast<int>(member.begin(Tiles, member.self));
            const int end = static_cast<int>(member.begin(Tiles, member.self + 1));
            Buffer::run(in, out, member.self,
                        [=](std::uint8_t* scratch) N2D2_INLINE_LAMBDA { range(in, out, begin, end, weights, bias, scratch); });
        });
    }

    // Tiles [begin, end), block by block.
    static N2D2_NOINLINE void range(const unsigned char* in, unsigned char* out, int begin, int end, const Stored* weights,
                                    const std::int32_t* bias, std::uint8_t* scratch) {
        const In* const pad = padding(scratch);
        std::uint8_t *const products = scratch + PadBytes, *const inputs = products + ProductBytes;
        for (; begin < end; begin += BlockTiles) {
            const int stop = least(end, begin + BlockTiles);
            transform(in, pad, begin, stop, inputs);
            for (int index = 0; index < Panels; ++index)
                panel(inputs, products, begin, stop, index, out, weights, bias);
        }
    }

    // Block after block, in line order: the threads transform parts of one, then make panels of parts. Weights on the stack are transformed once
    // so.
    static N2D2_INLINE void serial(const unsigned char* in, unsigned char* out, const Stored* weights,
                                   const std::int32_t* bias) {
        constexpr int parts = largest(1, least(8, BlockTiles / (2 * Group)));
        constexpr int splits = Panels >= 8 ? 1 : least(int(parts), 8 / Panels);
        Buffer::run(in, out, 0, [=](std::uint8_t* scratch) N2D2_INLINE_LAMBDA {
            const In* const pad = padding(scratch);
            std::uint8_t *const own = scratch + PadBytes, *const inputs = own + ProductBytes;
            Team<TileWork * BlockTiles / N2D2_SIMD_SPEED>::run([=](const Member& member) N2D2_INLINE_LAMBDA {
                if (member.self == 0)
                    blocks(member, in, out, weights, bias, pad, inputs, own, splits);
                else
                    blocksOfThread(member, in, out, weights, bias, pad, inputs, splits);
            });
        });
    }
    static N2D2_NOINLINE void blocksOfThread(const Member& member, const unsigned char* in, unsigned char* out,
                                             const Stored* weights, const std::int32_t* bias, const In* pad,
                                             std::uint8_t* inputs, int splits) {
        alignas(64) std::uint8_t own[ProductBytes];
        blocks(member, in, out, weights, bias, pad, inputs, own, splits);
    }
    static N2D2_NOINLINE void blocks(const Member& member, const unsigned char* in, unsigned char* out, const Stored* weights,
                                     const std::int32_t* bias, const In* pad, std::uint8_t* inputs, std::uint8_t* products,
                                     int splits) {
        constexpr int parts = largest(1, least(8, BlockTiles / (2 * Group)));
        const int pieces = member.alone() ? 1 : splits;
        for (int step = 0; step < Blocks; ++step) {
            const int begin = (Cfg::Reverse ? Blocks - 1 - step : step) * PerBlock;
            const int count = least(int(Tiles), begin + PerBlock) - begin;
            member.share(parts, [=](int index) N2D2_INLINE_LAMBDA {
                const int from = index * count / parts;
                transform(in, pad, begin + from, begin + (index + 1) * count / parts,
                          inputs + static_cast<long>(from) * TileBytes);
            });
            member.wait();
            member.share(Panels * pieces, [=](int index) N2D2_INLINE_LAMBDA {
                const int from = index % pieces * count / pieces;
                panel(inputs + static_cast<long>(from) * TileBytes, products, begin + from,
                      begin + (index % pieces + 1) * count / pieces, index / pieces, out, weights, bias);
            });
            member.wait();
        }
    }
};

// A layer whose scratch is on the stack where the arena has too little.
template <class Cfg, class Microkernel>
struct TiledWinograd : PanelWinograd<typename WinogradScratch<Cfg, Microkernel>::Type, Microkernel> {};

}  // namespace n2d2
