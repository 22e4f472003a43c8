// Matrix products, convolutions and pools of arrays, sums in double (of integers in 64 bits) in one order.
//
//   arrayMatMul  out[...][m][n] = scale * sum over k of a[...][m][k] * b[...][k][n], leading axes broadcast (the loop Axes)
//   arrayConvolution, arrayPool  windows over (Batch, Channels, D, H, W): convolution with weights (Outputs, Channels / Groups,
//                 kernel), maximum, its position, average, p-norm. What lies outside the input is left out.
#pragma once

#include "n2d2/array.hpp"
#include "n2d2/functions.hpp"

namespace n2d2 {

// a * b for sums in W: of floats and of integers it is exact, of doubles it is rounded.
template <class T, class W>
N2D2_INLINE W productOf(W a, W b) {
    return std::is_same<T, double>::value ? static_cast<W>(rounded(static_cast<double>(wideTimes(a, b)))) : wideTimes(a, b);
}

// A sum times a factor, which those of integers do not have.
N2D2_INLINE double scaledSum(double total, double scale) { return rounded(total * scale); }
N2D2_INLINE std::int64_t scaledSum(std::int64_t total, double) { return total; }

// The steps of the axes of a product of matrices: LM, LK of the left one, RK, RN of the right one, OM, ON of the result.
template <int K, long LM, long LK, long RK, long RN, long OM, long ON, class A, class B, class R>
struct ProductTile {
    typedef typename WideType<R>::Type W;

    // Rows x Columns results. Each has its sum in the order of k; those of a row are made side by side.
    template <int Rows, int Columns>
    static N2D2_INLINE void run(const A* left, const B* right, double factor, R* to) {
        W total[Rows][Columns] = {};
        for (long k = 0; k < K; ++k)
            N2D2_UNROLL_FOR(i, Rows) {
                const W x = static_cast<W>(left[i * LM + k * LK]);
                N2D2_UNROLL_FOR(j, Columns)
                    total[i][j] = widePlus(total[i][j], productOf<R>(x, static_cast<W>(right[k * RK + j * RN])));
            }
        for (int i = 0; i < Rows; ++i)
            for (int j = 0; j < Columns; ++j)
                to[i * OM + j * ON] = static_cast<R>(scaledSum(total[i][j], factor));
    }

