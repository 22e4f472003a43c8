// Vectors of float32 in 256 bits, as panels/float_vector.hpp wants them.
#ifndef N2D2_X86_FLOAT256_HPP
#define N2D2_X86_FLOAT256_HPP

#include "n2d2/half.hpp"
#include "n2d2/x86/primitives.hpp"

namespace n2d2 {
namespace floats {

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
#if N2D2_HALF_F16C
#define N2D2_FLOAT_HALVES
N2D2_INLINE Vector load(const Half* from) { return _mm256_cvtph_ps(load128(from)); }
#endif

}  // namespace floats
}  // namespace n2d2

#endif  // N2D2_X86_FLOAT256_HPP
