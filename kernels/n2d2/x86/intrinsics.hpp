// The intrinsics of the compiler.
#ifndef N2D2_X86_INTRINSICS_HPP
#define N2D2_X86_INTRINSICS_HPP

// GCC 12 reports the undefined registers of its own header (GCC bug 105593).
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#endif  // N2D2_X86_INTRINSICS_HPP
