// Vectors of float32, as panels/float_vector.hpp wants them: of 512 bits, of 256 bits, else of 128 bits.
#pragma once

#include "n2d2/half.hpp"
#include "n2d2/x86/primitives.hpp"

namespace n2d2 {
namespace floats {

#if N2D2_AVX512VNNI
typedef __m512 Vector;
N2D2_X86_FLOATS(_mm512)
N2D2_INLINE Vector add(Vector sum, Vector a, Vector b) { return _mm512_fmadd_ps(a, b, sum); }
enum : int { TilePixels = 6, TilePanels = 4, SinglePanels = 8 };
#elif defined(__AVX__)  // also without AVX2
typedef __m256 Vector;
N2D2_X86_FLOATS(_mm256)
N2D2_INLINE Vector add(Vector sum, Vector a, Vector b) {
#if defined(__FMA__)
    return _mm256_fmadd_ps(a, b, sum);
#else
    return _mm256_add_ps(sum, _mm256_mul_ps(a, b));
#endif
}
enum : int { TilePixels = 6, TilePanels = 1, SinglePanels = 4 };
#else
typedef __m128 Vector;
N2D2_X86_FLOATS(_mm)
N2D2_INLINE Vector add(Vector sum, Vector a, Vector b) { return _mm_add_ps(sum, _mm_mul_ps(a, b)); }
enum : int { TilePixels = 3, TilePanels = 1, SinglePanels = 2 };
#endif

#if N2D2_AVX512VNNI && defined(N2D2_HALF_F16C)
#define N2D2_FLOAT_HALVES
N2D2_INLINE Vector load(const Half* from) { return _mm512_cvtph_ps(load256(from)); }
#elif defined(N2D2_HALF_F16C)
#define N2D2_FLOAT_HALVES
N2D2_INLINE Vector load(const Half* from) { return _mm256_cvtph_ps(load128(from)); }
#endif

}  // namespace floats
}  // namespace n2d2
