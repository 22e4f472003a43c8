// The Winograd convolution of winograd.hpp: inputs of a block transformed, 16 matrix products, outputs transformed.
//
// The output is one sequence of tiles of two by two pixels, or of four by four (winograd_fours.hpp), line by line; the last column and the
// last line of tiles may have fewer. The inputs of a block of tiles are transformed into scratch (n2d2/scratch.hpp), [tile][16 or 36
// positions][channels], 16 bits each. Then, for each panel of 16 outputs and each group of some tiles, the products of all positions are summed
// over the channels, [position][tile][output] in 32 bits, and become outputs while they are in the cache.
//
// Line order: all inputs of a block are transformed before the first of its outputs is stored. Where the output
// overlaps the input (Serial) a block has whole lines of tiles, and blocks come in order (with Reverse from the last): a pair of
// output lines is stored while what later lines need is intact. Threads share the work of a block then; else each has a range of the
// tiles, block by block. Where scratch has no room for a line of tiles (Carried), the one line of inputs that the first stored line of a pair
// may cover while the pair needs it is copied, and the tiles of the pair are made group by group. Tiles of four lines have room always.
// A layer that runs by lines (Streamed) makes two lines at a time where it is asked for two, else one: the first lines of the tiles need
// 12 of their 16 positions and three lines of inputs, 12 multiplications for two pixels instead of 18. Where its output lies over its
// input it makes one at a time: what a line stores covers nothing that it reads.
// Scratch: a pixel of the padding, 64 bytes for each position of a group of tiles, BlockBytes.
//
// Microkernel: vectors of inputs (Inputs, Lanes of them) and of sums (Sums, SumLanes of them) with what is done with them;
// GroupTiles; Stored, the weights of the layer, and Panel<Cfg, Outputs>(weights, output), whose `first` are those of a panel, transformed;
// what winograd_products.hpp wants; Finish, the epilogue of some pixels.
#ifndef N2D2_PANELS_PANEL_WINOGRAD_HPP
#define N2D2_PANELS_PANEL_WINOGRAD_HPP

#include <cstddef>
#include <cstring>

#include "n2d2/output.hpp"
#include "n2d2/panels/winograd_fours.hpp"
#include "n2d2/panels/winograd_inputs.hpp"
#include "n2d2/panels/winograd_products.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"
#include "n2d2/residual.hpp"
#include "n2d2/scratch.hpp"

namespace n2d2 {

template <class Cfg, class Microkernel>
struct PanelWinograd {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    typedef typename Cfg::Epilogue Epilogue;
    typedef typename Input::Type In;
    typedef typename Output::Type Out;
    typedef typename Microkernel::Sums Sums;
    typedef typename Microkernel::Stored Stored;
    static_assert(Cfg::KernelHeight == 3 && Cfg::KernelWidth == 3 && Cfg::StrideHeight == 1 && Cfg::StrideWidth == 1 &&
                      Cfg::DilationHeight == 1 && Cfg::DilationWidth == 1 && Cfg::Groups == 1,
                  "3 x 3 windows of one group, stride 1");
    static_assert(sizeof(In) == 1 && sizeof(typename Cfg::Sum) == 4, "8-bit inputs and 32-bit sums");

