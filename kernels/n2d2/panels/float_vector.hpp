// Vectors of float32 in the widest registers that the compiler may use, and the activations that are vector instructions.
//
// An instruction set has, in namespace floats: the type Vector; load() and store(); where it converts numbers in binary16
// (n2d2/half.hpp), load() of them, and N2D2_FLOAT_HALVES;
// spread(x), x in every lane; add(sum, a, b), sum + a * b, fused where the target does that; TilePixels, TilePanels, SinglePanels of the tiles
// that its registers hold; largerOf and smallerOf where those of float_functions.hpp do not take its vectors.
#pragma once

#include "n2d2/half.hpp"
#include "n2d2/output.hpp"

#define N2D2_BIND_FLOATS
#include "n2d2/bindings.hpp"
#undef N2D2_BIND_FLOATS

namespace n2d2 {
namespace floats {

using reals::largerOf;
using reals::smallerOf;
enum : int { Lanes = static_cast<int>(sizeof(Vector) / sizeof(float)) };

#if !defined(N2D2_FLOAT_HALVES)
N2D2_INLINE Vector load(const Half* from) {
    float wide[Lanes];
    widen<Lanes>(from, wide);
    return load(wide);
}
#endif

// Count sums, as values in order, to elements of the output. Vector by vector where the activation is one of instructions.
template <class Epilogue>
struct Finish {
    template <int Count, int Vectors>
    static N2D2_INLINE void run(const Vector (&sums)[Vectors], int output, float* out) {
        float values[Vectors * Lanes];
        N2D2_UNROLL_FOR(v, Vectors)
            store(sums[v], values + Lanes * v);
        n2d2::store<Epilogue, Count>(values, output, out);
    }
};

template <class Activation>
struct VectorFinish {
    template <int Count, int Vectors>
    static N2D2_INLINE void run(const Vector (&sums)[Vectors], int, float* out) {
        N2D2_UNROLL_FOR(v, Count / Lanes)
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
        return smallerOf(spread(Parameters::high()), largerOf(spread(Parameters::low()), x));
    }
};
template <>
struct Finish<Activated<float, Linear<float> > > : VectorFinish<LinearVector> {};
template <class Parameters>
struct Finish<Activated<float, Clip<float, Parameters> > > : VectorFinish<ClipVector<Parameters> > {};

}  // namespace floats
}  // namespace n2d2
