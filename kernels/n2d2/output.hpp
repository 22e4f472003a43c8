// The epilogue of a kernel: from a sum, or a value that is moved, to the element that is stored.
//
//   Requantized<Type, Rescale, Low, High, Zero>  integers: rescale the sum, add Zero, clamp to [Low, High]
//   Activated<Type, Activation>                  floating point: activation of the sum
//   Clamped<Type, Low, High>                     integers: the value clamped, no change of scale
//   Moved<Type>                                  the value as it is
//   Restored<Type, Parameters, Zero>             floating point from a stored integer: (value - Zero) * scale()
//   Converted<Type, Rescale, Low, High, InZero, OutZero>
//                                                integers from a stored value of another type: rescale(value - InZero) +
//                                                OutZero, clamped to [Low, High]; InZero is 0 for floating point
//
// Every epilogue has apply(value, index); index selects the constants of a per-output rescale.
#pragma once

#include "n2d2/activation.hpp"
#include "n2d2/rescale.hpp"
#include "n2d2/steady.hpp"

namespace n2d2 {

// Zero is the zero point of the output; it is added behind the rounding.
template <class T, class Rescale, std::int64_t Low, std::int64_t High, int Zero = 0>
struct Requantized {
    static_assert(Low <= High && Low >= std::numeric_limits<std::int32_t>::min() &&
                      High <= std::numeric_limits<std::int32_t>::max(),
                  "the clamp must lie within 32-bit integers");
    static_assert(Low >= static_cast<std::int64_t>(std::numeric_limits<T>::min()) &&
                      High <= static_cast<std::int64_t>(std::numeric_limits<T>::max()),
                  "the clamp must lie within the output type");
    typedef T Type;

