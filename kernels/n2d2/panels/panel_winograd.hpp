// The Winograd convolution of winograd.hpp: inputs of a block transformed, 16 matrix products, outputs transformed.
//
// The output is one sequence of tiles of two by two pixels, line by line; the last column and the last line of tiles may
// have one pixel. The inputs of a block of tiles are transformed into a buffer on the stack, [tile][16 positions][channels],
// 16 bits each. Then, for each panel of 16 outputs and each group of some tiles, the products of all 16 positions are summed over the
// channels, [position][tile][output] in 32 bits, and become outputs while they are in the cache.
//
// Line order: all inputs of a block are transformed before the first of its outputs is stored. Where the output
// overlaps the input (Serial) a block has whole lines of tiles, and blocks come in order (with Reverse from the last): a pair of
// output lines is stored while what later lines need is intact. Threads share the work of a block then; else each has a range of the
// tiles, block by block.
// Stack: BlockBytes, and 64 bytes for each product of a group of tiles.
//
// Machine: vectors of inputs (Inputs, Lanes of them) and of sums (Sums, SumLanes of them) with what is done with them;
// GroupTiles; what winograd_products.hpp wants; Finish, the last stage of some pixels.
#ifndef N2D2_PANELS_PANEL_WINOGRAD_HPP
#define N2D2_PANELS_PANEL_WINOGRAD_HPP

#include <cstring>

#include "n2d2/output.hpp"
#include "n2d2/panels/winograd_products.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

// Four lines of an input: where each begins and how far it is from pixel to pixel, 0 for a line of the padding.
template <class In>
struct WinogradLines {
    const In* at[4];
    long step[4];
    const In* pad;  // a pixel of the padding
};

// B' d B of some channels of the tiles of a line.
template <class Machine, class In, int Count, int Depth>
struct WinogradInputs {
    typedef typename Machine::Inputs Inputs;
    enum : int { Position = 2 * Depth, Tile = 16 * Position };

    // B' d of column x.
    static N2D2_INLINE void column(const WinogradLines<In>& lines, int x, int width, int channel, Inputs* to) {
        const bool inside = x >= 0 && x < width;
        Inputs d[4];
        N2D2_UNROLL
        for (int u = 0; u < 4; ++u)
            d[u] = Machine::template load<Count>((inside ? lines.at[u] + x * lines.step[u] : lines.pad) + channel);
        to[0] = Machine::subtract(d[0], d[2]);
        to[1] = Machine::add(d[1], d[2]);
        to[2] = Machine::subtract(d[2], d[1]);
        to[3] = Machine::subtract(d[1], d[3]);
    }

    // `count` tiles, the first of which begins at column x. Two columns of a tile are those of the next.
    static N2D2_INLINE void run(const WinogradLines<In>& lines, int x, int width, int count, int channel, std::uint8_t* to) {
        Inputs a[4], b[4], c[4], d[4];
        column(lines, x, width, channel, a);
        column(lines, x + 1, width, channel, b);
        for (to += 2 * channel; count > 0; --count, to += Tile) {
            x += 2;
            column(lines, x, width, channel, c);
            N2D2_UNROLL
            for (int u = 0; u < 4; ++u) {
                Machine::store(Machine::subtract(a[u], c[u]), to + 4 * u * Position);
                Machine::store(Machine::add(b[u], c[u]), to + (4 * u + 1) * Position);
                Machine::store(Machine::subtract(c[u], b[u]), to + (4 * u + 2) * Position);
                a[u] = c[u];
            }
            column(lines, x + 1, width, channel, d);
            N2D2_UNROLL
            for (int u = 0; u < 4; ++u) {
                Machine::store(Machine::subtract(b[u], d[u]), to + (4 * u + 3) * Position);
                b[u] = d[u];
            }
        }
    }
};

template <class Cfg, class Machine>
struct PanelWinograd {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    typedef typename Cfg::Stage Stage;
    typedef typename Input::Type In;
    typedef typename Output::Type Out;
    typedef typename Machine::Sums Sums;
    static_assert(Cfg::KernelHeight == 3 && Cfg::KernelWidth == 3 && Cfg::StrideHeight == 1 && Cfg::StrideWidth == 1 &&
                      Cfg::DilationHeight == 1 && Cfg::DilationWidth == 1 && Cfg::Groups == 1 && !Cfg::Streamed,
                  "3 x 3 windows of one group, stride 1, not line by line");
    static_assert(sizeof(In) == 1 && sizeof(typename Cfg::Sum) == 4, "8-bit inputs and 32-bit sums");

