// Softmax of lines of integers, with powers in 2^-15 (n2d2py/arithmetic/attention.py), d = largest - q:
//
//   e = powers[d]                                                           bytes
//   e = 2^(15 - x / 2^16), x = min(d, Limit) * Multiplier >> Shift          16 bits, by a polynomial
//   out = Share(e, sum of e) + OutZero, held within [Low, High]
//
// Masked: element i of line k counts where bit i % 8 of byte i / 8 of row k % Masks of the mask is set; e is 0 elsewhere.
//
// Config: planes Input, Output, without gaps; type Share; enum Outer, Size, Inner, Low, High, OutZero: lines along the middle axis of
// (Outer, Size, Inner); of 16 bits also Multiplier, Shift, Limit; masked also Masks, and Inner is 1. The output lies apart from the
// input.
#pragma once

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

// e of d, one or several in its place, from a table.
struct TabledPowers {
    const std::uint16_t* const powers;
    N2D2_INLINE std::int32_t of(std::int32_t below) const { return powers[below]; }
    template <int Count>
    N2D2_INLINE void run(std::int32_t* below) const {
        for (int i = 0; i < Count; ++i)
            below[i] = of(below[i]);
    }
};

// The upper half of a product.
N2D2_INLINE std::uint16_t upperHalf(std::uint16_t a, std::uint16_t b) {
    return static_cast<std::uint16_t>(static_cast<std::uint32_t>(a) * b >> 16);
}

// The same by a polynomial in halfwords; loops of their own, of one width each, become vectors. From the 17th octave on e is 0.
template <class Cfg>
struct ComputedPowers {
    static N2D2_INLINE std::int32_t octaves(std::int32_t below) {
        constexpr std::int32_t limit = Cfg::Limit, last = 17 << 16;
        constexpr bool steep = (static_cast<std::int64_t>(limit) * int(Cfg::Multiplier) >> int(Cfg::Shift)) >= (32 << 16);
        const std::int32_t x = least(below, limit) * int(Cfg::Multiplier) >> int(Cfg::Shift);
        return steep ? least(x, last) : x;
    }

    // The decrease over a part f of an octave, in 2^-16.
    static N2D2_INLINE std::uint16_t lostBy(std::uint16_t f) {
        const std::uint16_t cubic = static_cast<std::uint16_t>(3496 - upperHalf(450, f));
        const std::uint16_t square = static_cast<std::uint16_t>(15701 - upperHalf(cubic, f));
        const std::uint16_t slope = static_cast<std::uint16_t>(45423 - upperHalf(square, f));
        return upperHalf(slope, f);
    }

    static N2D2_INLINE std::int32_t left(std::uint16_t lost, std::int32_t x) {
        return (((65536 - lost) >> (x >> 16)) + 1) >> 1;
    }

    N2D2_INLINE std::int32_t of(std::int32_t below) const {
        const std::int32_t x = octaves(below);
        return left(lostBy(static_cast<std::uint16_t>(x & 65535)), x);
    }

    template <int Count>
    N2D2_INLINE void run(std::int32_t* below) const {
        std::uint16_t lost[Count];
        for (int i = 0; i < Count; ++i)
            below[i] = octaves(below[i]);
        for (int i = 0; i < Count; ++i)
            lost[i] = static_cast<std::uint16_t>(below[i] & 65535);
        for (int i = 0; i < Count; ++i)
            lost[i] = lostBy(lost[i]);
        for (int i = 0; i < Count; ++i)
            below[i] = left(lost[i], below[i]);
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
    N2D2_PLANES(Cfg);
    enum : int {
        Size = Cfg::Size,
        Inner = Cfg::Inner,
        Piece = Size < 64 ? Size : 64,
        Last = Size % Piece,
        Kept = Size <= 1024 ? Size : Piece,
        Low = Cfg::Low,
        High = Cfg::High
    };

    // Count powers of a line from element `first` on; returns their sum.
    template <int Count, class Powers, class Counts>
    static N2D2_INLINE std::int32_t some(const In* in, int first, std::int32_t highest, Powers powers, Counts counts,
                                         std::int32_t* found) {
        std::int32_t total = 0;
        for (int i = 0; i < Count; ++i) {
            const std::int32_t value = in[(first + i) * static_cast<long>(Inner)];
#if N2D2_VECTOR_LOOPS
            found[i] = counts[first + i] ? highest - value : 0;
        }
        powers.template run<Count>(found);
        for (int i = 0; i < Count; ++i) {
            found[i] = counts[first + i] ? found[i] : 0;
#else
            found[i] = counts[first + i] ? powers.of(highest - value) : 0;
#endif
            total += found[i];
        }
        return total;
    }

    template <int Count>
    static N2D2_INLINE void store(const std::int32_t* found, typename Cfg::Share share, Out* out) {
        for (int i = 0; i < Count; ++i)
            out[i * static_cast<long>(Inner)] = static_cast<Out>(
                share.template of<int(Low) - int(Cfg::OutZero), int(High) - int(Cfg::OutZero)>(found[i]) + int(Cfg::OutZero));
    }

    template <class Powers, class Counts>
    static N2D2_INLINE void line(const In* in, Out* out, Powers powers, Counts counts) {
        constexpr bool kept = int(Kept) == int(Size);
        constexpr int size = Size, piece = Piece, last = Last, rest = last > 0 ? last : 1;
        std::int32_t found[Kept], highest = std::numeric_limits<In>::min(), total = 0;
        for (int i = 0; i < size; ++i) {
            const std::int32_t value = in[i * static_cast<long>(Inner)];
            highest = counts[i] ? largest(highest, value) : highest;
        }
        int i = 0;
        for (; i + piece <= size; i += piece)
            total += some<piece>(in, i, highest, powers, counts, found + (kept ? i : 0));
        if (last > 0)
            total += some<rest>(in, i, highest, powers, counts, found + (kept ? i : 0));
        const typename Cfg::Share share(total);
        if (kept) {
            store<int(Kept)>(found, share, out);
            return;
        }
        for (i = 0; i + piece <= size; i += piece) {
            some<piece>(in, i, highest, powers, counts, found);
            store<piece>(found, share, out + i * static_cast<long>(Inner));
        }
        if (last > 0) {
            some<rest>(in, i, highest, powers, counts, found);
            store<rest>(found, share, out + i * static_cast<long>(Inner));
        }
    }

    template <class Powers, class Counts>
    static N2D2_INLINE void lines(const unsigned char* in, unsigned char* out, Powers powers, Counts counts) {
        constexpr int count = Cfg::Outer * Cfg::Inner, inner = Cfg::Inner, size = Cfg::Size;
        const In* const from = elements<Input>(in);
        Out* const to = elements<Output>(out);
        Loop<4L * count * size, (count > 1)>::run(count, [=](int i) N2D2_INLINE_LAMBDA {
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
