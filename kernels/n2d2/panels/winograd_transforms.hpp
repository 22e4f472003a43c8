// The transforms of inputs and outputs of a Winograd convolution (winograd.hpp), and its scratch on the stack.
#pragma once

#include "n2d2/output.hpp"
#include "n2d2/panels/winograd_products.hpp"
#include "n2d2/plane.hpp"
#include "n2d2/residual.hpp"
#include "n2d2/scratch.hpp"

namespace n2d2 {

// The six lines of inputs of some tiles: where each begins and how far it is from pixel to pixel, 0 for a line of the padding.
template <class In>
struct WinogradLines {
    const In* at[6];
    long step[6];
    const In* pad;  // a pixel of the padding
};

// B' d B of Count channels of the tiles of a line, from left to right. Two columns of a tile are those of the next. Depth: channels of a
// position, filled up to whole vectors.
template <class Microkernel, class In, int Count, int Depth>
struct WinogradInputs {
    typedef typename Microkernel::Vec Vec;
    typedef typename Microkernel::Inputs Inputs;

    // B' d of a line or a column.
    static N2D2_INLINE void transform(const Inputs (&d)[6], Inputs (&to)[6]) {
        const Inputs odd = Vec::minus16(d[3], Vec::template left16<2>(d[1]));
        const Inputs even = Vec::minus16(d[4], Vec::template left16<2>(d[2]));
        const Inputs third = Vec::minus16(d[3], d[1]), fourth = Vec::minus16(d[4], d[2]);
        const Inputs twice = Vec::plus16(third, third);
        to[0] = Vec::plus16(Vec::template left16<2>(Vec::minus16(d[0], d[2])), fourth);
        to[1] = Vec::plus16(even, odd);
        to[2] = Vec::minus16(even, odd);
        to[3] = Vec::plus16(fourth, twice);
        to[4] = Vec::minus16(fourth, twice);
        to[5] = Vec::plus16(Vec::minus16(Vec::template left16<2>(Vec::minus16(d[1], d[3])), d[3]), d[5]);
    }
    // B' d of column x.
    static N2D2_INLINE void column(const WinogradLines<In>& lines, int x, int width, int channel, Inputs (&to)[6]) {
        const bool inside = x >= 0 && x < width;
        Inputs d[6];
        N2D2_UNROLL_FOR(u, 6)
            d[u] = Vec::template widened<In, Count>((inside ? lines.at[u] + x * lines.step[u] : lines.pad) + channel);
        transform(d, to);
    }
    static N2D2_INLINE void store(const Inputs (&columns)[6][6], std::uint8_t* to, int depth) {
        const int position = 2 * sizeOr<Depth>(depth);
        for (int u = 0; u < 6; ++u) {
            const Inputs line[6] = {columns[0][u], columns[1][u], columns[2][u], columns[3][u], columns[4][u], columns[5][u]};
            Inputs made[6];
            transform(line, made);
            N2D2_UNROLL_FOR(v, 6)
                Vec::storeAligned(made[v], to + (6 * u + v) * position);
        }
    }

    // `count` tiles, the first of which begins at column x.
    static N2D2_SHARED void run(const WinogradLines<In>& lines, int x, int width, int count, int channel, std::uint8_t* to,
                                int depth) {
        const int tile = WinogradPositions * 2 * sizeOr<Depth>(depth);
        Inputs columns[6][6];
        column(lines, x, width, channel, columns[4]);
        column(lines, x + 1, width, channel, columns[5]);
        for (to += 2 * channel; count > 0; --count, x += 4, to += tile) {
            for (int u = 0; u < 6; ++u) {
                columns[0][u] = columns[4][u];
                columns[1][u] = columns[5][u];
            }
            for (int v = 2; v < 6; ++v)
                column(lines, x + v, width, channel, columns[v]);
            store(columns, to, depth);
        }
    }
};

// From the products of a tile, [36 positions][Group tiles][16 outputs], to its outputs: first along the columns, then line K.
template <class Microkernel, int Group>
struct WinogradHalves {
    typedef typename Microkernel::Vec Vec;
    typedef typename Microkernel::Sums Sums;
    enum : int { Shared = sharedSize(Group) };
    enum : std::int32_t { InverseOfNine = 954437177 };

