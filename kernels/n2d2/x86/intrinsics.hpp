// The intrinsics of the compiler, loads and stores of vectors at any address, and dot products.
#pragma once

#include "n2d2/env.hpp"

// GCC 12 reports the undefined registers of its own header (GCC bug 105593).
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#if defined(__AVX512F__) || defined(N2D2_EMULATED_AVX512VNNI) || defined(N2D2_EMULATED_AVXVNNI) || \
    defined(_IMMINTRIN_H_INCLUDED) || defined(__IMMINTRIN_H) || defined(__INTEL_COMPILER) ||       \
    !((__GNUC__ > 10 && __GNUC__ < 16) || (__clang_major__ > 11 && __clang_major__ < 22))
#include <immintrin.h>
#else
// Half of the time of a file of layers would go into the AVX-512 of <immintrin.h>, so kernels without AVX-512 include the parts that they use.
// The parts require the guard of GCC or of Clang. Other code can still include the whole header.
#define _IMMINTRIN_H_INCLUDED
#define __IMMINTRIN_H
#include <smmintrin.h>
#include <avxintrin.h>
#include <avx2intrin.h>
#include <avxvnniintrin.h>
#include <f16cintrin.h>
#include <fmaintrin.h>
#undef __IMMINTRIN_H
#undef _IMMINTRIN_H_INCLUDED
#endif
#pragma GCC diagnostic pop

// Dot products of VNNI: sums[i] += the products of four unsigned bytes of x with four signed ones of w, or of pairs of 16-bit integers.
//
// An instruction by name: with the intrinsic GCC 12 keeps half of the sums of a tile on the stack (180 moves in a loop, none this way).
#define N2D2_DOT_BY_NAME(Name, Vector, Register, Instruction)                               \
    N2D2_INLINE void Name(Vector& sums, Vector x, Vector w) {                               \
        __asm__(Instruction " %2, %1, %0" : "+" Register(sums) : Register(x), Register(w)); \
    }
#define N2D2_DOT_BY_INTRINSIC(Name, Vector, Intrinsic) \
    N2D2_INLINE void Name(Vector& sums, Vector x, Vector w) { sums = Intrinsic(sums, x, w); }

namespace n2d2 {

N2D2_INLINE __m128i load128(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
N2D2_INLINE void store128(void* to, __m128i x) { _mm_storeu_si128(static_cast<__m128i*>(to), x); }
#if defined(__AVX__) || defined(N2D2_EMULATED_AVX512VNNI)
N2D2_INLINE __m256i load256(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
N2D2_INLINE void store256(void* to, __m256i x) { _mm256_storeu_si256(static_cast<__m256i*>(to), x); }
#endif

}  // namespace n2d2
