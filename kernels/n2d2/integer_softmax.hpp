// Softmax of lines of integers, with powers in 2^-15 (n2d2py/arithmetic/attention.py), d = largest - q:
//
//   e = powers[d]                                                           bytes
//   e = 2^(15 - x / 2^15), x = min(d, Limit) * Multiplier >> Shift          16 bits, by a polynomial
//   out = Share(e, sum of e) + OutZero, held within [Low, High]
//
// Masked: element i of line k counts where bit i % 8 of byte i / 8 of row k % Masks of the mask is set; e is 0 elsewhere.
//
// Config: planes Input, Output, of one pixel; type Share; enum Outer, Size, Inner, Low, High, OutZero: lines along the middle axis of
// (Outer, Size, Inner); of 16 bits also Multiplier, Shift, Limit; masked also Masks, and Inner is 1. The output lies apart from the
// input.
#ifndef N2D2_INTEGER_SOFTMAX_HPP
#define N2D2_INTEGER_SOFTMAX_HPP

#include "n2d2/array.hpp"
#include "n2d2/rescale.hpp"

namespace n2d2 {

// rint(float(e) * (factor / float(sum))).
template <const float* Factor>
struct FloatShare {
    const float inverse;
    N2D2_INLINE explicit FloatShare(std::int32_t total) : inverse(Factor[0] / static_cast<float>(total)) {}
    template <std::int64_t Low, std::int64_t High>
    N2D2_INLINE std::int32_t of(std::int32_t power) const {
        constexpr float low = static_cast<float>(Low), high = static_cast<float>(High);
        const float product = static_cast<float>(power) * inverse;
        const float below = product < high ? product : high;
        return RoundHalfEven<Low, High>::apply(product > low ? below : low);
    }
};

// (e * floor(numerator / sum) + 2^31) >> 32.
template <const std::int64_t* Numerator>
struct FixedShare {
    const std::int64_t inverse;
    N2D2_INLINE explicit FixedShare(std::int32_t total) : inverse(Numerator[0] / total) {}
    template <std::int64_t Low, std::int64_t High>
    N2D2_INLINE std::int32_t of(std::int32_t power) const {
        const std::int64_t x = (power * inverse + (std::int64_t(1) << 31)) >> 32;
        return static_cast<std::int32_t>(least(largest(x, Low), High));
    }
};

// e from a table.
struct TabledPowers {
    const std::uint16_t* const powers;
    N2D2_INLINE std::int32_t operator()(std::int32_t below) const { return powers[below]; }
};

// e by a polynomial: every product is below 2^31, and the last octave, the 17th, gives 0.
template <class Cfg>
struct ComputedPowers {
    N2D2_INLINE std::int32_t operator()(std::int32_t below) const {
        const std::int32_t octaves =
            least(below, static_cast<std::int32_t>(Cfg::Limit)) * int(Cfg::Multiplier) >> int(Cfg::Shift);
        const std::int32_t x = least(octaves, static_cast<std::int32_t>(17 << 15)), f = x & 32767;
        const std::int32_t inner = 15699 - (f * (3498 - (f * 453 >> 15)) >> 15);
        const std::int32_t power = (1 << 30) - (f * (45422 - (f * inner >> 15)) >> 1);
        return ((power >> (14 + (x >> 15))) + 1) >> 1;
    }
};

struct AllElements {
    N2D2_INLINE AllElements line(int) const { return *this; }
    N2D2_INLINE bool operator[](int) const { return true; }
};

template <class Cfg>
struct SomeElements {
    const std::uint8_t* const mask;
    N2D2_INLINE MaskedElements line(int i) const {
        return MaskedElements(mask + (i % int(Cfg::Masks)) * static_cast<long>((Cfg::Size + 7) / 8));
    }
};

template <class Cfg>
struct IntegerSoftmax {
    typedef typename Cfg::Input::Type In;
    typedef typename Cfg::Output::Type Out;
    enum : int { Size = Cfg::Size, Inner = Cfg::Inner, Kept = Size <= 1024 ? Size : 1, Low = Cfg::Low, High = Cfg::High };

    template <class Powers, class Counts>
    static N2D2_INLINE std::int32_t powerAt(const In* in, int i, std::int32_t highest, Powers powers, Counts counts) {
        const std::int32_t value = in[i * static_cast<long>(Inner)];
        return counts[i] ? powers(highest - value) : 0;
    }

    template <class Powers, class Counts>
    static N2D2_INLINE void line(const In* in, Out* out, Powers powers, Counts counts) {
        constexpr bool kept = int(Kept) == int(Size);
        std::int32_t found[Kept], highest = std::numeric_limits<In>::min(), total = 0;
        for (int i = 0; i < Size; ++i) {
            const std::int32_t value = in[i * static_cast<long>(Inner)];
            highest = counts[i] ? largest(highest, value) : highest;
        }
        for (int i = 0; i < Size; ++i) {
            const std::int32_t power = powerAt(in, i, highest, powers, counts);
            if (kept)
                found[kept ? i : 0] = power;
            total += power;
        }
        const typename Cfg::Share share(total);
        for (int i = 0; i < Size; ++i) {
            const std::int32_t power = kept ? found[kept ? i : 0] : powerAt(in, i, highest, powers, counts);
            out[i * static_cast<long>(Inner)] = static_cast<Out>(
                share.template of<int(Low) - int(Cfg::OutZero), int(High) - int(Cfg::OutZero)>(power) + int(Cfg::OutZero));
        }
    }

    template <class Powers, class Counts>
    static N2D2_INLINE void lines(const unsigned char* in, unsigned char* out, Powers powers, Counts counts) {
        constexpr int count = Cfg::Outer * Cfg::Inner, inner = Cfg::Inner, size = Cfg::Size;
        constexpr bool parallel = static_cast<long>(count) * size * 4 >= N2D2_PARALLEL_WORK && count > 1;
        const In* const from = elements<typename Cfg::Input>(in);
        Out* const to = elements<typename Cfg::Output>(out);
        Loop<parallel>::run(count, [=](int i) N2D2_INLINE_LAMBDA {
            const long at = static_cast<long>(i / inner) * size * inner + i % inner;
            line(from + at, to + at, powers, counts.line(i));
        });
    }
};

template <class Cfg>
N2D2_INLINE void integerSoftmax(const unsigned char* in, unsigned char* out, const std::uint16_t* powers) {
    IntegerSoftmax<Cfg>::lines(in, out, TabledPowers{powers}, AllElements());
}

template <class Cfg>
N2D2_INLINE void integerSoftmax(const unsigned char* in, unsigned char* out) {
    IntegerSoftmax<Cfg>::lines(in, out, ComputedPowers<Cfg>(), AllElements());
}

template <class Cfg>
N2D2_INLINE void integerMaskedSoftmax(const unsigned char* in, unsigned char* out, const std::uint16_t* powers,
                                      const std::uint8_t* mask) {
    IntegerSoftmax<Cfg>::lines(in, out, TabledPowers{powers}, SomeElements<Cfg>{mask});
}

template <class Cfg>
N2D2_INLINE void integerMaskedSoftmax(const unsigned char* in, unsigned char* out, const std::uint8_t* mask) {
    IntegerSoftmax<Cfg>::lines(in, out, ComputedPowers<Cfg>(), SomeElements<Cfg>{mask});
}

}  // namespace n2d2

#endif  // N2D2_INTEGER_SOFTMAX_HPP
