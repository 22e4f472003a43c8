// Depthwise convolution where pmaddwd multiplies pairs of 16-bit integers: four lines of one column of some channels at a time.
//
// As in avx512_depthwise.hpp, an interleaved column serves all taps that lie on it. Here lines 0 and 2 of four are
// interleaved to pairs of 16-bit integers, and lines 1 and 3, which pmaddwd multiplies with the weights of a tap: these
// come four lines to a word, and shifts take them apart in the same way. A sum is then a 32-bit element of its own.
//
// 2 Lanes channels at a time, so that the weights of a 3 x 3 kernel stay in registers. Unpacking 256 bits leaves channels 0 to 3 and 8 to 11
// in one vector, the others in a second, 128 bits channels 0 to 3 and 4 to 7; packing brings them back. The constants are read in that order.
// Stack: Columns * Pairs * 2 vectors, and the weights of 2 Lanes channels.
#ifndef N2D2_X86_PAIR_DEPTHWISE_HPP
#define N2D2_X86_PAIR_DEPTHWISE_HPP

#include "n2d2/halfwords.hpp"
#include "n2d2/panels/panel_depthwise.hpp"
#include "n2d2/panels/vec.hpp"

namespace n2d2 {

template <class Cfg, class Vec>
struct PairDepthwise : PanelDepthwise<Cfg> {
    typedef PanelDepthwise<Cfg> Base;
    typedef typename Cfg::Output Output;
    typedef typename Cfg::Epilogue Epilogue;
    typedef typename Cfg::Input::Type In;
    typedef typename Output::Type Out;
    typedef typename Base::Lines Lines;
    typedef typename Vec::Ints Ints;

    enum : int {
        KH = Base::KH,
        KW = Base::KW,
        W = Base::W,
        OW = Base::OW,
        Pairs = 2 * (Base::Fours - 1) + (KH % 4 == 1 ? 1 : 2),  // of lines
        Piece = OW < 16 ? int(OW) : 16,
        Columns = (Piece - 1) * Cfg::StrideWidth + (KW - 1) * Cfg::DilationWidth + 1,
        Group = 2 * Vec::Lanes,  // channels
        Fours = Vec::Lanes / 4   // of channels in a vector
    };

    // Column x of Count channels: for each pair of lines, two vectors.
    template <int Count>
    static N2D2_INLINE void column(const Lines& lines, int x, int channel, Ints* to) {
        Ints values[KH];
        N2D2_UNROLL
        for (int u = 0; u < KH; ++u)
            values[u] = Vec::template widened<In, Count>(lines.pixel(u, x, channel));
        N2D2_UNROLL
        for (int i = 0; i < Pairs; ++i) {
            const int first = i / 2 * 4 + i % 2, second = first + 2 < KH ? first + 2 : first;  // its weight is zero
            to[2 * i] = Vec::lowPairs(values[first], values[second]);
            to[2 * i + 1] = Vec::highPairs(values[first], values[second]);
        }
    }
    static N2D2_INLINE void pad(Ints zero, Ints* to) {
        for (int i = 0; i < 2 * Pairs; ++i)
            to[i] = zero;
    }

    // Four lines of a tap of channels 4 j to 4 j + 3 of a panel of Channels, and where a vector has eight of 4 (j + Step) to 4 (j + Step) + 3.
    template <int Channels, int Step = 2>
    static N2D2_INLINE Ints weights(const std::int8_t* w, int panel, int tap, int j) {
        const int other = Fours > 1 ? j + Step : j;
        if (Channels < 16) {  // the last panel, which has only its channels
            alignas(32) std::int8_t all[64] = {};
            std::memcpy(all, w + static_cast<long>(panel) * Base::Taps * 64 + tap * Channels * 4, Channels * 4);
            return Vec::template some<Vec::Lanes>(all + 16 * j, all + 16 * other);
        }
        return Vec::template some<Vec::Lanes>(Base::weightsAt(w, Base::position(panel, j), tap),
                                              Base::weightsAt(w, Base::position(panel, other), tap));
    }

