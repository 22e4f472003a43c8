// Depthwise convolution in vectors of channels, two taps at a time.
//
// An instruction multiplies pairs of 16-bit integers and adds both products to a sum of 32 bits. Two lines of a window are
// interleaved to such pairs, column by column, and each pair is added to all outputs of a run of pixels that it reaches. Of an odd
// number of lines the last one is interleaved with itself, each column with the next one. Sums stay in registers.
//
// Interleaving leaves channels 0 to 3, 8 to 11, ... of 2 Lanes in one vector, the others in a second one; the constants are read in that
// order. Inputs or weights of 16 bits have those of panels/channel_panels.hpp, bytes those of panels/panel_depthwise.hpp.
//
// Members of a struct Panels, derived from ChannelPanels, with the positions of the constants of 2 Lanes channels:
//
//   Place(channel)             first[2], second[2]: the fours of channels of the first and of the second vector
//   Interleaved<Count>         First, Second: channels of both vectors; load(from), Count inputs; pairs(x, y, to), such inputs in turns, as
//                              integers of 16 bits; store<Epilogue>(a, b, to), rescaled sums of pairs in order
//   TapPairs<Count>(place, all)  first: the weights of the pairs of taps; those of two lines come first
//   weights(first, i)          of vector i % 2 for pair i / 2
#pragma once

#include "n2d2/panels/channel_panels.hpp"
#include "n2d2/panels/panel_depthwise.hpp"
#include "n2d2/panels/vec.hpp"

namespace n2d2 {

// Count channels of 16 bits, interleaved as the unpack instructions do.
template <class Vec, int Count>
struct TwoVectors {
    typedef typename Vec::Ints Ints;
    enum : int { First = Count / 8 * 4 + least(Count % 8, 4), Second = Count - First };
    static N2D2_INLINE void pairs(Ints x, Ints y, Ints (&to)[2]) {
        to[0] = Vec::lowPairs(x, y);
        to[1] = Vec::highPairs(x, y);
    }
    template <class Epilogue, class Out>
    static N2D2_INLINE void store(Ints a, Ints b, Out* to) {
        Vec::template storeTwo<Epilogue, Count>(a, b, to);
    }
};

// Constants of inputs or weights of 16 bits.
template <class Cfg, class Vec, int Most>
struct HalfwordPairs : ChannelPanels<Cfg, 2 * Vec::Lanes, Most> {
    typedef ChannelPanels<Cfg, 2 * Vec::Lanes, Most> Base;
    typedef typename Vec::Ints Ints;
    enum : int { Slots = Vec::Lanes < Base::Block / 2 ? int(Vec::Lanes) : Base::Block / 2 };  // of a vector of weights

    struct Place {
        int first[2], second[2];
        long weights;
        N2D2_INLINE explicit Place(int channel) {
            const typename Base::Place place(channel);
            first[0] = place.first;
            first[1] = place.first + 4;
            second[0] = place.second;
            second[1] = place.second + 4;
            weights = place.weights;
        }
    };
    template <int Count>
    struct Interleaved : TwoVectors<Vec, Count> {
        static N2D2_INLINE Ints load(const typename Base::In* from) {
            return Vec::template halfwords<typename Base::In, Count>(from);
        }
    };
    template <int Count>
    struct TapPairs {
        const unsigned char* const first;
        N2D2_INLINE TapPairs(const Place& place, const unsigned char* all) : first(all + place.weights) {}
    };
    static N2D2_INLINE Ints weights(const unsigned char* first, int i) {
        const unsigned char* const from = first + i * Base::SlotBytes;
        return int(Slots) == int(Vec::Lanes) ? Vec::load(from) : Vec::template some<Slots>(from, from + 16);
    }
};

// Constants of bytes, whose weights become pairs on the stack.
template <class Cfg, class Vec, int Most>
struct BytePairs : ChannelPanels<Cfg, 2 * Vec::Lanes, (Vec::Lanes == 8 && Cfg::Input::Channels <= 8 ? 2 * Most : Most)> {
    typedef ChannelPanels<Cfg, 2 * Vec::Lanes, (Vec::Lanes == 8 && Cfg::Input::Channels <= 8 ? 2 * Most : Most)> Base;
    typedef PanelDepthwise<Cfg> Panels;
    typedef typename Vec::Ints Ints;
    enum : int { KH = Base::KH, KW = Base::KW };

