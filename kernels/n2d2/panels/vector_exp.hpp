// exp of n2d2/functions.hpp and products with vectors of doubles, operation by operation, in the vector types of GCC and Clang.
#ifndef N2D2_PANELS_VECTOR_EXP_HPP
#define N2D2_PANELS_VECTOR_EXP_HPP

#include <cstdint>
#include <cstring>
#include <limits>

#include "n2d2/env.hpp"
#if defined(__AVX__)
#include "n2d2/x86/intrinsics.hpp"
#endif

namespace n2d2 {

// Floats as a vector of `Bytes` of doubles.
template <int Bytes>
struct WideFloats {
    typedef float Floats __attribute__((vector_size(Bytes / 2)));
    typedef double Doubles __attribute__((vector_size(Bytes)));
};
template <int Bytes>
N2D2_INLINE typename WideFloats<Bytes>::Doubles wideFloats(const float* x) {
    typename WideFloats<Bytes>::Floats narrow;
    std::memcpy(&narrow, x, sizeof(narrow));
    return __builtin_convertvector(narrow, typename WideFloats<Bytes>::Doubles);
}
#if defined(__AVX__)
// GCC 12 converts halves and joins them.
template <>
N2D2_INLINE WideFloats<32>::Doubles wideFloats<32>(const float* x) {
    return _mm256_cvtps_pd(_mm_loadu_ps(x));
}
#endif

// Bytes: those of a register, of AVX-512 of half a one: compilers prefer these, and a load waits for two stores that it covers.
template <int Bytes>
struct DoubleVectors {
    typedef double Doubles __attribute__((vector_size(Bytes)));
    typedef std::int64_t Bits __attribute__((vector_size(Bytes)));
    enum : int { Lanes = Bytes / static_cast<int>(sizeof(double)) };

    static N2D2_INLINE Bits bitsOf(Doubles x) {
        Bits bits;
        std::memcpy(&bits, &x, sizeof(bits));
        return bits;
    }
    static N2D2_INLINE Doubles ofBits(Bits bits) {
        Doubles x;
        std::memcpy(&x, &bits, sizeof(x));
        return x;
    }
    // As n2d2::rounded: a product that is not contracted with a sum.
    static N2D2_INLINE Doubles rounded(Doubles x) {
#if defined(__aarch64__)
        __asm__("" : "+w"(x));
#else
        __asm__("" : "+x"(x));
#endif
        return x;
    }
    // Where the bits of a mask are set, the bits of a, else those of b.
    static N2D2_INLINE Doubles where(Bits mask, Doubles a, Doubles b) {
        return ofBits((mask & bitsOf(a)) | (~mask & bitsOf(b)));
    }

    static N2D2_INLINE Doubles horner(Doubles, Doubles result) { return result; }
    template <class... Rest>
    static N2D2_INLINE Doubles horner(Doubles x, Doubles result, double next, Rest... rest) {
        return horner(x, rounded(result * x) + next, rest...);
    }

    // Numbers below 2^51 are rounded to whole ones, ties to even, by a sum with this one, in whose last bits they then stand.
    static N2D2_INLINE double whole() { return 6755399441055744.0; }

    // 2^n for whole n of -1022 to 1023.
    static N2D2_INLINE Doubles powerOfTwo(Doubles n) { return ofBits(bitsOf(n + (whole() + 1023.0)) << 52); }

    // Beyond the range of doubles what is computed means nothing, and is replaced.
    static N2D2_INLINE Doubles exp(Doubles x) {
        const Doubles k = rounded(x * 1.4426950408889634) + whole() - whole();
        const Doubles rest = (x - rounded(k * 0.6931471803691238)) - rounded(k * 1.9082149292705877e-10);
        const Doubles half = rounded(k * 0.5) + whole() - whole();
        const Doubles series =
            horner(rest, Doubles() + 1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
                   1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0);
        const Doubles result = series * powerOfTwo(half) * powerOfTwo(k - half);
        const Doubles none = Doubles(), infinity = none + std::numeric_limits<double>::infinity();
        const Doubles within = where(Bits(x < -745.2), none, where(Bits(x > 709.782712893384), infinity, result));
        return where(Bits(x != x), x, within);
    }

    template <int Count>
    static N2D2_INLINE int run(const double* in, double* out) {
        int i = 0;
        for (; i + Lanes <= Count; i += Lanes) {
            Doubles x;
            std::memcpy(&x, in + i, sizeof(x));
            x = exp(x);
            std::memcpy(out + i, &x, sizeof(x));
        }
        return i;
    }

    // Products with a double, which a sum takes without another rounding: those of floats are exact.
    static N2D2_INLINE Doubles products(const float* weights, Doubles x) { return wideFloats<Bytes>(weights) * x; }
    static N2D2_INLINE Doubles products(const double* weights, Doubles x) {
        Doubles wide;
        std::memcpy(&wide, weights, sizeof(wide));
        return rounded(wide * x);
    }

    // Four panels at a time: their sums hide the latency of each other.
    template <int Count, int Panels, class Real>
    static N2D2_INLINE void addProducts(const Real* weights, const Real* x, double* sums) {
        int panel = 0;
        for (; panel + 4 <= Panels; panel += 4)
            addPanels<Count, 4>(weights + static_cast<long>(panel) * Count * 8, x, sums + panel * 8);
        for (; panel < Panels; ++panel)
            addPanels<Count, 1>(weights + static_cast<long>(panel) * Count * 8, x, sums + panel * 8);
    }

    template <int Count, int Panels, class Real>
    static N2D2_INLINE void addPanels(const Real* weights, const Real* x, double* sums) {
        Doubles total[Panels * 8 / Lanes];
        std::memcpy(total, sums, sizeof(total));
        for (int k = 0; k < Count; ++k, weights += 8) {
            const Doubles factor = Doubles() + static_cast<double>(x[k]);
            for (int i = 0; i < Panels * 8 / Lanes; ++i)
                total[i] += products(weights + static_cast<long>(i * Lanes / 8) * Count * 8 + i * Lanes % 8, factor);
        }
        std::memcpy(sums, total, sizeof(total));
    }
};

}  // namespace n2d2

#endif  // N2D2_PANELS_VECTOR_EXP_HPP
