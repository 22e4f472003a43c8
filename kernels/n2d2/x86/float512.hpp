// Vectors of float32 in 512 bits, as panels/float_vector.hpp wants them.
#ifndef N2D2_X86_FLOAT512_HPP
#define N2D2_X86_FLOAT512_HPP

#include "n2d2/half.hpp"
#include "n2d2/x86/primitives.hpp"

namespace n2d2 {
namespace floats {

typedef __m512 Vector;
N2D2_X86_FLOATS(_mm512)
N2D2_INLINE Vector add(Vector sum, Vector a, Vector b) { return _mm512_fmadd_ps(a, b, sum); }
enum : int { TilePixels = 6, TilePanels = 4, SinglePanels = 8 };
#if N2D2_HALF_F16C
#define N2D2_FLOAT_HALVES
N2D2_INLINE Vector load(const Half* from) { return _mm512_cvtph_ps(load256(from)); }
#endif

}  // namespace floats
}  // namespace n2d2

#endif  // N2D2_X86_FLOAT512_HPP
