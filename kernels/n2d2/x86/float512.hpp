// Vectors of float32 in 512 bits, as panels/float_vector.hpp wants them.
#ifndef N2D2_X86_FLOAT512_HPP
#define N2D2_X86_FLOAT512_HPP

#include "n2d2/half.hpp"
#include "n2d2/x86/intrinsics.hpp"

namespace n2d2 {
namespace floats {

typedef __m512 Vector;
N2D2_INLINE Vector load(const float* from) { return _mm512_loadu_ps(from); }
N2D2_INLINE void store(Vector x, float* to) { _mm512_storeu_ps(to, x); }
N2D2_INLINE Vector spread(float x) { return _mm512_set1_ps(x); }
N2D2_INLINE Vector add(Vector sum, Vector a, Vector b) { return _mm512_fmadd_ps(a, b, sum); }
N2D2_INLINE Vector largerOf(Vector a, Vector b) { return _mm512_max_ps(a, b); }
N2D2_INLINE Vector smallerOf(Vector a, Vector b) { return _mm512_min_ps(a, b); }
enum : int { TilePixels = 6, TilePanels = 4, SinglePanels = 8 };
N2D2_INLINE Vector load(const Half* from) {
#if N2D2_HALF_F16C
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#else
    float wide[16];
    widen<16>(from, wide);
    return load(wide);
#endif
}

}  // namespace floats
}  // namespace n2d2

#endif  // N2D2_X86_FLOAT512_HPP
