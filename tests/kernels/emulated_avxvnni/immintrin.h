// AVX-VNNI on any machine with AVX2, for the tests: stands before the compiler's <immintrin.h> and takes the two instructions from
// SIMDe (libsimde-dev). Exact.
//
// Use with -isystem of this folder, -mavx2 and -DN2D2_EMULATED_AVXVNNI.
#ifndef N2D2_TESTS_AVXVNNI_IMMINTRIN_H
#define N2D2_TESTS_AVXVNNI_IMMINTRIN_H

#include_next <immintrin.h>

#include <simde/x86/avx512/dpbusd.h>
#include <simde/x86/avx512/dpwssd.h>

#define _mm256_dpbusd_avx_epi32(sums, x, w) simde_mm256_dpbusd_epi32(sums, x, w)
#define _mm256_dpwssd_avx_epi32(sums, x, w) simde_mm256_dpwssd_epi32(sums, x, w)

#endif  // N2D2_TESTS_AVXVNNI_IMMINTRIN_H
