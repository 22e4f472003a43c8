// From accumulators to the integers of the next tensor. One definition per mode:
//
//   FloatRescale       roundHalfEven(float(sum) * factor)
//   FixedPointRescale  (sum * m + 2^(p-1)) >> p, 64-bit product, ties go up; p = 0 adds nothing
//   ShiftRescale       the same with m = 1 (single shift) or m = 2^(b-a) + 1 (double shift), p per output
//
//   FloatRescale with an addend  roundHalfEven((float(sum) + addend) * factor)
//   StepRescale                  roundHalfEven(real / step), of a real number instead of a sum
//   DoublingRescale              (sum * m + 2^30) >> 31, then a rounding shift, ties away from 0: as TFLite's kernels
//
// and then clamped to [Low, High]. The constants are one for the layer (Count = 1) or one per index,
// which is the output channel, or whatever the kernel counts. Products fit into 64 bits: the
// exporter chooses the multipliers from the bound of the sums.
//
// The float mode clamps before it rounds; both orders give the same integers because the limits are
// integers. What is left lies in +-2^22, where adding and subtracting 1.5 * 2^23 rounds to an integer,
// ties to even, on any machine that rounds to nearest, and vectorises everywhere. The clamp between
// the product and the sum also keeps a compiler from contracting them into one fused operation.
#pragma once

#include <cmath>

#include "n2d2/steady.hpp"

namespace n2d2 {

// The integer nearest to x, ties to even, for Low <= x <= High.
template <std::int64_t Low, std::int64_t High, bool Small = (Low >= -(1 << 22) && High <= (1 << 22))>
struct RoundHalfEven {
    static N2D2_INLINE std::int32_t apply(float x) {
        constexpr float magic = 12582912.0f;  // 1.5 * 2^23
        return static_cast<std::int32_t>((x + magic) - magic);
    }
};

// Limits beyond 2^24 may not be exact in x, hence the second clamp.
template <std::int64_t Low, std::int64_t High>
struct RoundHalfEven<Low, High, false> {
    static N2D2_INLINE std::int32_t apply(float x) {
        const std::int64_t rounded = static_cast<std::int64_t>(std::nearbyint(x));
        return static_cast<std::int32_t>(least(largest(rounded, Low), High));
    }
};

// The addend of a sum before it is multiplied.
struct NoAddend {
    static N2D2_INLINE float apply(float sum, int) { return sum; }
};

// Fractions, one for the layer or one per index.
template <const float* Fractions, int Count>
struct Fraction {
    static N2D2_INLINE float apply(float sum, int index) { return sum + Fractions[Count == 1 ? 0 : index]; }
};

// Bounded: no sum of the layer times its factor is 2^30 or more, which lets vector kernels clamp after rounding.
template <const float* Factors, int Count, bool Bounded = false, class Addend = NoAddend>
struct FloatRescale {
    template <std::int64_t Low, std::int64_t High, class Sum>
    static N2D2_INLINE std::int32_t apply(Sum sum, int index) {
        constexpr float low = static_cast<float>(Low);
        constexpr float high = static_cast<float>(High);
        const float product = Addend::apply(static_cast<float>(sum), index) * Factors[Count == 1 ? 0 : index];
        // Two independent comparisons of the product: nested ones are turned into branches by some compilers.
        const float below = product < high ? product : high;
        return RoundHalfEven<Low, High>::apply(product > low ? below : low);
    }
};

// Step: a struct { static constexpr float step(); }. A quotient is no product: nothing can be contracted.
// Bounded: no quotient reaches 2^22, so that it can be rounded first and clamped as an integer, which every compiler
// vectorises.
template <class Step, bool Bounded = false>
struct StepRescale {
    template <std::int64_t Low, std::int64_t High>
    static N2D2_INLINE std::int32_t apply(float real, int) {
        constexpr float low = static_cast<float>(Low);
        constexpr float high = static_cast<float>(High);
        const float quotient = real / Step::step();
        if (Bounded) {
            constexpr float magic = 12582912.0f;  // 1.5 * 2^23
            const std::int32_t rounded = static_cast<std::int32_t>((quotient + magic) - magic);
            return least(largest(rounded, static_cast<std::int32_t>(Low)), static_cast<std::int32_t>(High));
        }
        const float below = quotient < high ? quotient : high;
        return RoundHalfEven<Low, High>::apply(quotient > low ? below : low);
    }
};

template <const std::int32_t* Multipliers, int Count, int Shift>
struct FixedPointRescale {
    static_assert(Shift >= 0 && Shift <= 62, "the shift must leave room for the sign");

