// The matrix product of the panels with SVE vectors of 256 bits and their matrix instructions (usmmla), for bytes.
//
// In each 128 bits usmmla multiplies two rows of eight unsigned bytes by two rows of eight signed ones, and adds the four sums: two pixels
// times four outputs in a vector, 64 products. The rows of the pixels are the same in both halves (ld1rqb reads 16 inputs of a pixel twice, trn
// puts two pixels together). Two words of a panel, [16 outputs][4 inputs] each, are joined to rows of eight inputs (zip) once for all pixels of a
// tile. A single pixel takes the dot product (sudot): 32 products, four words of the window from a vector.
// Inputs are unsigned bytes, signed ones + 128; the bias comes to match. Inputs or weights of 16 bits go the way of sve_wide_tile.hpp.
#pragma once

#include "n2d2/arm/neon_dot_tile.hpp"
#include "n2d2/arm/sve_finish.hpp"
#include "n2d2/arm/sve_wide_tile.hpp"

namespace n2d2 {
namespace sve {

// Count <= 16 inputs of a window as unsigned bytes, in both halves of the vector; what it lacks of 16 is multiplied by zeros or not at all.
template <class In, int Count>
N2D2_INLINE svuint8_t window(const std::uint8_t* from) {
    const svuint8_t x = svld1rq_u8(byteLanes<(Count < 16 ? Count : 32)>(), from);
    return std::numeric_limits<In>::is_signed ? sveor_n_u8_x(svptrue_b8(), x, 128) : x;
}

// The weights of vector Vector of a word of Outputs outputs, four for each; those that the last vector lacks are zeros.
template <int Outputs, int Vector>
N2D2_INLINE svint32_t weights(const std::int8_t* w) {
    constexpr int bytes = 4 * Outputs - 32 * Vector;
    return svreinterpret_s32_s8(svld1_s8(byteLanes<(bytes > 0 ? bytes : 1)>(), w + 32 * Vector));
}

template <class In, int Pixels, int Words, int LastOutputs, class Epilogue>
struct Tile {
    static_assert(Pixels > 1 && sizeof(In) == 1, "pixels of bytes");
    enum : int {
        Pairs = (Pixels + 1) / 2,  // of pixels; the last one of an odd number has one pixel twice
        Vectors = (LastOutputs + 7) / 8,
        Bytes = LastOutputs * 4,
        Fours = Words / 4,
        Rest = Words % 4
    };

    // In each half of a vector, of two outputs: the sums of the first pixel of a pair, then those of the second.
    struct State {
        Ints sums[Pairs][2 * Vectors];
    };
    // Of each pair eight inputs of the first pixel, then of the second.
    struct Inputs {
        sve::Bytes low[Pairs], high[Pairs];
    };

    template <int Count, long Pitch>
    static N2D2_INLINE void inputs(const std::uint8_t* x, Inputs& to) {
        N2D2_UNROLL_FOR(i, Pairs) {
            const int second = 2 * i + 1 < Pixels ? 2 * i + 1 : 2 * i;
            const svuint64_t a = svreinterpret_u64_u8(window<In, Count>(x + 2 * i * Pitch)),
                             b = svreinterpret_u64_u8(window<In, Count>(x + second * Pitch));
            to.low[i] = svreinterpret_u8_u64(svtrn1_u64(a, b));
            if (Count > 8)
                to.high[i] = svreinterpret_u8_u64(svtrn2_u64(a, b));
        }
    }

    template <bool Two, int Vector>
    static N2D2_INLINE void vector(State& state, const std::int8_t* w, const sve::Bytes* x) {
        const svint32_t first = weights<LastOutputs, Vector>(w),
                        second = Two ? weights<LastOutputs, Vector>(w + Bytes) : svdup_n_s32(0);
        const svint8_t low = svreinterpret_s8_s32(svzip1_s32(first, second)),
                       high = svreinterpret_s8_s32(svzip2_s32(first, second));
        N2D2_UNROLL_FOR(i, Pairs) {
            Ints* const sums = state.sums[i] + 2 * Vector;
            sums[0] = svusmmla_s32(sums[0], x[i], low);
            sums[1] = svusmmla_s32(sums[1], x[i], high);
        }
        // The next weights are read behind these products: all of them at once do not fit into the registers.
        pin(state.sums[Pairs - 1][2 * Vector + 1]);
    }

    // A word of the panel, or two, with inputs of all pixels.
    template <bool Two>
    static N2D2_INLINE void words(State& state, const std::int8_t* w, const sve::Bytes* x) {
        vector<Two, 0>(state, w, x);
        if (Vectors > 1)
            vector<Two, (Vectors > 1 ? 1 : 0)>(state, w, x);
    }

