// Vectors of float32 by the vector extensions of the compiler, as panels/float_vector.hpp wants them: 16 floats where vectors have any
// length (RISC-V), else 128 bits.
#pragma once

#if defined(__mips_msa)
#include <msa.h>
#endif

#include "n2d2/half.hpp"

namespace n2d2 {
namespace floats {

#if defined(__riscv_vector)
typedef float Vector __attribute__((vector_size(64)));
#else
typedef float Vector __attribute__((vector_size(16)));
#endif
N2D2_INLINE Vector load(const float* from) {
    Vector x;
    std::memcpy(&x, from, sizeof x);
    return x;
}
N2D2_INLINE void store(Vector x, float* to) { std::memcpy(to, &x, sizeof x); }
N2D2_INLINE Vector spread(float x) { return Vector{} + x; }
#if defined(__mips_msa)  // GCC does not fuse the two in C++11
N2D2_INLINE Vector add(Vector sum, Vector a, Vector b) { return __msa_fmadd_w(sum, a, b); }
#else
N2D2_INLINE Vector add(Vector sum, Vector a, Vector b) { return sum + a * b; }
#endif
enum : int { TilePixels = 6, TilePanels = 1, SinglePanels = sizeof(Vector) == 64 ? 2 : 4 };

}  // namespace floats
}  // namespace n2d2
