// Scalar products of a run of inputs with the weights of several outputs.
//
//   sums[p][o] += sum over k < count of x[p][k] * w[o * pitch + k]
//
// for Pixels x Outputs at once, so that each loaded input serves all outputs and each weight all pixels.
// Integer sums are exact in any order: the compiler may use its dot product instructions. Floating-point
// sums are split into a fixed number of partial sums where the target has vectors, because a compiler must not
// reorder them itself. Weights are of the type of the sums, or halves (n2d2/half.hpp).
#pragma once

#include "n2d2/half.hpp"
#include "n2d2/steady.hpp"

namespace n2d2 {

// The type in which a window of inputs is gathered. On x86 bytes become 16-bit integers: compilers multiply and add pairs of these
// in one instruction, while GCC shortens products of bytes to 16 bits and widens each of them.
template <class In, class Weight, class Sum,
          int Bytes = static_cast<int>(1000 * sizeof(Sum) + 10 * sizeof(Weight) + sizeof(In))>
struct WindowOf {
    typedef In Type;
};
#if defined(__SSE2__)
template <class In, class Weight>
struct WindowOf<In, Weight, std::int32_t, 4011> {
    typedef std::int16_t Type;
};
#endif

template <class Sum, bool Integer = std::numeric_limits<Sum>::is_integer>
struct Dot;

template <class Sum>
struct Dot<Sum, true> {
    template <class In, class Weight>
    static N2D2_INLINE Sum multiply(In x, Weight w) {
        return times<Sum>(x, w);
    }

    // sums[p][o] += x[p] times row o of the weights.
    template <int Pixels, int Outputs, class In, class Weight>
    static N2D2_INLINE void add(int count, const In* const (&x)[Pixels], const Weight* w, int pitch,
                                Sum* const (&sums)[Pixels]) {
        Sum total[Pixels][Outputs] = {};
        for (int k = 0; k < count; ++k)
            N2D2_UNROLL_FOR(p, Pixels)
                N2D2_UNROLL_FOR(o, Outputs)
                    total[p][o] += multiply(x[p][k], w[o * pitch + k]);
        N2D2_UNROLL_FOR(p, Pixels)
            N2D2_UNROLL_FOR(o, Outputs)
                sums[p][o] += total[p][o];
    }
};

// Partial sums of a floating-point scalar product: lane l holds the terms k with k % Lanes == l.
#if defined(__GNUC__) && (defined(__SSE2__) || defined(__ARM_NEON) || defined(__ALTIVEC__))
template <class Sum>
struct PartialVector;

template <>
struct PartialVector<float> {
    typedef float Type __attribute__((vector_size(32)));
};

template <>
struct PartialVector<double> {
    typedef double Type __attribute__((vector_size(32)));
};

template <class Sum>
struct Partial {
    typedef typename PartialVector<Sum>::Type Vector;
    enum : int { Lanes = static_cast<int>(sizeof(Vector) / sizeof(Sum)) };

    Vector lanes;

    N2D2_INLINE Partial() : lanes() {}
    N2D2_INLINE void add(const Sum* x, const Sum* w) {
        Vector a, b;
        std::memcpy(&a, x, sizeof(a));
        std::memcpy(&b, w, sizeof(b));
        lanes += a * b;
    }
    N2D2_INLINE void add(const Sum* x, const Half* w) {
        alignas(32) Sum wide[Lanes];
        widen<Lanes>(w, wide);
        add(x, wide);
    }
    N2D2_INLINE Sum total() const {
        Sum sum = lanes[0];
        for (int l = 1; l < Lanes; ++l)
            sum += lanes[l];
        return sum;
    }
};
#else
template <class Sum>
struct Partial {
    enum : int { Lanes = 1 };

    Sum sum;

    N2D2_INLINE Partial() : sum(0) {}
    template <class Weight>
    N2D2_INLINE void add(const Sum* x, const Weight* w) {
        sum += x[0] * static_cast<Sum>(w[0]);
    }
    N2D2_INLINE Sum total() const { return sum; }
};
#endif

template <class Sum>
struct Dot<Sum, false> {
    typedef Partial<Sum> P;
    enum : int { Lanes = P::Lanes };

    template <class Weight>
    static N2D2_INLINE Sum rest(int k, int count, const Sum* x, const Weight* w) {
        Sum sum = 0;
        for (; k < count; ++k)
            sum += x[k] * static_cast<Sum>(w[k]);
        return sum;
    }