    // The sums of one pixel.
    static N2D2_INLINE void pixel(const State& state, int p, Ints* to) {
        N2D2_UNROLL_FOR(v, Vectors) {
            const svint64_t low = svreinterpret_s64_s32(state.sums[p / 2][2 * v]),
                            high = svreinterpret_s64_s32(state.sums[p / 2][2 * v + 1]);
            to[v] = svreinterpret_s32_s64(p % 2 == 0 ? svuzp1_s64(low, high) : svuzp2_s64(low, high));
        }
    }

    template <long Pitch, class At>
    static N2D2_NOINLINE void run(const std::uint8_t* x, const std::int8_t* w, const std::int32_t* bias, int output,
                                  const At& at) {
        State state;
        const InOrder order = {output};
        Ints first[Vectors];
        panelOf<LastOutputs>(bias, order, first);
        N2D2_UNROLL_FOR(v, Vectors) {
            const svint64_t two = svreinterpret_s64_s32(first[v]);
            N2D2_UNROLL_FOR(i, Pairs) {
                state.sums[i][2 * v] = svreinterpret_s32_s64(svzip1_s64(two, two));
                state.sums[i][2 * v + 1] = svreinterpret_s32_s64(svzip2_s64(two, two));
            }
        }
        for (int q = 0; q < Fours; ++q, x += 16, w += 4 * Bytes) {
            Inputs all;
            inputs<16, Pitch>(x, all);
            words<true>(state, w, all.low);
            words<true>(state, w + 2 * Bytes, all.high);
        }
        if (Rest > 0) {
            Inputs some;
            inputs<4 * Rest, Pitch>(x, some);
            words<(Rest > 1)>(state, w, some.low);
            if (Rest > 2)
                words<false>(state, w + 2 * Bytes, some.high);
        }
        N2D2_UNROLL_FOR(i, 2 * Pairs * Vectors)  // all products are made before the first pixel is stored
            pin(state.sums[i / (2 * Vectors)][i % (2 * Vectors)]);
        const PanelEpilogue<Epilogue, LastOutputs> epilogue(order);
        N2D2_UNROLL_FOR(p, Pixels) {
            Ints sums[Vectors];
            pixel(state, p, sums);
            epilogue.store(sums, at(p) + output);
        }
    }
};

template <class In, int Words, int LastOutputs, class Epilogue>
struct Tile<In, 1, Words, LastOutputs, Epilogue> {
    enum : int { Vectors = (LastOutputs + 7) / 8, Bytes = LastOutputs * 4, Fours = Words / 4, Rest = Words % 4 };

    // Word Lane of x with the panel's outputs.
    template <int Lane>
    static N2D2_INLINE void word(Ints* sums, const std::int8_t* w, svuint8_t x) {
        sums[0] = svsudot_lane_s32(sums[0], svreinterpret_s8_s32(weights<LastOutputs, 0>(w)), x, Lane);
        if (Vectors > 1)
            sums[Vectors - 1] = svsudot_lane_s32(sums[Vectors - 1], svreinterpret_s8_s32(weights<LastOutputs, 1>(w)), x, Lane);
    }

    template <long Pitch, class At>
    static N2D2_NOINLINE void run(const std::uint8_t* x, const std::int8_t* w, const std::int32_t* bias, int output,
                                  const At& at) {
        Ints sums[Vectors];
        const InOrder order = {output};
        panelOf<LastOutputs>(bias, order, sums);
        for (int q = 0; q < Fours; ++q, x += 16, w += 4 * Bytes) {
            const svuint8_t inputs = window<In, 16>(x);
            word<0>(sums, w, inputs);
            word<1>(sums, w + Bytes, inputs);
            word<2>(sums, w + 2 * Bytes, inputs);
            word<3>(sums, w + 3 * Bytes, inputs);
        }
        if (Rest > 0) {
            const svuint8_t inputs = window<In, 4 * Rest>(x);
            word<0>(sums, w, inputs);
            if (Rest > 1)
                word<1>(sums, w + Bytes, inputs);
            if (Rest > 2)
                word<2>(sums, w + 2 * Bytes, inputs);
        }
        const PanelEpilogue<Epilogue, LastOutputs> epilogue(order);
        epilogue.store(sums, at(0) + output);
    }
};

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue, class Weight>
struct TileOfWeights : WideTile<In, Pixels, Panels, Words, LastOutputs, Epilogue, Weight> {};
struct WideMicrokernel;

struct Microkernel : neondot::Microkernel {
    typedef WideMicrokernel Wide;
    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Tile : Choice<sizeof(In) == 1, sve::Tile<In, Pixels, Words, LastOutputs, Epilogue>,
                         WideTile<In, Pixels, Panels, Words, LastOutputs, Epilogue> >::Type {
        static_assert(Panels == 1, "a tile is one panel");
    };

    // 4 sums and two vectors of two pixels: 24 of 32 registers, 4 for weights.
    static N2D2_INLINE constexpr int tilePixels(int) { return 8; }
};

struct WideMicrokernel : WideWeights<Microkernel, TileOfWeights> {
    static N2D2_INLINE constexpr int tilePixels(int) { return WidePixels; }
};

}  // namespace sve
}  // namespace n2d2
