// Integer operations that take the same instructions for all data, on cores without conditional instructions and long products too.
//
//   lower, higher  the smaller and the larger of two values, what is not a number if one is
//   held           a value within limits
//   times          a product in the type of a sum
//   roundedHigh    the upper word of a product, rounded
//
// Elsewhere they are what a compiler makes of the plain expressions.
#pragma once

#include "n2d2/env.hpp"

// A core without conditional instructions: its compilers make jumps of selections; masks take the same time for all data.
#if defined(N2D2_MASKS)
#elif defined(__GNUC__) && ((defined(__riscv_xlen) && __riscv_xlen == 32 && !defined(__riscv_zbb)) || \
                            defined(__ARM_ARCH_6M__) || defined(__ARM_ARCH_8M_BASE__))
#define N2D2_MASKS 1
#else
#define N2D2_MASKS 0
#endif

// A core whose products have 32 bits: the compiler's functions for longer ones jump at carries.
#if defined(N2D2_HALVES)
#elif defined(__ARM_ARCH_6M__) || defined(__ARM_ARCH_8M_BASE__)
#define N2D2_HALVES 1
#else
#define N2D2_HALVES 0
#endif

namespace n2d2 {

#if N2D2_MASKS
// All bits of a negative number, else 0; hidden, so that the compiler does not make a jump of it.
N2D2_INLINE std::uint32_t signMask(std::uint32_t bits) {
    std::int32_t mask = static_cast<std::int32_t>(bits) >> 31;
    __asm__("" : "+r"(mask));
    return static_cast<std::uint32_t>(mask);
}
N2D2_INLINE std::uint64_t signMask(std::uint64_t bits) {
    const std::uint32_t mask = signMask(static_cast<std::uint32_t>(bits >> 32));
    return static_cast<std::uint64_t>(mask) << 32 | mask;
}

// Wide: the difference of two numbers may need one bit more than Bits has.
template <class T, class Bits, bool Wide>
struct Masked {
    // a - b where a is below b, else 0.
    static N2D2_INLINE Bits below(T a, T b) {
        const Bits x = static_cast<Bits>(a), y = static_cast<Bits>(b), difference = x - y;
        return difference & signMask(Wide ? difference ^ ((x ^ y) & (difference ^ x)) : difference);
    }
    static N2D2_INLINE T lower(T a, T b) { return static_cast<T>(static_cast<Bits>(b) + below(a, b)); }
    static N2D2_INLINE T higher(T a, T b) { return static_cast<T>(static_cast<Bits>(a) - below(a, b)); }
};
#endif

// Bytes: 2 for all narrow integers, 4 or 8 for wide signed ones, 0 for other numbers.
template <class T, int Bytes = !std::numeric_limits<T>::is_integer ? 0 :
                               sizeof(T) < 4                       ? 2 :
                               std::numeric_limits<T>::is_signed   ? int(sizeof(T)) :
                                                                     0>
struct Selected {
    static N2D2_INLINE T lower(T a, T b) { return a != a || a < b ? a : b; }
    static N2D2_INLINE T higher(T a, T b) { return a != a || b < a ? a : b; }
};
#if N2D2_MASKS
template <class T>
struct Selected<T, 2> : Masked<T, std::uint32_t, false> {};
template <class T>
struct Selected<T, 4> : Masked<T, std::uint32_t, true> {};
template <class T>
struct Selected<T, 8> : Masked<T, std::uint64_t, true> {};
#endif

// least and largest of data: without a jump.
template <class T>
N2D2_INLINE T lower(T a, T b) {
    return Selected<T>::lower(a, b);
}
template <class T>
N2D2_INLINE T higher(T a, T b) {
    return Selected<T>::higher(a, b);
}

#if N2D2_HALVES
// The products of numbers in halves of 16 bits, carried on without a loss: bits 16 to 31 of a * b are the lower half of `middle`; what lies
// above is the product of the upper halves and the upper halves of `middle` and `upper`. Upper halves are signed or not.
struct Halves {
    std::uint32_t low, upper, middle;