    struct Place {
        int panel, four, further, first[2], second[2];  // further: fours of channels from one to the next of a vector
        N2D2_INLINE explicit Place(int channel)
            : panel(channel / 16),
              four(channel % 16 / 4),
              further(Vec::Lanes < 8                                                                ? 0 :
                      panel + 1 == Panels::Panels && Interleaved<Panels::LastChannels>::Second == 0 ? 1 :
                                                                                                      2) {
            for (int i = 0; i < 2; ++i) {
                first[i] = Panels::position(panel, four + i * further);
                second[i] = Panels::position(panel, four + 1 + i * further);
            }
        }
    };
    template <int Count, bool One = (Vec::Lanes == 8 && Count <= 8)>
    struct Interleaved : TwoVectors<Vec, Count> {
        static N2D2_INLINE Ints load(const typename Base::In* from) {
            return Vec::template widened<typename Base::In, Count>(from);
        }
    };
    // Up to eight channels are one vector of eight sums.
    template <int Count>
    struct Interleaved<Count, true> {
        enum : int { First = Count, Second = 0 };
        static N2D2_INLINE Ints load(const typename Base::In* from) {
            return Vec::template flipped<typename Base::In>(Vec::template loadSome<Count>(from));
        }
        static N2D2_INLINE void pairs(Ints x, Ints y, Ints (&to)[2]) { to[0] = to[1] = Vec::bytePairs(x, y); }
        template <class Epilogue, class Out>
        static N2D2_INLINE void store(Ints a, Ints, Out* to) {
            Vec::template storeOne<Epilogue, Count>(a, to);
        }
    };
    template <int Count>
    struct TapPairs {
        Ints vectors[2 * Base::Pairs];
        const unsigned char* const first;
        N2D2_INLINE TapPairs(const Place& place, const unsigned char* all)
            : first(reinterpret_cast<const unsigned char*>(vectors)) {
            const std::int8_t* const w = reinterpret_cast<const std::int8_t*>(all);
            panel<0>(w, place, place.first);
            panel<1>(w, place, place.second);
        }
        // The weights of vector V, whose fours of channels are at `from`.
        template <int V>
        N2D2_INLINE void panel(const std::int8_t* w, const Place& place, const int (&from)[2]) {
            if (place.panel + 1 < Panels::Panels || int(Panels::LastChannels) == 16) {
                pairs<V, 64>(Panels::weightsAt(w, from[0], 0), Panels::weightsAt(w, from[1], 0));
                return;
            }
            constexpr int pitch = 4 * Panels::LastChannels;  // the last panel has only its channels
            const std::int8_t* const last = w + place.panel * Panels::Taps * 64L + 16 * place.four;
            alignas(64) std::int8_t some[Panels::Taps][8 * Vec::Lanes] = {};
            for (int tap = 0; tap < Panels::Taps; ++tap)
                std::memcpy(some[tap], last + tap * pitch, 4 * Count);
            pairs<V, 8 * Vec::Lanes>(some[0] + 16 * V, some[0] + 16 * (V + place.further));
        }
        // Pitch: bytes from four lines of a tap to those of the next one.
        template <int V, int Pitch>
        N2D2_INLINE void pairs(const std::int8_t* a, const std::int8_t* b) {
            Ints* to = vectors + V;
            for (int u = 0; u + 1 < KH; u += 2)
                for (int t = 0; t < KW; ++t, to += 2)
                    *to = lines<Pitch>(a, b, u, t);
            for (int t = 0; KH % 2 != 0 && t < KW; t += 2, to += 2) {
                *to = lines<Pitch>(a, b, KH - 1, t);
                if (t + 1 < KW)
                    *to = Vec::plus(*to, Vec::template left<16>(lines<Pitch>(a, b, KH - 1, t + 1)));
            }
        }
        // Lines u and u + 1 of a tap; beyond the last line are zeros.
        template <int Pitch>
        static N2D2_INLINE Ints lines(const std::int8_t* a, const std::int8_t* b, int u, int t) {
            const int at = (u / 4 * KW + t) * Pitch;
            const Ints fours = Vec::template some<Vec::Lanes>(a + at, b + at);
            return u % 4 == 0 ? Vec::template pairOf<0>(fours) : Vec::template pairOf<1>(fours);
        }
    };
    static N2D2_INLINE Ints weights(const unsigned char* first, int i) { return Vec::loadAligned(first + i * int(Vec::Size)); }
};

// Most: pixels whose sums have registers.
template <class Cfg, class Vec, int Most, class Panels = HalfwordPairs<Cfg, Vec, Most> >
struct ChannelDepthwise : Panels {
    typedef Panels Base;
    N2D2_WINDOWS(Cfg);
    typedef typename Base::Place Place;
    typedef typename Cfg::Epilogue Epilogue;
    typedef typename Vec::Ints Ints;
    enum : int {
        Stride = Base::Stride,
        Dilation = Base::Dilation,
        Pixels = Base::Pixels,
        Piece = 8,  // taps of a line whose pairs are made together
        Rest = KW % Piece
    };