    // The channels of such a vector, of `Channels` of a panel.
    template <int Channels, int J, int Step = 2>
    struct Part {
        enum : int {
            Low = Channels - 4 * J < 0 ? 0 :
                  Channels - 4 * J < 4 ? Channels - 4 * J :
                                         4,
            Behind = Fours > 1 ? Channels - 4 * (J + Step) : 0,
            High = Behind < 0 ? 0 :
                   Behind < 4 ? int(Behind) :
                                4,
            All = High > 0 ? 4 + High : int(Low)
        };
        static N2D2_INLINE Ints bias(const std::int32_t* from, int panel) {
            return All == 0 ? Vec::zero() :
                              Vec::template some<(All > 0 ? int(All) : 1)>(
                                  from + Base::position(panel, J), from + (High > 0 ? Base::position(panel, J + Step) : 0));
        }
        typedef typename Vec::template Epilogue<Epilogue, (All > 0 ? int(All) : 1)> Rescale;
        static N2D2_INLINE Rescale epilogue(int panel) {
            return Rescale(All > 0 ? Base::position(panel, J) : 0, High > 0 ? Base::position(panel, J + Step) : 0);
        }
    };

    // The channels from 4 First on of a panel of Channels, at most Group.
    template <int Channels, int First>
    static N2D2_INLINE void group(const Lines& lines, int panel, Out* out, const std::int8_t* w, const std::int32_t* bias) {
        constexpr int stride = Cfg::StrideWidth, width = W;
        constexpr int count = Channels - 4 * First < Group ? Channels - 4 * First : int(Group);
        constexpr bool bytes = sizeof(Out) == 1;
        typedef Part<Channels, First> Part0;
        typedef Part<Channels, First + 1> Part1;
        Ints taps[KW * Pairs * 2];
        for (int t = 0; t < KW; ++t)
            for (int i = 0; i < 2 * Pairs; ++i) {
                const Ints four = weights<Channels>(w, panel, i / 4 * KW + t, First + i % 2);
                taps[t * Pairs * 2 + i] = Vec::template right16<8>(i / 2 % 2 ? four : Vec::template left16<8>(four));
            }
        const Ints bias0 = Part0::bias(bias, panel), bias1 = Part1::bias(bias, panel);
        const typename Part0::Rescale epilogue0 = Part0::epilogue(panel);
        const typename Part1::Rescale epilogue1 = Part1::epilogue(panel);
        const Ints zero = Vec::spread16(multiplied<In>(Cfg::InputZero));
        Ints columns[Columns * Pairs * 2];
        for (int begin = 0; begin < OW; begin += Piece) {
            const int end = least(int(OW), begin + Piece);
            const int left = begin * stride - Cfg::PadLeft;
            const int size = (end - begin - 1) * stride + (KW - 1) * Cfg::DilationWidth + 1;
            int x = 0;
            for (; x < size && left + x < 0; ++x)
                pad(zero, columns + x * Pairs * 2);
            for (const int stop = least(size, width - left); x < stop; ++x)
                column<count>(lines, left + x, panel * 16 + 4 * First, columns + x * Pairs * 2);
            for (; x < size; ++x)
                pad(zero, columns + x * Pairs * 2);
            for (x = begin; x < end; ++x) {
                const Ints* from = columns + (x - begin) * stride * Pairs * 2;
                // The registers are for the weights: GCC would keep columns for the next pixels, and the weights in memory.
                __asm__("" : "+r"(from));
                Ints a = bias0, b = bias1;
                N2D2_UNROLL
                for (int t = 0; t < KW; ++t) {
                    N2D2_UNROLL
                    for (int i = 0; i < Pairs; ++i) {
                        const Ints* const pair = from + (t * Cfg::DilationWidth * Pairs + i) * 2;
                        a = Vec::addPairs(a, pair[0], taps[(t * Pairs + i) * 2]);
                        b = Vec::addPairs(b, pair[1], taps[(t * Pairs + i) * 2 + 1]);
                        Vec::pin(a, b);
                    }
                }
                Vec::template storeTwo<Epilogue, count>(epilogue0.template apply<bytes>(a), epilogue1.template apply<bytes>(b),
                                                        out + x * Output::Stride + panel * 16 + 4 * First);
            }
        }
    }

    template <int Channels>
    static N2D2_INLINE void block(const Lines& lines, int panel, Out* out, const std::int8_t* w, const std::int32_t* bias) {
        group<Channels, 0>(lines, panel, out, w, bias);
        constexpr bool more = Channels > Group;
        if (more)
            group<(more ? Channels : int(Group) + 1), Group / 4 % 4>(lines, panel, out, w, bias);
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const std::int8_t* w, const std::int32_t* bias,
                                const Rows& rows = Rows::all<Output>()) {
        Base::template lines<PairDepthwise>(in, out, w, bias, rows);
    }
};

}  // namespace n2d2

#endif  // N2D2_X86_PAIR_DEPTHWISE_HPP
