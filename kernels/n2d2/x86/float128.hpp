// Vectors of float32 in 128 bits, as panels/float_vector.hpp wants them.
#ifndef N2D2_X86_FLOAT128_HPP
#define N2D2_X86_FLOAT128_HPP

#include "n2d2/half.hpp"
#include "n2d2/x86/primitives.hpp"

namespace n2d2 {
namespace floats {

typedef __m128 Vector;
N2D2_X86_FLOATS(_mm)
N2D2_INLINE Vector add(Vector sum, Vector a, Vector b) { return _mm_add_ps(sum, _mm_mul_ps(a, b)); }
enum : int { TilePixels = 3, TilePanels = 1, SinglePanels = 2 };

}  // namespace floats
}  // namespace n2d2

#endif  // N2D2_X86_FLOAT128_HPP
