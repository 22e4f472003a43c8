// Vectors of float32 in the widest registers that the compiler may use, and the activations that are vector instructions.
//
// add() fuses product and sum where the target does that. largerOf and smallerOf choose the second operand for what is no
// number, as Clip does.
#ifndef N2D2_PANELS_FLOAT_VECTOR_HPP
#define N2D2_PANELS_FLOAT_VECTOR_HPP

#include <cstring>

#include "n2d2/half.hpp"
#include "n2d2/output.hpp"

#if defined(__SSE2__)
#include "n2d2/x86/intrinsics.hpp"
#elif N2D2_NEON
#include <arm_neon.h>
#endif

namespace n2d2 {
namespace floats {

#if N2D2_AVX512VNNI
typedef __m512 Vector;
N2D2_INLINE Vector load(const float* from) { return _mm512_loadu_ps(from); }
N2D2_INLINE void store(Vector x, float* to) { _mm512_storeu_ps(to, x); }
N2D2_INLINE Vector spread(float x) { return _mm512_set1_ps(x); }
N2D2_INLINE Vector add(Vector sum, Vector a, Vector b) { return _mm512_fmadd_ps(a, b, sum); }
N2D2_INLINE Vector largerOf(Vector a, Vector b) { return _mm512_max_ps(a, b); }
N2D2_INLINE Vector smallerOf(Vector a, Vector b) { return _mm512_min_ps(a, b); }
enum : int { TilePixels = 6, TilePanels = 4, SinglePanels = 8 };
#elif defined(__AVX__)
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
#elif defined(__SSE2__)
typedef __m128 Vector;
N2D2_INLINE Vector load(const float* from) { return _mm_loadu_ps(from); }
N2D2_INLINE void store(Vector x, float* to) { _mm_storeu_ps(to, x); }
N2D2_INLINE Vector spread(float x) { return _mm_set1_ps(x); }
N2D2_INLINE Vector add(Vector sum, Vector a, Vector b) { return _mm_add_ps(sum, _mm_mul_ps(a, b)); }
N2D2_INLINE Vector largerOf(Vector a, Vector b) { return _mm_max_ps(a, b); }
N2D2_INLINE Vector smallerOf(Vector a, Vector b) { return _mm_min_ps(a, b); }
enum : int { TilePixels = 3, TilePanels = 1, SinglePanels = 2 };
#elif N2D2_NEON
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
#endif

enum : int { Lanes = static_cast<int>(sizeof(Vector) / sizeof(float)) };

// Weights in binary16 (n2d2/half.hpp).
N2D2_INLINE Vector load(const Half* from) {
#if N2D2_AVX512VNNI && N2D2_HALF_F16C
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#elif defined(__AVX__) && N2D2_HALF_F16C
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#else
    float wide[Lanes];
    widen<Lanes>(from, wide);
    return load(wide);
#endif
}

// Count sums, as values in order, to elements of the output. Vector by vector where the activation is one of instructions.
template <class Stage>
struct Finish {
    template <int Count, int Vectors>
    static N2D2_INLINE void run(const Vector (&sums)[Vectors], int output, float* out) {
        float values[Vectors * Lanes];
        N2D2_UNROLL
        for (int v = 0; v < Vectors; ++v)
            store(sums[v], values + Lanes * v);
        n2d2::store<Stage, Count>(values, output, out);
    }
};

template <class Activation>
struct VectorFinish {
    template <int Count, int Vectors>
    static N2D2_INLINE void run(const Vector (&sums)[Vectors], int, float* out) {
        N2D2_UNROLL
        for (int v = 0; v < Count / Lanes; ++v)
            store(Activation::apply(sums[v]), out + Lanes * v);
        if (Count % Lanes != 0) {
            float values[Lanes];
            store(Activation::apply(sums[Vectors - 1]), values);
            std::memcpy(out + Count / Lanes * Lanes, values, Count % Lanes * sizeof(float));
        }
    }
};
struct LinearVector {
    static N2D2_INLINE Vector apply(Vector x) { return x; }
};
template <class Parameters>
struct ClipVector {
    static N2D2_INLINE Vector apply(Vector x) {
        return smallerOf(largerOf(x, spread(Parameters::low())), spread(Parameters::high()));
    }
};
template <>
struct Finish<Activated<float, Linear<float> > > : VectorFinish<LinearVector> {};
template <class Parameters>
struct Finish<Activated<float, Clip<float, Parameters> > > : VectorFinish<ClipVector<Parameters> > {};

}  // namespace floats
}  // namespace n2d2

#endif  // N2D2_PANELS_FLOAT_VECTOR_HPP
