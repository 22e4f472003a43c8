// A Winograd convolution in bytes in tiles of four by four outputs, of inputs of 4 bits with packed weights of 4 bits.
//
// Four outputs of a line are made of six inputs d and three weights g by the points 0, 1, -1, i, -i and infinity, for which all is bytes:
//
//   d0 - d4, d1 + d2 + d3 + d4, d2 + d4 - d1 - d3, d5 - d1, P + i Q = d4 - d2 + i (d3 - d1)
//   g0,      g0 + g1 + g2,      g0 - g1 + g2,      g2,      R + i S = g0 - g2 + i g1
//   4 y0 = 4 m0 + m1 + m2 + 2 Re, 4 y1 = m1 - m2 - 2 Im, 4 y2 = m1 + m2 - 2 Re, 4 y3 = m1 - m2 + 2 Im + 4 m3
//
// (L. Meng and J. Brothers, "Efficient Winograd Convolution via Integer Arithmetic", 2019). A complex product takes three: R (P + Q),
// P (S - R) and Q (R + S), of which Re is the first less the third, Im the first and the second. In both directions these are 46 products in
// place of 144: 16 of real points, a triple for each of four real points with a complex one, in either order, and two triples of complex
// points, (i, i) and (i, -i). Inputs from 0 to 15 become at most +-120, or 0 to 240; the weights are bytes, as the exporter has proved.
// Inputs are moved so that none is negative, and the first sums of a position make up for that. Positions whose inputs reach 240, the first
// ten, keep sums of 16 bits over fewer words: WinogradWide in place of WinogradSums.
// The weights are transformed once (panels/winograd_kept_panels.hpp).
#ifndef N2D2_X86_BYTE_FOURS_HPP
#define N2D2_X86_BYTE_FOURS_HPP

#include "n2d2/panels/panel_convolution.hpp"
#include "n2d2/panels/panel_winograd.hpp"
#include "n2d2/panels/winograd_stack_panel.hpp"
#include "n2d2/x86/byte_tile.hpp"
#include "n2d2/x86/byte_winograd.hpp"

namespace n2d2 {

// The results of the transforms, in their order: real and complex points of a line for each of four real ones of the lines, then the triples of complex
// ones: the position where it is stored, and by how much its inputs are moved.
struct ByteFourPlace {
    enum : int { Count = 46, Wide = 10 };
    unsigned char at, moved;
};
static const ByteFourPlace byteFourPlaces[ByteFourPlace::Count] = {
    {10, 30}, {11, 60}, {12, 60}, {13, 30}, {14, 60}, {15, 30}, {16, 30}, {17, 60}, {0, 0},   {1, 120}, {18, 60}, {2, 120},
    {19, 60}, {20, 60}, {21, 60}, {3, 120}, {4, 120}, {22, 60}, {5, 120}, {23, 60}, {24, 60}, {25, 30}, {26, 60}, {27, 60},
    {28, 30}, {29, 60}, {30, 30}, {31, 30}, {32, 60}, {33, 30}, {34, 30}, {6, 120}, {35, 60}, {36, 60}, {7, 120}, {37, 60},
    {38, 60}, {39, 60}, {40, 30}, {41, 30}, {8, 120}, {42, 60}, {43, 60}, {9, 120}, {44, 60}, {45, 60}};

// Of its config: words of a sum of 16 bits of the first positions; 0 without this form.
template <class Cfg, class Found = void>
struct WinogradWideOf {
    enum : int { Words = 0 };
};
template <class Cfg>
struct WinogradWideOf<Cfg, typename Exists<Cfg::WinogradWide>::Type> {
    enum : int { Words = Cfg::WinogradWide };
};

// The transformed weights of a panel [46 positions][words][outputs][4 channels], and [46 positions][outputs] of first sums; made once.
template <class Cfg, int Outputs>
struct ByteFourPanel {
    typedef PackedWeights<Cfg> Packing;
    enum : int { C = Cfg::Input::Channels, Quads = C / 4, Bytes = 4 * Outputs, Position = Quads * Bytes };
    static_assert(C % 4 == 0, "whole words of channels");

    alignas(64) std::int8_t first[46 * Position + 46 * Bytes];

