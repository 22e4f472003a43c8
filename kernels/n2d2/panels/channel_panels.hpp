// Depthwise convolutions of inputs or weights of 16 bits, in vectors of channels: where the constants are, and the lines of a window.
//
// Inputs become signed integers of 16 bits: unsigned ones of 16 bits are taken - 32768, which the exporter has taken from the
// bias. Sums are modulo 2^32. The exporter has brought the constants into an order (channel_order in panels.py), Block channels at a
// time: the first four of each eight channels, then the others of each eight. A pair of taps is two lines of a column; of an odd number of
// lines the last one's are two columns.
//
//   weights  [block][pair of taps][first or second][Block / 2][2], 16-bit integers whatever Cfg::Weight is, filled up with zeros
//   others   [block][first or second]
#pragma once

#include "n2d2/line_order.hpp"
#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

// Group: channels of a task; Most: pixels whose sums have registers.
template <class Cfg, int Group, int Most>
struct ChannelPanels {
    N2D2_WINDOWS(Cfg);
    typedef typename Cfg::Epilogue Epilogue;
    typedef typename Cfg::Weight Weight;
    static_assert(sizeof(In) <= 2 && sizeof(Weight) <= 2 && sizeof(typename Cfg::Sum) == 4,
                  "8 or 16-bit inputs and weights, 32-bit sums");

    enum : int {
        C = Input::Channels,
        Stride = Cfg::StrideWidth,
        Dilation = Cfg::DilationWidth,
        Groups = (C + Group - 1) / Group,
        LastGroup = C - Group * (Groups - 1),
        Block = C <= 8  ? 8 :
                C <= 16 ? 16 :
                          32,
        Blocks = (C + Block - 1) / Block,
        LastBlock = C - Block * (Blocks - 1),
        Runs = (OW + Most - 1) / Most,
        Pixels = (OW + Runs - 1) / Runs,  // of a run; the last one may begin within the one before
        Columns = (Pixels - 1) * Stride + (KW - 1) * Dilation + 1,
        Twos = (KW + 1) / 2,
        Pairs = KH / 2 * KW + KH % 2 * Twos,
        SlotBytes = 2 * Block  // of the weights of a pair of taps, of all first or second
    };

    // The number of the first `count` channels of a block that are in the first vectors.
    static N2D2_INLINE constexpr int firsts(int count) { return count / 8 * 4 + least(count % 8, 4); }

    // The positions of the constants of the channels from one on: those of the first four of each eight, and those of the others.
    struct Place {
        int first, second;
        long weights;  // bytes before those of the first pair of taps, first vector
        N2D2_INLINE explicit Place(int channel) {
            const int block = channel / Block, begin = block * Block, half = (channel - begin) / 2;
            first = begin + half;
            second = begin + firsts(block + 1 < Blocks ? int(Block) : int(LastBlock)) + half;
            weights = static_cast<long>(block) * Pairs * 2 * SlotBytes + 4 * half;
        }
    };

    // A pixel outside the input.
    struct Padding {
        In values[Group];
        N2D2_INLINE Padding() {
            for (In& value : values)
                value = static_cast<In>(Cfg::InputZero);
        }
    };

    // Kernel::Channels<Count>(Kernel::Place, weights, bias) are the constants of a group of channels, which serve a band of lines whose inputs
    // stay in a cache, or one line where lines have an order; line(lines of the window, whether none is padding, padding, out) makes one of
    // outputs. Null is a line of padding.
    template <class Kernel>
    static N2D2_INLINE void lines(const unsigned char* in, unsigned char* out, const Weight* weights, const std::int32_t* bias,
                                  const Rows& rows) {
        constexpr bool ordered = Cfg::Serial || Cfg::Streamed;
        constexpr int height = OH, size = ordered ? 1 : largest(1, least(height, 256 / W - 2));
        constexpr long work = static_cast<long>(KH) * KW * least(Group, int(C)) * OW * 2 / N2D2_SIMD_SPEED;
        const Padding padding;
        const unsigned char* const w = reinterpret_cast<const unsigned char*>(weights);
        const auto body = [=](int begin, int end, int group) N2D2_INLINE_LAMBDA {
            if (group + 1 < Groups)
                band<Kernel, Group>(in, out, begin, end, group, w, bias, padding);
            else
                band<Kernel, LastGroup>(in, out, begin, end, group, w, bias, padding);
        };
        if (ordered)
            LayerTasks<Cfg, Groups, work, WindowOrder<Cfg> >::run(
                rows, [=](int y, int group) N2D2_INLINE_LAMBDA { body(y, y + 1, group); });
        else
            Tasks<false, (height + size - 1) / size, Groups, work * size>::run(
                [=](int i, int group) N2D2_INLINE_LAMBDA { body(i * size, least(height, (i + 1) * size), group); });
    }
    // A function of its own: the constants of both kinds of groups are not in one frame.
    template <class Kernel, int Count>
    static N2D2_INLINE void band(const unsigned char* in, unsigned char* out, int begin, int end, int group,
                                 const unsigned char* weights, const std::int32_t* bias, const Padding& padding) {
        const int channel = group * Group;
        const typename Kernel::Place place(channel);
        const typename Kernel::template Channels<Count> channels(place, weights, bias);
        for (int y = begin; y < end; ++y) {
            const In* taps[KH];
            bool inside = true;
            for (int u = 0; u < KH; ++u) {
                const int from = y * Cfg::StrideHeight - Cfg::PadTop + u * Cfg::DilationHeight;
                taps[u] = from >= 0 && from < H ? n2d2::line<Input>(in, from) + channel : nullptr;
                inside = inside && taps[u];
            }
            channels.line(taps, inside, padding.values, n2d2::line<Output>(out, y) + channel);
        }
    }
};

// `Bytes` for inputs and weights of 8 bits, `Halves` for the others.
template <class Cfg, class Bytes, class Halves>
struct DepthwiseOfWidth
    : Choice<sizeof(typename Cfg::Input::Type) == 1 && sizeof(typename Cfg::Weight) == 1, Bytes, Halves>::Type {};

}  // namespace n2d2
