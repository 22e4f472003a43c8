// Depthwise convolution with NEON: 16 channels at a time, Piece pixels of a line together.
//
// The weights of a panel, [16 channels][4 lines] for each column of the kernel, are taken apart into 16-bit vectors once
// per line and panel. A column of the input is widened once and multiplied with all taps of the kernel
// that lie on it (smlal). Bytes are multiplied as unsigned ones, signed ones + 128, as the bias expects.
// With the dot product instructions, see neon_dot_depthwise.hpp. Order of the constants: panels/panel_depthwise.hpp.
// Stack: 32 bytes for each tap.
#ifndef N2D2_ARM_NEON_DEPTHWISE_HPP
#define N2D2_ARM_NEON_DEPTHWISE_HPP

#include "n2d2/arm/neon_tile.hpp"
#include "n2d2/panels/panel_depthwise.hpp"

namespace n2d2 {
namespace neon {

// What both depthwise kernels of NEON share: how weights and pixels are loaded, and how sums are stored.
template <class Cfg>
struct DepthwisePanels : PanelDepthwise<Cfg> {
    typedef PanelDepthwise<Cfg> Base;
    typedef typename Base::Input Input;
    typedef typename Base::Output Output;
    typedef typename Base::In In;
    typedef typename Base::Out Out;
    typedef typename Cfg::Epilogue Epilogue;
    using Base::position;
    enum : int {
        KH = Base::KH,
        KW = Base::KW,
        C = Base::C,
        H = Base::H,
        Taps = Base::Taps,
        Panels = Base::Panels,
        LastChannels = Base::LastChannels,
        Whole = Base::Whole
    };

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

    // Count channels of a pixel as unsigned bytes; null is padding.
    template <int Count>
    static N2D2_INLINE uint8x16_t pixel(const In* from) {
        if (!from)
            return vdupq_n_u8(static_cast<std::uint8_t>(multiplied<In>(Cfg::InputZero)));
        std::uint8_t all[16] = {};
        if (Count < 16)
            std::memcpy(all, from, Count);
        const uint8x16_t x = vld1q_u8(Count < 16 ? all : reinterpret_cast<const std::uint8_t*>(from));
        return std::numeric_limits<In>::is_signed ? veorq_u8(x, vdupq_n_u8(128)) : x;
    }

    // Where the constants of a panel are.
    struct Positions {
        int panel;
        N2D2_INLINE int operator()(int v) const { return position(panel, v); }
    };
    template <int Count>
    static N2D2_INLINE void store(const int32x4_t* sums, int panel, Out* out, const std::int32_t* bias) {
        const Positions at = {panel};
        finishAt<Count, Epilogue>(sums, bias, at, out);
    }

    // Block::line<Count>(lines of the window, panel, out, weights, bias) for every line and panel.
    template <class Block>
    static N2D2_INLINE void lines(const unsigned char* in, unsigned char* out, const std::int8_t* weights,
                                  const std::int32_t* bias, const Rows& rows) {
        constexpr bool serial = Cfg::Serial != 0, reverse = Cfg::Reverse != 0;
        constexpr long work =
            static_cast<long>(KH) * KW * least(16, int(C)) * static_cast<int>(Output::Width) * 2 / N2D2_SIMD_SPEED;
        Tasks<serial, Output::Height, Panels, work, reverse, WindowOrder<Cfg> >::run(
            rows, [=](int y, int panel) N2D2_INLINE_LAMBDA {
                const In* taps[KH];
                for (int u = 0; u < KH; ++u) {
                    const int from = y * Cfg::StrideHeight - Cfg::PadTop + u * Cfg::DilationHeight;
                    taps[u] = from >= 0 && from < H ? n2d2::line<Input>(in, from) : nullptr;
                }
                if (panel + 1 < Panels)
                    Block::template line<16>(taps, panel, n2d2::line<Output>(out, y), weights, bias);
                else
                    Block::template line<LastChannels>(taps, panel, n2d2::line<Output>(out, y), weights, bias);
            });
    }
};

template <class Cfg>
struct DepthwiseLines : DepthwisePanels<Cfg> {
    typedef DepthwisePanels<Cfg> Base;
    typedef typename Base::Input Input;
    typedef typename Base::Output Output;
    typedef typename Base::In In;
    typedef typename Base::Out Out;
    enum : int { KH = Base::KH, KW = Base::KW, W = Base::W, OW = Base::OW };
    enum : int {
        Dense = Cfg::DilationWidth == 1 && Cfg::StrideWidth <= 2,
        Piece = !Dense             ? 1 :
                sizeof(void*) == 8 ? 4 :
                                     2,  // pixels whose sums are in registers
        Columns = (Piece - 1) * Cfg::StrideWidth + (KW - 1) * Cfg::DilationWidth + 1
    };