    enum : int {
        C = Input::Channels,
        O = Output::Channels,
        H = Input::Height,
        W = Input::Width,
        OH = Output::Height,
        OW = Output::Width,
        Words = (C + 1) / 2,  // of two channels
        Lanes = Machine::Lanes,
        Depth = (C + Lanes - 1) / Lanes * Lanes,
        Rest = C - (Depth - Lanes),  // channels of the last vector
        TileBytes = 32 * Depth,
        Columns = (OW + 1) / 2,
        Tiles = Columns * ((OH + 1) / 2),
        Panels = (O + 15) / 16,
        LastOutputs = O - 16 * (Panels - 1),
        PanelBytes = 16 * Words * 64,  // of weights
        Group = Machine::GroupTiles,
        Ordered = Cfg::Serial,
        Unit = Ordered ? int(Columns) : int(Group),
        // Inputs that stay in a cache beside the weights of a panel, or beside those of all where they are few.
        Budget = least(262144, largest(65536, C * 512)),
        AtMost = largest(1, Budget / (TileBytes * Unit)),  // units of a block
        Units = (Tiles + Unit - 1) / Unit,
        Blocks = (Units + AtMost - 1) / AtMost,
        PerBlock = (Units + Blocks - 1) / Blocks * Unit,  // tiles of a block
        BlockTiles = least(int(PerBlock), int(Tiles)),
        BlockBytes = BlockTiles * TileBytes
    };
    enum : long { TileWork = 16L * C * (O + 8) };

    // ---- inputs -----------------------------------------------------------------------------
    static N2D2_NOINLINE void transform(const unsigned char* in, int begin, int end, std::uint8_t* to) {
        In pad[C];
        for (int i = 0; i < C; ++i)
            pad[i] = static_cast<In>(Cfg::InputZero);
        int x = begin % Columns, y = begin / Columns;
        for (; begin < end; x = 0, ++y) {
            WinogradLines<In> lines;
            lines.pad = pad;
            for (int u = 0; u < 4; ++u) {
                const int from = 2 * y - Cfg::PadTop + u;
                const bool inside = from >= 0 && from < H;
                lines.at[u] = inside ? line<Input>(in, from) : pad;
                lines.step[u] = inside ? Input::Stride : 0;
            }
            const int count = least(Columns - x, end - begin), left = 2 * x - Cfg::PadLeft;
            int channel = 0;
            for (; channel + Lanes < C; channel += Lanes)
                WinogradInputs<Machine, In, Lanes, Depth>::run(lines, left, W, count, channel, to);
            WinogradInputs<Machine, In, Rest, Depth>::run(lines, left, W, count, channel, to);
            to += static_cast<long>(count) * TileBytes;
            begin += count;
        }
    }

    // ---- outputs ----------------------------------------------------------------------------
    struct At {
        Out* pixels[4];
        N2D2_INLINE Out* operator()(int p) const { return pixels[p]; }
    };

    // A' m A of SumLanes outputs, a quarter of it with the bias; m: the products of position 0, the others Pitch behind.
    template <int Pitch, int Vectors>
    static N2D2_INLINE void outputs(const std::int32_t* m, Sums bias, Sums (&sums)[4][Vectors], int v) {
        Sums top[4], bottom[4];
        N2D2_UNROLL
        for (int j = 0; j < 4; ++j) {
            const Sums a = Machine::sums(m + j * Pitch), b = Machine::sums(m + (4 + j) * Pitch);
            const Sums c = Machine::sums(m + (8 + j) * Pitch), d = Machine::sums(m + (12 + j) * Pitch);
            top[j] = Machine::plus(a, Machine::plus(b, c));
            bottom[j] = Machine::minus(Machine::minus(b, c), d);
        }
        sums[0][v] = Machine::plusQuarter(bias, Machine::plus(top[0], Machine::plus(top[1], top[2])));
        sums[1][v] = Machine::plusQuarter(bias, Machine::minus(Machine::minus(top[1], top[2]), top[3]));
        sums[2][v] = Machine::plusQuarter(bias, Machine::plus(bottom[0], Machine::plus(bottom[1], bottom[2])));
        sums[3][v] = Machine::plusQuarter(bias, Machine::minus(Machine::minus(bottom[1], bottom[2]), bottom[3]));
    }

    // The outputs [output, output + Outputs) of `count` tiles from `first` on. A pixel outside is stored as its neighbour.
    template <int Outputs>
    static N2D2_NOINLINE void finish(const std::int32_t* products, int first, int count, int output, unsigned char* out,
                                     const std::int32_t* bias) {
        typedef typename Machine::template Finish<Stage, Outputs, 4> Finish;
        constexpr int vectors = Finish::Vectors, lanes = Machine::SumLanes;
        constexpr bool evenWidth = OW % 2 == 0, evenHeight = OH % 2 == 0;
        int x = first % Columns * 2, y = first / Columns * 2;
        for (int t = 0; t < count; ++t, products += 16) {
            const bool right = evenWidth || x + 1 < OW, below = evenHeight || y + 1 < OH;
            Sums sums[4][vectors];
            N2D2_UNROLL
            for (int v = 0; v < vectors; ++v) {
                outputs<16 * Group>(products + v * lanes, Finish::bias(bias + output, v), sums, v);
                sums[1][v] = right ? sums[1][v] : sums[0][v];
                sums[3][v] = right ? sums[3][v] : sums[2][v];
                sums[2][v] = below ? sums[2][v] : sums[0][v];
                sums[3][v] = below ? sums[3][v] : sums[1][v];
            }
            At at;
            at.pixels[0] = line<Output>(out, y) + x * Output::Stride;
            at.pixels[2] = below ? line<Output>(out, y + 1) + x * Output::Stride : at.pixels[0];
            at.pixels[1] = at.pixels[0] + (right ? int(Output::Stride) : 0);
            at.pixels[3] = at.pixels[2] + (right ? int(Output::Stride) : 0);
            Finish::store(sums, output, at);
            x += 2;
            if (x >= OW) {
                x = 0;
                y += 2;
            }
        }
    }

