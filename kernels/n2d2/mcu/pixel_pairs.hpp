// Products of bytes for RV32IM: two pixels in a word, so that one MUL gives two products; four or six pixels and two outputs at a time.
//
// A word x0 + 2^16 * x1 of the inputs of two pixels times a weight is x0 w + 2^16 * x1 w. Sums of a few taps fit 16 bits each, which the
// exporter has proved from the weights (|x| <= 128; unsigned inputs are taken 128 lower, which the bias makes up for). For each group
//
//   high += (group + 2^15) >> 16     the sum of the second pixel
//   total += group                   modulo 2^32: first + 2^16 * second
//
// and first = total - 2^16 * high at the end. A group has eight taps, or four or two where the weights are too large for more. Constants of
// two outputs are one stream, in words:
//
//   both biases;  for every ten groups their sizes, three bits each from the highest ones on (4: four
//   taps, 2: eight, 1: two, 0: no more), and bytes of weights (A, B);  both multipliers, doubled
//
// q = clamp(zero + ((sum * m + 2^31) >> 32)) is (mulhsu(sum, 2 m) + 1 + 2 zero) >> 1. Where sums are doubled (lanes::Rounding), 2 m of both
// outputs, an addend of both and a shift of both follow: mulhsu(sum, 2 m) is rounded once, with 2^(shift-1) and the zero point less the
// highest result in the addend; mulhsu(2 sum, 2 m), which has a bit more, twice, two less for ties below 0. Clamps do not jump: of x - high what is negative
// stays, of that plus high - low what is not. A shift by -1 is one by 31, which leaves 0 in the byte that is stored.
#pragma once

#include "n2d2/mcu/lane_shape.hpp"

namespace n2d2 {
namespace pixels {

using lanes::Results;

// The sign of x in all bits; hidden, so that the compiler does not make a jump of it.
N2D2_INLINE std::int32_t signOf(std::int32_t x) {
    std::int32_t sign = x >> 31;
    __asm__("" : "+r"(sign));
    return sign;
}

// The rescale of the sums of an output, and its limits.
template <int Rounding, bool Low>
struct Scale {
    const std::uint32_t multiplier;
    const std::int32_t addend, shift, range, low;

    // `from`: the constants of an output, `apart` words from one to the next.
    N2D2_INLINE Scale(const std::int32_t* from, int apart, const Results& stored)
        : multiplier(static_cast<std::uint32_t>(from[0])),
          addend(Rounding == int(lanes::HighWord) ? 1 + 2 * (stored.zero - stored.high) : from[apart]),
          shift(Rounding == int(lanes::HighWord) ? 1 : from[2 * apart]),
          range(stored.high - stored.low),
          low(stored.low) {}

    N2D2_INLINE unsigned char of(std::uint32_t sum) const {
        constexpr bool twice = Rounding == int(lanes::Twice) || Rounding == int(lanes::TwiceSigned);
        const std::int64_t product = static_cast<std::int64_t>(static_cast<std::int32_t>(twice ? sum << 1 : sum)) * multiplier;
        std::int32_t x = static_cast<std::int32_t>(product >> 32);
        if (Rounding == int(lanes::TwiceSigned))
            x += 2 * signOf(x + 1);
        x = (x + addend) >> shift;
        x = (x & signOf(x)) + range;
        return static_cast<unsigned char>((static_cast<std::uint32_t>(x) << (signOf(x) & 31)) +
                                          (Low ? static_cast<std::uint32_t>(low) : 0));
    }
};

// Numbers of two outputs, A and B, for each pair of pixels; four pixels have no third one. By name: at -O2 arrays would be in memory.
template <int Pixels>
struct Pairs {
    std::uint32_t a0, a1, a2, b0, b1, b2;