    // T A' m.
    static N2D2_INLINE void transform(const Sums (&m)[6], Sums (&to)[4]) {
        const Sums p = Vec::plus(m[1], m[2]), q = Vec::minus(m[1], m[2]);
        const Sums r = Vec::plus(m[3], m[4]), s = Vec::minus(m[3], m[4]);
        to[0] = Vec::plus(Vec::minus(m[0], Vec::template left<2>(p)), r);
        to[1] = Vec::minus(s, Vec::plus(q, q));
        to[2] = Vec::minus(r, p);
        to[3] = Vec::plus(Vec::minus(Vec::plus(s, s), q), m[5]);
    }

    static N2D2_INLINE void lines(const std::int32_t* products, Sums (&to)[4][6], int group) {
        for (int j = 0; j < 6; ++j) {
            Sums m[6], half[4];
            N2D2_UNROLL_FOR(i, 6)
                m[i] = Vec::loadAligned(products + (6 * i + j) * 16 * sizeOr<Group>(group));
            transform(m, half);
            N2D2_UNROLL_FOR(k, 4)
                to[k][j] = half[k];
        }
    }
    template <int K>
    static N2D2_INLINE void pixels(const Sums (&m)[6], Sums bias, Sums (&to)[4]) {
        constexpr int bits = K == 0 ? 3 : K == 1 ? 2 : 1;
        const Sums inverse = Vec::spread(InverseOfNine);
        Sums made[4];
        transform(m, made);
        to[0] = Microkernel::template plusQuotient<bits + 3>(bias, made[0], inverse);
        to[1] = Microkernel::template plusQuotient<bits + 2>(bias, made[1], inverse);
        to[2] = Microkernel::template plusQuotient<bits + 1>(bias, made[2], inverse);
        to[3] = Microkernel::template plusQuotient<bits + 1>(bias, made[3], inverse);
    }
};

// All sums of a tile, in memory, where layers share that.
template <class Microkernel, int Vectors, int Group>
struct WinogradTileSums {
    typedef typename Microkernel::Sums Sums;
    typedef WinogradHalves<Microkernel, Group> Halves;

    static N2D2_NOINLINE void run(const std::int32_t* products, const Sums (&bias)[Vectors], Sums (&sums)[4][4][Vectors],
                                  int group) {
        for (int v = 0; v < Vectors; ++v) {
            Sums halves[4][6];
            Halves::lines(products + v * Microkernel::SumLanes, halves, group);
            line<0>(halves, bias[v], sums, v);
            line<1>(halves, bias[v], sums, v);
            line<2>(halves, bias[v], sums, v);
            line<3>(halves, bias[v], sums, v);
        }
    }
    template <int K>
    static N2D2_INLINE void line(const Sums (&halves)[4][6], Sums bias, Sums (&sums)[4][4][Vectors], int v) {
        Sums made[4];
        Halves::template pixels<K>(halves[K], bias, made);
        N2D2_UNROLL_FOR(p, 4)
            sums[K][p][v] = made[p];
    }
};

// The outputs of a panel of tiles; Columns: tiles of a line.
template <class Cfg, class Microkernel, int Outputs, int Group, int Columns>
struct WinogradOutputs {
    typedef typename Cfg::Output Output;
    typedef typename Output::Type Out;
    typedef typename Microkernel::Sums Sums;
    typedef TileEnd<typename Cfg::Epilogue, 4, Outputs> End;
    typedef typename Microkernel::template Finish<typename End::Own, Outputs, 4> Finish;
    enum : int { OH = Output::Height, OW = Output::Width, Vectors = Finish::Vectors, Lanes = Microkernel::SumLanes };
    typedef WinogradHalves<Microkernel, Group> Halves;

