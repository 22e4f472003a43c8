// Softmax and normalisation of lines of an array, sums in double from the first element to the last.
//
//   arraySoftmax      exp(x - largest) / sum along the middle axis of (Outer, Size, Inner), or its logarithm
//   arrayNorm         (x - mean) / sqrt(variance + epsilon) of Outer lines of Inner elements; Part 1: the mean, Part 2:
//                     1 / sqrt(variance + epsilon) alone
//   arrayInterpolate  out[o][j][i] = sum over t of weights[j][t] * in[o][positions[j][t]][i]
#ifndef N2D2_ARRAY_NORM_HPP
#define N2D2_ARRAY_NORM_HPP

#include "n2d2/array.hpp"
#include "n2d2/functions.hpp"

namespace n2d2 {

template <int Outer, int Size, int Inner, bool Log, class T>
N2D2_INLINE void arraySoftmax(const T* in, T* out) {
    for (long o = 0; o < Outer; ++o)
        for (long i = 0; i < Inner; ++i) {
            const T* const x = in + o * Size * Inner + i;
            T* const y = out + o * Size * Inner + i;
            double highest = static_cast<double>(x[0]), sum = 0.0;
            for (long k = 1; k < Size; ++k)
                highest = static_cast<double>(x[k * Inner]) > highest ? static_cast<double>(x[k * Inner]) : highest;
            for (long k = 0; k < Size; ++k)
                sum = sum + exact::exp(static_cast<double>(x[k * Inner]) - highest);
            const double logarithm = Log ? exact::log(sum) : 0.0;
            for (long k = 0; k < Size; ++k) {
                const double shifted = static_cast<double>(x[k * Inner]) - highest;
                y[k * Inner] = static_cast<T>(Log ? shifted - logarithm : exact::exp(shifted) / sum);
            }
        }
}

template <class T>
N2D2_INLINE double differenceSquared(T x, double mean) {
    const double away = static_cast<double>(static_cast<T>(static_cast<double>(x) - mean));
    return rounded(away * away);
}

template <int Outer, int Inner, bool Centred, int Part, class T>
N2D2_INLINE void arrayNorm(const T* in, double epsilon, T* out) {
    for (long o = 0; o < Outer; ++o) {
        const T* const x = in + o * Inner;
        double mean = 0.0, squares = 0.0;
        if (Centred) {
            for (long i = 0; i < Inner; ++i)
                mean = mean + static_cast<double>(x[i]);
            mean = mean / Inner;
        }
        for (long i = 0; i < Inner; ++i)
            squares = squares + differenceSquared(x[i], mean);
        const double inverse = 1.0 / std::sqrt(squares / Inner + epsilon);
        if (Part != 0) {
            out[o] = static_cast<T>(Part == 1 ? mean : inverse);
            continue;
        }
        for (long i = 0; i < Inner; ++i)
            out[o * Inner + i] =
                static_cast<T>(static_cast<double>(static_cast<T>(static_cast<double>(x[i]) - mean)) * inverse);
    }
}

template <int Outer, int Size, int Inner, int Lines, int Taps, class T, class W>
N2D2_INLINE void arrayInterpolate(const T* in, const std::int32_t* positions, const W* weights, T* out) {
    for (long o = 0; o < Outer; ++o)
        for (long j = 0; j < Lines; ++j)
            for (long i = 0; i < Inner; ++i) {
                double total = 0.0;
                for (long t = 0; t < Taps; ++t)
                    total = total + rounded(static_cast<double>(in[(o * Size + positions[j * Taps + t]) * Inner + i]) *
                                            static_cast<double>(weights[j * Taps + t]));
                out[(o * Lines + j) * Inner + i] = static_cast<T>(total);
            }
}

}  // namespace n2d2

#endif  // N2D2_ARRAY_NORM_HPP
