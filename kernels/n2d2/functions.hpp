// exp, log, sin, atan and what follows from them, made of correctly rounded operations only.
//
// C libraries differ in the last bit of these functions. These are the functions of n2d2py/arithmetic/functions.py,
// operation by operation, so both give the same bits on every machine: within 2e-15 of the true value (relative).
#pragma once

#include <cmath>

#include "n2d2/env.hpp"
#include "n2d2/float_functions.hpp"

namespace n2d2 {

// x, rounded: a product that passes through here is not contracted with a sum into one operation.
N2D2_INLINE double rounded(double x) {
#if defined(__GNUC__) && defined(__x86_64__)
    __asm__("" : "+x"(x));
    return x;
#elif defined(__GNUC__) && defined(__aarch64__)
    __asm__("" : "+w"(x));
    return x;
#else
    volatile double kept = x;
    return kept;
#endif
}

// A product in double; of floats it is exact, so that it may be contracted with a sum.
N2D2_INLINE double product(float a, float b) { return static_cast<double>(a) * static_cast<double>(b); }
N2D2_INLINE double product(double a, double b) { return rounded(a * b); }

namespace exact {

N2D2_INLINE double horner(double, double result) { return result; }

template <class... Rest>
N2D2_INLINE double horner(double x, double result, double next, Rest... rest) {
    return horner(x, rounded(result * x) + next, rest...);
}

// From the coefficient of the highest power to that of x^0.
template <class... Rest>
N2D2_INLINE double polynomial(double x, double highest, Rest... rest) {
    return horner(x, highest, rest...);
}

// 2^n for whole n of -1022 to 1023. A product with it rounds as ldexp does.
N2D2_INLINE double powerOfTwo(double n) {
    const std::uint64_t bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(n) + 1023) << 52;
    double power;
    std::memcpy(&power, &bits, sizeof(power));
    return power;
}

inline double exp(double x) {
    if (x != x)
        return x;
    if (x > 709.782712893384)
        return std::numeric_limits<double>::infinity();
    if (x < -745.2)
        return 0.0;
    const double k = std::rint(x * 1.4426950408889634);
    const double rest = (x - rounded(k * 0.6931471803691238)) - rounded(k * 1.9082149292705877e-10);
    const double half = std::trunc(k * 0.5);
    const double series =
        polynomial(rest, 1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
                   1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0);
    return series * powerOfTwo(half) * powerOfTwo(k - half);
}

// s * (2 + 2/3 s^2 + ...) = log((1 + s) / (1 - s))
N2D2_INLINE double logSeries(double s) {
    return s * polynomial(rounded(s * s), 2.0 / 21.0, 2.0 / 19.0, 2.0 / 17.0, 2.0 / 15.0, 2.0 / 13.0, 2.0 / 11.0, 2.0 / 9.0,
                          2.0 / 7.0, 2.0 / 5.0, 2.0 / 3.0, 2.0);
}

inline double log(double x) {
    if (x != x || x < 0.0)
        return std::numeric_limits<double>::quiet_NaN();
    if (!(x > 0.0))
        return -std::numeric_limits<double>::infinity();
    if (x > std::numeric_limits<double>::max())
        return x;
    int exponent = 0;
    double mantissa = std::frexp(x, &exponent);
    if (mantissa < 0.7071067811865476) {
        mantissa += mantissa;
        --exponent;
    }
    const double e = static_cast<double>(exponent);
    const double series = rounded(logSeries((mantissa - 1.0) / (mantissa + 1.0)));
    return rounded(e * 0.6931471803691238) + (rounded(e * 1.9082149292705877e-10) + series);
}

inline double expm1(double x) {
    if (std::fabs(x) <= 0.25)
        return x * polynomial(x, 1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
                              1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0);
    return exp(x) - 1.0;
}

inline double log1p(double x) { return std::fabs(x) <= 0.25 ? logSeries(x / (2.0 + x)) : log(1.0 + x); }

inline double sigmoid(double x) {
    const double small = exp(-std::fabs(x));
    return x >= 0.0 ? 1.0 / (1.0 + small) : small / (1.0 + small);
}

inline double tanh(double x) {
    if (x != x)
        return x;
    const double twice = expm1(-(std::fabs(x) + std::fabs(x)));
    return std::copysign(-twice / (2.0 + twice), x);
}

// Of double here, of float and its vectors in float_functions.hpp.
#define N2D2_OF_BOTH(NAME, OF_FLOATS, FUNCTION)                           \
    struct NAME {                                                         \
        template <class V>                                                \
        static N2D2_INLINE V apply(V x) {                                 \
            return reals::OF_FLOATS(x);                                   \
        }                                                                 \
        static N2D2_INLINE double apply(double x) { return FUNCTION(x); } \
    };
N2D2_OF_BOTH(Exp, flushedExp, exp)
N2D2_OF_BOTH(Sigmoid, sigmoid, sigmoid)
N2D2_OF_BOTH(Tanh, tanh, tanh)
#undef N2D2_OF_BOTH

inline double softplus(double x) { return (x > 0.0 || x != x ? x : 0.0) + log1p(exp(-std::fabs(x))); }

inline double erf(double x) {
    if (x != x)
        return x;
    const double magnitude = std::fabs(x);
    if (magnitude <= 3.0) {
        const double square = rounded(magnitude * magnitude);
        double total = 1.0, term = 1.0;
        for (int n = 1; n < 60; ++n) {
            term = rounded(term * rounded(square * (2.0 / (2 * n + 1))));
            total = total + term;
        }
        return std::copysign(rounded(rounded(rounded(magnitude * total) * exp(-square)) * 1.1283791670955126), x);
    }
    const double far = magnitude < 7.0 ? magnitude : 7.0;
    double tail = far;
    for (int n = 40; n > 0; --n)
        tail = far + (0.5 * n) / tail;
    const double outer = 1.0 - exp(-rounded(far * far)) / rounded(tail * 1.772453850905516);
    return std::copysign(outer, x);
}

// The rest of an angle without whole quarters of a turn: their number modulo 4, its sine and cosine.
struct Angle {
    int quarter;
    double sine, cosine;
    explicit Angle(double x) {
        const double near = std::fabs(x) < 1.6e6 ? x : std::fmod(x, 6.283185307179586);
        const double k = std::rint(near * 0.6366197723675814);
        const double rest = ((near - rounded(k * 1.5707963267341256)) - rounded(k * 6.077100506303966e-11)) -
                            rounded(k * 2.0222662487959506e-21);
        const double square = rounded(rest * rest);
        quarter = k == k ? static_cast<int>(static_cast<long>(k) & 3) : 0;
        sine = rest * polynomial(square, 1.0 / 355687428096000.0, -1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0,
                                 1.0 / 362880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0, 1.0);
        cosine = polynomial(square, -1.0 / 6402373705728000.0, 1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0,
                            -1.0 / 3628800.0, 1.0 / 40320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0);
    }
};

inline double sin(double x) {
    const Angle a(x);
    const double value = (a.quarter & 1) != 0 ? a.cosine : a.sine;
    return (a.quarter & 2) != 0 ? -value : value;
}

inline double cos(double x) {
    const Angle a(x);
    const double value = (a.quarter & 1) != 0 ? a.sine : a.cosine;
    return ((a.quarter + 1) & 2) != 0 ? -value : value;
}

inline double tan(double x) {
    const Angle a(x);
    return (a.quarter & 1) != 0 ? -a.cosine / a.sine : a.sine / a.cosine;
}

inline double atan(double x) {
    if (x != x)
        return x;
    const double magnitude = std::fabs(x);
    const bool above = magnitude > 1.0;
    double inner = above ? 1.0 / magnitude : magnitude;
    const bool wide = inner > 0.2679491924311227;
    if (wide)
        inner = (rounded(1.7320508075688772 * inner) - 1.0) / (1.7320508075688772 + inner);
    double value = rounded(inner * polynomial(rounded(inner * inner), -1.0 / 27.0, 1.0 / 25.0, -1.0 / 23.0, 1.0 / 21.0,
                                              -1.0 / 19.0, 1.0 / 17.0, -1.0 / 15.0, 1.0 / 13.0, -1.0 / 11.0, 1.0 / 9.0,
                                              -1.0 / 7.0, 1.0 / 5.0, -1.0 / 3.0, 1.0));
    if (wide)
        value = 0.5235987755982989 + value;
    if (above)
        value = 1.5707963267948966 - value;
    return std::copysign(value, x);
}

inline double asin(double x) { return atan(x / std::sqrt((1.0 - x) * (1.0 + x))); }

inline double acos(double x) { return 2.0 * atan(std::sqrt((1.0 - x) / (1.0 + x))); }

inline double sinh(double x) {
    const double magnitude = std::fabs(x);
    if (magnitude <= 22.0) {
        const double less = expm1(magnitude);
        return std::copysign(0.5 * (less + less / (less + 1.0)), x);
    }
    const double half = exp(0.5 * magnitude);
    return x != x ? x : std::copysign(rounded(0.5 * half) * half, x);
}

inline double cosh(double x) {
    const double magnitude = std::fabs(x);
    if (magnitude <= 22.0) {
        const double whole = exp(magnitude);
        return rounded(0.5 * whole) + 0.5 / whole;
    }
    const double half = exp(0.5 * magnitude);
    return x != x ? x : rounded(0.5 * half) * half;
}

inline double asinh(double x) {
    const double magnitude = std::fabs(x);
    if (x != x)
        return x;
    if (!(magnitude <= 1e8))
        return std::copysign(log(magnitude) + 0.6931471805599453, x);
    const double square = rounded(magnitude * magnitude);
    return std::copysign(log1p(magnitude + square / (1.0 + std::sqrt(1.0 + square))), x);
}

inline double acosh(double x) {
    if (!(x <= 1e8))
        return log(x) + 0.6931471805599453;
    const double above = x - 1.0;
    return log1p(above + std::sqrt(rounded(2.0 * above) + rounded(above * above)));
}

inline double atanh(double x) {
    const double magnitude = std::fabs(x);
    if (!(magnitude <= 1.0))
        return std::numeric_limits<double>::quiet_NaN();
    return std::copysign(0.5 * log1p((magnitude + magnitude) / (1.0 - magnitude)), x);
}

inline double power(double x, double y) {
    const bool whole = !(std::floor(y) < y) && !(std::floor(y) > y) && y == y;
    if (whole && std::fabs(y) <= 8.0) {
        double product = 1.0;
        for (int step = 0; step < static_cast<int>(std::fabs(y)); ++step)
            product = rounded(product * x);
        return y < 0.0 ? 1.0 / product : product;
    }
    if (x == 1.0)
        return 1.0;
    if (y == 0.5 && x >= 0.0)
        return std::sqrt(x);
    const double size = exp(rounded(y * log(std::fabs(x))));
    if (!(x < 0.0))
        return size;
    if (!whole)
        return std::numeric_limits<double>::quiet_NaN();
    return std::fabs(std::fmod(y, 2.0)) == 1.0 ? -size : size;
}

}  // namespace exact

}  // namespace n2d2