    // The points of three weights: four real ones, the parts of a complex one.
    static void points(const int (&g)[3], int (&to)[6]) {
        to[0] = g[0];
        to[1] = g[0] + g[1] + g[2];
        to[2] = g[0] - g[1] + g[2];
        to[3] = g[2];
        to[4] = g[0] - g[2];
        to[5] = g[1];
    }
    static void triple(int real, int imaginary, int* to) {
        to[0] = real;
        to[1] = imaginary - real;
        to[2] = real + imaginary;
    }
    static void transform(const int (&g)[3][3], int (&to)[46]) {
        int columns[3][6], lines[6][6];
        for (int v = 0; v < 3; ++v) {
            const int column[3] = {g[0][v], g[1][v], g[2][v]};
            points(column, columns[v]);
        }
        for (int u = 0; u < 6; ++u) {
            const int line[3] = {columns[0][u], columns[1][u], columns[2][u]};
            points(line, lines[u]);
        }
        for (int u = 0; u < 4; ++u) {
            for (int v = 0; v < 4; ++v)
                to[7 * u + v] = lines[u][v];
            triple(lines[u][4], lines[u][5], to + 7 * u + 4);
            triple(lines[4][u], lines[5][u], to + 28 + 3 * u);
        }
        triple(lines[4][4] - lines[5][5], lines[4][5] + lines[5][4], to + 40);
        triple(lines[4][4] + lines[5][5], lines[5][4] - lines[4][5], to + 43);
    }

    ByteFourPanel(const std::uint8_t* weights, int output, int) {
        weights += static_cast<long>(output) * 9 * C / Packing::PerByte;
        std::int32_t sums[46][Outputs] = {};
        for (int q = 0; q < Quads; ++q) {
            alignas(64) std::int8_t raw[9 * Bytes];
            for (int tap = 0; tap < 9; ++tap)
                Packing::unpack(weights + (tap * Quads + q) * Bytes / Packing::PerByte, 0, Bytes, raw + tap * Bytes);
            for (int i = 0; i < Bytes; ++i) {
                int g[3][3], made[46];
                for (int tap = 0; tap < 9; ++tap)
                    g[tap / 3][tap % 3] = raw[tap * Bytes + i];
                transform(g, made);
                for (int k = 0; k < 46; ++k) {
                    first[byteFourPlaces[k].at * Position + q * Bytes + i] = static_cast<std::int8_t>(made[k]);
                    sums[byteFourPlaces[k].at][i / 4] -= byteFourPlaces[k].moved * made[k];
                }
            }
        }
        std::memcpy(first + 46 * Position, sums, sizeof(sums));
    }
};

struct ByteFourPanels {
    template <class Cfg, int Outputs, int>
    using Panel = ByteFourPanel<Cfg, Outputs>;
};

// The products are those of ByteWinograd, of which this is a form.
template <class Microkernel, int Tiles, int Run, int WideRun>
struct ByteFours : ByteWinograd<Microkernel, Tiles, Run> {
    typedef typename Microkernel::Vec Vec;
    typedef typename Vec::Ints Inputs;
    template <class>
    struct PlacesOf {
        enum : int { value = ByteFourPlace::Count };
    };
    template <class Cfg, int Outputs>
    using Panel = WinogradKeptPanel<Cfg, ByteFourPanels, Outputs, 1>;

    static N2D2_INLINE void store(Inputs x, int moved, std::uint8_t* to) {
        Vec::storeAligned(Vec::plus8(x, Vec::spread16(static_cast<std::int16_t>(moved * 257))), to);
    }
};

template <class Microkernel, int Tiles, int Run, int WideRun, int Count, int Group, int Depth, int Words, int Outputs>
struct WinogradProducts<ByteFours<Microkernel, Tiles, Run, WideRun>, Count, Group, Depth, Words, Outputs, ByteFourPlace::Count>
    : ByteWinogradProducts<Microkernel, Count, Group, Depth, Words, Outputs, ByteFourPlace::Count> {
    typedef ByteWinogradProducts<Microkernel, Count, Group, Depth, Words, Outputs, ByteFourPlace::Count> Base;
    static N2D2_NOINLINE void run(const std::uint8_t* x, const std::int8_t* w, std::int32_t* products) {
        const std::int32_t* const first = Base::sums(w);
        Base::template positions<0, ByteFourPlace::Wide, WideRun>(x, w, first, products);
        Base::template positions<ByteFourPlace::Wide, ByteFourPlace::Count, Run>(x, w, first, products);
    }
};

template <class Microkernel, int Tiles, int Run, int WideRun, int Depth>
struct WinogradFourPoints<ByteFours<Microkernel, Tiles, Run, WideRun>, Depth> {
    typedef ByteFours<Microkernel, Tiles, Run, WideRun> Kernel;
    typedef typename Kernel::Inputs Inputs;
    enum : int { Places = ByteFourPlace::Count, Shared = Depth };