    // Where a window may lie outside: nowhere, before or behind its lines, or anywhere.
    enum Outside : int { Nowhere, Columns, Anywhere };

    // A pixel of a line, what is outside being padding.
    template <Outside Edge, int Count>
    static N2D2_INLINE Ints at(const In* line, int column, const In* padding) {
        constexpr int width = W;
        const bool inside = Edge == Nowhere || ((Edge == Columns || line) && column >= 0 && column < width);
        return Base::template Interleaved<Count>::load(inside ? line + column * Input::Stride : padding);
    }

    // Taps [0, Taps) of lines a and b (Down), or of line a in twos, to the sums of a run of pixels.
    template <int Taps, bool Down, Outside Edge, int Count>
    static N2D2_INLINE void add(const In* a, const In* b, int left, const In* padding, const unsigned char* w, int pair,
                                Ints* sums) {
        constexpr int columns = (Pixels - 1) * Stride + (Taps - 1) * Dilation + 1, step = Down ? 1 : 2;
        typedef typename Base::template Interleaved<Count> Interleaved;
        N2D2_UNROLL_FOR(c, columns) {
            const Ints x = at<Edge, Count>(a, left + c, padding);
            // The last of an odd number of taps has no next one, and a weight of zero.
            const Ints y = Down                   ? at<Edge, Count>(b, left + c, padding) :
                           c + Dilation < columns ? at<Edge, Count>(a, left + c + Dilation, padding) :
                                                    x;
            Ints pairs[2];
            Interleaved::pairs(x, y, pairs);
            __asm__("" : "+r"(w));  // GCC would keep weights in registers, and sums in memory
            N2D2_UNROLL_FOR(p, Pixels) {
                const int from = c - p * Stride, tap = from / Dilation;
                if (from < 0 || from % Dilation != 0 || tap >= Taps || tap % step != 0)
                    continue;
                const int i = 2 * (pair + tap / step);
                sums[2 * p] = Vec::addPairs(sums[2 * p], pairs[0], Base::weights(w, i));
                // GCC would add products in another order, and keep them in memory until then.
                Vec::pin(sums[2 * p]);
                if (Interleaved::Second > 0) {
                    sums[2 * p + 1] = Vec::addPairs(sums[2 * p + 1], pairs[1], Base::weights(w, i + 1));
                    Vec::pin(sums[2 * p + 1]);
                }
            }
        }
    }

