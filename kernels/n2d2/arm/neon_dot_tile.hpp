// The matrix product of the panels with the dot product instructions of ARMv8.2 (sdot), for bytes.
//
// sdot multiplies signed bytes by signed bytes. Unsigned inputs are therefore turned to input - 128, by one exclusive or for
// 16 of them, and signed ones are taken as they are; the bias comes to match (N2D2_NEON_DOT, `Array.dots` of the exporter).
// Four words of a window, 16 inputs, are one vector, of which an instruction takes one word.
// Inputs of 16 bits go the way of neon_tile.hpp.
#pragma once

#include "n2d2/arm/neon_tile.hpp"
#include "n2d2/vectors/byte_window.hpp"

namespace n2d2 {
namespace neondot {

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
struct Tile {
    static_assert(Panels == 1 && sizeof(In) == 1, "a tile is one panel, of bytes");
    enum : int { Vectors = (LastOutputs + 3) / 4, Fours = Words / 4, Rest = Words % 4, Bytes = LastOutputs * 4 };

    struct State {
        int32x4_t sums[Pixels][4];
    };

    template <int Count>
    static N2D2_INLINE int8x16_t window(const std::uint8_t* from) {
        const int8x16_t x = neon::bytes<Count>(from);
        return std::numeric_limits<In>::is_signed ? x : veorq_s8(x, vdupq_n_s8(-128));
    }

    template <int Lane, int Vector>
    static N2D2_INLINE void vector(State& state, const std::int8_t* w, const int8x16_t* x) {
        const int8x16_t value = neon::bytes<(Bytes - 16 * Vector)>(w + 16 * Vector);
        N2D2_UNROLL_FOR(p, Pixels)
            state.sums[p][Vector] = vdotq_laneq_s32(state.sums[p][Vector], value, x[p], Lane);
    }

    // Word Lane of the vectors x with the panel's outputs.
    template <int Lane>
    static N2D2_INLINE void word(State& state, const std::int8_t* w, const int8x16_t* x) {
        vector<Lane, 0>(state, w, x);
        if (Vectors > 1)
            vector<Lane, 1>(state, w, x);
        if (Vectors > 2)
            vector<Lane, 2>(state, w, x);
        if (Vectors > 3)
            vector<Lane, 3>(state, w, x);
    }

    template <long Pitch, class At>
    static N2D2_NOINLINE void run(const std::uint8_t* x, const std::int8_t* w, const std::int32_t* bias, int output,
                                  const At& at) {
        State state;
        N2D2_UNROLL_FOR(p, Pixels)
            N2D2_UNROLL_FOR(v, 4)
                state.sums[p][v] = vdupq_n_s32(0);
        for (int q = 0; q < Fours; ++q, w += 4 * Bytes) {
            int8x16_t inputs[Pixels];
            N2D2_UNROLL_FOR(p, Pixels)
                inputs[p] = window<16>(x + p * Pitch + q * 16);
            word<0>(state, w, inputs);
            word<1>(state, w + Bytes, inputs);
            word<2>(state, w + 2 * Bytes, inputs);
            word<3>(state, w + 3 * Bytes, inputs);
        }
        if (Rest > 0) {
            int8x16_t inputs[Pixels];
            N2D2_UNROLL_FOR(p, Pixels)
                inputs[p] = window<4 * Rest>(x + p * Pitch + Fours * 16);
            word<0>(state, w, inputs);
            if (Rest > 1)
                word<1>(state, w + Bytes, inputs);
            if (Rest > 2)
                word<2>(state, w + 2 * Bytes, inputs);
        }
        neon::finish<LastOutputs, Epilogue>(state.sums, bias, output, at);
    }
};

// 4 sums and one vector of a pixel: 20 of 32 registers; the others load weights ahead.
struct Microkernel : OnePanelTiles<4> {
    typedef neon::Microkernel::Wide Wide;
    // Bytes as they are stored.
    template <class In, int Words>
    struct Windows : vectors::ByteWindow<In, Words, std::numeric_limits<In>::is_signed> {};

    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Tile : Choice<sizeof(In) == 1, neondot::Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue>,
                         neon::Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue> >::Type {};
};

}  // namespace neondot
}  // namespace n2d2
