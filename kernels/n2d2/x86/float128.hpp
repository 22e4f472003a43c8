// Vectors of float32 in 128 bits, as panels/float_vector.hpp wants them.
#ifndef N2D2_X86_FLOAT128_HPP
#define N2D2_X86_FLOAT128_HPP

#include "n2d2/half.hpp"
#include "n2d2/x86/intrinsics.hpp"

namespace n2d2 {
namespace floats {

typedef __m128 Vector;
N2D2_INLINE Vector load(const float* from) { return _mm_loadu_ps(from); }
N2D2_INLINE void store(Vector x, float* to) { _mm_storeu_ps(to, x); }
N2D2_INLINE Vector spread(float x) { return _mm_set1_ps(x); }
N2D2_INLINE Vector add(Vector sum, Vector a, Vector b) { return _mm_add_ps(sum, _mm_mul_ps(a, b)); }
N2D2_INLINE Vector largerOf(Vector a, Vector b) { return _mm_max_ps(a, b); }
N2D2_INLINE Vector smallerOf(Vector a, Vector b) { return _mm_min_ps(a, b); }
enum : int { TilePixels = 3, TilePanels = 1, SinglePanels = 2 };
N2D2_INLINE Vector load(const Half* from) {
    float wide[4];
    widen<4>(from, wide);
    return load(wide);
}

}  // namespace floats
}  // namespace n2d2

#endif  // N2D2_X86_FLOAT128_HPP