    enum : int {
        C = Input::Channels,
        O = Output::Channels,
        H = Input::Height,
        W = Input::Width,
        OH = Output::Height,
        OW = Output::Width,
        Edge = WinogradTileOf<Cfg>::Edge,      // lines and columns of a tile
        Places = WinogradTileOf<Cfg>::Places,  // positions of a tile
        Words = (C + 1) / 2,
        Lanes = Microkernel::Lanes,
        Depth = (C + Lanes - 1) / Lanes * Lanes,
        Rest = C - (Depth - Lanes),  // channels of the last vector
        TileBytes = Places * 2 * Depth,
        SumBytes = 64 * Places,  // products of a tile with a panel
        Columns = (OW + Edge - 1) / Edge,
        Tiles = Columns * ((OH + Edge - 1) / Edge),
        Panels = (O + 15) / 16,
        LastOutputs = O - 16 * (Panels - 1),
        Streamed = Cfg::Streamed,
        Ordered = Cfg::Serial && !Cfg::Streamed,
        PadBytes = (C + 63) / 64 * 64,
        Given = ScratchOf<Cfg>::Bytes <= 0 ? 0 : largest(1, ScratchOf<Cfg>::Bytes - PadBytes),  // 0: no limit
        Carried = Edge == 2 && Ordered && Given > 0 && Given < 2048 + Columns* TileBytes,
        CopyBytes = Carried ? ((W - 1) * static_cast<int>(Input::Stride) + C + 63) / 64 * 64 : 0,
        GroupRoom =
            Ordered && !Carried ? (Given - Columns * TileBytes) / SumBytes : (Given - CopyBytes) / (SumBytes + TileBytes),
        Group = Given == 0 ? int(Microkernel::GroupTiles) : least(int(Microkernel::GroupTiles), largest(1, int(GroupRoom))),
        Most = Streamed ? int(Columns) : int(Tiles),  // tiles that are made together
        Unit = Ordered && !Carried ? int(Columns) : int(Group),
        // Inputs that stay in a cache beside the weights of a panel, or beside those of all where they are few.
        Wanted = Streamed ? 65536 : largest(int(Microkernel::BlockInputs), least(262144, C * 512)),
        // Parts of the channels; the products of all tiles of a block are kept where there are some.
        Pieces = Microkernel::template Parts<Cfg>::value,
        PerTile = TileBytes + (Pieces > 1 ? int(SumBytes) : 0),
        GroupBytes = Pieces > 1 ? 0 : Group* SumBytes,
        Budget = Given == 0 ? int(Wanted) : largest(1, least(int(Wanted), Given - GroupBytes)),
        AtMost = largest(1, Budget / (PerTile * Unit)),  // units of a block
        Units = (Most + Unit - 1) / Unit,
        Blocks = (Units + AtMost - 1) / AtMost,
        PerBlock = (Units + Blocks - 1) / Blocks * Unit,  // tiles of a block
        BlockTiles = Carried ? least(int(Group), int(Columns)) : least(int(PerBlock), int(Most)),
        BlockBytes = BlockTiles * TileBytes,
        Together = Pieces > 1 ? int(BlockTiles) : int(Group),  // tiles whose products lie side by side
        ProductBytes = SumBytes * Together,
        ScratchBytes = PadBytes + CopyBytes + ProductBytes + BlockBytes,
        Risk = Cfg::Reverse ? 3 : 0  // of the four lines of inputs of a pair the one that the pair may cover
    };
    // Scratch: of all threads the pixel, then of each products, then inputs, in a serial layer those of the first thread for all.
    typedef Scratch<Cfg, int(ScratchBytes)> Buffer;
    enum : long {
        TileWork = long(Places) * C * (O + 8),
        InputEnd = long(Input::Offset) +
                   long(least(int(Input::Lines), int(H))) * LinePitch<Input>::value * static_cast<long>(sizeof(In)),
        OutputEnd = long(Output::Offset) +
                    long(least(int(Output::Lines), int(OH))) * LinePitch<Output>::value * static_cast<long>(sizeof(Out))
    };
    // True if the output may lie over the input: a plane that wraps and is no ring has a second part elsewhere.
    enum : bool {
        Parts = (int(Input::Lines) < H && long(Input::WrapOffset) != long(Input::Offset)) ||
                (int(Output::Lines) < OH && long(Output::WrapOffset) != long(Output::Offset)),
        Over = Parts || (long(Input::Offset) < long(OutputEnd) && long(Output::Offset) < long(InputEnd))
    };