    template <class Sum>
    static N2D2_INLINE T apply(Sum sum, int index) {
        return static_cast<T>(Rescale::template apply<Low - Zero, High - Zero>(sum, index) + Zero);
    }
};

// True if a rescale is one product in floating point.
template <class Rescale>
struct InFloat {
    enum : bool { value = false };
};
template <const float* Factors, int Count, bool Bounded, class Addend>
struct InFloat<FloatRescale<Factors, Count, Bounded, Addend> > {
    enum : bool { value = true };
};

template <class T, class Activation>
struct Activated {
    typedef T Type;
    static N2D2_INLINE T apply(T sum, int) { return Activation::apply(sum); }
};

template <class T, std::int64_t Low, std::int64_t High>
struct Clamped {
    typedef T Type;
    static N2D2_INLINE T apply(T value, int) { return lower(higher(value, static_cast<T>(Low)), static_cast<T>(High)); }
};

template <class T>
struct Moved {
    typedef T Type;
    static N2D2_INLINE T apply(T value, int) { return value; }
};

template <class T, class Parameters, int Zero>
struct Restored {
    typedef T Type;
    template <class Stored>
    static N2D2_INLINE T apply(Stored value, int) {
        return static_cast<T>(static_cast<std::int32_t>(value) - Zero) * Parameters::scale();
    }
};

// The argument of a rescale: floating point as is, 0 for what is not a number; integers without their zero point.
template <int Zero>
N2D2_INLINE float centredBy(float value) {
    return value == value ? value : 0.0f;
}
template <int Zero>
N2D2_INLINE float centredBy(double value) {
    return centredBy<Zero>(static_cast<float>(value));
}
template <int Zero, class Stored>
N2D2_INLINE std::int32_t centredBy(Stored value) {
    return static_cast<std::int32_t>(value) - Zero;
}

template <class T, class Rescale, std::int64_t Low, std::int64_t High, int InZero, int OutZero>
struct Converted {
    typedef T Type;
    template <class Stored>
    static N2D2_INLINE T apply(Stored value, int index) {
        return static_cast<T>(Rescale::template apply<Low - OutZero, High - OutZero>(centredBy<InZero>(value), index) +
                              OutZero);
    }
};

// A run of sums: out[i] = Epilogue(sums[i], Varying ? index + i : index) for i < Count.
template <class Epilogue, bool Varying>
struct ElementRun {
    template <int Count, class Sum>
    static N2D2_INLINE void run(const Sum* sums, int index, typename Epilogue::Type* out) {
        for (int i = 0; i < Count; ++i)
            out[i] = Epilogue::apply(sums[i], Varying ? index + i : index);
    }
};

// The activations of vectors: a function of its own, which the many places that end with one share.
template <class Epilogue>
struct FunctionRun {
    enum : bool { fits = false };
};
template <class Function>
struct FunctionRun<Activated<float, Function> > {
    enum : bool { fits = std::is_base_of<OfVectors, Function>::value };
    template <int Count>
    static N2D2_NOINLINE void run(const float* sums, int, float* out) {
        reals::apply<OnVectors<Function, reals::Widest>, Count>(sums, out);
    }
};

template <class Epilogue, bool Varying>
struct PortableRun : Choice<FunctionRun<Epilogue>::fits, FunctionRun<Epilogue>, ElementRun<Epilogue, Varying> >::Type {};

// The floating-point rescale in steps of one loop each: in one loop GCC turns the clamp into branches, which cannot
// be vectorised.
template <class T, const float* Factors, int FactorCount, bool Bounded, class Addend, std::int64_t Low, std::int64_t High,
          int Zero, bool Varying>
struct PortableRun<Requantized<T, FloatRescale<Factors, FactorCount, Bounded, Addend>, Low, High, Zero>, Varying> {
    template <int Count, class Sum>
    static N2D2_INLINE void run(const Sum* sums, int index, T* out) {
        constexpr float low = static_cast<float>(Low - Zero), high = static_cast<float>(High - Zero);
        float x[Count];
        for (int i = 0; i < Count; ++i)
            x[i] = Addend::apply(static_cast<float>(sums[i]), Varying ? index + i : index) * Factors[FactorCount == 1 ? 0 :
                                                                                                     Varying ? index + i :
                                                                                                               index];
        for (int i = 0; i < Count; ++i)
            x[i] = x[i] < high ? x[i] : high;
        for (int i = 0; i < Count; ++i)
            x[i] = x[i] > low ? x[i] : low;
        for (int i = 0; i < Count; ++i)
            out[i] = static_cast<T>(RoundHalfEven<Low - Zero, High - Zero>::apply(x[i]) + Zero);
    }
};

// A conversion: the values without their zero point first.
template <class T, class Rescale, std::int64_t Low, std::int64_t High, int InZero, int OutZero, bool Varying>
struct PortableRun<Converted<T, Rescale, Low, High, InZero, OutZero>, Varying> {
    template <int Count, class Stored>
    static N2D2_INLINE void run(const Stored* values, int index, T* out) {
        decltype(centredBy<InZero>(values[0])) centred[Count];
        for (int i = 0; i < Count; ++i)
            centred[i] = centredBy<InZero>(values[i]);
        PortableRun<Requantized<T, Rescale, Low, High, OutZero>, Varying>::template run<Count>(centred, index, out);
    }
};

// A clip in floating point in the same way.
template <class T, class Parameters, bool Varying>
struct PortableRun<Activated<T, Clip<T, Parameters> >, Varying> {
    template <int Count, class Sum>
    static N2D2_INLINE void run(const Sum* sums, int, T* out) {
        const T low = Parameters::low(), high = Parameters::high();
        T x[Count];
        for (int i = 0; i < Count; ++i)
            x[i] = sums[i] < low ? low : static_cast<T>(sums[i]);
        for (int i = 0; i < Count; ++i)
            out[i] = x[i] > high ? high : x[i];
    }
};

// The same with the instructions of an instruction set, which specialises it where it has better ones.
template <class Epilogue, bool Varying, class Isa>
struct EpilogueRun : PortableRun<Epilogue, Varying> {};

// out[i] = Epilogue(sums[i], index + i) for i < Count.
template <class Epilogue, int Count, class Sum>
N2D2_INLINE void store(const Sum* sums, int index, typename Epilogue::Type* out) {
    PortableRun<Epilogue, true>::template run<Count>(sums, index, out);
}

}  // namespace n2d2
