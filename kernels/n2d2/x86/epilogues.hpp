// The epilogues on a vector of sums: the integers of output.hpp, bit for bit.
//
// An epilogue object has the constants of the outputs of a Place, which knows where those of a vector lie: count, channel(i),
// ints(all), floats(all). The conversion to float, the product, the clamp and the conversion to integers round as the portable code does.
#pragma once

#include "n2d2/output.hpp"

namespace n2d2 {

// Any epilogue whose values are within the limits as they come.
struct EpilogueInRange {
    template <class Bytes>
    static N2D2_INLINE Bytes clampBytes(Bytes x) {
        return x;
    }
};

// Count outputs: the first four from index `first` on, the others from `second` on.
template <class Vec, int Count>
struct Outputs {
    enum : int { count = Count };
    int first, second;
    N2D2_INLINE int channel(int i) const { return i < 4 ? first + i : second + i - 4; }
    N2D2_INLINE typename Vec::Ints ints(const std::int32_t* all) const {
        return Vec::template some<Count>(all + first, all + second);
    }
    N2D2_INLINE typename Vec::Floats floats(const float* all) const {
        return Vec::asFloats(Vec::template some<Count>(all + first, all + second));
    }
};

// Any epilogue: element by element. Narrow: its outputs have 16 bits at most.
template <class Vec, class Epilogue, class Place, bool Narrow = (sizeof(typename Epilogue::Type) < 4)>
struct VectorEpilogue : EpilogueInRange {
    typedef typename Vec::Ints Ints;
    const Place place;
    N2D2_INLINE explicit VectorEpilogue(const Place& outputs) : place(outputs) {}
    template <bool>
    N2D2_INLINE Ints apply(Ints sums) const {
        alignas(64) std::int32_t values[Vec::Lanes];
        Vec::storeAligned(sums, values);
        for (int i = 0; i < place.count; ++i)
            values[i] = static_cast<std::int32_t>(Epilogue::apply(values[i], place.channel(i)));
        return Vec::loadAligned(values);
    }
};

// The addend of a vector of sums.
template <class Vec, class Addend>
struct VectorAddend {
    template <class Place>
    N2D2_INLINE explicit VectorAddend(const Place&) {}
    N2D2_INLINE typename Vec::Floats apply(typename Vec::Floats sums) const { return sums; }
};
template <class Vec, const float* Fractions, int FractionCount>
struct VectorAddend<Vec, Fraction<Fractions, FractionCount> > {
    typename Vec::Floats fractions;
    template <class Place>
    N2D2_INLINE explicit VectorAddend(const Place& place)
        : fractions(FractionCount == 1 ? Vec::spreadFloat(Fractions[0]) : place.floats(Fractions)) {}
    N2D2_INLINE typename Vec::Floats apply(typename Vec::Floats sums) const { return Vec::sum(sums, fractions); }
};

// In floating point, where the limits are exact. Saturated: the caller packs the result with saturation to the limits of T and passes
// the bytes to clampBytes(). With a zero point, which is added behind the clamp, the result is always clamped.
template <class Vec, class T, const float* Factors, int FactorCount, bool Bounded, class Addend, std::int64_t Low,
          std::int64_t High, int Zero, class Place>
struct VectorEpilogue<Vec, Requantized<T, FloatRescale<Factors, FactorCount, Bounded, Addend>, Low, High, Zero>, Place, true> {
    typedef typename Vec::Ints Ints;
    typedef typename Vec::Floats Floats;
    Floats factors;
    VectorAddend<Vec, Addend> addend;

    N2D2_INLINE explicit VectorEpilogue(const Place& place)
        : factors(FactorCount == 1 ? Vec::spreadFloat(Factors[0]) : place.floats(Factors)), addend(place) {}
    template <bool Saturated>
    N2D2_INLINE Ints apply(Ints sums) const {
        Floats x = Vec::product(addend.apply(Vec::toFloats(sums)), factors);
        if (!Saturated || !Bounded || Zero != 0)
            x = Vec::smaller(x, Vec::spreadFloat(static_cast<float>(High - Zero)));
        if (!Saturated || Zero != 0)
            x = Vec::larger(x, Vec::spreadFloat(static_cast<float>(Low - Zero)));
        const Ints rounded = Vec::toInts(x);  // beyond 32 bits: the lowest integer, which is right below
        return Zero == 0 ? rounded : Vec::plus(rounded, Vec::spread(Zero));
    }
    enum : bool {
        FromLow = Zero == 0 && Low > static_cast<std::int64_t>(std::numeric_limits<T>::min()),
        ToHigh = Zero == 0 && High < static_cast<std::int64_t>(std::numeric_limits<T>::max())
    };
    template <class Bytes>
    static N2D2_INLINE Bytes clampBytes(Bytes x) {
        if (FromLow)
            x = Vec::template largerBytes<T>(x, static_cast<char>(Low));
        return ToHigh ? Vec::template smallerBytes<T>(x, static_cast<char>(High)) : x;
    }
};

// The epilogue of Count outputs.
template <class Vec, class Epilogue, int Count>
struct OutputsEpilogue : VectorEpilogue<Vec, Epilogue, Outputs<Vec, Count> > {
    N2D2_INLINE explicit OutputsEpilogue(int first, int second = 0)
        : VectorEpilogue<Vec, Epilogue, Outputs<Vec, Count> >(Outputs<Vec, Count>{first, second}) {}
};

}  // namespace n2d2
