// The matrix product of the panels with the matrix instructions of ARMv8.6 (I8MM: usmmla), for bytes.
//
// usmmla multiplies two rows of eight unsigned bytes by two rows of eight signed ones, and adds the four sums: two pixels times two
// outputs, 32 products. Inputs are unsigned bytes, signed ones + 128; the bias comes to match. Two words of a panel, [16 outputs][4 inputs]
// each, are joined to rows of eight inputs (zip) once for all pixels of a tile.
// Inputs of 16 bits go the way of neon_tile.hpp.
#pragma once

#include "n2d2/arm/neon_dot_tile.hpp"

namespace n2d2 {
namespace neoni8mm {

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
struct Tile {
    static_assert(Panels == 1 && sizeof(In) == 1, "a tile is one panel, of bytes");
    enum : int {
        Pairs = (Pixels + 1) / 2,  // of pixels; the last one of an odd number has one pixel twice
        Vectors = (LastOutputs + 3) / 4,
        Bytes = LastOutputs * 4
    };

    // Of two pixels and two outputs: the sums of the first pixel, then those of the second.
    struct State {
        int32x4_t sums[Pairs][2 * Vectors];
    };

    // Count bytes, and zeros up to eight.
    template <int Count>
    static N2D2_INLINE uint8x8_t row(const std::uint8_t* from) {
        if (Count == 8)
            return vld1_u8(from);
        std::uint32_t word;
        std::memcpy(&word, from, 4);
        return vreinterpret_u8_u64(vcreate_u64(word));
    }

    // Count inputs, 8 or 4, of the pixels of each pair.
    template <int Count, long Pitch>
    static N2D2_INLINE void inputs(const std::uint8_t* x, uint8x16_t* to) {
        N2D2_UNROLL_FOR(i, Pairs) {
            const int second = 2 * i + 1 < Pixels ? 2 * i + 1 : 2 * i;
            const uint8x16_t both = vcombine_u8(row<Count>(x + 2 * i * Pitch), row<Count>(x + second * Pitch));
            to[i] = std::numeric_limits<In>::is_signed ? veorq_u8(both, vdupq_n_u8(128)) : both;
        }
    }

    // Four outputs, from vector `Vector` of a word on; those that the last four lack are zeros.
    template <int Vector>
    static N2D2_INLINE int32x4_t weights(const std::int8_t* w) {
        return vreinterpretq_s32_s8(neon::bytes<(Bytes - 16 * Vector)>(w + 16 * Vector));
    }

    template <int Count, int Vector>
    static N2D2_INLINE void vector(State& state, const std::int8_t* w, const uint8x16_t* x) {
        const int32x4_t first = weights<Vector>(w), second = Count == 8 ? weights<Vector>(w + Bytes) : vdupq_n_s32(0);
        const int8x16_t low = vreinterpretq_s8_s32(vzip1q_s32(first, second)),
                        high = vreinterpretq_s8_s32(vzip2q_s32(first, second));
        N2D2_UNROLL_FOR(i, Pairs) {
            int32x4_t* const sums = state.sums[i] + 2 * Vector;
            sums[0] = vusmmlaq_s32(sums[0], x[i], low);
            sums[1] = vusmmlaq_s32(sums[1], x[i], high);
        }
        // The next weights are read behind these products: all of them at once do not fit into the registers.
        __asm__ volatile("" : "+w"(state.sums[Pairs - 1][2 * Vector + 1]) : : "memory");
    }

    // Count inputs of the windows, 8 or 4, with the panel's outputs.
    template <int Count, long Pitch>
    static N2D2_INLINE void products(State& state, const std::uint8_t* x, const std::int8_t* w) {
        uint8x16_t pixels[Pairs];
        inputs<Count, Pitch>(x, pixels);
        vector<Count, 0>(state, w, pixels);
        if (Vectors > 1)
            vector<Count, (Vectors > 1 ? 1 : 0)>(state, w, pixels);
        if (Vectors > 2)
            vector<Count, (Vectors > 2 ? 2 : 0)>(state, w, pixels);
        if (Vectors > 3)
            vector<Count, (Vectors > 3 ? 3 : 0)>(state, w, pixels);
    }

    // The sums of one pixel.
    static N2D2_INLINE void pixel(const State& state, int p, int32x4_t* to) {
        N2D2_UNROLL_FOR(v, Vectors) {
            const int64x2_t low = vreinterpretq_s64_s32(state.sums[p / 2][2 * v]),
                            high = vreinterpretq_s64_s32(state.sums[p / 2][2 * v + 1]);
            to[v] = vreinterpretq_s32_s64(p % 2 == 0 ? vzip1q_s64(low, high) : vzip2q_s64(low, high));
        }
    }

    template <long Pitch, class At>
    static N2D2_NOINLINE void run(const std::uint8_t* x, const std::int8_t* w, const std::int32_t* bias, int output,
                                  const At& at) {
        State state;
        N2D2_UNROLL_FOR(i, Pairs)
            N2D2_UNROLL_FOR(v, 2 * Vectors)
                state.sums[i][v] = vdupq_n_s32(0);
        for (int q = 0; q < Words / 2; ++q, x += 8, w += 2 * Bytes)
            products<8, Pitch>(state, x, w);
        if (Words % 2 != 0)
            products<4, Pitch>(state, x, w);
        int32x4_t sums[Pixels][4];
        N2D2_UNROLL_FOR(p, Pixels)
            pixel(state, p, sums[p]);
        neon::finish<LastOutputs, Epilogue>(sums, bias, output, at);
    }
};

struct Microkernel : neondot::Microkernel {
    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Tile : Choice<sizeof(In) == 1, neoni8mm::Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue>,
                         neon::Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue> >::Type {};

    // 8 sums and one vector of two pixels: 27 of 32 registers, 3 more for weights.
    static N2D2_INLINE constexpr int tilePixels(int) { return 6; }
};

}  // namespace neoni8mm
}  // namespace n2d2