    static N2D2_INLINE void add(int32x4_t* sums, const int16x8_t* x, const std::int16_t* w) {
        const int16x8_t low = vld1q_s16(w), high = vld1q_s16(w + 8);
        sums[0] = vmlal_s16(sums[0], vget_low_s16(x[0]), vget_low_s16(low));
        sums[2] = vmlal_s16(sums[2], vget_low_s16(x[1]), vget_low_s16(high));
#if defined(__aarch64__)
        sums[1] = vmlal_high_s16(sums[1], x[0], low);
        sums[3] = vmlal_high_s16(sums[3], x[1], high);
#else
        sums[1] = vmlal_s16(sums[1], vget_high_s16(x[0]), vget_high_s16(low));
        sums[3] = vmlal_s16(sums[3], vget_high_s16(x[1]), vget_high_s16(high));
#endif
    }

    // Pixels [x, x + Pixels).
    template <int Count, int Pixels>
    static N2D2_INLINE void piece(const In* const* rows, int x, int panel, Out* out, const std::int16_t (*w)[16],
                                  const std::int32_t* bias) {
        constexpr int stride = Cfg::StrideWidth, step = Cfg::DilationWidth, width = W;
        constexpr int columns = (Pixels - 1) * stride + (KW - 1) * step + 1;
        const int left = x * stride - Cfg::PadLeft;
        int32x4_t sums[Pixels][4];
        N2D2_UNROLL
        for (int p = 0; p < Pixels; ++p) {
            N2D2_UNROLL
            for (int v = 0; v < 4; ++v)
                sums[p][v] = vdupq_n_s32(0);
        }
        for (int u = 0; u < KH; ++u) {
            N2D2_UNROLL
            for (int c = 0; c < columns; ++c) {
                const int column = left + c;
                const bool inside = rows[u] && column >= 0 && column < width;
                if (!inside && multiplied<In>(Cfg::InputZero) == 0)
                    continue;
                const uint8x16_t bytes =
                    Base::template pixel<Count>(inside ? rows[u] + column * Input::Stride + panel * 16 : nullptr);
                const int16x8_t x16[2] = {vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes))),
                                          vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(bytes)))};
                N2D2_UNROLL
                for (int p = 0; p < Pixels; ++p) {
                    const int offset = c - p * stride;
                    if (offset >= 0 && offset % step == 0 && offset / step < KW)
                        add(sums[p], x16, w[u * KW + offset / step]);
                }
            }
        }
        for (int p = 0; p < Pixels; ++p)
            Base::template store<Count>(sums[p], panel, out + (x + p) * Output::Stride + panel * 16, bias);
    }

    template <int Count>
    static N2D2_INLINE void line(const In* const* rows, int panel, Out* out, const std::int8_t* weights,
                                 const std::int32_t* bias) {
        std::int16_t w[KH * KW][16];
        for (int f = 0; f < Base::Fours; ++f)
            for (int t = 0; t < KW; ++t) {
                std::int8_t four[64] = {};
                Base::template weights<Count>(weights, panel, f * KW + t, four);
                const int8x16x4_t apart = vld4q_s8(four);
                for (int u = 0; u < least(4, KH - 4 * f); ++u) {
                    vst1q_s16(w[(4 * f + u) * KW + t], vmovl_s8(vget_low_s8(apart.val[u])));
                    vst1q_s16(w[(4 * f + u) * KW + t] + 8, vmovl_s8(vget_high_s8(apart.val[u])));
                }
            }
        int x = 0;
        for (; x + Piece <= OW; x += Piece)
            piece<Count, Piece>(rows, x, panel, out, w, bias);
        for (; x < OW; ++x)
            piece<Count, 1>(rows, x, panel, out, w, bias);
    }
};

template <class Cfg>
struct Depthwise {
    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const std::int8_t* weights,
                                const std::int32_t* bias, const Rows& rows = Rows::all<typename Cfg::Output>()) {
        DepthwisePanels<Cfg>::template lines<DepthwiseLines<Cfg> >(in, out, weights, bias, rows);
    }
};

}  // namespace neon
}  // namespace n2d2

#endif  // N2D2_ARM_NEON_DEPTHWISE_HPP