    // All taps of the lines.
    template <bool Down, Outside Edge, int Count>
    static N2D2_INLINE void lines(const In* a, const In* b, int left, const In* padding, const unsigned char* w, int pair,
                                  Ints* sums) {
        constexpr int step = Down ? 1 : 2;
        for (int tap = 0; tap + Piece <= KW; tap += Piece)
            add<Piece, Down, Edge, Count>(a, b, left + tap * Dilation, padding, w, pair + tap / step, sums);
        if (Rest > 0)
            add<(Rest > 0 ? int(Rest) : 1), Down, Edge, Count>(a, b, left + (KW - Rest) * Dilation, padding, w,
                                                               pair + (KW - Rest) / step, sums);
    }

    // Count channels of a line of outputs.
    template <int Count>
    struct Channels {
        typedef typename Base::template Interleaved<Count> Interleaved;
        enum : int { First = Interleaved::First, Second = Interleaved::Second, Others = Second > 0 ? int(Second) : 1 };
        const typename Base::template TapPairs<Count> pairs;
        typename Vec::template Epilogue<Epilogue, First> epilogue0;
        typename Vec::template Epilogue<Epilogue, Others> epilogue1;
        Ints bias0, bias1;

        N2D2_INLINE Channels(const Place& place, const unsigned char* weights, const std::int32_t* bias)
            : pairs(place, weights),
              epilogue0(place.first[0], place.first[1]),
              epilogue1(behind(place)[0], behind(place)[1]),
              bias0(Vec::template some<First>(bias + place.first[0], bias + place.first[1])),
              bias1(Second > 0 ? Vec::template some<Others>(bias + place.second[0], bias + place.second[1]) : Vec::zero()) {}
        static N2D2_INLINE const int* behind(const Place& place) { return Second > 0 ? place.second : place.first; }

        N2D2_INLINE void line(const In* const* rows, bool inside, const In* padding, Out* out) const {
            constexpr int width = W, columns = Base::Columns, runs = Base::Runs, last = OW - Pixels;
            constexpr bool within =
                Pixels * Stride >= Cfg::PadLeft && (runs - 2) * Pixels * Stride - Cfg::PadLeft + columns <= width;
            for (int i = 0; i < runs && !inside; ++i) {
                const int x = least(i * Pixels, last);
                run<Anywhere>(rows, x * Stride - Cfg::PadLeft, padding, out + x * Output::Stride);
            }
            if (!inside)
                return;
            // Which columns of the first run and of the last one lie outside is known to the compiler.
            run<Columns>(rows, -Cfg::PadLeft, padding, out);
            for (int i = 1; i < runs - 1; ++i) {
                const int left = i * Pixels * Stride - Cfg::PadLeft;
                Out* const to = out + i * Pixels * Output::Stride;
                if (within || (left >= 0 && left + columns <= width))
                    run<Nowhere>(rows, left, padding, to);
                else
                    run<Columns>(rows, left, padding, to);
            }
            if (runs > 1)
                run<Columns>(rows, last * Stride - Cfg::PadLeft, padding, out + last * Output::Stride);
        }

        // Pixels outputs from one on.
        template <Outside Edge>
        N2D2_INLINE void run(const In* const* rows, int left, const In* padding, Out* out) const {
            const unsigned char* const w = pairs.first;
            constexpr bool bytes = sizeof(Out) == 1;
            Ints sums[2 * Pixels];
            N2D2_UNROLL_FOR(p, Pixels) {
                sums[2 * p] = bias0;
                sums[2 * p + 1] = bias1;
            }
            for (int u = 0; u + 1 < KH; u += 2)
                lines<true, Edge, Count>(rows[u], rows[u + 1], left, padding, w, u / 2 * KW, sums);
            if (KH % 2 != 0)
                lines<false, Edge, Count>(rows[KH - 1], nullptr, left, padding, w, KH / 2 * KW, sums);
            N2D2_UNROLL_FOR(p, Pixels)
                Interleaved::template store<Epilogue>(epilogue0.template apply<bytes>(sums[2 * p]),
                                                      epilogue1.template apply<bytes>(sums[2 * p + 1]),
                                                      out + p * Output::Stride);
        }
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const std::int32_t* bias, const Rows& rows = Rows::all<Output>()) {
        Base::template lines<ChannelDepthwise>(in, out, weights, bias, rows);
    }
};

}  // namespace n2d2