    static N2D2_INLINE void transform(const Inputs (&d)[6], Inputs (&to)[6]) {
        const Inputs odd = Kernel::add(d[1], d[3]), even = Kernel::add(d[2], d[4]);
        to[0] = Kernel::subtract(d[0], d[4]);
        to[1] = Kernel::add(even, odd);
        to[2] = Kernel::subtract(even, odd);
        to[3] = Kernel::subtract(d[5], d[1]);
        to[4] = Kernel::subtract(d[4], d[2]);
        to[5] = Kernel::subtract(d[3], d[1]);
    }
    template <int K>
    static N2D2_INLINE void store(Inputs x, std::uint8_t* to) {
        Kernel::store(x, byteFourPlaces[K].moved, to + byteFourPlaces[K].at * Depth);
    }
    template <int K>
    static N2D2_INLINE void triple(Inputs real, Inputs imaginary, std::uint8_t* to) {
        store<K>(Kernel::add(real, imaginary), to);
        store<K + 1>(real, to);
        store<K + 2>(imaginary, to);
    }

    static N2D2_INLINE void line(const Inputs (&columns)[6][6], int u, Inputs (&to)[6]) {
        const Inputs d[6] = {columns[0][u], columns[1][u], columns[2][u], columns[3][u], columns[4][u], columns[5][u]};
        transform(d, to);
    }
    template <int U>
    static N2D2_INLINE void real(const Inputs (&columns)[6][6], std::uint8_t* to) {
        Inputs made[6];
        line(columns, U, made);
        store<7 * U>(made[0], to);
        store<7 * U + 1>(made[1], to);
        store<7 * U + 2>(made[2], to);
        store<7 * U + 3>(made[3], to);
        triple<7 * U + 4>(made[4], made[5], to);
    }

    static N2D2_INLINE void store(const Inputs (&columns)[6][6], std::uint8_t* to, int) {
        real<0>(columns, to);
        real<1>(columns, to);
        real<2>(columns, to);
        real<3>(columns, to);
        Inputs p[6], q[6];
        line(columns, 4, p);
        line(columns, 5, q);
        triple<28>(p[0], q[0], to);
        triple<31>(p[1], q[1], to);
        triple<34>(p[2], q[2], to);
        triple<37>(p[3], q[3], to);
        triple<40>(Kernel::subtract(p[4], q[5]), Kernel::add(p[5], q[4]), to);
        triple<43>(Kernel::add(p[4], q[5]), Kernel::subtract(q[4], p[5]), to);
    }
};

// 4 y of products with four real points, and twice those of a complex one.
template <class Microkernel, int Tiles, int Run, int WideRun, int Group>
struct WinogradFourHalves<ByteFours<Microkernel, Tiles, Run, WideRun>, Group> {
    typedef ByteFours<Microkernel, Tiles, Run, WideRun> Kernel;
    typedef typename Kernel::Sums Sums;
    enum : int { Shared = Group };

    static N2D2_INLINE Sums twice(Sums x) { return Kernel::plus(x, x); }
    static N2D2_INLINE void outputs(Sums m0, Sums m1, Sums m2, Sums m3, Sums twiceReal, Sums twiceImaginary, Sums (&to)[4]) {
        const Sums even = Kernel::plus(m1, m2), odd = Kernel::minus(m1, m2);
        to[0] = Kernel::plus(Kernel::plus(Kernel::template left<2>(m0), even), twiceReal);
        to[1] = Kernel::minus(odd, twiceImaginary);
        to[2] = Kernel::minus(even, twiceReal);
        to[3] = Kernel::plus(Kernel::plus(odd, twiceImaginary), Kernel::template left<2>(m3));
    }
    static N2D2_INLINE Sums at(const std::int32_t* products, int k) {
        return Kernel::sums(products + byteFourPlaces[k].at * 16 * Group);
    }
    static N2D2_INLINE Sums real(const std::int32_t* products, int k) {
        return Kernel::minus(at(products, k), at(products, k + 2));
    }
    static N2D2_INLINE Sums imaginary(const std::int32_t* products, int k) {
        return Kernel::plus(at(products, k), at(products, k + 1));
    }

