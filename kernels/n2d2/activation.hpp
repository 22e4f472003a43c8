// Activation functions of floating-point layers, element by element, in the type T of the data.
//
// NaN stays NaN, except in Step, which has it below the threshold.
// `Parameters` is a struct of the layer with the static functions low(), high(), slope(), alpha(), threshold(),
// below(), above(), gain(), shift(), rate() that the function reads. T may be a vector in the functions that are
// `OfVectors` (float_functions.hpp).
#pragma once

#include <cmath>
#include <type_traits>

#include "n2d2/float_functions.hpp"
#include "n2d2/steady.hpp"

namespace n2d2 {

struct OfNumbers {};
struct OfVectors {};

#define N2D2_FUNCTION(NAME, OF, ...)                            \
    template <class T>                                          \
    struct NAME : OF {                                          \
        static N2D2_INLINE T apply(T x) { return __VA_ARGS__; } \
    };
#define N2D2_FUNCTION_WITH(NAME, OF, ...)                       \
    template <class T, class Parameters>                        \
    struct NAME : OF {                                          \
        static N2D2_INLINE T apply(T x) { return __VA_ARGS__; } \
    };

N2D2_FUNCTION(Linear, OfNumbers, x)
N2D2_FUNCTION(Abs, OfNumbers, std::fabs(x))
N2D2_FUNCTION(Log, OfNumbers, std::log(x))
N2D2_FUNCTION(Sqrt, OfNumbers, std::sqrt(x))
N2D2_FUNCTION(Softsign, OfNumbers, x / (T(1) + std::fabs(x)))
N2D2_FUNCTION(Erf, OfVectors, reals::erf(x))
N2D2_FUNCTION(Exp, OfVectors, reals::exp(x))
N2D2_FUNCTION(Logistic, OfVectors, reals::sigmoid(x))
N2D2_FUNCTION(Softplus, OfVectors, reals::softplus(x))
N2D2_FUNCTION(Swish, OfVectors, x / (typename reals::Lanes<T>::Element(1) + reals::flushedExp(-x)))
N2D2_FUNCTION_WITH(Scaled, OfNumbers, Parameters::gain() * x)
N2D2_FUNCTION_WITH(Tanh, OfVectors, reals::tanh(Parameters::alpha() * x))
N2D2_FUNCTION_WITH(Elu, OfVectors,
                   Parameters::gain() * (x > T() ? x : T(Parameters::alpha() * reals::expm1(Parameters::rate() * x))))
N2D2_FUNCTION_WITH(HardSigmoid, OfNumbers, least(largest(unfused(Parameters::gain() * x) + Parameters::shift(), T(0)), T(1)))
N2D2_FUNCTION_WITH(HardSwish, OfNumbers,
                   x* least(largest(unfused(Parameters::gain() * x) + Parameters::shift(), T(0)), Parameters::high()))
#undef N2D2_FUNCTION
#undef N2D2_FUNCTION_WITH

template <class T, class Parameters>
struct Clip {
    static N2D2_INLINE T apply(T x) {
        const T above = x < Parameters::low() ? Parameters::low() : x;
        return above > Parameters::high() ? Parameters::high() : above;
    }
};

template <class T, class Parameters>
struct LeakyRectifier {
    static N2D2_INLINE T apply(T x) {
        const T y = x < T(0) ? Parameters::slope() * x : x;
        return y > Parameters::high() ? Parameters::high() : y;
    }
};

// KeepBelow, KeepAbove: x itself on that side of the threshold.
template <class T, class Parameters, bool KeepBelow, bool KeepAbove>
struct Step {
    static N2D2_INLINE T apply(T x) {
        const T below = KeepBelow ? x : Parameters::below();
        const T above = KeepAbove ? x : Parameters::above();
        return x > Parameters::threshold() ? above : below;
    }
};

template <class T>
struct Gelu : OfVectors {
    static N2D2_INLINE T apply(T x) {
        typedef typename reals::Lanes<T>::Element Real;
        const T half = Real(0.5) * x;
        return half + reals::rounded(half * reals::erf(Real(0.70710678118654752440) * x));
    }
};

// (1 + tanh(y)) / 2 = sigmoid(2 y)
template <class T>
struct GeluTanh : OfVectors {
    static N2D2_INLINE T apply(T x) {
        typedef typename reals::Lanes<T>::Element Real;
        return x * reals::sigmoid(Real(1.59576912160573071176) * (x + reals::rounded(Real(0.044715) * x * x * x)));
    }
};

// tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2); 1 from exp(20) on.
template <class T>
struct Mish : OfVectors {
    static N2D2_INLINE T apply(T x) {
        typedef typename reals::Lanes<T>::Element Real;
        const T e = reals::flushedExp(reals::smallerOf(T() + Real(20), x)), product = reals::rounded(e * (e + Real(2)));
        return x * (product / (product + Real(2)));
    }
};

// F, a function of T, as one of V.
template <class F, class V>
struct OnVectors;
template <template <class, class...> class F, class T, class... Parameters, class V>
struct OnVectors<F<T, Parameters...>, V> {
    static N2D2_INLINE V apply(V x) { return F<V, Parameters...>::apply(x); }
};

}  // namespace n2d2
