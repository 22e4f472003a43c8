// Vectors of float32 in 256 bits, as panels/float_vector.hpp wants them.
#ifndef N2D2_X86_FLOAT256_HPP
#define N2D2_X86_FLOAT256_HPP

#include "n2d2/half.hpp"
#include "n2d2/x86/intrinsics.hpp"

namespace n2d2 {
namespace floats {

typedef __m256 Vector;
N2D2_INLINE Vector load(const float* from) { return _mm256_loadu_ps(from); }
N2D2_INLINE void store(Vector x, float* to) { _mm256_storeu_ps(to, x); }
N2D2_INLINE Vector spread(float x) { return _mm256_set1_ps(x); }
N2D2_INLINE Vector add(Vector sum, Vector a, Vector b) {
#if defined(__FMA__)
    return _mm256_fmadd_ps(a, b, sum);
#else
    return _mm256_add_ps(sum, _mm256_mul_ps(a, b));
#endif
}
N2D2_INLINE Vector largerOf(Vector a, Vector b) { return _mm256_max_ps(a, b); }
N2D2_INLINE Vector smallerOf(Vector a, Vector b) { return _mm256_min_ps(a, b); }
enum : int { TilePixels = 6, TilePanels = 1, SinglePanels = 4 };
N2D2_INLINE Vector load(const Half* from) {
#if N2D2_HALF_F16C
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#else
    float wide[8];
    widen<8>(from, wide);
    return load(wide);
#endif
}

}  // namespace floats
}  // namespace n2d2

#endif  // N2D2_X86_FLOAT256_HPP
