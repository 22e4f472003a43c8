// Requirements of the kernels on the compiler and on the target.
//
// The arithmetic is defined bit for bit, so anything that would change it is refused here: a
// floating-point model that may reassociate, a right shift that is not arithmetic, other integer
// sizes. The kernels use no heap, no exception, no run-time type information and no stream.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

// `Cfg::Isa` selects the instruction set that a layer's kernel is written for. Portable C++ is what the
// primary templates hold, so a kernel without a version for some set runs in portable form.
#include "n2d2/isa.hpp"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || defined(__ARM_BIG_ENDIAN)
#error "n2d2: the constants of the export are in little-endian order"
#endif

#if defined(__FAST_MATH__)
#error "n2d2: -ffast-math changes the results; build without it (and without -Ofast)"
#endif

// Bounds of arrays are template parameters of type int: to GCC, each is a conversion that may change the sign. clang checks the others.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif

#if defined(__GNUC__) || defined(__clang__)
#if defined(__OPTIMIZE__)
#define N2D2_INLINE inline __attribute__((always_inline))
#else
#define N2D2_INLINE inline  // -O0 compiles every function once
#endif
#define N2D2_INLINE_LAMBDA __attribute__((always_inline))
#define N2D2_NOINLINE __attribute__((noinline))
#elif defined(_MSC_VER)
#define N2D2_INLINE __forceinline
#define N2D2_INLINE_LAMBDA
#define N2D2_NOINLINE __declspec(noinline)
#else
#define N2D2_INLINE inline
#define N2D2_INLINE_LAMBDA
#define N2D2_NOINLINE
#endif

// Code for size (-Os): layers of different sizes share functions, which have these sizes as arguments, not as constants.
#if defined(__OPTIMIZE_SIZE__)
#define N2D2_SMALL_CODE 1
#define N2D2_SHARED N2D2_NOINLINE
#else
#define N2D2_SMALL_CODE 0
#define N2D2_SHARED N2D2_INLINE
#endif

// Before a loop of few iterations whose variables must all be in registers. N2D2_UNROLL_FOR(i, count): such a loop of i from 0 to count - 1.
#if defined(__clang__)
#define N2D2_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define N2D2_UNROLL _Pragma("GCC unroll 32")
#else
#define N2D2_UNROLL
#endif
#define N2D2_UNROLL_FOR(i, count) \
    N2D2_UNROLL                   \
    for (int i = 0; i < (count); ++i)

// A processor with vectors of integers, which compilers make of simple loops.
#if defined(__SSE2__) || defined(_M_X64) || defined(__ARM_NEON) || defined(__ARM_FEATURE_MVE) || defined(__riscv_vector)
#define N2D2_VECTOR_LOOPS 1
#else
#define N2D2_VECTOR_LOOPS 0
#endif

// Before a loop of few selections: GCC makes vectors of it, but jumps of its iterations.
#if N2D2_VECTOR_LOOPS && defined(__GNUC__) && !defined(__clang__)
#define N2D2_KEEP_LOOP _Pragma("GCC unroll 1")
#else
#define N2D2_KEEP_LOOP
#endif

// A core without vectors whose registers hold the sums of eight outputs.
#if defined(__riscv_mul) && __riscv_xlen == 32 && !defined(__riscv_vector) && defined(__GNUC__)
#define N2D2_SCALAR_TILES 1
#endif

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define N2D2_M_PROFILE 1
#else
#define N2D2_M_PROFILE 0
#endif

// Multiply-accumulates below which a loop stays on one thread; above, the time of inferences decides (parallel.hpp). SIMD kernels count
// N2D2_SIMD_SPEED of them as one, by default what the table of instruction sets says.
#ifndef N2D2_PARALLEL_WORK
#define N2D2_PARALLEL_WORK 16384
#endif
#ifndef N2D2_SIMD_SPEED
#define N2D2_SIMD_SPEED N2D2_ISA_SPEED
#endif

