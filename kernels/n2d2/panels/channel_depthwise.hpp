// Depthwise convolution of inputs or weights of 16 bits: vectors of channels, two taps at a time.
//
// An instruction multiplies pairs of 16-bit integers and adds both products to a sum of 32 bits. Two lines of a window are
// interleaved to such pairs, column by column, and each pair is added to all outputs of a run of pixels that it reaches. Of an odd
// number of lines the last one is interleaved with itself, each column with the next one. Sums stay in registers.
//
// Interleaving leaves channels 0 to 3, 8 to 11, ... of 2 Lanes in one vector, the others in a second one; the constants are in that order
// (panels/channel_panels.hpp).
#ifndef N2D2_PANELS_CHANNEL_DEPTHWISE_HPP
#define N2D2_PANELS_CHANNEL_DEPTHWISE_HPP

#include "n2d2/panels/channel_panels.hpp"
#include "n2d2/panels/vec.hpp"

namespace n2d2 {

// Most: pixels whose sums have registers.
template <class Cfg, class Vec, int Most>
struct ChannelDepthwise : ChannelPanels<Cfg, 2 * Vec::Lanes, Most> {
    typedef ChannelPanels<Cfg, 2 * Vec::Lanes, Most> Base;
    typedef typename Base::In In;
    typedef typename Base::Out Out;
    typedef typename Base::Output Output;
    typedef typename Base::Place Place;
    typedef typename Cfg::Epilogue Epilogue;
    typedef typename Vec::Ints Ints;
    enum : int {
        KH = Base::KH,
        KW = Base::KW,
        Stride = Base::Stride,
        Dilation = Base::Dilation,
        Pixels = Base::Pixels,
        SlotBytes = Base::SlotBytes,
        Piece = 8,  // taps of a line whose pairs are made together
        Rest = KW % Piece,
        Slots = Vec::Lanes < Base::Block / 2 ? int(Vec::Lanes) : Base::Block / 2  // of a vector of weights
    };

    // A pixel of a line, what is outside being padding.
    template <bool Edge, int Count>
    static N2D2_INLINE Ints at(const In* line, int column, const In* padding) {
        constexpr int width = Base::W;
        const bool inside = !Edge || (line && column >= 0 && column < width);
        return Vec::template halfwords<In, Count>(inside ? line + column * Base::Input::Stride : padding);
    }

    static N2D2_INLINE Ints weightsAt(const unsigned char* from) {
        return int(Slots) == int(Vec::Lanes) ? Vec::load(from) : Vec::template some<Slots>(from, from + 16);
    }

    // Taps [0, Taps) of lines a and b (Down), or of line a in twos, to the sums of a run of pixels.
    template <int Taps, bool Down, bool Edge, int Count>
    static N2D2_INLINE void add(const In* a, const In* b, int left, const In* padding, const unsigned char* weights,
                                Ints* sums) {
        constexpr int columns = (Pixels - 1) * Stride + (Taps - 1) * Dilation + 1, step = Down ? 1 : 2;
        N2D2_UNROLL
        for (int i = 0; i < columns; ++i) {
            const Ints x = at<Edge, Count>(a, left + i, padding);
            // The last of an odd number of taps has no next one, and a weight of zero.
            const Ints y = Down                   ? at<Edge, Count>(b, left + i, padding) :
                           i + Dilation < columns ? at<Edge, Count>(a, left + i + Dilation, padding) :
                                                    x;
            const Ints first = Vec::lowPairs(x, y), second = Vec::highPairs(x, y);
            N2D2_UNROLL
            for (int p = 0; p < Pixels; ++p) {
                const int from = i - p * Stride, tap = from / Dilation;
                if (from < 0 || from % Dilation != 0 || tap >= Taps || tap % step != 0)
                    continue;
                const unsigned char* const w = weights + tap / step * 2 * SlotBytes;
                sums[2 * p] = Vec::addPairs(sums[2 * p], first, weightsAt(w));
                // GCC would add products in another order, and keep them in memory until then.
                Vec::pin(sums[2 * p]);
                if (Count > 4) {
                    sums[2 * p + 1] = Vec::addPairs(sums[2 * p + 1], second, weightsAt(w + SlotBytes));
                    Vec::pin(sums[2 * p + 1]);
                }
            }
        }
    }

