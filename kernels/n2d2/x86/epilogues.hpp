// The epilogues on a vector of sums with SSE4.1 and AVX2: the integers of output.hpp, bit for bit.
//
// A epilogue object has the constants of Count outputs: the first four from index `first` on, the others from `second` on. The conversion
// to float, the product, the clamp and the conversion to integers round as the portable code does.
#ifndef N2D2_X86_EPILOGUES_HPP
#define N2D2_X86_EPILOGUES_HPP

#include "n2d2/output.hpp"
#include "n2d2/x86/bytes.hpp"

namespace n2d2 {

// Any epilogue whose values are within the limits as they come.
struct EpilogueInRange {
    template <class Bytes>
    static N2D2_INLINE Bytes clampBytes(Bytes x) {
        return x;
    }
};

// Any epilogue: element by element.
template <class Vec, class Epilogue, int Count>
struct VectorEpilogue : EpilogueInRange {
    typedef typename Vec::Ints Ints;
    int first, second;
    N2D2_INLINE explicit VectorEpilogue(int a, int b = 0) : first(a), second(b) {}
    template <bool>
    N2D2_INLINE Ints apply(Ints sums) const {
        alignas(64) std::int32_t values[Vec::Lanes];
        Vec::storeAligned(sums, values);
        for (int i = 0; i < Count; ++i)
            values[i] = static_cast<std::int32_t>(Epilogue::apply(values[i], i < 4 ? first + i : second + i - 4));
        return Vec::loadAligned(values);
    }
};

// What is added to a vector of sums.
template <class Vec, class Addend, int Count>
struct VectorAddend {
    N2D2_INLINE VectorAddend(int, int) {}
    N2D2_INLINE typename Vec::Floats apply(typename Vec::Floats sums) const { return sums; }
};
template <class Vec, const float* Fractions, int FractionCount, int Count>
struct VectorAddend<Vec, Fraction<Fractions, FractionCount>, Count> {
    typename Vec::Floats fractions;
    N2D2_INLINE VectorAddend(int first, int second)
        : fractions(FractionCount == 1 ? Vec::spreadFloat(Fractions[0]) :
                                         Vec::asFloats(Vec::template some<Count>(Fractions + first, Fractions + second))) {}
    N2D2_INLINE typename Vec::Floats apply(typename Vec::Floats sums) const { return Vec::sum(sums, fractions); }
};

// Saturated: the caller packs the result with saturation to the limits of T and passes the bytes to clampBytes().
template <class Vec, class T, const float* Factors, int FactorCount, bool Bounded, class Addend, std::int64_t Low,
          std::int64_t High, int Count>
struct VectorFloatEpilogue {
    static_assert(sizeof(T) < 4, "the limits are exact in float");
    typedef typename Vec::Ints Ints;
    typedef typename Vec::Floats Floats;
    Floats factors;
    VectorAddend<Vec, Addend, Count> addend;

    N2D2_INLINE VectorFloatEpilogue(int first, int second)
        : factors(FactorCount == 1 ? Vec::spreadFloat(Factors[0]) :
                                     Vec::asFloats(Vec::template some<Count>(Factors + first, Factors + second))),
          addend(first, second) {}
    template <bool Saturated>
    N2D2_INLINE Ints apply(Ints sums) const {
        Floats x = Vec::product(addend.apply(Vec::toFloats(sums)), factors);
        if (!Saturated || !Bounded)
            x = Vec::smaller(x, Vec::spreadFloat(static_cast<float>(High)));
        if (!Saturated)
            x = Vec::larger(x, Vec::spreadFloat(static_cast<float>(Low)));
        return Vec::toInts(x);  // beyond 32 bits: the lowest integer, which is right below
    }
    enum : bool {
        FromLow = Low > static_cast<std::int64_t>(std::numeric_limits<T>::min()),
        ToHigh = High < static_cast<std::int64_t>(std::numeric_limits<T>::max())
    };
    template <class Bytes>
    static N2D2_INLINE Bytes clampBytes(Bytes x) {
        if (FromLow)
            x = Vec::template largerBytes<T>(x, static_cast<char>(Low));
        return ToHigh ? Vec::template smallerBytes<T>(x, static_cast<char>(High)) : x;
    }
};

#define N2D2_FLOAT_EPILOGUE(Type)                                                                                        \
    template <class Vec, const float* Factors, int FactorCount, bool Bounded, class Addend, std::int64_t Low,            \
              std::int64_t High, int Count>                                                                              \
    struct VectorEpilogue<Vec, Requantized<Type, FloatRescale<Factors, FactorCount, Bounded, Addend>, Low, High>, Count> \
        : VectorFloatEpilogue<Vec, Type, Factors, FactorCount, Bounded, Addend, Low, High, Count> {                      \
        typedef VectorFloatEpilogue<Vec, Type, Factors, FactorCount, Bounded, Addend, Low, High, Count> Base;            \
        N2D2_INLINE explicit VectorEpilogue(int first, int second = 0) : Base(first, second) {}                          \
    };
N2D2_FLOAT_EPILOGUE(std::int8_t)
N2D2_FLOAT_EPILOGUE(std::uint8_t)
N2D2_FLOAT_EPILOGUE(std::int16_t)
N2D2_FLOAT_EPILOGUE(std::uint16_t)
#undef N2D2_FLOAT_EPILOGUE

// Bytes with a zero point: clamped as 16-bit integers to the limits less it, which it is added to.
#define N2D2_ZERO_EPILOGUE(Type)                                                                                               \
    template <class Vec, const float* Factors, int FactorCount, bool Bounded, class Addend, std::int64_t Low,                  \
              std::int64_t High, int Zero, int Count>                                                                          \
    struct VectorEpilogue<Vec, Requantized<Type, FloatRescale<Factors, FactorCount, Bounded, Addend>, Low, High, Zero>, Count> \
        : EpilogueInRange {                                                                                                    \
        typedef VectorFloatEpilogue<Vec, std::int16_t, Factors, FactorCount, Bounded, Addend, Low - Zero, High - Zero, Count>  \
            Centred;                                                                                                           \
        Centred centred;                                                                                                       \
        N2D2_INLINE explicit VectorEpilogue(int first, int second = 0) : centred(first, second) {}                             \
        template <bool>                                                                                                        \
        N2D2_INLINE typename Vec::Ints apply(typename Vec::Ints sums) const {                                                  \
            return Vec::plus(centred.template apply<false>(sums), Vec::spread(Zero));                                          \
        }                                                                                                                      \
    };
N2D2_ZERO_EPILOGUE(std::int8_t)
N2D2_ZERO_EPILOGUE(std::uint8_t)
#undef N2D2_ZERO_EPILOGUE

}  // namespace n2d2

#endif  // N2D2_X86_EPILOGUES_HPP
