// Depthwise convolution with SVE vectors of 256 bits: 16 channels at a time, Piece pixels of a line together.
//
// Four lines of a column are interleaved to one word of four bytes for each channel, so that usdot multiplies the four lines of a tap at once;
// an interleaved column serves all taps that lie on it. Inputs are multiplied as unsigned bytes, signed ones + 128, as the bias
// expects. Order of the constants: panels/panel_depthwise.hpp.
// Stack: 64 bytes for each tap of four lines.
#pragma once

#include "n2d2/arm/sve_finish.hpp"
#include "n2d2/halfwords.hpp"
#include "n2d2/panels/channel_panels.hpp"
#include "n2d2/panels/panel_depthwise.hpp"

namespace n2d2 {
namespace sve {

template <class Cfg>
struct Depthwise : ChannelPanels<Cfg, 16, 4> {
    typedef ChannelPanels<Cfg, 16, 4> Base;
    typedef PanelDepthwise<Cfg> Panels;
    N2D2_WINDOWS(Cfg);
    enum : int {
        Fours = Panels::Fours,
        Taps = Panels::Taps,
        Stride = Base::Stride,
        Step = Base::Dilation,
        Piece = Step == 1 && Stride <= 2 ? 4 : 1  // pixels whose sums are in registers
    };

    // The positions of the constants of a panel.
    struct Place {
        enum : bool { Ordered = false };
        int panel;
        N2D2_INLINE explicit Place(int channel) : panel(channel / 16) {}
        N2D2_INLINE int operator()(int v) const { return Panels::position(panel, v); }
    };

    // The weights of a tap (four lines of a column), [channel][line], eight channels in a vector.
    template <int Count>
    static N2D2_INLINE void weightsOf(const std::int8_t* all, const Place& place, int tap, Signed* to) {
        std::int8_t four[64] = {};
        if (Count < 16) {
            std::memcpy(four, all + static_cast<long>(place.panel) * Taps * 64 + tap * Count * 4, Count * 4);
        } else {
            for (int j = 0; j < 4; ++j)
                std::memcpy(four + 16 * j, Panels::weightsAt(all, place(j), tap), 16);
        }
        to[0] = svld1_s8(svptrue_b8(), four);
        to[1] = svld1_s8(svptrue_b8(), four + 32);
    }

    // The lines of a window: the first channel of column 0, and how far the next column is; a line of padding is one pixel.
    struct Lines {
        const In* at[KH];
        long step[KH];
    };

    // The constants of a panel for all its pixels.
    template <int Count>
    struct Channels {
        enum : int { Vectors = (Count + 7) / 8 };
        Signed weights[Taps][2];
        Ints bias[Vectors];
        PanelEpilogue<typename Cfg::Epilogue, Count> epilogue;

        N2D2_INLINE Channels(const Place& place, const unsigned char* all, const std::int32_t* first) : epilogue(place) {
            N2D2_UNROLL_FOR(t, Taps)
                weightsOf<Count>(reinterpret_cast<const std::int8_t*>(all), place, t, weights[t]);
            panelOf<Count>(first, place, bias);
        }

        // Lines First to First + 3 of a column, as many as the kernel has: eight channels in a vector.
        template <int First>
        static N2D2_INLINE void column(const Lines& lines, int x, Bytes* to) {
            if (static_cast<unsigned>(x) >= static_cast<unsigned>(W)) {
                to[0] = to[1] = svdup_n_u8(static_cast<std::uint8_t>(multiplied<In>(Cfg::InputZero)));
                return;
            }
            // The weights of a line too many are zeros.
            const svuint8_t a = bytes<First>(lines, x), b = bytes<First + 1>(lines, x), c = bytes<First + 2>(lines, x),
                            d = bytes<First + 3>(lines, x);
            const svuint16_t upper = svreinterpret_u16_u8(svzip1_u8(a, b)), lower = svreinterpret_u16_u8(svzip1_u8(c, d));
            to[0] = svreinterpret_u8_u16(svzip1_u16(upper, lower));
            to[1] = svreinterpret_u8_u16(svzip2_u16(upper, lower));
        }
        template <int Line>
        static N2D2_INLINE svuint8_t bytes(const Lines& lines, int x) {
            constexpr int u = Line < KH ? Line : Line / 4 * 4;
            const svuint8_t all =
                svld1_u8(byteLanes<Count>(), reinterpret_cast<const std::uint8_t*>(lines.at[u] + x * lines.step[u]));
            return std::numeric_limits<In>::is_signed ? sveor_n_u8_x(svptrue_b8(), all, 128) : all;
        }

        // Adds the products with four lines of the kernel.
        template <int Four, int Pixels>
        N2D2_INLINE void add(const Lines& lines, int left, Ints (&sums)[Pixels][Vectors]) const {
            constexpr int columns = (Pixels - 1) * Stride + (KW - 1) * Step + 1;
            N2D2_UNROLL_FOR(c, columns) {
                Bytes inputs[2];
                column<4 * Four>(lines, left + c, inputs);
                N2D2_UNROLL_FOR(p, Pixels) {
                    const int offset = c - p * Stride;
                    if (offset < 0 || offset % Step != 0 || offset / Step >= KW)
                        continue;
                    N2D2_UNROLL_FOR(v, Vectors)
                        sums[p][v] = svusdot_s32(sums[p][v], inputs[v], weights[Four * KW + offset / Step][v]);
                }
            }
            if (Four + 1 < Fours)
                add<(Four + 1 < Fours ? Four + 1 : Four)>(lines, left, sums);
        }

        // Pixels [x, x + Pixels).
        template <int Pixels>
        N2D2_INLINE void pixels(const Lines& lines, int x, Out* out) const {
            Ints sums[Pixels][Vectors];
            N2D2_UNROLL_FOR(p, Pixels)
                N2D2_UNROLL_FOR(v, Vectors)
                    sums[p][v] = bias[v];
            add<0>(lines, x * Stride - Cfg::PadLeft, sums);
            N2D2_UNROLL_FOR(p, Pixels)
                epilogue.store(sums[p], out + (x + p) * Output::Stride);
        }

        N2D2_INLINE void line(const In* const* rows, bool, const In* padding, Out* out) const {
            constexpr int piece = Piece, whole = OW / Piece * Piece, rest = OW % Piece;
            Lines lines;
            for (int u = 0; u < KH; ++u) {
                lines.at[u] = rows[u] ? rows[u] : padding;
                lines.step[u] = rows[u] ? Input::Stride : 0;
            }
            for (int x = 0; x < whole; x += piece)
                pixels<Piece>(lines, x, out);
            if (rest > 0)
                pixels<(rest > 0 ? rest : 1)>(lines, whole, out);
        }
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const std::int8_t* weights,
                                const std::int32_t* bias, const Rows& rows = Rows::all<Output>()) {
        Base::template lines<Depthwise>(in, out, weights, bias, rows);
    }
};

}  // namespace sve
}  // namespace n2d2
