// The matrix product of the panels with NEON: windows of 16-bit integers, multiply-accumulate to 32 bits (smlal).
//
// A word of a panel, [16 outputs][4 inputs] (two inputs of 16 bits), is loaded with its inputs taken apart, widened
// once, and serves all pixels of the tile. Bytes are widened when windows are gathered, signed ones + 128 and unsigned
// 16-bit integers - 32768, as the bias of the panels expects. Sums are modulo 2^32, as is the bias.
#pragma once

#include "n2d2/arm/neon_finish.hpp"
#include "n2d2/halfwords.hpp"
#include "n2d2/panels/microkernel.hpp"

namespace n2d2 {
namespace neon {

// Count bytes, 4, 8, 12 or 16 and more, the rest zeros.
template <int Count>
N2D2_INLINE int8x16_t bytes(const void* from) {
    const std::int8_t* const p = static_cast<const std::int8_t*>(from);
    if (Count >= 16)
        return vld1q_s8(p);
    std::int32_t word = 0;
    if (Count % 8 == 4)
        std::memcpy(&word, p + (Count > 8 ? 8 : 0), 4);
    const int8x8_t last = vreinterpret_s8_s32(vset_lane_s32(word, vdup_n_s32(0), 0));
    return vcombine_s8(Count >= 8 ? vld1_s8(p) : last, Count > 8 ? last : vdup_n_s8(0));
}

// sums += w * input Lane of x, for the outputs of a panel.
template <int Lane>
N2D2_INLINE void multiply(int32x4_t* sums, int16x8_t low, int16x8_t high, int16x4_t x) {
    sums[0] = vmlal_lane_s16(sums[0], vget_low_s16(low), x, Lane);
    sums[2] = vmlal_lane_s16(sums[2], vget_low_s16(high), x, Lane);
#if defined(__aarch64__)
    sums[1] = vmlal_high_lane_s16(sums[1], low, x, Lane);
    sums[3] = vmlal_high_lane_s16(sums[3], high, x, Lane);
#else
    sums[1] = vmlal_lane_s16(sums[1], vget_high_s16(low), x, Lane);
    sums[3] = vmlal_lane_s16(sums[3], vget_high_s16(high), x, Lane);
#endif
}

// The bytes of a word of a panel of Outputs outputs, with its inputs taken apart: value[k] are those of input k.
template <int Each, int Outputs>
struct Word {
    static_assert(Each == 4, "or two, below");
    static N2D2_INLINE void load(const std::int8_t* from, int8x16_t* value) {
        std::int8_t all[64] = {};
        if (Outputs < 16) {
            std::memcpy(all, from, Outputs * 4);
            from = all;
        }
        const int8x16x4_t apart = vld4q_s8(from);
        for (int k = 0; k < 4; ++k)
            value[k] = apart.val[k];
    }
};

// The 16-bit weights of a word, as two inputs have them.
struct Wide {
    int16x8_t low, high;
};
template <int Outputs>
struct Word<2, Outputs> {
    static N2D2_INLINE void load(const std::int8_t* from, int8x16_t* value) {
        std::int8_t all[32] = {};
        const int8x16x2_t apart = vld2q_s8(filled(from, all));
        value[0] = apart.val[0];
        value[1] = apart.val[1];
    }
    static N2D2_INLINE void load(const std::int16_t* from, Wide* value) {
        std::int16_t all[32] = {};
        from = filled(from, all);
        const int16x8x2_t low = vld2q_s16(from), high = vld2q_s16(from + 16);
        value[0] = Wide{low.val[0], high.val[0]};
        value[1] = Wide{low.val[1], high.val[1]};
    }
    template <class Weight>
    static N2D2_INLINE const Weight* filled(const Weight* from, Weight* all) {
        if (Outputs >= 16)
            return from;
        std::memcpy(all, from, 2 * Outputs * sizeof(Weight));
        return all;
    }
};

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue, class Weight = std::int8_t>
struct Tile {
    static_assert(Panels == 1, "a tile is one panel");
    enum : int { Each = WordOf<In, Weight>::Each };
    typedef typename Choice<sizeof(Weight) == 2, Wide, int8x16_t>::Type Weights;

    template <int Lane>
    static N2D2_INLINE void input(int32x4_t (*sums)[4], const Wide& w, const int16x4_t* x) {
        N2D2_UNROLL_FOR(p, Pixels)
            multiply<Lane>(sums[p], w.low, w.high, x[p]);
    }
    template <int Lane>
    static N2D2_INLINE void input(int32x4_t (*sums)[4], int8x16_t w, const int16x4_t* x) {
        input<Lane>(sums, Wide{vmovl_s8(vget_low_s8(w)), vmovl_s8(vget_high_s8(w))}, x);
    }

    template <long Pitch, class At>
    static N2D2_NOINLINE void run(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output, const At& at) {
        int32x4_t sums[Pixels][4];
        N2D2_UNROLL_FOR(p, Pixels)
            N2D2_UNROLL_FOR(v, 4)
                sums[p][v] = vdupq_n_s32(0);
        for (int q = 0; q < Words; ++q) {
            Weights weights[Each];
            int16x4_t inputs[Pixels];
            Word<Each, LastOutputs>::load(w + q * LastOutputs * Each, weights);
            N2D2_UNROLL_FOR(p, Pixels) {
                typename Choice<Each == 4, std::uint64_t, std::uint32_t>::Type word;
                std::memcpy(&word, x + p * Pitch + q * Each * 2, Each * 2);
                inputs[p] = vcreate_s16(word);
            }
            input<0>(sums, weights[0], inputs);
            input<1>(sums, weights[1], inputs);
            if (Each == 4) {
                input<2>(sums, weights[2 % Each], inputs);
                input<3>(sums, weights[3 % Each], inputs);
            }
        }
        finish<LastOutputs, Epilogue>(sums, bias, output, at);
    }
};

// 4 sums of a pixel, the inputs of the pixels, the weights of a word: 30 of 32 registers, or 14 of 16.
#if defined(__aarch64__)
enum : int { TilePixels = 4 };
#else
enum : int { TilePixels = 2 };
#endif

struct Microkernel : OnePanelTiles<TilePixels> {
    typedef WideWeights<Microkernel, neon::Tile> Wide;
    template <class In, int Words>
    struct Windows : Halfwords<In, Words> {};

    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Tile : neon::Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue> {};
};

}  // namespace neon
}  // namespace n2d2