    // All taps of the lines.
    template <bool Down, bool Edge, int Count>
    static N2D2_INLINE void lines(const In* a, const In* b, int left, const In* padding, const unsigned char* weights,
                                  Ints* sums) {
        constexpr int bytes = 2 * SlotBytes / (Down ? 1 : 2);
        for (int tap = 0; tap + Piece <= KW; tap += Piece)
            add<Piece, Down, Edge, Count>(a, b, left + tap * Dilation, padding, weights + tap * bytes, sums);
        if (Rest > 0)
            add<(Rest > 0 ? int(Rest) : 1), Down, Edge, Count>(a, b, left + (KW - Rest) * Dilation, padding,
                                                               weights + (KW - Rest) * bytes, sums);
    }

    // Count channels of a line of outputs.
    template <int Count>
    struct Channels {
        enum : int { First = Base::firsts(Count), Second = Count - First, Others = Second > 0 ? int(Second) : 1 };
        typename Vec::template Epilogue<Epilogue, First> epilogue0;
        typename Vec::template Epilogue<Epilogue, Others> epilogue1;
        Ints bias0, bias1;

        // The constants from positions `first` and `second` on.
        N2D2_INLINE Channels(const std::int32_t* bias, int first, int second)
            : epilogue0(first, first + 4),
              epilogue1(Second > 0 ? second : first, (Second > 0 ? second : first) + 4),
              bias0(Vec::template some<First>(bias + first, bias + first + 4)),
              bias1(Second > 0 ? Vec::template some<Others>(bias + second, bias + second + 4) : Vec::zero()) {}

        // Pixels outputs from one on. Edge: what the windows reach may lie outside.
        template <bool Edge>
        N2D2_INLINE void run(const In* const* rows, int left, const In* padding, const unsigned char* weights, Out* out) const {
            constexpr bool bytes = sizeof(Out) == 1;
            Ints sums[2 * Pixels];
            N2D2_UNROLL
            for (int p = 0; p < Pixels; ++p) {
                sums[2 * p] = bias0;
                sums[2 * p + 1] = bias1;
            }
            for (int u = 0; u + 1 < KH; u += 2)
                lines<true, Edge, Count>(rows[u], rows[u + 1], left, padding, weights + u / 2 * KW * 2 * SlotBytes, sums);
            if (KH % 2 != 0)
                lines<false, Edge, Count>(rows[KH - 1], nullptr, left, padding, weights + KH / 2 * KW * 2 * SlotBytes, sums);
            N2D2_UNROLL
            for (int p = 0; p < Pixels; ++p)
                Vec::template storeTwo<Epilogue, Count>(epilogue0.template apply<bytes>(sums[2 * p]),
                                                        epilogue1.template apply<bytes>(sums[2 * p + 1]),
                                                        out + p * Output::Stride);
        }
    };

    template <int Count>
    static N2D2_INLINE void line(const In* const* rows, bool inside, const Place& place, const In* padding, Out* out,
                                 const unsigned char* weights, const std::int32_t* bias) {
        constexpr int width = Base::W, columns = Base::Columns;
        const Channels<Count> channels(bias, place.first, place.second);
        const unsigned char* const w = weights + place.weights;
        for (int i = 0; i < Base::Runs; ++i) {
            const int x = least(i * Pixels, Base::OW - Pixels), left = x * Stride - Cfg::PadLeft;
            Out* const to = out + x * Output::Stride;
            if (inside && left >= 0 && left + columns <= width)
                channels.template run<false>(rows, left, padding, w, to);
            else
                channels.template run<true>(rows, left, padding, w, to);
        }
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const std::int32_t* bias, const Rows& rows = Rows::all<Output>()) {
        Base::template lines<ChannelDepthwise>(in, out, weights, bias, rows);
    }
};

}  // namespace n2d2

#endif  // N2D2_PANELS_CHANNEL_DEPTHWISE_HPP