    N2D2_INLINE Halves(std::uint32_t a, std::uint32_t b, std::uint32_t aUpper, std::uint32_t bUpper)
        : low((a & 0xFFFF) * (b & 0xFFFF)),
          upper(aUpper * (b & 0xFFFF) + (low >> 16)),
          middle((upper & 0xFFFF) + (a & 0xFFFF) * bUpper) {}
};
#endif

// (a * b + 2^31) >> 32.
N2D2_INLINE std::int32_t roundedHigh(std::int32_t a, std::int32_t b) {
#if N2D2_HALVES
    const std::int32_t aUpper = a >> 16, bUpper = b >> 16;
    const Halves sums(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(aUpper),
                      static_cast<std::uint32_t>(bUpper));
    return aUpper * bUpper + (static_cast<std::int32_t>(sums.upper) >> 16) +
           (((static_cast<std::int32_t>(sums.middle) >> 15) + 1) >> 1);
#else
    // The upper word of the product, and its half as a bit.
    const std::int64_t product = static_cast<std::int64_t>(a) * b;
    const std::uint32_t rest = static_cast<std::uint32_t>(product & 0xFFFFFFFF);
    return static_cast<std::int32_t>(product >> 32) + static_cast<std::int32_t>(rest >> 31);
#endif
}

#if N2D2_HALVES
// a * b modulo 2^64.
template <int = 0>
N2D2_NOINLINE std::int64_t product64(std::int64_t a, std::int64_t b) {
    const std::uint64_t x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    const std::uint32_t p = static_cast<std::uint32_t>(x), q = static_cast<std::uint32_t>(y);
    const Halves sums(p, q, p >> 16, q >> 16);
    const std::uint32_t upper = (p >> 16) * (q >> 16) + (sums.upper >> 16) + (sums.middle >> 16) +
                                static_cast<std::uint32_t>(x >> 32) * q + p * static_cast<std::uint32_t>(y >> 32);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(upper) << 32 | sums.middle << 16 | (sums.low & 0xFFFF));
}
#endif

// a * b in the type of a sum.
template <class Sum>
struct Times {
    template <class A, class B>
    static N2D2_INLINE Sum product(A a, B b) {
        return static_cast<Sum>(a) * static_cast<Sum>(b);
    }
};
#if N2D2_HALVES
template <>
struct Times<std::int64_t> {
    template <class A, class B>
    static N2D2_INLINE std::int64_t product(A a, B b) {
        if (sizeof(A) <= 2 && sizeof(B) <= 2)
            return static_cast<std::int32_t>(a) * static_cast<std::int32_t>(b);
        return product64(a, b);
    }
};
#endif
template <class Sum, class A, class B>
N2D2_INLINE Sum times(A a, B b) {
    return Times<Sum>::product(a, b);
}

// A product of floating-point numbers that is rounded before it is added: no compiler drops the sum with 0 or contracts what is behind it
// into one fused operation, and loops with it vectorise.
template <class T>
N2D2_INLINE T unfused(T product) {
    return static_cast<T>(product + T(0));
}

// x held within [Low, High] in the same way, for signed integers of 32 and 64 bits; x lies within three quarters of its type.
template <std::int64_t Low, std::int64_t High, class T>
N2D2_INLINE T held(T x) {
#if N2D2_MASKS
    typedef typename Choice<sizeof(T) == 8, std::uint64_t, std::uint32_t>::Type Bits;
    constexpr std::int64_t quarter = std::numeric_limits<T>::max() / 4;
    if (Low >= -quarter && High <= quarter) {
        Bits rest = static_cast<Bits>(x) - static_cast<Bits>(High);
        rest = (rest & signMask(rest)) + static_cast<Bits>(High - Low);
        return static_cast<T>((rest & ~signMask(rest)) + static_cast<Bits>(Low));
    }
#endif
    return lower(higher(x, static_cast<T>(Low)), static_cast<T>(High));
}

}  // namespace n2d2
