// Softmax of lines of integers, with powers from a table in 2^-15 (n2d2py/arithmetic/attention.py):
//
//   e = Fine[largest - q]                                                       bytes
//   e = (Coarse[d >> 8] * Fine[d & 255] + 2^14) >> 15, d = largest - q          16 bits
//   out = Share(e, sum of e) + OutZero, held within [Low, High]
//
// Masked: element i of line k counts where bit i % 8 of byte i / 8 of row k % Masks of the mask is set; e is 0 elsewhere.
//
// Config: planes Input, Output, of one pixel; type Share; enum Outer, Size, Inner, Low, High, OutZero: lines along the middle axis of
// (Outer, Size, Inner); masked also Masks, and Inner is 1. The output lies apart from the input.
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

template <int Bytes>
N2D2_INLINE std::int32_t powerBelow(std::int32_t below, const std::int32_t* fine, const std::int32_t* coarse) {
    return Bytes == 1 ? fine[below] : (coarse[Bytes == 1 ? 0 : below >> 8] * fine[below & 255] + (1 << 14)) >> 15;
}

struct AllElements {
    N2D2_INLINE bool operator[](int) const { return true; }
};

template <class Cfg>
struct IntegerSoftmax {
    typedef typename Cfg::Input::Type In;
    typedef typename Cfg::Output::Type Out;
    enum : int { Size = Cfg::Size, Inner = Cfg::Inner, Kept = Size <= 1024 ? Size : 1, Low = Cfg::Low, High = Cfg::High };

    template <class Counts>
    static N2D2_INLINE std::int32_t powerAt(const In* in, int i, std::int32_t highest, const std::int32_t* fine,
                                            const std::int32_t* coarse, Counts counts) {
        const std::int32_t value = in[i * static_cast<long>(Inner)];
        return counts[i] ? powerBelow<static_cast<int>(sizeof(In))>(highest - value, fine, coarse) : 0;
    }

    template <class Counts>
    static N2D2_INLINE void line(const In* in, const std::int32_t* fine, const std::int32_t* coarse, Out* out, Counts counts) {
        constexpr bool kept = int(Kept) == int(Size);
        std::int32_t powers[Kept], highest = std::numeric_limits<In>::min(), total = 0;
        for (int i = 0; i < Size; ++i) {
            const std::int32_t value = in[i * static_cast<long>(Inner)];
            highest = counts[i] ? largest(highest, value) : highest;
        }
        for (int i = 0; i < Size; ++i) {
            const std::int32_t power = powerAt(in, i, highest, fine, coarse, counts);
            if (kept)
                powers[kept ? i : 0] = power;
            total += power;
        }
        const typename Cfg::Share share(total);
        for (int i = 0; i < Size; ++i) {
            const std::int32_t power = kept ? powers[kept ? i : 0] : powerAt(in, i, highest, fine, coarse, counts);
            out[i * static_cast<long>(Inner)] = static_cast<Out>(
                share.template of<int(Low) - int(Cfg::OutZero), int(High) - int(Cfg::OutZero)>(power) + int(Cfg::OutZero));
        }
    }
};

template <class Cfg>
N2D2_INLINE void integerSoftmax(const unsigned char* in, unsigned char* out, const std::int32_t* fine,
                                const std::int32_t* coarse) {
    constexpr int lines = Cfg::Outer * Cfg::Inner, inner = Cfg::Inner, size = Cfg::Size;
    constexpr bool parallel = static_cast<long>(lines) * size * 4 >= N2D2_PARALLEL_WORK && lines > 1;
    const typename Cfg::Input::Type* const from = elements<typename Cfg::Input>(in);
    typename Cfg::Output::Type* const to = elements<typename Cfg::Output>(out);
    Loop<parallel>::run(lines, [=](int i) N2D2_INLINE_LAMBDA {
        const long at = static_cast<long>(i / inner) * size * inner + i % inner;
        IntegerSoftmax<Cfg>::line(from + at, fine, coarse, to + at, AllElements());
    });
}

template <class Cfg>
N2D2_INLINE void integerMaskedSoftmax(const unsigned char* in, unsigned char* out, const std::int32_t* fine,
                                      const std::int32_t* coarse, const std::uint8_t* mask) {
    constexpr int lines = Cfg::Outer, size = Cfg::Size, masks = Cfg::Masks, bytes = (Cfg::Size + 7) / 8;
    constexpr bool parallel = static_cast<long>(lines) * size * 4 >= N2D2_PARALLEL_WORK && lines > 1;
    const typename Cfg::Input::Type* const from = elements<typename Cfg::Input>(in);
    typename Cfg::Output::Type* const to = elements<typename Cfg::Output>(out);
    Loop<parallel>::run(lines, [=](int i) N2D2_INLINE_LAMBDA {
        const long at = static_cast<long>(i) * size;
        IntegerSoftmax<Cfg>::line(from + at, fine, coarse, to + at,
                                  MaskedElements(mask + (i % masks) * static_cast<long>(bytes)));
    });
}

}  // namespace n2d2

#endif  // N2D2_INTEGER_SOFTMAX_HPP
