// Vectors of float32 with NEON, as panels/float_vector.hpp wants them.
#pragma once

#include <arm_neon.h>

#include "n2d2/half.hpp"

namespace n2d2 {
namespace floats {

typedef float32x4_t Vector;
N2D2_INLINE Vector load(const float* from) { return vld1q_f32(from); }
N2D2_INLINE void store(Vector x, float* to) { vst1q_f32(to, x); }
N2D2_INLINE Vector spread(float x) { return vdupq_n_f32(x); }
N2D2_INLINE Vector largerOf(Vector a, Vector b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
N2D2_INLINE Vector smallerOf(Vector a, Vector b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
#if defined(__aarch64__)
N2D2_INLINE Vector add(Vector sum, Vector a, Vector b) { return vfmaq_f32(sum, a, b); }
enum : int { TilePixels = 6, TilePanels = 1, SinglePanels = 4 };
#else
N2D2_INLINE Vector add(Vector sum, Vector a, Vector b) { return vmlaq_f32(sum, a, b); }
enum : int { TilePixels = 3, TilePanels = 1, SinglePanels = 2 };
#endif

}  // namespace floats
}  // namespace n2d2
