// Vectors of float32 with SVE of 256 bits, as panels/float_vector.hpp wants them.
#pragma once

#include <arm_sve.h>

#include "n2d2/half.hpp"

namespace n2d2 {
namespace floats {

typedef svfloat32_t Vector __attribute__((arm_sve_vector_bits(256)));
N2D2_INLINE Vector load(const float* from) { return svld1_f32(svptrue_b32(), from); }
N2D2_INLINE void store(Vector x, float* to) { svst1_f32(svptrue_b32(), to, x); }
N2D2_INLINE Vector spread(float x) { return svdup_n_f32(x); }
N2D2_INLINE Vector largerOf(Vector a, Vector b) { return svsel_f32(svcmpgt_f32(svptrue_b32(), a, b), a, b); }
N2D2_INLINE Vector smallerOf(Vector a, Vector b) { return svsel_f32(svcmplt_f32(svptrue_b32(), a, b), a, b); }
N2D2_INLINE Vector add(Vector sum, Vector a, Vector b) { return svmla_f32_x(svptrue_b32(), sum, a, b); }
enum : int { TilePixels = 8, TilePanels = 1, SinglePanels = 4 };

}  // namespace floats
}  // namespace n2d2
