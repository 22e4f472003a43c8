// Depthwise convolution with the dot product instructions of ARMv8.2: four lines of 16 channels of a column at a time.
//
// The lines of a channel are interleaved to one word of four bytes, so that sdot multiplies the four lines of a tap at
// once; an interleaved column serves all taps that lie on it. Inputs are multiplied as signed bytes, unsigned ones - 128.
// Stack: Columns * Fours * 64 bytes.
#ifndef N2D2_ARM_NEON_DOT_DEPTHWISE_HPP
#define N2D2_ARM_NEON_DOT_DEPTHWISE_HPP

#include "n2d2/arm/neon_finish.hpp"
#include "n2d2/panels/panel_depthwise.hpp"

namespace n2d2 {
namespace neondot {

template <class Cfg>
struct Depthwise : PanelDepthwise<Cfg> {
    typedef PanelDepthwise<Cfg> Base;
    typedef typename Base::Input Input;
    typedef typename Base::Output Output;
    typedef typename Base::In In;
    typedef typename Base::Out Out;
    using Base::position;
    enum : int {
        KH = Base::KH,
        KW = Base::KW,
        W = Base::W,
        OW = Base::OW,
        Fours = Base::Fours,
        Taps = Base::Taps,
        Panels = Base::Panels,
        LastChannels = Base::LastChannels
    };
    enum : int { Piece = OW < 16 ? int(OW) : 16, Columns = (Piece - 1) * Cfg::StrideWidth + (KW - 1) * Cfg::DilationWidth + 1 };

    // The weights of a tap (four lines of a column), [channel][line]; the first Count channels.
    template <int Count>
    static N2D2_INLINE void weights(const std::int8_t* all, int panel, int tap, std::int8_t* to) {
        if (Count < 16) {
            std::memcpy(to, all + static_cast<long>(panel) * Taps * 64 + tap * Count * 4, Count * 4);
            return;
        }
        for (int j = 0; j < 4; ++j)
            std::memcpy(to + 16 * j, Base::weightsAt(all, position(panel, j), tap), 16);
    }

    // The bits of Count channels of a pixel as signed bytes; null is padding.
    template <int Count>
    static N2D2_INLINE uint8x16_t pixel(const In* from) {
        const uint8x16_t flip = vdupq_n_u8(std::numeric_limits<In>::is_signed ? 0 : 128);
        if (!from)
            return veorq_u8(vdupq_n_u8(static_cast<std::uint8_t>(static_cast<In>(Cfg::InputZero))), flip);
        std::uint8_t all[16] = {};
        if (Count < 16)
            std::memcpy(all, from, Count);
        return veorq_u8(vld1q_u8(Count < 16 ? all : reinterpret_cast<const std::uint8_t*>(from)), flip);
    }

    // The positions of the constants of a panel.
    struct Positions {
        int panel;
        N2D2_INLINE int operator()(int v) const { return position(panel, v); }
    };
    // The sums of pixels that are stored at out, out + Output::Stride, ...
    template <int Count, int Pixels>
    static N2D2_INLINE void store(const int32x4_t (&sums)[Pixels][4], int panel, Out* out, const std::int32_t* bias) {
        const Positions at = {panel};
        neon::finishAt<Count, typename Cfg::Epilogue>(sums, bias, at,
                                                      [=](int p) N2D2_INLINE_LAMBDA { return out + p * Output::Stride; });
    }

    // Column x: for each four lines, four vectors of four channels.
    template <int Count>
    static N2D2_INLINE void column(const In* const* rows, int x, int panel, int8x16_t* to) {
        constexpr int width = W;
        for (int f = 0; f < Fours; ++f) {
            uint8x16_t line[4];
            for (int u = 0; u < 4; ++u) {
                const int row = 4 * f + u;
                if (row >= KH) {  // the weights are zero
                    line[u] = line[0];
                    continue;
                }
                const bool inside = rows[row] && x >= 0 && x < width;
                line[u] = pixel<Count>(inside ? rows[row] + x * Input::Stride + panel * 16 : nullptr);
            }
            const uint8x16x2_t a = vzipq_u8(line[0], line[1]), b = vzipq_u8(line[2], line[3]);
            for (int half = 0; half < 2; ++half) {
                const uint16x8x2_t words = vzipq_u16(vreinterpretq_u16_u8(a.val[half]), vreinterpretq_u16_u8(b.val[half]));
                for (int i = 0; i < 2; ++i)
                    to[4 * f + 2 * half + i] = vreinterpretq_s8_u16(words.val[i]);
            }
        }
    }

    template <int Count>
    static N2D2_INLINE void line(const In* const* rows, int panel, Out* out, const std::int8_t* all, const std::int32_t* bias) {
        constexpr int stride = Cfg::StrideWidth, vectors = (Count + 3) / 4;
        int8x16_t w[Taps][4];
        for (int t = 0; t < Taps; ++t) {
            std::int8_t four[64] = {};
            weights<Count>(all, panel, t, four);
            for (int j = 0; j < 4; ++j)
                w[t][j] = vld1q_s8(four + 16 * j);
        }
        int8x16_t columns[Columns * Fours * 4];
        for (int begin = 0; begin < OW; begin += Piece) {
            const int end = least(int(OW), begin + Piece);
            const int left = begin * stride - Cfg::PadLeft;
            const int count = (end - begin - 1) * stride + (KW - 1) * Cfg::DilationWidth + 1;
            for (int i = 0; i < count; ++i)
                column<Count>(rows, left + i, panel, columns + i * Fours * 4);
            for (int x = begin; x < end; ++x) {
                const int8x16_t* const from = columns + (x - begin) * stride * Fours * 4;
                int32x4_t sums[1][4];
                for (int j = 0; j < 4; ++j)
                    sums[0][j] = vdupq_n_s32(0);
                N2D2_UNROLL
                for (int u = 0; u < Fours; ++u) {
                    N2D2_UNROLL
                    for (int t = 0; t < KW; ++t) {
                        N2D2_UNROLL
                        for (int j = 0; j < vectors; ++j)
                            sums[0][j] =
                                vdotq_s32(sums[0][j], from[(t * Cfg::DilationWidth * Fours + u) * 4 + j], w[u * KW + t][j]);
                    }
                }
                store<Count>(sums, panel, out + x * Output::Stride + panel * 16, bias);
            }
        }
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const std::int8_t* weights,
                                const std::int32_t* bias, const Rows& rows = Rows::all<Output>()) {
        constexpr long work = Base::lineWork();
        LayerTasks<Cfg, Panels, work, WindowOrder<Cfg> >::run(rows, [=](int y, int panel) N2D2_INLINE_LAMBDA {
            const In* taps[KH];
            windowRows<Cfg>(in, y, taps);
            if (panel + 1 < Panels)
                line<16>(taps, panel, n2d2::line<Output>(out, y), weights, bias);
            else
                line<LastChannels>(taps, panel, n2d2::line<Output>(out, y), weights, bias);
        });
    }
};

}  // namespace neondot
}  // namespace n2d2

#endif  // N2D2_ARM_NEON_DOT_DEPTHWISE_HPP