    N2D2_INLINE Pairs(std::uint32_t a, std::uint32_t b) : a0(a), a1(a), a2(a), b0(b), b1(b), b2(b) {}
    // Adds the products of a tap. Loads stay in the step that uses them, so that sums stay in registers.
    N2D2_INLINE void add(const std::uint32_t* window, const std::int8_t* weights) {
        const std::uint32_t x = window[0], y = window[1], z = Pixels == 6 ? window[2] : 0;
        addProducts(x, y, z, static_cast<std::uint32_t>(weights[0]), a0, a1, a2);
        addProducts(x, y, z, static_cast<std::uint32_t>(weights[1]), b0, b1, b2);
    }
    static N2D2_INLINE void addProducts(std::uint32_t x, std::uint32_t y, std::uint32_t z, std::uint32_t weight,
                                        std::uint32_t& first, std::uint32_t& second, std::uint32_t& third) {
        first += x * weight, second += y * weight, third += z * weight;
        if (Pixels == 6)
            __asm__ volatile("" : "+r"(first), "+r"(second), "+r"(third) : : "memory");
        else
            __asm__ volatile("" : "+r"(first), "+r"(second) : : "memory");
    }
    N2D2_INLINE void add(const Pairs& sums) {
        a0 += sums.a0, a1 += sums.a1, a2 += sums.a2;
        b0 += sums.b0, b1 += sums.b1, b2 += sums.b2;
    }
    // The second pixel of each pair.
    N2D2_INLINE void addUpper(const Pairs& sums) {
        std::uint32_t half = 0x8000u;
        __asm__ volatile("" : "+r"(half));  // takes no register before
        const auto upper = [half](std::uint32_t both) N2D2_INLINE_LAMBDA {
            return static_cast<std::uint32_t>(static_cast<std::int32_t>(both + half) >> 16);
        };
        a0 += upper(sums.a0), a1 += upper(sums.a1), a2 += upper(sums.a2);
        b0 += upper(sums.b0), b1 += upper(sums.b1), b2 += upper(sums.b2);
    }
};

// The sums of a window: modulo 2^32 those of both pixels of a pair, and those of the second one.
template <int Pixels>
struct WindowSums {
    const std::uint32_t* window;
    const std::int8_t* stream;
    Pairs<Pixels> total, high;

    N2D2_INLINE WindowSums(const std::uint32_t* begin, const std::int8_t* weights, std::uint32_t a, std::uint32_t b)
        : window(begin), stream(weights), total(a * 0x10001u, b * 0x10001u), high(a, b) {}
    template <int Taps>
    N2D2_INLINE void group() {
        Pairs<Pixels> sums(0, 0);
        N2D2_UNROLL_FOR(tap, Taps)
            sums.add(window + Pixels / 2 * tap, stream + 2 * tap);
        high.addUpper(sums);
        total.add(sums);
        window += Pixels / 2 * Taps;
        stream += 2 * Taps;
    }
    N2D2_INLINE void add(const std::uint32_t* end) {
        while (window != end) {
            std::uint32_t sizes = *elementsOf<std::uint32_t>(stream);
            for (stream += 4;; sizes <<= 3) {
                if (static_cast<std::int32_t>(sizes) < 0)
                    group<4>();
                else if (static_cast<std::int32_t>(sizes << 1) < 0)
                    group<8>();
                else if (sizes != 0)
                    group<2>();
                else
                    break;
            }
        }
    }
};

// All outputs, a multiple of two, of Pixels pixels, stored at `out`. The window has pixels (0, 1), (2, 3) and so on of each tap, of which there
// is an even number.
template <int Rounding, int Pixels, bool Low>
N2D2_MCU_FAST void products(const std::uint32_t* window, const std::uint32_t* end, const std::int8_t* stream, int outputs,
                            const Results& stored, unsigned char* const* out) {
    const Results limits = stored;  // nothing stored changes it
    for (int o = 0; o < outputs; o += 2) {
        const std::uint32_t* const bias = elementsOf<std::uint32_t>(stream);
        WindowSums<Pixels> sums(window, stream + 8, bias[0], bias[1]);
        sums.add(end);
        const std::int32_t* const words = elementsOf<std::int32_t>(sums.stream);
        const Scale<Rounding, Low> a(words, 2, limits), b(words + 1, 2, limits);
        stream = sums.stream + (Rounding == int(lanes::HighWord) ? 8 : 24);
        const auto store = [&](int pixel, std::uint32_t totalA, std::uint32_t highA, std::uint32_t totalB, std::uint32_t highB)
                               N2D2_INLINE_LAMBDA {
                                   unsigned char *const first = out[pixel] + o, *const second = out[pixel + 1] + o;
                                   first[0] = a.of(totalA - (highA << 16));
                                   first[1] = b.of(totalB - (highB << 16));
                                   second[0] = a.of(highA);
                                   second[1] = b.of(highB);
                               };
        store(0, sums.total.a0, sums.high.a0, sums.total.b0, sums.high.b0);
        store(2, sums.total.a1, sums.high.a1, sums.total.b1, sums.high.b1);
        if (Pixels == 6)
            store(4, sums.total.a2, sums.high.a2, sums.total.b2, sums.high.b2);
    }
}

}  // namespace pixels
}  // namespace n2d2
