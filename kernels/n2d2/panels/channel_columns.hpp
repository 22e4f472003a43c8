// Depthwise convolution where an instruction multiplies lane by lane: vectors of eight channels, one tap at a time.
//
// A column of a line is widened once and multiplied with all taps that lie on it, for a run of pixels whose sums stay in registers. The
// weights of a group of eight channels are brought into the order of taps once for each line.
// Stack: a vector of weights for each tap.
//
// Members of a struct Vec of an instruction set (arm/neon_channels.hpp):
//
//   Sums, Inputs, Weights      of eight channels
//   most(taps)                 pixels whose sums have registers, beside weights
//   inputs<In, Count>(from)    Count inputs as signed integers of 16 bits; unsigned ones of 16 bits - 32768
//   weights(a, b, first, second)  of two taps, pairs of four channels from a on, of the other four from b on
//   bias<Count>(from, first, second)    the sums to begin with, from from[first] on, and from[second] on behind four
//   add(sums, x, w)            sums + x * w, modulo 2^32
//   Epilogue<S, Count>(first, second), store(sums, to)    rescales and stores Count <= 8 sums
//
// Members of a struct Panels, derived from ChannelPanels, with the positions of the constants of eight channels:
//
//   Place(channel)             first and second, as of `bias`, and whatever says where the weights are
//   taps<Count>(place, all, to, bias)    the weights of all taps, line by line; the bias may change with them
#pragma once

#include "n2d2/panels/channel_panels.hpp"

namespace n2d2 {

// Constants of inputs or weights of 16 bits: those of panels/channel_panels.hpp.
template <class Cfg, class Vec>
struct HalfwordColumns : ChannelPanels<Cfg, 8, Vec::most(Cfg::KernelHeight* Cfg::KernelWidth)> {
    typedef ChannelPanels<Cfg, 8, Vec::most(Cfg::KernelHeight* Cfg::KernelWidth)> Base;
    enum : int { KH = Base::KH, KW = Base::KW, SlotBytes = Base::SlotBytes };

    template <int Count>
    static N2D2_INLINE void taps(const typename Base::Place& place, const unsigned char* all, typename Vec::Weights* to,
                                 typename Vec::Sums&) {
        const unsigned char* w = all + place.weights;
        for (int u = 0; u + 1 < KH; u += 2)
            for (int t = 0; t < KW; ++t, w += 2 * SlotBytes)
                Vec::weights(w, w + SlotBytes, to[u * KW + t], to[(u + 1) * KW + t]);
        if (KH % 2 != 0)
            for (int t = 0; t < KW; t += 2, w += 2 * SlotBytes)  // the last one of an odd number is followed by zeros
                Vec::weights(w, w + SlotBytes, to[(KH - 1) * KW + t], to[(KH - 1) * KW + t + 1]);
    }
};

template <class Cfg, class Vec, class Panels = HalfwordColumns<Cfg, Vec> >
struct ChannelColumns : Panels {
    typedef Panels Base;
    N2D2_WINDOWS(Cfg);
    typedef typename Base::Place Place;
    typedef typename Vec::Sums Sums;
    enum : int {
        Stride = Base::Stride,
        Dilation = Base::Dilation,
        Pixels = Base::Pixels,
        Piece = 8,  // taps of a line whose columns are read together
        Rest = KW % Piece,
        Zero = sizeof(In) == 2 && !std::numeric_limits<In>::is_signed ? Cfg::InputZero - 32768 : int(Cfg::InputZero),
        Nothing = int(Zero) == 0  // is what padding adds
    };

    // Count channels of a line of outputs.
    template <int Count>
    struct Channels {
        typename Vec::template Epilogue<typename Cfg::Epilogue, Count> epilogue;
        Sums bias;
        typename Vec::Weights weights[KH * KW + 1];

        N2D2_INLINE Channels(const Place& place, const unsigned char* all, const std::int32_t* from)
            : epilogue(place.first, Count > 4 ? place.second : place.first),
              bias(Vec::template bias<Count>(from, place.first, Count > 4 ? place.second : place.first)) {
            Base::template taps<Count>(place, all, weights, bias);
        }

        // Taps [0, Taps) of a line to the sums of a run of pixels. Edge: columns may lie outside; where they do is known to the compiler
        // in the first run of a line and in the last one.
        template <int Taps, bool Edge>
        static N2D2_INLINE void add(const In* line, int left, const In* padding, const typename Vec::Weights* w, Sums* sums) {
            constexpr int columns = (Pixels - 1) * Stride + (Taps - 1) * Dilation + 1, width = W;
            N2D2_UNROLL_FOR(i, columns) {
                const int column = left + i;
                const bool inside = !Edge || (column >= 0 && column < width);
                if (!inside && bool(Nothing))
                    continue;
                const typename Vec::Inputs x =
                    Vec::template inputs<In, Count>(inside ? line + column * Input::Stride : padding);
                N2D2_UNROLL_FOR(p, Pixels) {
                    const int from = i - p * Stride, tap = from / Dilation;
                    if (from >= 0 && from % Dilation == 0 && tap < Taps)
                        Vec::add(sums[p], x, w[tap]);
                }
            }
        }
        // All taps of a line of padding.
        static N2D2_INLINE void addPadding(const In* padding, const typename Vec::Weights* w, Sums* sums) {
            const typename Vec::Inputs x = Vec::template inputs<In, Count>(padding);
            for (int tap = 0; tap < KW; ++tap)
                N2D2_UNROLL_FOR(p, Pixels)
                    Vec::add(sums[p], x, w[tap]);
        }

        // Pixels outputs from one on.
        template <bool Edge>
        N2D2_INLINE void run(const In* const* rows, int left, const In* padding, Out* out) const {
            Sums sums[Pixels];
            N2D2_UNROLL_FOR(p, Pixels)
                sums[p] = bias;
            for (int u = 0; u < KH; ++u) {
                const typename Vec::Weights* const w = weights + u * KW;
                if (!rows[u]) {
                    if (!Nothing)
                        addPadding(padding, w, sums);
                    continue;
                }
                for (int tap = 0; tap + Piece <= KW; tap += Piece)
                    add<Piece, Edge>(rows[u], left + tap * Dilation, padding, w + tap, sums);
                if (Rest > 0)
                    add<(Rest > 0 ? int(Rest) : 1), Edge>(rows[u], left + (KW - Rest) * Dilation, padding, w + KW - Rest, sums);
            }
            N2D2_UNROLL_FOR(p, Pixels)
                epilogue.store(sums[p], out + p * Output::Stride);
        }
        N2D2_INLINE void line(const In* const* rows, bool, const In* padding, Out* out) const {
            constexpr int width = W, columns = Base::Columns, runs = Base::Runs, last = OW - Pixels;
            run<(Cfg::PadLeft > 0 || columns > width)>(rows, -Cfg::PadLeft, padding, out);
            for (int i = 1; i < runs - 1; ++i) {
                const int left = i * Pixels * Stride - Cfg::PadLeft;
                Out* const to = out + i * Pixels * Output::Stride;
                if (left >= 0 && left + columns <= width)
                    run<false>(rows, left, padding, to);
                else
                    run<true>(rows, left, padding, to);
            }
            if (runs > 1)
                run<true>(rows, last * Stride - Cfg::PadLeft, padding, out + last * Output::Stride);
        }
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const std::int32_t* bias, const Rows& rows = Rows::all<Output>()) {
        Base::template lines<ChannelColumns>(in, out, weights, bias, rows);
    }
};

}  // namespace n2d2