    template <std::int64_t Low, std::int64_t High, class Sum>
    static N2D2_INLINE std::int32_t apply(Sum sum, int index) {
        constexpr std::int64_t half = (std::int64_t(1) << Shift) >> 1;
        constexpr bool words = sizeof(std::size_t) == 4 && Shift == 32 && sizeof(Sum) == 4 && sizeof(Multipliers[0]) == 4 &&
                               Low >= std::numeric_limits<std::int32_t>::min() &&
                               High <= std::numeric_limits<std::int32_t>::max();
        if (words)  // registers have 32 bits
            return held<Low, High>(roundedHigh(static_cast<std::int32_t>(sum), Multipliers[Count == 1 ? 0 : index]));
        const std::int64_t x = (times<std::int64_t>(sum, Multipliers[Count == 1 ? 0 : index]) + half) >> Shift;
        return static_cast<std::int32_t>(Shift > 0 ? held<Low, High>(x) : lower(higher(x, Low), High));
    }
};

// Multipliers are below 2^31, sums and their left shifts within 2^30. Right: all shifts are 1 or more; else one of 0 or less shifts the sum to
// the left. Without Twice it is rounded once, ties up. No tie below 0 is told where results are not negative.
template <const std::int32_t* Multipliers, const std::int32_t* Shifts, int Count, bool Twice, bool Right>
struct DoublingRescale {
    template <std::int64_t Low, std::int64_t High, class Sum>
    static N2D2_INLINE std::int32_t apply(Sum sum, int index) {
        const std::int32_t multiplier = Multipliers[Count == 1 ? 0 : index], shift = Shifts[Count == 1 ? 0 : index];
        const std::int32_t right = Right || shift > 0 ? shift : 0, rounded = Twice || right == 0;
        const std::int32_t x = static_cast<std::int32_t>(sum) * (1 << (right - shift));
        std::int32_t doubled;
        if (Twice && sizeof(std::size_t) == 4) {  // m is at most half of 2^32: what is left below that is negative as a word
            const std::int32_t less = static_cast<std::int32_t>(static_cast<std::uint32_t>(multiplier) << 1);
            doubled = roundedHigh(x, less) + (x & (less >> 31));
        } else {
            doubled = static_cast<std::int32_t>((times<std::int64_t>(x, multiplier) + (std::int64_t(rounded) << 30)) >> 31);
        }
        const std::int32_t away = Twice && Low < 0 && right > 0 ? doubled >> 31 : 0;
        return held<Low, High>((doubled + away + ((1 << right) >> 1)) >> right);
    }
};

// Shifts holds `second`, Multipliers 1 or 2^(second - first) + 1.
template <const std::int64_t* Multipliers, const std::uint8_t* Shifts, int Count>
struct ShiftRescale {
    template <std::int64_t Low, std::int64_t High, class Sum>
    static N2D2_INLINE std::int32_t apply(Sum sum, int index) {
        const int shift = Shifts[Count == 1 ? 0 : index];
        const std::int64_t half = (std::int64_t(1) << shift) >> 1;
        const std::int64_t x = (times<std::int64_t>(sum, Multipliers[Count == 1 ? 0 : index]) + half) >> shift;
        return static_cast<std::int32_t>(held<Low, High>(x));
    }
};

}  // namespace n2d2
