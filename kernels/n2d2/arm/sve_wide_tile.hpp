// The matrix product of the panels with SVE vectors of 256 bits, for inputs or weights of 16 bits: dot products of four (sdot) to sums of 64 bits.
//
// A vector has four outputs; two words of a panel, [16 outputs][2 inputs] each, are joined to four inputs of an output (zip) once for all
// pixels of a tile; ld1rqh reads eight inputs of a pixel. Weights in bytes are widened by their loads. What is kept of the sums is modulo 2^32,
// as is the bias. Windows: halfwords.hpp.
#pragma once

#include "n2d2/arm/sve_finish.hpp"
#include "n2d2/halfwords.hpp"
#include "n2d2/panels/microkernel.hpp"

namespace n2d2 {
namespace sve {

// Tiles of more pixels than registers hold are two smaller ones.
enum : int { WidePixels = 5 };

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue, class Weight = std::int8_t,
          bool Fits = (Pixels <= int(WidePixels))>
struct WideTile {
    static_assert(Panels == 1, "a tile is one panel");
    enum : int { Vectors = (LastOutputs + 7) / 8, Each = 2 * LastOutputs, Fours = Words / 4, Rest = Words % 4 };

    // Of each pixel the sums of four outputs in a vector.
    struct State {
        Longs sums[Pixels][2 * Vectors];
    };

    // Count <= 4 words of each pixel's window, in both halves of a vector; what is missing is 0.
    template <int Count, long Pitch>
    static N2D2_INLINE void inputs(const std::uint8_t* x, Halves* to) {
        N2D2_UNROLL_FOR(p, Pixels)
            to[p] = svreinterpret_s16_u8(svld1rq_u8(byteLanes<(Count < 4 ? 4 * Count : 32)>(), x + p * Pitch));
    }

    static N2D2_INLINE svint16_t widened(svbool_t some, const std::int16_t* w) { return svld1_s16(some, w); }
    static N2D2_INLINE svint16_t widened(svbool_t some, const std::int8_t* w) { return svld1sb_s16(some, w); }
    // Two weights of eight outputs, from vector Vector of a word on; those that the last vector lacks are zeros.
    template <int Vector>
    static N2D2_INLINE svint32_t weights(const Weight* w) {
        constexpr int count = Each - 16 * Vector;
        return svreinterpret_s32_s16(widened(halfLanes<(count > 0 ? count : 1)>(), w + 16 * Vector));
    }

    template <int Lane, bool Two, int Vector>
    static N2D2_INLINE void vector(State& state, const Weight* w, const Halves* x) {
        const svint32_t first = weights<Vector>(w), second = Two ? weights<Vector>(w + Each) : svdup_n_s32(0);
        const svint16_t low = svreinterpret_s16_s32(svzip1_s32(first, second)),
                        high = svreinterpret_s16_s32(svzip2_s32(first, second));
        N2D2_UNROLL_FOR(p, Pixels) {
            Longs* const sums = state.sums[p] + 2 * Vector;
            sums[0] = svdot_lane_s64(sums[0], low, x[p], Lane);
            sums[1] = svdot_lane_s64(sums[1], high, x[p], Lane);
        }
        pin(state.sums[Pixels - 1][2 * Vector + 1]);
    }

    // A word of the panel, or two, with four inputs of all pixels.
    template <int Lane, bool Two>
    static N2D2_INLINE void words(State& state, const Weight* w, const Halves* x) {
        vector<Lane, Two, 0>(state, w, x);
        if (Vectors > 1)
            vector<Lane, Two, (Vectors > 1 ? 1 : 0)>(state, w, x);
    }

    template <long Pitch, class At>
    static N2D2_NOINLINE void run(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output, const At& at) {
        State state;
        N2D2_UNROLL_FOR(i, 2 * Pixels * Vectors)
            state.sums[i / (2 * Vectors)][i % (2 * Vectors)] = svdup_n_s64(0);
        for (int q = 0; q < Fours; ++q, x += 16, w += 4 * Each) {
            Halves all[Pixels];
            inputs<4, Pitch>(x, all);
            words<0, true>(state, w, all);
            words<1, true>(state, w + 2 * Each, all);
        }
        if (Rest > 0) {
            Halves some[Pixels];
            inputs<Rest, Pitch>(x, some);
            words<0, (Rest > 1)>(state, w, some);
            if (Rest > 2)
                words<1, false>(state, w + 2 * Each, some);
        }
        const InOrder order = {output};
        Ints first[Vectors];
        panelOf<LastOutputs>(bias, order, first);
        const PanelEpilogue<Epilogue, LastOutputs> epilogue(order);
        N2D2_UNROLL_FOR(p, Pixels) {
            Ints sums[Vectors];
            N2D2_UNROLL_FOR(v, Vectors)
                sums[v] = svadd_s32_x(
                    svptrue_b32(), first[v],
                    svuzp1_s32(svreinterpret_s32_s64(state.sums[p][2 * v]), svreinterpret_s32_s64(state.sums[p][2 * v + 1])));
            epilogue.store(sums, at(p) + output);
        }
    }
};

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue, class Weight>
struct WideTile<In, Pixels, Panels, Words, LastOutputs, Epilogue, Weight, false> {
    enum : int { First = (Pixels + 1) / 2 };

    template <class At>
    struct Behind {
        const At& at;
        auto operator()(int p) const -> decltype(at(p)) { return at(First + p); }
    };

    template <long Pitch, class At>
    static N2D2_INLINE void run(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output, const At& at) {
        const Behind<At> behind = {at};
        WideTile<In, First, Panels, Words, LastOutputs, Epilogue, Weight>::template run<Pitch>(x, w, bias, output, at);
        WideTile<In, Pixels - First, Panels, Words, LastOutputs, Epilogue, Weight>::template run<Pitch>(x + First * Pitch, w,
                                                                                                        bias, output, behind);
    }
};

}  // namespace sve
}  // namespace n2d2
