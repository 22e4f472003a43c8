// exp and the functions that follow from it, in float32, of one number or of a vector of them.
//
// V is float, or a vector of floats as GCC and Clang have them. Sums, products and quotients are rounded one by one, so every width gives
// the same bits on every machine; n2d2py/arithmetic/float32.py repeats them. Largest errors in units of the last place, over all floats
// (tests/arithmetic/test_float32.py): exp 1.0, expm1 1.0, sigmoid 2.3, tanh 2.5, erf 5.4, softplus 3.0. Except for exp,
// results below 2^-126 may be 0. What is not a number stays so. Overloads for double are those of the C++ library.
#pragma once

#include <cmath>

#include "n2d2/env.hpp"
#if defined(__SSE2__)
#include "n2d2/x86/intrinsics.hpp"
#endif

namespace n2d2 {
namespace reals {

// The elements of T, and unsigned integers in their place.
template <class T>
struct Lanes {
    typedef float Element;
#if defined(__GNUC__)
    typedef std::uint32_t Bits __attribute__((vector_size(sizeof(T))));
#endif
};
template <>
struct Lanes<float> {
    typedef float Element;
    typedef std::uint32_t Bits;
};
template <>
struct Lanes<double> {
    typedef double Element;
};

template <class V>
N2D2_INLINE typename Lanes<V>::Bits bitsOf(V x) {
    typename Lanes<V>::Bits bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
template <class V>
N2D2_INLINE V ofBits(typename Lanes<V>::Bits bits) {
    V x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// x, rounded to float32. No compiler fuses it with a sum into one operation. The sign of a zero may be lost.
template <class V>
N2D2_INLINE V rounded(V x) {
#if defined(__GNUC__) && defined(__x86_64__)
    __asm__("" : "+v"(x));
    return x;
#elif defined(__GNUC__) && defined(__aarch64__)
    __asm__("" : "+w"(x));
    return x;
#elif defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0
    volatile V kept = x;
    return kept;
#else
    return x + V();
#endif
}

template <class V>
N2D2_INLINE V horner(V, V result) {
    return result;
}
template <class V, class... Rest>
N2D2_INLINE V horner(V x, V result, float next, Rest... rest) {
    return horner(x, rounded(result * x) + next, rest...);
}
// From the coefficient of the highest power to that of x^0.
template <class V, class... Rest>
N2D2_INLINE V polynomial(V x, float highest, Rest... rest) {
    return horner(x, V() + highest, rest...);
}

// The second one where one of both is not a number.
template <class V>
N2D2_INLINE V largerOf(V a, V b) {
    return a > b ? a : b;
}
template <class V>
N2D2_INLINE V smallerOf(V a, V b) {
    return a < b ? a : b;
}
// GCC makes a comparison and a choice of these.
#define N2D2_LIMITS(VECTOR, MM)                                                   \
    N2D2_INLINE VECTOR largerOf(VECTOR a, VECTOR b) { return MM##_max_ps(a, b); } \
    N2D2_INLINE VECTOR smallerOf(VECTOR a, VECTOR b) { return MM##_min_ps(a, b); }
#if defined(__SSE2__)
N2D2_LIMITS(__m128, _mm)
#endif
#if defined(__AVX__)
N2D2_LIMITS(__m256, _mm256)
#endif
#if defined(__AVX512F__)
N2D2_LIMITS(__m512, _mm512)
#endif
#undef N2D2_LIMITS

template <class V>
N2D2_INLINE V within(V x, float low, float high) {
    return smallerOf(V() + high, largerOf(V() + low, x));
}

template <class V>
N2D2_INLINE V magnitude(V x) {
    return ofBits<V>(bitsOf(x) & 0x7FFFFFFFu);
}
template <class V>
N2D2_INLINE V withSign(V size, V x) {
    return ofBits<V>(bitsOf(size) | (bitsOf(x) & 0x80000000u));
}

// x = n * log(2) + rest, |n| < 256.
template <class V>
struct Exponential {
    typedef typename Lanes<V>::Bits Bits;
    Bits count;  // n + 127 in its last bits
    V lessOne;   // exp(rest) - 1

    // Rounded to a whole number by a sum in whose last bits it then stands. Its product with 0.69... is exact.
    explicit N2D2_INLINE Exponential(V x) {
        const V shifted = rounded(rounded(x * 1.44269504f) + 12583039.0f), whole = shifted - 12583039.0f;
        const V rest = (x - whole * 0.693359375f) - rounded(whole * -2.12194440e-4f);
        count = bitsOf(shifted);
        lessOne = rest + rounded(rounded(rest * rest) * polynomial(rest, 1.3951726723e-3f, 8.3696041256e-3f, 4.1666187346e-2f,
                                                                   1.6666512191e-1f, 0.5f));
    }
    // 2^n of n + 127: 0 for -127, infinite for 128.
    static N2D2_INLINE V power(Bits n) { return ofBits<V>(n << 23); }
};

template <class V>
N2D2_INLINE V exp(V x) {
    const Exponential<V> e(within(x, -104.0f, 89.0f));
    const typename Lanes<V>::Bits half = (((e.count - 0x4B40007Fu) + 256u) >> 1) - 1u;
    return rounded((1.0f + e.lessOne) * e.power(half) * e.power(e.count - half + 127u));
}

// exp(x), but 0 below 2^-126.5 and infinite from 2^127.5 on.
template <class V>
N2D2_INLINE V flushedExp(V x) {
    const Exponential<V> e(within(x, -88.03f, 88.73f));
    return rounded((1.0f + e.lessOne) * e.power(e.count));
}

template <class V>
N2D2_INLINE V expm1(V x) {
    const Exponential<V> e(within(x, -25.0f, 89.0f));
    const V half = e.power(e.count - 1u);
    const V result = rounded(e.lessOne * half) + (half - 0.5f);
    return result + result;
}

template <class V>
N2D2_INLINE V sigmoid(V x) {
    return 1.0f / (1.0f + flushedExp(-x));
}

template <class V>
N2D2_INLINE V tanh(V x) {
    const Exponential<V> e(largerOf(V() - 25.0f, -2.0f * magnitude(x)));
    const V power = e.power(e.count), twice = rounded(e.lessOne * power) + (power - 1.0f);
    return withSign(-twice / (2.0f + twice), x);
}

// A quotient of polynomials, exactly 1 from 3.925 on.
template <class V>
N2D2_INLINE V erf(V x) {
    const V near = within(x, -3.925f, 3.925f), square = rounded(near * near);
    const V top =
        polynomial(square, 2.045995871e-6f, 2.848257427e-4f, 3.772111144e-3f, 5.276791379e-2f, 1.905846149e-1f, 1.128378987f);
    const V bottom =
        polynomial(square, 3.804650623e-5f, 1.163736917e-3f, 1.498232316e-2f, 1.141787842e-1f, 5.022338033e-1f, 1.0f);
    return within(rounded(near * top) / bottom, -1.0f, 1.0f);
}

// log(1 + exp(x)), by log(1 + s) = 2 z + 2/3 z^3 + ..., z = s / (2 + s).
template <class V>
N2D2_INLINE V softplus(V x) {
    const V small = flushedExp(-magnitude(x)), z = small / (2.0f + small), square = rounded(z * z);
    const V rest = rounded(
        z * rounded(square * polynomial(square, 2.8024464846e-1f, 2.7999138832e-1f, 4.0021699667e-1f, 6.6666412354e-1f)));
    return (x < V() ? V() : x) + (z + (z + rest));
}

inline double exp(double x) { return std::exp(x); }
inline double flushedExp(double x) { return std::exp(x); }
inline double expm1(double x) { return std::expm1(x); }
inline double tanh(double x) { return std::tanh(x); }
inline double erf(double x) { return std::erf(x); }
inline double sigmoid(double x) {
    const double small = std::exp(-std::fabs(x));
    return (x >= 0.0 ? 1.0 : small) / (1.0 + small);
}
inline double softplus(double x) { return (x < 0.0 ? 0.0 : x) + std::log1p(std::exp(-std::fabs(x))); }

// A vector of the registers that the kernels use, or one number; and one of at most eight.
#if !N2D2_FLOAT_VECTORS
typedef float Widest;
typedef float PanelPart;
#elif defined(__AVX__) || defined(__riscv_vector)
typedef float PanelPart __attribute__((vector_size(32)));
#if defined(__AVX512F__) || defined(__riscv_vector)
typedef float Widest __attribute__((vector_size(64)));
#else
typedef PanelPart Widest;
#endif
#else
typedef float Widest __attribute__((vector_size(16)));
typedef Widest PanelPart;
#endif

// out[i] = f.apply(in[i]) for i < Count; f takes vectors too. Both may be one array.
template <class F, int Count>
N2D2_INLINE void apply(const float* in, float* out, const F& f = F()) {
    constexpr int width = static_cast<int>(sizeof(Widest) / sizeof(float)), rest = Count % width;
    Widest x = Widest();
    for (int i = 0; i + width <= Count; i += width) {
        std::memcpy(&x, in + i, sizeof x);
        x = f.apply(x);
        std::memcpy(out + i, &x, sizeof x);
    }
    if (rest > 0) {
        std::memcpy(&x, in + Count - rest, rest * sizeof(float));
        x = f.apply(x);
        std::memcpy(out + Count - rest, &x, rest * sizeof(float));
    }
}

template <class F, int Count>
N2D2_INLINE void apply(const double* in, double* out, const F& f = F()) {
    for (int i = 0; i < Count; ++i)
        out[i] = f.apply(in[i]);
}

}  // namespace reals
}  // namespace n2d2
