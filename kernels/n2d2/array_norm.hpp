// Softmax and normalisation of lines of an array, sums in double from the first element to the last.
//
//   arraySoftmax      exp(x - largest) / sum along the middle axis of (Outer, Size, Inner), or its logarithm
//   arrayMaskedSoftmax  lines of Size elements, of which those count whose bit of row line % Masks of the mask is set
//   arrayNorm         (x - mean) / (sqrt(variance + epsilon) + added) of Outer lines of Inner elements, Affine: times gains plus shifts; with
//                     Power 1 the mean of |x - mean| replaces the root, with Summed the sum replaces each mean of powers; Part 1: the mean, Part 2: what the differences are multiplied by
//   arrayInterpolate  out[o][j][i] = sum over t of weights[j][t] * in[o][positions[j][t]][i]
#ifndef N2D2_ARRAY_NORM_HPP
#define N2D2_ARRAY_NORM_HPP

#include "n2d2/array.hpp"
#include "n2d2/functions.hpp"

namespace n2d2 {

template <int Count, int Inner, class T>
N2D2_INLINE void shiftedPowers(const T* x, double highest, double* powers) {
    for (long i = 0; i < Count; ++i)
        powers[i] = static_cast<double>(x[i * Inner]) - highest;
    exact::exps<Count>(powers, powers);
}

// The largest element, found side by side at eight places.
template <int Size, int Inner, class T>
N2D2_INLINE T largestOf(const T* x) {
    constexpr int side = Size < 8 ? Size : 8;
    T largest[side];
    for (long i = 0; i < side; ++i)
        largest[i] = x[i * Inner];
    for (long k = side; k + side <= Size; k += side)
        for (long i = 0; i < side; ++i)
            largest[i] = x[(k + i) * Inner] > largest[i] ? x[(k + i) * Inner] : largest[i];
    for (long i = 1; i < side; ++i)
        largest[0] = largest[i] > largest[0] ? largest[i] : largest[0];
    for (long k = Size - Size % side; k < Size; ++k)
        largest[0] = x[k * Inner] > largest[0] ? x[k * Inner] : largest[0];
    return largest[0];
}

// One line; the powers of some elements at a time, so that they are vectors, and those of the next are made while these are added. Those
// of long lines are made twice.
template <int Size, int Inner, bool Log, class T>
N2D2_INLINE void softmaxLine(const T* x, T* y) {
    constexpr int piece = Size < 32 ? Size : 16, last = Size % piece;
    constexpr bool kept = !Log && Size <= 1024;
    const double highest = static_cast<double>(largestOf<Size, Inner>(x));
    double sum = 0.0, powers[kept ? Size : piece];
    for (long k = 0; k + piece <= Size; k += piece) {
        double* const part = powers + (kept ? k : 0);
        shiftedPowers<piece, Inner>(x + k * Inner, highest, part);
        for (int i = 0; i < piece; ++i)
            sum = sum + part[i];
    }
    if (last > 0) {
        double* const part = powers + (kept ? Size - last : 0);
        shiftedPowers<(last > 0 ? last : 1), Inner>(x + (Size - last) * long(Inner), highest, part);
        for (int i = 0; i < last; ++i)
            sum = sum + part[i];
    }
    const double logarithm = Log ? exact::log(sum) : 0.0;
    for (long k = 0; k < Size; ++k) {
        const double shifted = static_cast<double>(x[k * Inner]) - highest;
        if (Log)
            y[k * Inner] = static_cast<T>(shifted - logarithm);
        else
            y[k * Inner] = static_cast<T>((kept ? powers[kept ? k : 0] : exact::exp(shifted)) / sum);
    }
}

template <int Outer, int Size, int Inner, bool Log, class T>
N2D2_INLINE void arraySoftmax(const T* in, T* out) {
    constexpr int count = Outer * Inner, inner = Inner;
    constexpr bool parallel = static_cast<long>(count) * Size * 16 >= N2D2_PARALLEL_WORK && count > 1;
    Loop<parallel>::run(count, [=](int k) N2D2_INLINE_LAMBDA {
        const long at = static_cast<long>(k / inner) * Size * inner + k % inner;
        softmaxLine<Size, Inner, Log>(in + at, out + at);
    });
}

template <int Lines, int Size, int Masks, class T>
N2D2_INLINE void arrayMaskedSoftmax(const T* in, const std::uint8_t* mask, T* out) {
    T line[Size];
    for (long k = 0; k < Lines; ++k) {
        const MaskedElements counts(mask + (k % Masks) * ((Size + 7) / 8));
        for (int i = 0; i < Size; ++i)
            line[i] = counts[i] ? in[k * Size + i] : std::numeric_limits<T>::lowest();
        softmaxLine<Size, 1, false>(line, out + k * Size);
    }
}

// The difference to the mean, to the power.
template <int Power, class T>
N2D2_INLINE double differencePower(T x, double mean) {
    const double away = static_cast<double>(static_cast<T>(static_cast<double>(x) - mean));
    return Power == 1 ? std::fabs(away) : rounded(away * away);
}

// Count lines together: their sums wait for each other's additions, not for their own.
// x * gain + shift, both rounded to T: a sum of two floats is rounded in double without effect on that to float.
template <bool Affine, class T>
N2D2_INLINE T affineOf(T x, const T* gains, const T* shifts, long i) {
    if (!Affine)
        return x;
    const T scaled = static_cast<T>(rounded(static_cast<double>(x) * static_cast<double>(gains[i])));
    return static_cast<T>(static_cast<double>(scaled) + static_cast<double>(shifts[i]));
}

template <int Count, int Inner, bool Centred, int Power, bool Summed, int Part, bool Affine, class T>
N2D2_INLINE void normalizedLines(const T* x, double epsilon, double added, const T* gains, const T* shifts, T* out) {
    double mean[Count] = {}, squares[Count] = {}, inverse[Count];
    if (Centred) {
        for (long i = 0; i < Inner; ++i)
            for (int l = 0; l < Count; ++l)
                mean[l] = mean[l] + static_cast<double>(x[l * Inner + i]);
        for (int l = 0; l < Count; ++l)
            mean[l] = mean[l] / Inner;
    }
    for (long i = 0; i < Inner; ++i)
        for (int l = 0; l < Count; ++l)
            squares[l] = squares[l] + differencePower<Power>(x[l * Inner + i], mean[l]);
    for (int l = 0; l < Count; ++l)
        inverse[l] =
            1.0 /
            ((Power == 1 ? squares[l] / (Summed ? 1 : Inner) : std::sqrt(squares[l] / (Summed ? 1 : Inner) + epsilon)) + added);
    if (Part != 0) {
        for (int l = 0; l < Count; ++l)
            out[l] = static_cast<T>(Part == 1 ? mean[l] : inverse[l]);
        return;
    }
    for (int l = 0; l < Count; ++l)
        for (long i = 0; i < Inner; ++i)
            out[l * Inner + i] = affineOf<Affine>(
                static_cast<T>(static_cast<double>(static_cast<T>(static_cast<double>(x[l * Inner + i]) - mean[l])) *
                               inverse[l]),
                gains, shifts, i);
}

template <int Outer, int Inner, bool Centred, int Power, bool Summed, int Part, bool Affine, class T>
N2D2_INLINE void arrayNorm(const T* in, double epsilon, double added, const T* gains, const T* shifts, T* out) {
    constexpr int together = 8, whole = Outer / together * together, pitch = Part != 0 ? 1 : Inner;
    for (long o = 0; o < whole; o += together)
        normalizedLines<together, Inner, Centred, Power, Summed, Part, Affine>(in + o * Inner, epsilon, added, gains, shifts,
                                                                               out + o * pitch);
    for (long o = whole; o < Outer; ++o)
        normalizedLines<1, Inner, Centred, Power, Summed, Part, Affine>(in + o * Inner, epsilon, added, gains, shifts,
                                                                        out + o * pitch);
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