    template <int Pixels, int Outputs, class Weight>
    static N2D2_INLINE void add(int count, const Sum* const (&x)[Pixels], const Weight* w, int pitch,
                                Sum* const (&sums)[Pixels]) {
        P total[Pixels][Outputs];
        int k = 0;
        for (; k + Lanes <= count; k += Lanes)
            N2D2_UNROLL_FOR(p, Pixels)
                N2D2_UNROLL_FOR(o, Outputs)
                    total[p][o].add(x[p] + k, w + o * pitch + k);
        N2D2_UNROLL_FOR(p, Pixels)
            N2D2_UNROLL_FOR(o, Outputs)
                sums[p][o] += total[p][o].total() + rest(k, count, x[p], w + o * pitch);
    }
};

#if defined(N2D2_SCALAR_TILES)
// One pixel and eight outputs. Loads stay in the step that uses them, so that sums stay in registers.
template <class Sum, class In, class Weight>
N2D2_NOINLINE void dots1x8(int count, const In* x, const Weight* w, int pitch, Sum* sums) {
    Sum s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3], s4 = sums[4], s5 = sums[5], s6 = sums[6], s7 = sums[7];
    const Weight *w1 = w + pitch, *w2 = w1 + pitch, *w3 = w2 + pitch, *w4 = w3 + pitch, *w5 = w4 + pitch, *w6 = w5 + pitch,
                 *w7 = w6 + pitch;
    const In* const all = x + count;
    const In* const end = x + count / 8 * 8;
#define N2D2_STEP(i)                         \
    {                                        \
        const Sum v = x[i];                  \
        s0 += v * w[i];                      \
        s1 += v * w1[i];                     \
        s2 += v * w2[i];                     \
        s3 += v * w3[i];                     \
        s4 += v * w4[i];                     \
        s5 += v * w5[i];                     \
        s6 += v * w6[i];                     \
        s7 += v * w7[i];                     \
        __asm__ volatile("" : : : "memory"); \
    }
#define N2D2_MOVE(by) x += by, w += by, w1 += by, w2 += by, w3 += by, w4 += by, w5 += by, w6 += by, w7 += by
    while (x != end) {
        N2D2_STEP(0)
        N2D2_STEP(1)
        N2D2_STEP(2)
        N2D2_STEP(3)
        N2D2_STEP(4)
        N2D2_STEP(5)
        N2D2_STEP(6)
        N2D2_STEP(7)
        N2D2_MOVE(8);
    }
    while (x != all) {
        N2D2_STEP(0)
        N2D2_MOVE(1);
    }
#undef N2D2_MOVE
#undef N2D2_STEP
    sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
    sums[4] = s4, sums[5] = s5, sums[6] = s6, sums[7] = s7;
}

// Words as sums and bytes as weights; with anything else, nothing is computed this way.
template <class Sum, class In, class Weight>
struct ScalarTile {
    template <int Outputs>
    static N2D2_INLINE int dots(int, const In*, const Weight*, int, Sum*) {
        return 0;
    }
};
template <class In>
struct ScalarTile<std::int32_t, In, std::int8_t> {
    template <int Outputs>
    static N2D2_INLINE int dots(int count, const In* x, const std::int8_t* w, int pitch, std::int32_t* sums) {
        for (int o = 0; o + 8 <= Outputs; o += 8)
            dots1x8(count, x, w + o * pitch, pitch, sums + o);
        return Outputs / 8 * 8;
    }
};
#endif

// sums[o] += scalar product of x with the weights of each of Outputs outputs.
template <class Sum, int Outputs, class In, class Weight>
N2D2_INLINE void dots(int count, const In* x, const Weight* w, int pitch, Sum* sums) {
    int o = 0;
#if defined(N2D2_SCALAR_TILES)
    o = ScalarTile<Sum, In, Weight>::template dots<Outputs>(count, x, w, pitch, sums);
#endif
    for (; o + 4 <= Outputs; o += 4)
        Dot<Sum>::template add<1, 4>(count, {x}, w + o * pitch, pitch, {sums + o});
    for (; o < Outputs; ++o)
        Dot<Sum>::template add<1, 1>(count, {x}, w + o * pitch, pitch, {sums + o});
}

// The same for two pixels x and y.
template <class Sum, int Outputs, class In, class Weight>
N2D2_INLINE void dots(int count, const In* x, const In* y, const Weight* w, int pitch, Sum* sums, Sum* sumsY) {
    int o = 0;
    for (; o + 4 <= Outputs; o += 4)
        Dot<Sum>::template add<2, 4>(count, {x, y}, w + o * pitch, pitch, {sums + o, sumsY + o});
    for (; o < Outputs; ++o)
        Dot<Sum>::template add<2, 1>(count, {x, y}, w + o * pitch, pitch, {sums + o, sumsY + o});
}

}  // namespace n2d2