    // ---- blocks -----------------------------------------------------------------------------
    // The outputs of a panel of tiles [begin, end), whose transformed inputs are at x; groups of nearly equal size.
    template <int Outputs>
    static N2D2_INLINE void panel(const std::uint8_t* x, int begin, int end, int output, unsigned char* out,
                                  const std::int8_t* weights, const std::int32_t* bias) {
        alignas(64) std::int32_t products[16 * Group * 16];
        const int count = end - begin, groups = (count + Group - 1) / Group;
        for (int group = 0; group < groups; ++group) {
            const int from = count * group / groups, size = count * (group + 1) / groups - from;
            WinogradGroup<Machine, Group, Group, Depth, Words, Outputs, 16>::run(size, x + static_cast<long>(from) * TileBytes, weights, products);
            finish<Outputs>(products, begin + from, size, output, out, bias);
        }
    }
    static N2D2_INLINE void panel(const std::uint8_t* x, int begin, int end, int index, unsigned char* out,
                                  const std::int8_t* weights, const std::int32_t* bias) {
        const std::int8_t* const w = weights + static_cast<long>(index) * PanelBytes;
        if (index + 1 < Panels)
            panel<16>(x, begin, end, 16 * index, out, w, bias);
        else
            panel<LastOutputs>(x, begin, end, 16 * index, out, w, bias);
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const std::int8_t* weights,
                                const std::int32_t* bias) {
        if (Ordered)
            serial(in, out, weights, bias);
        else
            Team<(TileWork * Tiles / N2D2_SIMD_SPEED >= N2D2_PARALLEL_WORK)>::run([=](const Member& member) N2D2_INLINE_LAMBDA {
                range(in, out, static_cast<int>(member.begin(Tiles, member.self)),
                      static_cast<int>(member.begin(Tiles, member.self + 1)), weights, bias);
            });
    }

    // Tiles [begin, end), block by block.
    static N2D2_NOINLINE void range(const unsigned char* in, unsigned char* out, int begin, int end, const std::int8_t* weights,
                                    const std::int32_t* bias) {
        alignas(64) std::uint8_t buffer[BlockBytes];
        for (; begin < end; begin += BlockTiles) {
            const int stop = least(end, begin + BlockTiles);
            transform(in, begin, stop, buffer);
            for (int index = 0; index < Panels; ++index)
                panel(buffer, begin, stop, index, out, weights, bias);
        }
    }

    // Blocks in line order: the threads transform parts of one, then make panels of parts.
    static N2D2_INLINE void serial(const unsigned char* in, unsigned char* out, const std::int8_t* weights,
                                   const std::int32_t* bias) {
        constexpr int parts = largest(1, least(8, BlockTiles / (2 * Group)));
        constexpr int splits = Panels >= 8 ? 1 : least(int(parts), 8 / Panels);
        alignas(64) std::uint8_t buffer[BlockBytes];
        std::uint8_t* const inputs = buffer;
        Team<(TileWork * BlockTiles / N2D2_SIMD_SPEED >= N2D2_PARALLEL_WORK / 4)>::run([=](const Member& member) N2D2_INLINE_LAMBDA {
            const int pieces = member.alone() ? 1 : splits;
            for (int step = 0; step < Blocks; ++step) {
                const int begin = (Cfg::Reverse ? Blocks - 1 - step : step) * PerBlock;
                const int count = least(int(Tiles), begin + PerBlock) - begin;
                member.share(parts, [=](int index) N2D2_INLINE_LAMBDA {
                    const int from = index * count / parts;
                    transform(in, begin + from, begin + (index + 1) * count / parts, inputs + static_cast<long>(from) * TileBytes);
                });
                member.wait();
                member.share(Panels * pieces, [=](int index) N2D2_INLINE_LAMBDA {
                    const int from = index % pieces * count / pieces;
                    panel(inputs + static_cast<long>(from) * TileBytes, begin + from,
                          begin + (index % pieces + 1) * count / pieces, index / pieces, out, weights, bias);
                });
                member.wait();
            }
        });
    }
};

}  // namespace n2d2

#endif  // N2D2_PANELS_PANEL_WINOGRAD_HPP
