// Normalisation of lines of integers (n2d2py/arithmetic/attention.py), of n elements d = q - InputZero:
//
//   a = n d - sum of d, v = n * sum of d^2 - (sum of d)^2 + Epsilon     without mean (Centred 0) the sum of d counts as 0
//   t = a / sqrt(v) with Fraction bits behind the point, by an integer square root and a reciprocal
//   out = Epilogue(gains[i] * t + offsets[i])            or Epilogue(Gain * t), without arrays
//
// Config: planes Input, Output, without gaps; types Sum, Epilogue, Isa, Epsilon; enum Outer, Size, Centred, InputZero, Fraction, and
// Gain where there are no arrays. Epsilon: a struct { static constexpr std::int64_t epsilon(); }.
// The output lies apart from the input.
#pragma once

#include <cmath>

#include "n2d2/array.hpp"
#include "n2d2/pointwise.hpp"

namespace n2d2 {

// floor(sqrt(x)) of 0 <= x < 2^62.
N2D2_INLINE std::uint64_t integerRoot(std::uint64_t x) {
#if defined(__x86_64__) || defined(__aarch64__)
    std::uint64_t root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(x)));
    root -= root * root > x;
    root += (root + 1) * (root + 1) <= x;
    return root;
#else
    std::uint64_t root = 0;
    for (std::uint64_t bit = std::uint64_t(1) << 60; bit != 0; bit >>= 2) {
        const bool fits = x >= root + bit;
        x -= fits ? root + bit : 0;
        root = (root >> 1) + (fits ? bit : 0);
    }
    return root;
#endif
}

// A gain and an offset for each element of a line.
template <class Cfg>
struct GainOfEach {
    const std::int16_t* const gains;
    const typename Cfg::Sum* const offsets;
    N2D2_INLINE typename Cfg::Sum operator()(std::int32_t t, int i) const {
        return static_cast<typename Cfg::Sum>(t) * gains[i] + offsets[i];
    }
};

// One gain for all.
template <class Cfg>
struct GainOfAll {
    N2D2_INLINE typename Cfg::Sum operator()(std::int32_t t, int) const {
        return static_cast<typename Cfg::Sum>(t) * int(Cfg::Gain);
    }
};

template <class Cfg, class Gains>
struct IntegerNorm {
    N2D2_PLANES(Cfg);
    typedef typename Cfg::Sum Sum;
    typedef typename Choice<sizeof(In) == 1, std::int32_t, std::int64_t>::Type Squares;
    enum : int { Size = Cfg::Size, Piece = Size < 64 ? Size : 64, Last = Size % Piece };

    // Count elements of a line from element `first` on.
    template <int Count>
    static N2D2_INLINE void some(const In* in, std::int32_t total, std::int64_t inverse, int shift, Gains gains, int first,
                                 Out* out) {
        // products get 2^62, so that the shift needs no sign
        constexpr std::uint64_t up = std::uint64_t(1) << 62;
        const std::uint64_t half = up + (std::uint64_t(1) << (shift - 1));
        const std::uint32_t down = static_cast<std::uint32_t>(up >> shift);
        alignas(64) Sum sums[Count];
        for (int i = 0; i < Count; ++i) {
            const std::int32_t away = int(Size) * (static_cast<std::int32_t>(in[first + i]) - int(Cfg::InputZero)) - total;
            const std::uint64_t product = static_cast<std::uint64_t>(away * inverse) + half;
            const std::int32_t t = static_cast<std::int32_t>(static_cast<std::uint32_t>(product >> shift) - down);
            sums[i] = gains(t, first + i);
        }
        EpilogueRun<typename Cfg::Epilogue, false, typename Cfg::Isa>::template run<Count>(sums, 0, out + first);
    }

    static N2D2_INLINE void line(const In* in, Gains gains, Out* out) {
        constexpr int size = Size, piece = Piece, last = Last;
        std::int32_t total = 0;
        Squares squares = 0;
        for (int i = 0; i < size; ++i) {
            const std::int32_t d = static_cast<std::int32_t>(in[i]) - int(Cfg::InputZero);
            total += d;
            squares += static_cast<Squares>(d) * d;
        }
        if (!bool(Cfg::Centred))
            total = 0;
        const std::uint64_t v = static_cast<std::uint64_t>(squares * static_cast<std::int64_t>(size) -
                                                           static_cast<std::int64_t>(total) * total + Cfg::Epsilon::epsilon());
        const int k = (62 - bitsOf(v)) / 2;
        const std::int64_t inverse = static_cast<std::int64_t>((std::uint64_t(1) << 61) / integerRoot(v << (2 * k)));
        const int shift = 61 - k - int(Cfg::Fraction);
        int i = 0;
        for (; i + piece <= size; i += piece)
            some<piece>(in, total, inverse, shift, gains, i, out);
        if (last > 0)
            some<(last > 0 ? last : 1)>(in, total, inverse, shift, gains, i, out);
    }

    static N2D2_INLINE void lines(const unsigned char* in, unsigned char* out, Gains gains) {
        constexpr int count = Cfg::Outer, size = Cfg::Size;
        const In* const from = elements<Input>(in);
        Out* const to = elements<Output>(out);
        Loop<4L * count * size, (count > 1)>::run(count, [=](int i) N2D2_INLINE_LAMBDA {
            line(from + static_cast<long>(i) * size, gains, to + static_cast<long>(i) * size);
        });
    }
};

template <class Cfg>
N2D2_INLINE void integerNorm(const unsigned char* in, unsigned char* out, const std::int16_t* gains,
                             const typename Cfg::Sum* offsets) {
    IntegerNorm<Cfg, GainOfEach<Cfg> >::lines(in, out, GainOfEach<Cfg>{gains, offsets});
}

template <class Cfg>
N2D2_INLINE void integerNorm(const unsigned char* in, unsigned char* out) {
    IntegerNorm<Cfg, GainOfAll<Cfg> >::lines(in, out, GainOfAll<Cfg>());
}

}  // namespace n2d2