namespace n2d2 {

static_assert(CHAR_BIT == 8, "bytes have 8 bits");
static_assert(sizeof(int) >= 4, "indices and loop counters need 32 bits");
static_assert(sizeof(float) == 4 && std::numeric_limits<float>::is_iec559, "float is IEEE 754 binary32");
static_assert((-1 >> 1) == -1 && (std::int64_t(-3) >> 1) == -2, "the right shift is arithmetic");
static_assert(-1 == ~0, "negative integers are in two's complement");

// Names a constant, so that a specialisation is for classes that have it.
template <int>
struct Exists {
    typedef void Type;
};

// Name<Class>::value: the constant of a class, or Otherwise where it has none.
#define N2D2_OPTIONAL(Integer, Name, Constant, Otherwise)        \
    template <class Class, class Found = void>                   \
    struct Name {                                                \
        enum : Integer { value = Otherwise };                    \
    };                                                           \
    template <class Class>                                       \
    struct Name<Class, typename Exists<Class::Constant>::Type> { \
        enum : Integer { value = Class::Constant };              \
    }

// Name<Cfg>(arguments): the function of a layer, which runs its kernel.
#define N2D2_LAYER(Name, ...)                              \
    template <class Cfg, class... Arguments>               \
    N2D2_INLINE void Name(const Arguments&... arguments) { \
        __VA_ARGS__::run(arguments...);                    \
    }

template <bool First, class A, class B>
struct Choice {
    typedef A Type;
};
template <class A, class B>
struct Choice<false, A, B> {
    typedef B Type;
};

// Bytes as elements of type T, for which they are aligned, or which instructions read that take any address.
template <class T>
N2D2_INLINE const T* elementsOf(const void* bytes) {
    return static_cast<const T*>(bytes);
}
template <class T>
N2D2_INLINE T* elementsOf(void* bytes) {
    return static_cast<T*>(bytes);
}

template <class T>
N2D2_INLINE constexpr T least(T a, T b) {
    return b < a ? b : a;
}

template <class T>
N2D2_INLINE constexpr T largest(T a, T b) {
    return a < b ? b : a;
}

// Bits of a positive number.
N2D2_INLINE int bitsOf(std::uint64_t x) {
#if defined(__GNUC__)
    return 64 - __builtin_clzll(x);
#else
    int bits = 0;
    for (; x != 0; x >>= 1)
        ++bits;
    return bits;
#endif
}
N2D2_INLINE int bitsOf(std::uint32_t x) {
#if defined(__GNUC__) && __SIZEOF_INT__ == 4
    return 32 - __builtin_clz(static_cast<unsigned>(x));
#else
    return bitsOf(std::uint64_t{x});
#endif
}

#if N2D2_M_PROFILE
// Copies bytes of any alignment without unaligned accesses, which a core may trap and which the memcpy of newlib makes.
template <int = 0>
N2D2_NOINLINE void copyBytes(void* to, const void* from, std::size_t bytes) {
    unsigned char* t = static_cast<unsigned char*>(to);
    const unsigned char* f = static_cast<const unsigned char*>(from);
    if (((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) & 3) == 0) {
        for (; bytes >= 16; bytes -= 16, f += 16, t += 16)
            __builtin_memcpy(__builtin_assume_aligned(t, 4), __builtin_assume_aligned(f, 4), 16);
        for (; bytes >= 4; bytes -= 4, f += 4, t += 4)
            __builtin_memcpy(__builtin_assume_aligned(t, 4), __builtin_assume_aligned(f, 4), 4);
    }
    for (; bytes > 0; --bytes) {
        *t++ = *f++;
        __asm__("" : "+r"(t));  // else GCC calls memcpy
    }
}
#else
N2D2_INLINE void copyBytes(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
#endif

// A size as the argument of a template, and in its functions.
N2D2_INLINE constexpr int sharedSize(int size) { return N2D2_SMALL_CODE ? 0 : size; }
template <int Constant>
N2D2_INLINE constexpr int sizeOr(int argument) {
    return Constant > 0 ? Constant : argument;
}

}  // namespace n2d2
