// Depthwise convolution with SVE vectors of 256 bits: 16 channels at a time, Piece pixels of a line together.
//
// Four lines of a column are interleaved to one word of four bytes for each channel, so that usdot multiplies the four lines of a tap at once;
// an interleaved column serves all taps that lie on it. Inputs are multiplied as unsigned bytes, signed ones + 128, as the bias
// expects. Order of the constants: panels/panel_depthwise.hpp.
// Stack: 64 bytes for each tap of four lines.
#pragma once

#include "n2d2/arm/sve_finish.hpp"
#include "n2d2/halfwords.hpp"
#include "n2d2/panels/panel_depthwise.hpp"

namespace n2d2 {
namespace sve {

template <class Cfg>
struct DepthwiseBlocks : PanelDepthwise<Cfg> {
    typedef PanelDepthwise<Cfg> Base;
    N2D2_WINDOWS(Cfg);
    typedef typename Base::Lines Lines;
    typedef typename Cfg::Epilogue Epilogue;
    enum : int {
        Fours = Base::Fours,
        Taps = Base::Taps,
        Stride = Cfg::StrideWidth,
        Step = Cfg::DilationWidth,
        Piece = Step == 1 && Stride <= 2 ? 4 : 1  // pixels whose sums are in registers
    };

    // The positions of the constants of a panel.
    struct Positions {
        enum : bool { Ordered = false };
        int panel;
        N2D2_INLINE int operator()(int v) const { return Base::position(panel, v); }
    };

    // The weights of a tap (four lines of a column), [channel][line], eight channels in a vector.
    template <int Count>
    static N2D2_INLINE void weights(const std::int8_t* all, int panel, int tap, Signed* to) {
        std::int8_t four[64] = {};
        if (Count < 16) {
            std::memcpy(four, all + static_cast<long>(panel) * Taps * 64 + tap * Count * 4, Count * 4);
        } else {
            for (int j = 0; j < 4; ++j)
                std::memcpy(four + 16 * j, Base::weightsAt(all, Base::position(panel, j), tap), 16);
        }
        to[0] = svld1_s8(svptrue_b8(), four);
        to[1] = svld1_s8(svptrue_b8(), four + 32);
    }

    // The constants of a panel for all its pixels.
    template <int Count>
    struct Panel {
        enum : int { Vectors = (Count + 7) / 8 };
        const In* at[KH];  // the first channel of the panel in column 0
        long step[KH];     // to the next column
        Signed weights[Taps][2];
        Ints bias[Vectors];
        PanelEpilogue<Epilogue, Count> epilogue;

        N2D2_INLINE Panel(const Lines& rows, int panel, const std::int8_t* all, const std::int32_t* first)
            : epilogue(Positions{panel}) {
            for (int u = 0; u < KH; ++u) {
                at[u] = rows.at[u] + (rows.step[u] ? panel * 16 : 0);
                step[u] = rows.step[u];
            }
            N2D2_UNROLL_FOR(t, Taps)
                DepthwiseBlocks::template weights<Count>(all, panel, t, weights[t]);
            panelOf<Count>(first, Positions{panel}, bias);
        }

        // Lines First to First + 3 of a column, as many as the kernel has: eight channels in a vector.
        template <int First>
        N2D2_INLINE void column(int x, Bytes* to) const {
            if (static_cast<unsigned>(x) >= static_cast<unsigned>(W)) {
                to[0] = to[1] = svdup_n_u8(static_cast<std::uint8_t>(multiplied<In>(Cfg::InputZero)));
                return;
            }
            const svuint8_t a = line<First>(x), b = line<(First + 1 < KH ? First + 1 : First)>(x),
                            c = line<(First + 2 < KH ? First + 2 : First)>(x),
                            d = line<(First + 3 < KH ? First + 3 : First)>(x);  // the weights of a line too many are zeros
            const svuint16_t upper = svreinterpret_u16_u8(svzip1_u8(a, b)), lower = svreinterpret_u16_u8(svzip1_u8(c, d));
            to[0] = svreinterpret_u8_u16(svzip1_u16(upper, lower));
            to[1] = svreinterpret_u8_u16(svzip2_u16(upper, lower));
        }
        template <int U>
        N2D2_INLINE svuint8_t line(int x) const {
            const svuint8_t bytes = svld1_u8(byteLanes<Count>(), reinterpret_cast<const std::uint8_t*>(at[U] + x * step[U]));
            return std::numeric_limits<In>::is_signed ? sveor_n_u8_x(svptrue_b8(), bytes, 128) : bytes;
        }

        // Adds the products with four lines of the kernel.
        template <int Four, int Pixels>
        N2D2_INLINE void lines(int left, Ints (&sums)[Pixels][Vectors]) const {
            constexpr int columns = (Pixels - 1) * Stride + (KW - 1) * Step + 1;
            N2D2_UNROLL_FOR(c, columns) {
                Bytes inputs[2];
                column<4 * Four>(left + c, inputs);
                N2D2_UNROLL_FOR(p, Pixels) {
                    const int offset = c - p * Stride;
                    if (offset < 0 || offset % Step != 0 || offset / Step >= KW)
                        continue;
                    N2D2_UNROLL_FOR(v, Vectors)
                        sums[p][v] = svusdot_s32(sums[p][v], inputs[v], weights[Four * KW + offset / Step][v]);
                }
            }
            if (Four + 1 < Fours)
                lines<(Four + 1 < Fours ? Four + 1 : Four)>(left, sums);
        }

        // Pixels [x, x + Pixels).
        template <int Pixels>
        N2D2_INLINE void pixels(int x, Out* out) const {
            Ints sums[Pixels][Vectors];
            N2D2_UNROLL_FOR(p, Pixels)
                N2D2_UNROLL_FOR(v, Vectors)
                    sums[p][v] = bias[v];
            lines<0>(x * Stride - Cfg::PadLeft, sums);
            N2D2_UNROLL_FOR(p, Pixels)
                epilogue.store(sums[p], out + (x + p) * Output::Stride);
        }
    };

    template <int Count>
    static N2D2_INLINE void block(const Lines& rows, int panel, Out* out, const std::int8_t* all, const std::int32_t* bias) {
        constexpr int piece = Piece, whole = OW / Piece * Piece, rest = OW % Piece;
        const Panel<Count> constants(rows, panel, all, bias);
        for (int x = 0; x < whole; x += piece)
            constants.template pixels<Piece>(x, out + panel * 16);
        if (rest > 0)
            constants.template pixels<(rest > 0 ? rest : 1)>(whole, out + panel * 16);
    }
};

template <class Cfg>
struct Depthwise {
    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const std::int8_t* weights,
                                const std::int32_t* bias, const Rows& rows = Rows::all<typename Cfg::Output>()) {
        PanelDepthwise<Cfg>::template lines<DepthwiseBlocks<Cfg> >(in, out, weights, bias, rows);
    }
};

}  // namespace sve
}  // namespace n2d2