    // ---- inputs -----------------------------------------------------------------------------
    // Those of tiles [begin, end), counted from output line `top` on; `copy`: what has the place of line Risk, or null.
    template <int TileLines>
    static N2D2_NOINLINE void transform(const unsigned char* in, const In* pad, int top, int begin, int end, std::uint8_t* to,
                                        const In* copy = nullptr) {
        int x = begin % Columns, y = top + begin / Columns * Edge;
        for (; begin < end; x = 0, y += Edge) {
            WinogradLines<In> lines;
            lines.pad = pad;
            for (int u = 0; u < TileLines + 2; ++u) {
                const int from = y - Cfg::PadTop + u;
                const bool inside = from >= 0 && from < H;
                lines.at[u] = !inside ? pad : copy && u == Risk ? copy : n2d2::line<Input>(in, from);
                lines.step[u] = inside ? Input::Stride : 0;
            }
            const int count = least(Columns - x, end - begin), left = Edge * x - Cfg::PadLeft;
            int channel = 0;
            for (; channel + Lanes < C || (N2D2_SMALL_CODE && channel + Lanes == C); channel += Lanes)
                WinogradInputs<Microkernel, In, Lanes, Depth, TileLines>::run(lines, left, W, count, channel, to);
            if (!N2D2_SMALL_CODE || int(Rest) < int(Lanes))
                WinogradInputs<Microkernel, In, Rest, Depth, TileLines>::run(lines, left, W, count, channel, to);
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

    // ---- outputs ----------------------------------------------------------------------------
    // A' m A of SumLanes outputs, a quarter of it with the bias; m: the products of position 0, the others Pitch behind.
    template <int Pitch, int Pixels, int Vectors>
    static N2D2_INLINE void outputs(const std::int32_t* m, Sums bias, Sums (&sums)[Pixels][Vectors], int v) {
        constexpr bool two = Pixels > 2;
        Sums top[4], bottom[4];
        N2D2_UNROLL
        for (int j = 0; j < 4; ++j) {
            const Sums a = Microkernel::sums(m + j * Pitch), b = Microkernel::sums(m + (4 + j) * Pitch);
            const Sums c = Microkernel::sums(m + (8 + j) * Pitch),
                       d = two ? Microkernel::sums(m + (two ? 12 + j : 0) * Pitch) : a;
            top[j] = Microkernel::plus(a, Microkernel::plus(b, c));
            bottom[j] = two ? Microkernel::minus(Microkernel::minus(b, c), d) : a;
        }
        line(top, bias, sums[0][v], sums[1][v]);
        if (two)
            line(bottom, bias, sums[Pixels - 2][v], sums[Pixels - 1][v]);
    }
    static N2D2_INLINE void line(const Sums (&m)[4], Sums bias, Sums& left, Sums& right) {
        left = Microkernel::plusQuarter(bias, Microkernel::plus(m[0], Microkernel::plus(m[1], m[2])));
        right = Microkernel::plusQuarter(bias, Microkernel::minus(Microkernel::minus(m[1], m[2]), m[3]));
    }

    // The outputs [output, output + Outputs) of `count` tiles from `first` on, counted from line `top` on. A pixel outside is stored as
    // its neighbour.
    template <int Outputs, int TileLines>
    static N2D2_NOINLINE void finish(const std::int32_t* products, int top, int first, int count, int output,
                                     unsigned char* out, const std::int32_t* bias) {
        constexpr int pixels = 2 * TileLines, last = pixels - 2;
        typedef TileEnd<Epilogue, pixels, Outputs> End;
        typedef typename Microkernel::template Finish<typename End::Own, Outputs, pixels> Finish;
        constexpr int vectors = Finish::Vectors, lanes = Microkernel::SumLanes;
        constexpr bool evenWidth = OW % 2 == 0, evenHeight = OH % 2 == 0 || TileLines == 1 || Streamed;
        int x = first % Columns * 2, y = top + first / Columns * 2;
        for (int t = 0; t < count; ++t, products += 16) {
            const bool right = evenWidth || x + 1 < OW, below = evenHeight || y + 1 < OH;
            Sums sums[pixels][vectors];
            N2D2_UNROLL
            for (int v = 0; v < vectors; ++v) {
                outputs<16 * Together>(products + v * lanes, Finish::bias(bias + output, v), sums, v);
                sums[1][v] = right ? sums[1][v] : sums[0][v];
                sums[last + 1][v] = right ? sums[last + 1][v] : sums[last][v];
                sums[last][v] = below ? sums[last][v] : sums[0][v];
                sums[last + 1][v] = below ? sums[last + 1][v] : sums[1][v];
            }
            WinogradPixels<Out> at;
            at.pixels[0] = n2d2::line<Output>(out, y) + x * Output::Stride;
            at.pixels[2] = TileLines > 1 && below ? n2d2::line<Output>(out, y + 1) + x * Output::Stride : at.pixels[0];
            at.pixels[1] = at.pixels[0] + (right ? int(Output::Stride) : 0);
            at.pixels[3] = at.pixels[2] + (right ? int(Output::Stride) : 0);
            const bool once[4] = {true, right, below, right && below};
            End::template store<Finish>(sums, output, at, once);
            x += 2;
            if (x >= OW) {
                x = 0;
                y += 2;
            }
        }
    }

    // Tiles of two lines or one, or of four.
    template <int Outputs, int TileLines, bool Four = (Edge == 4)>
    struct Finished {
        static N2D2_INLINE void run(const std::int32_t* products, int top, int first, int count, int output, unsigned char* out,
                                    const std::int32_t* bias) {
            finish<Outputs, TileLines>(products, top, first, count, output, out, bias);
        }
    };
    template <int Outputs, int TileLines>
    struct Finished<Outputs, TileLines, true> : WinogradFourOutputs<Cfg, Microkernel, Outputs, Together, Columns> {};

    // ---- blocks -----------------------------------------------------------------------------
    // The outputs of a panel of tiles [begin, end), whose transformed inputs are at x; groups of nearly equal size.
    template <int Outputs, int TileLines>
    static N2D2_INLINE void panel(const std::uint8_t* x, std::int32_t* products, int top, int begin, int end, int output,
                                  unsigned char* out, const Stored* weights, const std::int32_t* bias) {
        part<Outputs, TileLines, false>(x, products, top, begin, end, output, out, weights, bias, 0);
        for (int index = 1; index < Pieces; ++index)
            part<Outputs, TileLines, (Pieces > 1)>(x, products, top, begin, end, output, out, weights, bias, index);
    }
    // The products of a part of the channels, with Onto added to those of the others; with the last one they become outputs.
    template <int Outputs, int TileLines, bool Onto>
    static N2D2_INLINE void part(const std::uint8_t* x, std::int32_t* products, int top, int begin, int end, int output,
                                 unsigned char* out, const Stored* weights, const std::int32_t* bias, int index) {
        constexpr int words = Words / Pieces;
        const int count = end - begin, groups = (count + Group - 1) / Group;
        const typename Microkernel::template Panel<Cfg, Outputs> transformed(weights, output, index);
        for (int group = 0; group < groups; ++group) {
            const int from = N2D2_SMALL_CODE ? group * Group : count * group / groups;
            const int size = (N2D2_SMALL_CODE ? least(count, from + Group) : count * (group + 1) / groups) - from;
            std::int32_t* const to = products + (Pieces > 1 ? 16 * from : 0);
            WinogradGroup<Microkernel, Group, Together, Depth, words, Outputs,
                          TileLines == int(Edge) ? int(Places) : (Edge + 2) * (TileLines + 2),
                          Onto>::run(size, x + static_cast<long>(from) * TileBytes + 4 * words * index, transformed.first, to);
            if (index + 1 == Pieces)
                Finished<Outputs, TileLines>::run(to, top, begin + from, size, output, out, bias);
        }
    }
    template <int TileLines>
    static N2D2_INLINE void panel(const std::uint8_t* x, std::uint8_t* scratch, int top, int begin, int end, int index,
                                  unsigned char* out, const Stored* weights, const std::int32_t* bias) {
        std::int32_t* const products = elementsOf<std::int32_t>(scratch);
        if (index + 1 < Panels)
            panel<16, TileLines>(x, products, top, begin, end, 16 * index, out, weights, bias);
        else
            panel<LastOutputs, TileLines>(x, products, top, begin, end, 16 * index, out, weights, bias);
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Stored* weights, const std::int32_t* bias) {
        if (Carried)
            carried(in, out, weights, bias);
        else if (Ordered || (Microkernel::OnStack && !N2D2_SMALL_CODE))
            serial(in, out, weights, bias);
        else
            shared<Edge>(in, out, 0, weights, bias);
    }
    // Lines [rows.begin, rows.end) of a layer that runs by lines.
    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Stored* weights, const std::int32_t* bias,
                                const Rows& rows) {
        static_assert(Streamed && Edge == 2, "a layer that runs by lines, one or two");
        int y = rows.begin;
        if (!Over)
            for (; y + 2 <= rows.end; y += 2)
                shared<2>(in, out, y, weights, bias);
        for (; y < rows.end; ++y)
            shared<1>(in, out, y, weights, bias);
    }

    // All tiles from line `top` on, shared among the threads.
    template <int TileLines>
    static N2D2_INLINE void shared(const unsigned char* in, unsigned char* out, int top, const Stored* weights,
                                   const std::int32_t* bias) {
        Team<TileWork * Most / N2D2_SIMD_SPEED>::run([=](const Member& member) N2D2_INLINE_LAMBDA {
            const int begin = static_cast<int>(member.begin(Most, member.self));
            const int end = static_cast<int>(member.begin(Most, member.self + 1));
            Buffer::run(in, out, member.self, [=](std::uint8_t* scratch) N2D2_INLINE_LAMBDA {
                range<TileLines>(in, out, top, begin, end, weights, bias, scratch);
            });
        });
    }

    // Tiles [begin, end), block by block.
    template <int TileLines>
    static N2D2_NOINLINE void range(const unsigned char* in, unsigned char* out, int top, int begin, int end,
                                    const Stored* weights, const std::int32_t* bias, std::uint8_t* scratch) {
        const In* const pad = padding(scratch);
        std::uint8_t *const products = scratch + PadBytes, *const inputs = products + ProductBytes;
        for (; begin < end; begin += BlockTiles) {
            const int stop = least(end, begin + BlockTiles);
            transform<TileLines>(in, pad, top, begin, stop, inputs);
            for (int index = 0; index < Panels; ++index)
                panel<TileLines>(inputs, products, top, begin, stop, index, out, weights, bias);
        }
    }

    // Pairs of lines in order; the threads share the tiles of one.
    static N2D2_INLINE void carried(const unsigned char* in, unsigned char* out, const Stored* weights,
                                    const std::int32_t* bias) {
        Buffer::run(in, out, 0, [=](std::uint8_t* scratch) N2D2_INLINE_LAMBDA {
            const In* const pad = padding(scratch);
            std::uint8_t *const copy = scratch + PadBytes, *const own = copy + CopyBytes;
            Team<TileWork * Columns / N2D2_SIMD_SPEED>::run([=](const Member& member) N2D2_INLINE_LAMBDA {
                if (member.self == 0)
                    pairs(member, in, out, weights, bias, pad, copy, own);
                else
                    pairsOfThread(member, in, out, weights, bias, pad, copy);
            });
        });
    }
    static N2D2_NOINLINE void pairsOfThread(const Member& member, const unsigned char* in, unsigned char* out,
                                            const Stored* weights, const std::int32_t* bias, const In* pad,
                                            std::uint8_t* copy) {
        alignas(64) std::uint8_t own[ProductBytes + BlockBytes];
        pairs(member, in, out, weights, bias, pad, copy, own);
    }
    static N2D2_NOINLINE void pairs(const Member& member, const unsigned char* in, unsigned char* out, const Stored* weights,
                                    const std::int32_t* bias, const In* pad, std::uint8_t* copy, std::uint8_t* products) {
        constexpr int count = (OH + 1) / 2;
        constexpr std::size_t lineBytes = static_cast<std::size_t>((W - 1) * static_cast<int>(Input::Stride) + C);
        std::uint8_t* const inputs = products + ProductBytes;
        for (int step = 0; step < count; ++step) {
            const int pair = Cfg::Reverse ? count - 1 - step : step, risk = 2 * pair - Cfg::PadTop + Risk;
            if (member.self == 0 && risk >= 0 && risk < H)
                std::memcpy(copy, n2d2::line<Input>(in, risk), lineBytes);
            member.wait();
            int tile = pair * Columns + static_cast<int>(member.begin(Columns, member.self));
            const int end = pair * Columns + static_cast<int>(member.begin(Columns, member.self + 1));
            for (; tile < end; tile += BlockTiles) {
                const int stop = least(end, tile + BlockTiles);
                transform<Edge>(in, pad, 0, tile, stop, inputs, reinterpret_cast<const In*>(copy));
                for (int index = 0; index < Panels; ++index)
                    panel<Edge>(inputs, products, 0, tile, stop, index, out, weights, bias);
            }
            member.wait();
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
                transform<Edge>(in, pad, 0, begin + from, begin + (index + 1) * count / parts,
                                inputs + static_cast<long>(from) * TileBytes);
            });
            member.wait();
            member.share(Panels * pieces, [=](int index) N2D2_INLINE_LAMBDA {
                const int from = index % pieces * count / pieces;
                panel<Edge>(inputs + static_cast<long>(from) * TileBytes, products, 0, begin + from,
                            begin + (index % pieces + 1) * count / pieces, index / pieces, out, weights, bias);
            });
            member.wait();
        }
    }
};

// A layer in 16 bits: tiles of four by four have their scratch on the stack where the arena has too little.
template <class Cfg, class Microkernel>
struct TiledWinograd : PanelWinograd<typename WinogradScratch<Cfg, Microkernel>::Type, Microkernel> {};

}  // namespace n2d2

#endif  // N2D2_PANELS_PANEL_WINOGRAD_HPP
