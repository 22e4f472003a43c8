// Activation functions of floating-point layers, element by element, in the type T of the data.
//
//   Linear          x
//   Scaled          gain * x
//   Clip            min(max(x, low), high); rectifiers and saturation
//   LeakyRectifier  min(x < 0 ? slope * x : x, high)
//   Logistic        1 / (1 + exp(-x))
//   Softplus        log(1 + exp(x))
//   Swish           x / (1 + exp(-x))
//   Tanh            tanh(alpha * x)
//   Step            x > threshold ? (above or x) : (below or x)
//   Elu             gain * (x > 0 ? x : alpha * (exp(rate * x) - 1))
//   HardSigmoid     min(max(gain * x + shift, 0), 1)
//   HardSwish       x * min(max(gain * x + shift, 0), high)
//   Gelu, GeluTanh  x * (1 + erf(x / sqrt(2))) / 2, and its form with tanh
//   Mish            x * tanh(log(1 + exp(x)))
//   Softsign        x / (1 + |x|)
//   Abs, Erf, Exp, Log, Sqrt
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

struct OfVectors {};

template <class T>
struct Linear {
    static N2D2_INLINE T apply(T x) { return x; }
};

template <class T, class Parameters>
struct Scaled {
    static N2D2_INLINE T apply(T x) { return Parameters::gain() * x; }
};

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

template <class T>
struct Logistic : OfVectors {
    static N2D2_INLINE T apply(T x) { return reals::sigmoid(x); }
};

template <class T>
struct Softplus : OfVectors {
    static N2D2_INLINE T apply(T x) { return reals::softplus(x); }
};

template <class T>
struct Swish : OfVectors {
    static N2D2_INLINE T apply(T x) { return x / (typename reals::Lanes<T>::Element(1) + reals::flushedExp(-x)); }
};

template <class T, class Parameters>
struct Tanh : OfVectors {
    static N2D2_INLINE T apply(T x) { return reals::tanh(Parameters::alpha() * x); }
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

template <class T, class Parameters>
struct Elu : OfVectors {
    static N2D2_INLINE T apply(T x) {
        return Parameters::gain() * (x > T() ? x : T(Parameters::alpha() * reals::expm1(Parameters::rate() * x)));
    }
};

template <class T, class Parameters>
struct HardSigmoid {
    static N2D2_INLINE T apply(T x) {
        return least(largest(unfused(Parameters::gain() * x) + Parameters::shift(), T(0)), T(1));
    }
};

template <class T, class Parameters>
struct HardSwish {
    static N2D2_INLINE T apply(T x) {
        return x * least(largest(unfused(Parameters::gain() * x) + Parameters::shift(), T(0)), Parameters::high());
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

template <class T>
struct Softsign {
    static N2D2_INLINE T apply(T x) { return x / (T(1) + std::fabs(x)); }
};

template <class T>
struct Abs {
    static N2D2_INLINE T apply(T x) { return std::fabs(x); }
};

template <class T>
struct Erf : OfVectors {
    static N2D2_INLINE T apply(T x) { return reals::erf(x); }
};

template <class T>
struct Exp : OfVectors {
    static N2D2_INLINE T apply(T x) { return reals::exp(x); }
};

template <class T>
struct Log {
    static N2D2_INLINE T apply(T x) { return std::log(x); }
};

template <class T>
struct Sqrt {
    static N2D2_INLINE T apply(T x) { return std::sqrt(x); }
};

// F, a function of T, as one of V.
template <class F, class V>
struct OnVectors;
template <template <class, class...> class F, class T, class... Parameters, class V>
struct OnVectors<F<T, Parameters...>, V> {
    static N2D2_INLINE V apply(V x) { return F<V, Parameters...>::apply(x); }
};

}  // namespace n2d2
