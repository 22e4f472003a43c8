// The inputs of a Winograd convolution (panel_winograd.hpp), transformed: B' d B of tiles that lie side by side, from left to right.
#ifndef N2D2_PANELS_WINOGRAD_INPUTS_HPP
#define N2D2_PANELS_WINOGRAD_INPUTS_HPP

#include "n2d2/env.hpp"

namespace n2d2 {

// Lines of an input, four or six: where each begins and how far it is from pixel to pixel, 0 for a line of the padding.
template <class In>
struct WinogradLines {
    const In* at[6];
    long step[6];
    const In* pad;  // a pixel of the padding
};

// B' d B of some channels of the tiles of a line, or those of its positions that the first lines of the outputs need.
template <class Microkernel, class In, int Count, int Depth, int TileLines>
struct WinogradInputs {
    typedef typename Microkernel::Inputs Inputs;
    enum : int { Position = 2 * Depth, Tile = 16 * Position, Rows = TileLines + 2 };

    // B' d of column x.
    static N2D2_INLINE void column(const WinogradLines<In>& lines, int x, int width, int channel, Inputs (&to)[Rows]) {
        const bool inside = x >= 0 && x < width;
        Inputs d[Rows];
        N2D2_UNROLL
        for (int u = 0; u < Rows; ++u)
            d[u] = Microkernel::template load<Count>((inside ? lines.at[u] + x * lines.step[u] : lines.pad) + channel);
        to[0] = Microkernel::subtract(d[0], d[2]);
        to[1] = Microkernel::add(d[1], d[2]);
        to[2] = Microkernel::subtract(d[2], d[1]);
        if (Rows > 3)
            to[Rows - 1] = Microkernel::subtract(d[1], d[Rows - 1]);
    }

    // `count` tiles, the first of which begins at column x. Two columns of a tile are those of the next.
    static N2D2_INLINE void run(const WinogradLines<In>& lines, int x, int width, int count, int channel, std::uint8_t* to) {
        Inputs a[Rows], b[Rows], c[Rows], d[Rows];
        column(lines, x, width, channel, a);
        column(lines, x + 1, width, channel, b);
        for (to += 2 * channel; count > 0; --count, to += Tile) {
            x += 2;
            column(lines, x, width, channel, c);
            N2D2_UNROLL
            for (int u = 0; u < Rows; ++u) {
                Microkernel::store(Microkernel::subtract(a[u], c[u]), to + 4 * u * Position);
                Microkernel::store(Microkernel::add(b[u], c[u]), to + (4 * u + 1) * Position);
                Microkernel::store(Microkernel::subtract(c[u], b[u]), to + (4 * u + 2) * Position);
                a[u] = c[u];
            }
            column(lines, x + 1, width, channel, d);
            N2D2_UNROLL
            for (int u = 0; u < Rows; ++u) {
                Microkernel::store(Microkernel::subtract(b[u], d[u]), to + (4 * u + 3) * Position);
                b[u] = d[u];
            }
        }
    }
};

}  // namespace n2d2

#endif  // N2D2_PANELS_WINOGRAD_INPUTS_HPP
