// Eight channels in the vectors of the compiler (GCC's and clang's vector extensions), as panels/channel_columns.hpp wants them.
#pragma once

#include "n2d2/halfwords.hpp"
#include "n2d2/output.hpp"

namespace n2d2 {
namespace vectors {

typedef std::int32_t Ints __attribute__((vector_size(32)));
typedef std::int16_t Halves __attribute__((vector_size(16)));
typedef float Floats __attribute__((vector_size(32)));

template <class T, int Count = 8>
struct Eight {
    typedef T Type __attribute__((vector_size(8 * sizeof(T))));
    // The first Count of them, the others 0.
    static N2D2_INLINE Type load(const T* from) {
        Type x = {};
        std::memcpy(&x, from, Count * sizeof(T));
        return x;
    }
};
// Count constants, of outputs from `first` on, and from `second` on behind four.
template <int Count, class T>
N2D2_INLINE typename Eight<T>::Type constants(const T* from, int first, int second) {
    typename Eight<T>::Type x = {};
    T* const to = reinterpret_cast<T*>(&x);
    std::memcpy(to, from + first, least(Count, 4) * sizeof(T));
    if (Count > 4)
        std::memcpy(to + 4, from + second, largest(0, Count - 4) * sizeof(T));
    return x;
}

// The epilogue of Count <= 8 sums: element by element, or one product in floating point (rescale.hpp) for results below 2^22.
template <class Epilogue, int Count, bool Narrow = sizeof(typename Epilogue::Type) <= 2>
struct EightFinish {
    int first, second;
    N2D2_INLINE EightFinish(int a, int b) : first(a), second(b) {}
    N2D2_INLINE void store(Ints sums, typename Epilogue::Type* out) const {
        for (int i = 0; i < Count; ++i)
            out[i] = Epilogue::apply(sums[i], i < 4 ? first + i : second + i - 4);
    }
};

template <class Addend, int Count>
struct EightAddend {
    N2D2_INLINE EightAddend(int, int) {}
    N2D2_INLINE Floats apply(Floats sums) const { return sums; }
};
template <const float* Fractions, int FractionCount, int Count>
struct EightAddend<Fraction<Fractions, FractionCount>, Count> {
    Floats fractions;
    N2D2_INLINE EightAddend(int first, int second)
        : fractions(FractionCount == 1 ? Floats{} + Fractions[0] : constants<Count>(Fractions, first, second)) {}
    N2D2_INLINE Floats apply(Floats sums) const { return sums + fractions; }
};

template <class T, const float* Factors, int FactorCount, bool Bounded, class Addend, std::int64_t Low, std::int64_t High,
          int Zero, int Count>
struct EightFinish<Requantized<T, FloatRescale<Factors, FactorCount, Bounded, Addend>, Low, High, Zero>, Count, true> {
    Floats factors;
    EightAddend<Addend, Count> addend;

    N2D2_INLINE EightFinish(int first, int second)
        : factors(FactorCount == 1 ? Floats{} + Factors[0] : constants<Count>(Factors, first, second)), addend(first, second) {}
    N2D2_INLINE void store(Ints sums, T* out) const {
        const Floats product = addend.apply(__builtin_convertvector(sums, Floats)) * factors;
        const Floats low = Floats{} + static_cast<float>(Low - Zero), high = Floats{} + static_cast<float>(High - Zero);
        const Floats below = product < high ? product : high, inside = below > low ? below : low;
        const Ints rounded = __builtin_convertvector((inside + 12582912.0f) - 12582912.0f, Ints) + Zero;  // 1.5 * 2^23
        const typename Eight<T>::Type narrow = __builtin_convertvector(rounded, typename Eight<T>::Type);
        std::memcpy(out, &narrow, Count * sizeof(T));
    }
};

struct Channels {
    typedef Ints Sums;
    typedef Halves Inputs;
    typedef Halves Weights;
    static constexpr int most(int) { return 8; }

    template <class In, int Count>
    static N2D2_INLINE Inputs inputs(const In* from) {
        const Halves x = __builtin_convertvector((Eight<In, Count>::load(from)), Halves);
        return sizeof(In) == 2 && !std::numeric_limits<In>::is_signed ? x ^ std::numeric_limits<std::int16_t>::min() : x;
    }
    static N2D2_INLINE void weights(const unsigned char* a, const unsigned char* b, Weights& first, Weights& second) {
        Ints pairs;
        std::memcpy(&pairs, a, 16);
        std::memcpy(reinterpret_cast<unsigned char*>(&pairs) + 16, b, 16);
        first = __builtin_convertvector(pairs, Halves);
        second = __builtin_convertvector(pairs >> 16, Halves);
    }
    // Four lines of a column of bytes, [channel][line].
    static N2D2_INLINE void lines(const std::int8_t* from, Weights (&to)[4]) {
        Ints all;
        std::memcpy(&all, from, 32);
        to[0] = __builtin_convertvector(all << 24 >> 24, Halves);
        to[1] = __builtin_convertvector(all << 16 >> 24, Halves);
        to[2] = __builtin_convertvector(all << 8 >> 24, Halves);
        to[3] = __builtin_convertvector(all >> 24, Halves);
    }
    static N2D2_INLINE Inputs spread(std::int16_t x) { return Halves{} + x; }
    template <int Count>
    static N2D2_INLINE Sums bias(const std::int32_t* from, int first, int second) {
        return constants<Count>(from, first, second);
    }
    static N2D2_INLINE void add(Sums& sums, Inputs x, Weights w) {
        sums += __builtin_convertvector(x, Ints) * __builtin_convertvector(w, Ints);
    }
    template <class S, int Count>
    using Epilogue = EightFinish<S, Count>;
};

}  // namespace vectors
}  // namespace n2d2
