// Shared by the depthwise kernels on panels of channels: the positions of the constants, and the lines of a window.
//
// The weights of a tap are four lines to a word, [channel][line]. In each whole block of 64 channels, channels 16 l + 4 j to
// 16 l + 4 j + 3 are at position 16 j + 4 l (depthwise_order of the exporter), behind the blocks they are in order.
#pragma once

#include "n2d2/line_order.hpp"
#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

template <class Cfg>
struct PanelDepthwise {
    N2D2_WINDOWS(Cfg);
    static_assert(sizeof(In) == 1 && sizeof(typename Cfg::Weight) == 1 && sizeof(typename Cfg::Sum) == 4,
                  "8-bit inputs and weights, 32-bit sums");

    enum : int {
        C = Input::Channels,
        Fours = (KH + 3) / 4,
        Taps = Fours * KW,
        Panels = (C + 15) / 16,
        LastChannels = C - 16 * (Panels - 1),
        Whole = C / 64 * 4  // panels of the whole blocks of 64 channels
    };

    // The lines of a window: where column 0 is, and how far the next one; a line of padding is one pixel.
    struct Lines {
        const In* at[KH];
        int step[KH];
    };

    // The position, among the constants, of channels 4 j to 4 j + 3 of panel `panel`.
    static N2D2_INLINE int position(int panel, int j) {
        return panel < Whole ? panel / 4 * 64 + 16 * j + panel % 4 * 4 : panel * 16 + 4 * j;
    }

    // The weights of a tap (four lines of a column) of four channels from a position on; not those of a last panel.
    static N2D2_INLINE const std::int8_t* weightsAt(const std::int8_t* w, int position, int tap) {
        return w + static_cast<long>(position / 16) * Taps * 64 + tap * 64 + position % 16 * 4;
    }

    // A pixel outside the input.
    struct Padding {
        In values[16];
        N2D2_INLINE Padding() {
            for (In& value : values)
                value = static_cast<In>(Cfg::InputZero);
        }
    };
    // The window of output line y.
    static N2D2_INLINE Lines window(const unsigned char* in, int y, const Padding& padding) {
        Lines taps;
        for (int u = 0; u < KH; ++u) {
            const int from = y * Cfg::StrideHeight - Cfg::PadTop + u * Cfg::DilationHeight;
            const bool inside = from >= 0 && from < H;
            taps.at[u] = inside ? line<Input>(in, from) : padding.values;
            taps.step[u] = inside ? int(Input::Stride) : 0;
        }
        return taps;
    }

    // Kernel::block<Channels>(lines, panel, out, w, bias) for each panel of each line.
    template <class Kernel>
    static N2D2_INLINE void lines(const unsigned char* in, unsigned char* out, const std::int8_t* w, const std::int32_t* bias,
                                  const Rows& rows) {
        // A tap takes about twice as long as a product of the convolution.
        constexpr long work = static_cast<long>(KH) * KW * least(16, int(C)) * OW * 2 / N2D2_SIMD_SPEED;
        const Padding padding;
        LayerTasks<Cfg, Panels, work, WindowOrder<Cfg> >::run(rows, [=](int y, int panel) N2D2_INLINE_LAMBDA {
            const Lines taps = window(in, y, padding);
            if (panel + 1 < Panels)
                Kernel::template block<16>(taps, panel, line<Output>(out, y), w, bias);
            else
                Kernel::template block<LastChannels>(taps, panel, line<Output>(out, y), w, bias);
        });
    }
};

}  // namespace n2d2