    // So many rows of all N columns.
    template <int Rows, int N>
    static N2D2_INLINE void rows(const A* left, const B* right, double factor, R* to) {
        constexpr int Side = RN == 1 ? 16 : 1, Tail = N % Side;
        for (long n = 0; n + Side <= N; n += Side)
            run<Rows, Side>(left, right + n * RN, factor, to + n * ON);
        if (Tail > 0)
            run<Rows, Tail == 0 ? 1 : Tail>(left, right + (N - Tail) * RN, factor, to + (N - Tail) * ON);
    }
};

template <class Axes, int M, int K, int N, long LM, long LK, long RK, long RN, long OM, long ON, class A, class B, class R>
N2D2_INLINE void arrayMatMul(const A* a, const B* b, double scale, R* out) {
    typedef ProductTile<K, LM, LK, RK, RN, OM, ON, A, B, R> Tile;
    constexpr int Rows = RN == 1 && M >= 4 ? 4 : 1, Tail = M % Rows;
    const auto body = [=](long i, long j, long o, long) N2D2_INLINE_LAMBDA {
        Loop<static_cast<long>(M) * K * N, (M > 1)>::run(M / Rows, [=](int block) N2D2_INLINE_LAMBDA {
            const long m = static_cast<long>(block) * Rows;
            Tile::template rows<Rows, N>(a + i + m * LM, b + j, scale, out + o + m * OM);
        });
        if (Tail > 0)
            Tile::template rows<Tail == 0 ? 1 : Tail, N>(a + i + (M - Tail) * LM, b + j, scale, out + o + (M - Tail) * OM);
    };
    Axes::run(body, 0, 0, 0, 0);
}

// Calls f(element of the channel, tap) for every element of the input in the window at (d, y, x).
template <class Cfg, class F>
N2D2_INLINE void windowTaps(int d, int y, int x, F& f) {
    for (int kd = 0; kd < Cfg::KernelD; ++kd) {
        const int iz = d * Cfg::StrideD - Cfg::PadD + kd * Cfg::DilationD;
        if (iz < 0 || iz >= Cfg::InputD)
            continue;
        for (int ky = 0; ky < Cfg::KernelH; ++ky) {
            const int iy = y * Cfg::StrideH - Cfg::PadH + ky * Cfg::DilationH;
            if (iy < 0 || iy >= Cfg::InputH)
                continue;
            for (int kx = 0; kx < Cfg::KernelW; ++kx) {
                const int ix = x * Cfg::StrideW - Cfg::PadW + kx * Cfg::DilationW;
                if (ix < 0 || ix >= Cfg::InputW)
                    continue;
                f((static_cast<long>(iz) * Cfg::InputH + iy) * Cfg::InputW + ix,
                  (static_cast<long>(kd) * Cfg::KernelH + ky) * Cfg::KernelW + kx);
            }
        }
    }
}

// body(stimulus, output channel, d, y, x, position of the result)
template <class Cfg, class Body>
N2D2_INLINE void windowLoop(const Body& body) {
    constexpr long work =
        static_cast<long>(Cfg::OutputD) * Cfg::OutputH * Cfg::OutputW * Cfg::KernelD * Cfg::KernelH * Cfg::KernelW * Cfg::Depth;
    constexpr int batch = Cfg::Batch, outputs = Cfg::Outputs;
    Loop<work * batch * outputs, (batch * outputs > 1)>::run(batch * outputs, [=](int line) N2D2_INLINE_LAMBDA {
        long at = static_cast<long>(line) * Cfg::OutputD * Cfg::OutputH * Cfg::OutputW;
        for (int d = 0; d < Cfg::OutputD; ++d)
            for (int y = 0; y < Cfg::OutputH; ++y)
                for (int x = 0; x < Cfg::OutputW; ++x)
                    body(line / outputs, line % outputs, d, y, x, at++);
    });
}

template <class Cfg, class A, class B, class R>
N2D2_INLINE void arrayConvolution(const A* in, const B* weights, R* out) {
    typedef typename WideType<R>::Type W;
    constexpr int depth = Cfg::Depth, groups = Cfg::Groups, outputs = Cfg::Outputs;
    constexpr long plane = static_cast<long>(Cfg::InputD) * Cfg::InputH * Cfg::InputW;
    constexpr long taps = static_cast<long>(Cfg::KernelD) * Cfg::KernelH * Cfg::KernelW;
    windowLoop<Cfg>([=](int n, int o, int d, int y, int x, long at) N2D2_INLINE_LAMBDA {
        const int group = o / (outputs / groups);
        const A* channel = in + (static_cast<long>(n) * groups + group) * depth * plane;
        const B* w = weights + static_cast<long>(o) * depth * taps;
        W total = W(0);
        for (int c = 0; c < depth; ++c, channel += plane, w += taps) {
            const auto add = [&](long i, long tap) N2D2_INLINE_LAMBDA {
                total = widePlus(total, productOf<R>(static_cast<W>(channel[i]), static_cast<W>(w[tap])));
            };
            windowTaps<Cfg>(d, y, x, add);
        }
        out[at] = static_cast<R>(total);
    });
}

struct WindowMax {
    template <class T>
    struct State {
        const T* in;
        T best;
        long position;
        explicit State(const T* from) : in(from), best(0), position(-1) {}
        N2D2_INLINE void operator()(long at, long) {
            if (position < 0 || best < in[at] || (in[at] != in[at] && best == best)) {
                best = in[at];
                position = at;
            }
        }
        template <class R, class Cfg>
        N2D2_INLINE R value(int, int, int, int) const {
            return static_cast<R>(best);
        }
    };
};

struct WindowMaxIndex {
    template <class T>
    struct State : WindowMax::State<T> {
        explicit State(const T* from) : WindowMax::State<T>(from) {}
        template <class R, class Cfg>
        N2D2_INLINE R value(int plane, int, int, int) const {
            constexpr long d = Cfg::InputD, h = Cfg::InputH, w = Cfg::InputW;
            const long p = this->position, z = p / (h * w), y = p / w % h, x = p % w;
            return static_cast<R>(plane * d * h * w + (Cfg::ColumnMajor != 0 ? (x * h + y) * d + z : p));
        }
    };
};

template <int Order>
struct WindowNorm {
    template <class T>
    struct State {
        const T* in;
        double total;
        explicit State(const T* from) : in(from), total(0) {}
        N2D2_INLINE void operator()(long at, long) {
            const double x = static_cast<double>(in[at]);
            total = total + (Order == 2 ? rounded(x * x) : exact::power(std::fabs(x), Order));
        }
        template <class R, class Cfg>
        N2D2_INLINE R value(int, int, int, int) const {
            return static_cast<R>(Order == 2 ? std::sqrt(total) : exact::power(total, 1.0 / Order));
        }
    };
};

// The taps of a window along an axis that an average counts: those in [First, Last).
template <int Kernel, int Stride, int Pad, int Dilation, int First, int Last>
N2D2_INLINE int countedTaps(int i) {
    int count = 0;
    for (int k = 0; k < Kernel; ++k) {
        const int at = i * Stride - Pad + k * Dilation;
        count += at >= First && at < Last;
    }
    return count;
}

struct WindowAverage {
    template <class T>
    struct State {
        const T* in;
        double total;
        explicit State(const T* from) : in(from), total(0) {}
        N2D2_INLINE void operator()(long at, long) { total = total + static_cast<double>(in[at]); }
        template <class R, class Cfg>
        N2D2_INLINE R value(int, int d, int y, int x) const {
            const int count = countedTaps<Cfg::KernelD, Cfg::StrideD, Cfg::PadD, Cfg::DilationD, Cfg::FirstD, Cfg::LastD>(d) *
                              countedTaps<Cfg::KernelH, Cfg::StrideH, Cfg::PadH, Cfg::DilationH, Cfg::FirstH, Cfg::LastH>(y) *
                              countedTaps<Cfg::KernelW, Cfg::StrideW, Cfg::PadW, Cfg::DilationW, Cfg::FirstW, Cfg::LastW>(x);
            return static_cast<R>(total / count);
        }
    };
};

template <class Cfg, class Pool, class A, class R>
N2D2_INLINE void arrayPool(const A* in, R* out) {
    constexpr long plane = static_cast<long>(Cfg::InputD) * Cfg::InputH * Cfg::InputW;
    constexpr int outputs = Cfg::Outputs;
    windowLoop<Cfg>([=](int n, int o, int d, int y, int x, long at) N2D2_INLINE_LAMBDA {
        const int line = n * outputs + o;
        typename Pool::template State<A> state(in + line * plane);
        windowTaps<Cfg>(d, y, x, state);
        out[at] = state.template value<R, Cfg>(line, d, y, x);
    });
}

}  // namespace n2d2