    static N2D2_INLINE void lines(const std::int32_t* products, Sums (&to)[4][6], int) {
        Sums half[4];
        N2D2_UNROLL
        for (int v = 0; v < 4; ++v) {
            outputs(at(products, v), at(products, 7 + v), at(products, 14 + v), at(products, 21 + v),
                    twice(real(products, 28 + 3 * v)), twice(imaginary(products, 28 + 3 * v)), half);
            N2D2_UNROLL
            for (int k = 0; k < 4; ++k)
                to[k][v] = half[k];
        }
        const Sums a = real(products, 40), b = imaginary(products, 40), c = real(products, 43), d = imaginary(products, 43);
        outputs(real(products, 4), real(products, 11), real(products, 18), real(products, 25), Kernel::plus(a, c),
                Kernel::plus(b, d), half);
        N2D2_UNROLL
        for (int k = 0; k < 4; ++k)
            to[k][4] = half[k];
        outputs(imaginary(products, 4), imaginary(products, 11), imaginary(products, 18), imaginary(products, 25),
                Kernel::minus(b, d), Kernel::minus(c, a), half);
        N2D2_UNROLL
        for (int k = 0; k < 4; ++k)
            to[k][5] = half[k];
    }
    template <int>
    static N2D2_INLINE void pixels(const Sums (&m)[6], Sums bias, Sums (&to)[4]) {
        outputs(m[0], m[1], m[2], m[3], twice(m[4]), twice(m[5]), to);
        N2D2_UNROLL
        for (int p = 0; p < 4; ++p)
            to[p] = Kernel::plus(bias, Kernel::Vec::template right<4>(to[p]));
    }
};

// The kernel of a layer: this form, or another one.
template <class Cfg>
struct ByteFourConfig : Cfg {
    enum : int { WinogradTile = 4 };
};
template <class Cfg, class Microkernel, int Tiles, class Other, bool Fours = (WinogradWideOf<Cfg>::Words > 0)>
struct ByteFourConvolution : Other {};
template <class Cfg, class Microkernel, int Tiles, class Other>
struct ByteFourConvolution<Cfg, Microkernel, Tiles, Other, true>
    : ByteConvolution<ByteFourConfig<Cfg>,
                      ByteFours<Microkernel, Tiles, WinogradSumsOf<Cfg>::Words, WinogradWideOf<Cfg>::Words>, Other, true> {};

// The convolutions of a set that multiplies bytes, by the form in which the weights of the layer are stored: for Winograd in bytes in tiles of
// four by four, or of two by two; for Winograd in pairs of a set with `Vec`; in panels.
template <class Cfg, class Microkernel, int Tiles, class Vec, class Bytes>
struct PairConvolution
    : PackedFours<Cfg, PairWinograd<Microkernel, Tiles>, Vec, PanelConvolution<Cfg, ByteMicrokernel<Bytes, Cfg::ByteSums> > > {
};
template <class Cfg, class Microkernel, int Tiles, class Vec, class Bytes>
struct ByteTwoConvolution : ByteConvolution<Cfg, ByteWinograd<Microkernel, Tiles, WinogradSumsOf<Cfg>::Words>,
                                            PairConvolution<Cfg, Microkernel, Tiles, Vec, Bytes> > {};
template <class Cfg, class Microkernel, int Tiles, class Vec, class Bytes>
struct AnyByteConvolution
    : ByteFourConvolution<Cfg, Microkernel, Tiles, ByteTwoConvolution<Cfg, Microkernel, Tiles, Vec, Bytes> > {};

}  // namespace n2d2

#endif  // N2D2_X86_BYTE_FOURS_HPP