    // Line K of a tile, of its lines' half transforms.
    template <int K>
    static N2D2_INLINE void line(const Sums (&halves)[Vectors][4][6], const Sums (&bias)[Vectors], unsigned char* out, int x,
                                 int y, int output) {
        Sums sums[4][Vectors];
        N2D2_UNROLL_FOR(v, Vectors) {
            Sums made[4];
            Halves::template pixels<K>(halves[v][K], bias[v], made);
            N2D2_UNROLL_FOR(p, 4)
                sums[p][v] = made[p];
        }
        store(sums, out, x, y + K, output);
    }
    static N2D2_INLINE void store(Sums (&sums)[4][Vectors], unsigned char* out, int x, int y, int output) {
        WinogradPixels<Out> at;
        at.pixels[0] = n2d2::line<Output>(out, y) + x * static_cast<long>(Output::Stride);
        const bool once[4] = {true, OW % 4 == 0 || x + 1 < OW, OW % 4 == 0 || x + 2 < OW, OW % 4 == 0 || x + 3 < OW};
        N2D2_UNROLL_FOR(v, Vectors) {
            N2D2_UNROLL
            for (int p = 1; p < 4; ++p)
                sums[p][v] = once[p] ? sums[p][v] : sums[0][v];
        }
        N2D2_UNROLL
        for (int p = 1; p < 4; ++p)
            at.pixels[p] = once[p] ? at.pixels[0] + p * static_cast<long>(Output::Stride) : at.pixels[0];
        End::template store<Finish>(sums, output, at, once);
    }

    // The outputs [output, output + Outputs) of `count` tiles from `first` on. A pixel outside is stored as the first one of its line.
    static N2D2_NOINLINE void run(const std::int32_t* products, int first, int count, int output, unsigned char* out,
                                  const std::int32_t* biases) {
        Sums bias[Vectors];
        for (int v = 0; v < Vectors; ++v)
            bias[v] = Finish::bias(biases + output, v);
        int x = first % Columns * 4, y = first / Columns * 4;
        for (int t = 0; t < count; ++t, products += 16) {
#if N2D2_SMALL_CODE
            Sums sums[4][4][Vectors];
            WinogradTileSums<Microkernel, Vectors, Halves::Shared>::run(products, bias, sums, Group);
            for (int k = 0; k < 4 && (OH % 4 == 0 || y + k < OH); ++k)
                store(sums[k], out, x, y + k, output);
#else
            Sums halves[Vectors][4][6];
            for (int v = 0; v < Vectors; ++v)
                Halves::lines(products + v * Lanes, halves[v], Group);
            line<0>(halves, bias, out, x, y, output);
            if (OH % 4 == 0 || y + 1 < OH)
                line<1>(halves, bias, out, x, y, output);
            if (OH % 4 == 0 || y + 2 < OH)
                line<2>(halves, bias, out, x, y, output);
            if (OH % 4 == 0 || y + 3 < OH)
                line<3>(halves, bias, out, x, y, output);
#endif
            x += 4;
            if (x >= OW) {
                x = 0;
                y += 4;
            }
        }
    }
};

// The config of a layer with scratch on the stack: a pixel, the products of a group, a line of tiles where lines have
// an order, else a group or 64 KB of tiles; LeastTiles of a layer that has so many, as far as they take no more than 128 KB.
template <class Cfg, class Microkernel>
struct WinogradStack : Cfg {
    enum : int {
        C = Cfg::Input::Channels,
        Group = Microkernel::GroupTiles,
        TileBytes = 72 * ((C + Microkernel::Lanes - 1) / Microkernel::Lanes * Microkernel::Lanes),
        Kept = Microkernel::template Parts<Cfg>::value > 1 ? 2304 : 0,
        Columns = (int(Cfg::Output::Width) + 3) / 4,
        Unit = Cfg::Serial ? int(Columns) : int(Group),
        Wanted = least(int(Microkernel::LeastTiles), Columns*((int(Cfg::Output::Height) + 3) / 4)),
        Units = largest(1, least((Wanted + Unit - 1) / Unit, 131072 / (Unit * (TileBytes + Kept)))),
        Tiles = largest(Units * Unit * (TileBytes + Kept), Cfg::Serial ? 0 : 65536),
        ScratchBytes = (C + 63) / 64 * 64 + 2304 * Group + Tiles,
        ScratchBase = 0
    };
    enum : long { ScratchAt = 0 };
};
template <class Cfg, class Microkernel>
struct WinogradScratch {
    typedef WinogradStack<Cfg, Microkernel> Own;
    enum : bool { Little = int(ScratchOf<Cfg>::Base) != 0 && int(ScratchOf<Cfg>::Bytes) < int(Own::ScratchBytes) };
    typedef typename Choice<bool(Little), Own, Cfg>::Type Type;
};

}  // namespace n2d2
