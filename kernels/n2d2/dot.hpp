// Scalar products of a run of inputs with the weights of several outputs.
//
//   sums[p][o] += sum over k < count of x[p][k] * w[o * pitch + k]
//
// for Pixels x Outputs at once, so that each loaded input serves all outputs and each weight all pixels.
// Integer sums are exact in any order: the compiler may use its dot product instructions. Floating-point
// sums are split into a fixed number of partial sums where the target has vectors, because a compiler must not
// reorder them itself. Weights are of the type of the sums, or halves (n2d2/half.hpp).
#ifndef N2D2_DOT_HPP
#define N2D2_DOT_HPP

#include <cstring>

#include "n2d2/half.hpp"

namespace n2d2 {

// The type in which a window of inputs is gathered. On x86 bytes become 16-bit integers: compilers multiply and add pairs of these
// in one instruction, while GCC shortens products of bytes to 16 bits and widens each of them.
template <class In, class Weight, class Sum,
          int Bytes = 1000 * static_cast<int>(sizeof(Sum)) + 10 * sizeof(Weight) + sizeof(In)>
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
        return static_cast<Sum>(x) * static_cast<Sum>(w);
    }

    template <class In, class Weight>
    static N2D2_INLINE void add1x1(int count, const In* x, const Weight* w, Sum& sum) {
        Sum s = 0;
        for (int k = 0; k < count; ++k)
            s += multiply(x[k], w[k]);
        sum += s;
    }

    template <class In, class Weight>
    static N2D2_INLINE void add1x4(int count, const In* x, const Weight* w, int pitch, Sum* sums) {
        const Weight* const w1 = w + pitch;
        const Weight* const w2 = w1 + pitch;
        const Weight* const w3 = w2 + pitch;
        Sum s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (int k = 0; k < count; ++k) {
            s0 += multiply(x[k], w[k]);
            s1 += multiply(x[k], w1[k]);
            s2 += multiply(x[k], w2[k]);
            s3 += multiply(x[k], w3[k]);
        }
        sums[0] += s0;
        sums[1] += s1;
        sums[2] += s2;
        sums[3] += s3;
    }

    template <class In, class Weight>
    static N2D2_INLINE void add2x4(int count, const In* x, const In* y, const Weight* w, int pitch, Sum* sums, Sum* sumsY) {
        const Weight* const w1 = w + pitch;
        const Weight* const w2 = w1 + pitch;
        const Weight* const w3 = w2 + pitch;
        Sum s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
        for (int k = 0; k < count; ++k) {
            s0 += multiply(x[k], w[k]);
            s1 += multiply(x[k], w1[k]);
            s2 += multiply(x[k], w2[k]);
            s3 += multiply(x[k], w3[k]);
            t0 += multiply(y[k], w[k]);
            t1 += multiply(y[k], w1[k]);
            t2 += multiply(y[k], w2[k]);
            t3 += multiply(y[k], w3[k]);
        }
        sums[0] += s0;
        sums[1] += s1;
        sums[2] += s2;
        sums[3] += s3;
        sumsY[0] += t0;
        sumsY[1] += t1;
        sumsY[2] += t2;
        sumsY[3] += t3;
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

    template <class Weight>
    static N2D2_INLINE void add1x1(int count, const Sum* x, const Weight* w, Sum& sum) {
        P a;
        int k = 0;
        for (; k + Lanes <= count; k += Lanes)
            a.add(x + k, w + k);
        sum += a.total() + rest(k, count, x, w);
    }

    template <class Weight>
    static N2D2_INLINE void add1x4(int count, const Sum* x, const Weight* w, int pitch, Sum* sums) {
        const Weight* const w1 = w + pitch;
        const Weight* const w2 = w1 + pitch;
        const Weight* const w3 = w2 + pitch;
        P a0, a1, a2, a3;
        int k = 0;
        for (; k + Lanes <= count; k += Lanes) {
            a0.add(x + k, w + k);
            a1.add(x + k, w1 + k);
            a2.add(x + k, w2 + k);
            a3.add(x + k, w3 + k);
        }
        sums[0] += a0.total() + rest(k, count, x, w);
        sums[1] += a1.total() + rest(k, count, x, w1);
        sums[2] += a2.total() + rest(k, count, x, w2);
        sums[3] += a3.total() + rest(k, count, x, w3);
    }

    template <class Weight>
    static N2D2_INLINE void add2x4(int count, const Sum* x, const Sum* y, const Weight* w, int pitch, Sum* sums, Sum* sumsY) {
        const Weight* const w1 = w + pitch;
        const Weight* const w2 = w1 + pitch;
        const Weight* const w3 = w2 + pitch;
        P a0, a1, a2, a3, b0, b1, b2, b3;
        int k = 0;
        for (; k + Lanes <= count; k += Lanes) {
            a0.add(x + k, w + k);
            a1.add(x + k, w1 + k);
            a2.add(x + k, w2 + k);
            a3.add(x + k, w3 + k);
            b0.add(y + k, w + k);
            b1.add(y + k, w1 + k);
            b2.add(y + k, w2 + k);
            b3.add(y + k, w3 + k);
        }
        sums[0] += a0.total() + rest(k, count, x, w);
        sums[1] += a1.total() + rest(k, count, x, w1);
        sums[2] += a2.total() + rest(k, count, x, w2);
        sums[3] += a3.total() + rest(k, count, x, w3);
        sumsY[0] += b0.total() + rest(k, count, y, w);
        sumsY[1] += b1.total() + rest(k, count, y, w1);
        sumsY[2] += b2.total() + rest(k, count, y, w2);
        sumsY[3] += b3.total() + rest(k, count, y, w3);
    }
};

// sums[o] += scalar product of x with the weights of each of Outputs outputs.
template <class Sum, int Outputs, class In, class Weight>
N2D2_INLINE void dots(int count, const In* x, const Weight* w, int pitch, Sum* sums) {
    int o = 0;
    for (; o + 4 <= Outputs; o += 4)
        Dot<Sum>::add1x4(count, x, w + o * pitch, pitch, sums + o);
    for (; o < Outputs; ++o)
        Dot<Sum>::add1x1(count, x, w + o * pitch, sums[o]);
}

// The same for two pixels x and y.
template <class Sum, int Outputs, class In, class Weight>
N2D2_INLINE void dots(int count, const In* x, const In* y, const Weight* w, int pitch, Sum* sums, Sum* sumsY) {
    int o = 0;
    for (; o + 4 <= Outputs; o += 4)
        Dot<Sum>::add2x4(count, x, y, w + o * pitch, pitch, sums + o, sumsY + o);
    for (; o < Outputs; ++o) {
        Dot<Sum>::add1x1(count, x, w + o * pitch, sums[o]);
        Dot<Sum>::add1x1(count, y, w + o * pitch, sumsY[o]);
    }
}

}  // namespace n2d2

#endif  // N2D2_DOT_HPP
