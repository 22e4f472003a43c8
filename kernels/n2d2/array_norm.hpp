// Softmax and normalisation of lines of an array, sums in double in eight lanes.
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
#include "n2d2/steady.hpp"

namespace n2d2 {

// A sum in double: element i goes to the lane i % 8; at the end the lanes are added in pairs.
struct LaneSum {
    Eight lanes;
    LaneSum() : lanes() {}
    // Count elements, or their squares; from the second call on, all before were of whole eights.
    template <int Count, bool Squares, class T>
    N2D2_INLINE void add(const T* x) {
        constexpr int rest = Count % 8;
        for (int i = 0; i < Count - rest; i += 8)
            addEight<Squares>(x + i);
        for (int k = 0; k < rest; ++k)
            lanes[k] += Squares ? product(x[Count - rest + k], x[Count - rest + k]) : static_cast<double>(x[Count - rest + k]);
    }
    // The sum with 0 rounds squares of doubles; those of floats are exact.
    template <bool Squares, class T>
    N2D2_INLINE void addEight(const T* x) {
        Eight wide;
        loadEight(x, wide);
        lanes = lanes + (Squares ? wide * wide + Eight() : wide);
    }
    N2D2_INLINE double total() const {
        double x[8];
        std::memcpy(x, &lanes, sizeof x);
        return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
    }
};

// The largest element, found side by side in vectors where elements follow each other.
template <int Size, int Inner, class T>
N2D2_INLINE T largestOf(const T* x) {
    typedef typename Choice<Inner == 1 && std::is_same<T, float>::value, reals::Widest, T>::Type V;
    constexpr int width = static_cast<int>(sizeof(V) / sizeof(T)), whole = Size / width * width;
    T lanes[width] = {x[0]};
    long k = 1;
    if (whole > 0) {
        V largest, next;
        std::memcpy(&largest, x, sizeof largest);
        for (k = width; k < whole; k += width) {
            std::memcpy(&next, x + k * Inner, sizeof next);
            largest = next > largest ? next : largest;
        }
        std::memcpy(lanes, &largest, sizeof lanes);
    }
    for (int i = 1; i < width && whole > 0; ++i)
        lanes[0] = lanes[i] > lanes[0] ? lanes[i] : lanes[0];
    for (; k < Size; ++k)
        lanes[0] = x[k * Inner] > lanes[0] ? x[k * Inner] : lanes[0];
    return lanes[0];
}

// Of Count elements of a line the powers, to `y` unless a logarithm is wanted, and to their sum.
template <int Count, int Inner, bool Log, class T>
N2D2_INLINE void softmaxPowers(const T* x, T highest, T* y, LaneSum& sum) {
    T powers[Count];
    for (long i = 0; i < Count; ++i)
        powers[i] = x[i * Inner] - highest;
    reals::apply<exact::Exp, Count>(powers, powers);
    sum.add<Count, false>(powers);
    for (long i = 0; i < Count && !Log; ++i)
        y[i * Inner] = powers[i];
}

template <int Size, int Inner, bool Log, class T>
N2D2_INLINE void softmaxLine(const T* x, T* y) {
    constexpr int piece = 64, rest = Size % piece;
    const T highest = largestOf<Size, Inner>(x);
    LaneSum sum;
    for (long k = 0; k + piece <= Size; k += piece)
        softmaxPowers<piece, Inner, Log>(x + k * Inner, highest, y + k * Inner, sum);
    if (rest > 0)
        softmaxPowers<(rest > 0 ? rest : 1), Inner, Log>(x + (Size - rest) * long(Inner), highest,
                                                         y + (Size - rest) * long(Inner), sum);
    if (Log) {
        const double logarithm = exact::log(sum.total());
        for (long k = 0; k < Size; ++k)
            y[k * Inner] = static_cast<T>(static_cast<double>(x[k * Inner]) - static_cast<double>(highest) - logarithm);
        return;
    }
    const T share = static_cast<T>(1.0 / sum.total());
    for (long k = 0; k < Size; ++k)
        y[k * Inner] *= share;
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

// Rounded to T: of vectors GCC 12 takes a conversion to float and back to double for none.
template <class T>
N2D2_INLINE T differenceTo(double mean, T x) {
    return unfused(static_cast<T>(static_cast<double>(x) - mean));
}

// x * gain + shift, both rounded to T.
template <bool Affine, class T>
N2D2_INLINE T affineOf(T x, const T* gains, const T* shifts, long i) {
    return Affine ? unfused(x * gains[i]) + shifts[i] : x;
}

// The powers of the differences of Count elements to the mean.
template <int Count, int Power, class T>
N2D2_INLINE void addDifferences(const T* x, double mean, LaneSum& powers) {
    T away[Count];
    for (int i = 0; i < Count; ++i)
        away[i] = Power == 1 ? std::fabs(differenceTo(mean, x[i])) : differenceTo(mean, x[i]);
    powers.add<Count, Power != 1>(away);
}

template <int Outer, int Inner, bool Centred, int Power, bool Summed, int Part, bool Affine, class T>
N2D2_INLINE void arrayNorm(const T* in, double epsilon, double added, const T* gains, const T* shifts, T* out) {
    constexpr int piece = 64, rest = Inner % piece;
    for (long o = 0; o < Outer; ++o) {
        const T* const x = in + o * Inner;
        LaneSum sum, powers;
        if (Centred)
            sum.add<Inner, false>(x);
        const double mean = sum.total() / Inner;
        for (int i = 0; i + piece <= Inner; i += piece)
            addDifferences<piece, Power>(x + i, mean, powers);
        if (rest > 0)
            addDifferences<(rest > 0 ? rest : 1), Power>(x + Inner - rest, mean, powers);
        const double size = powers.total() / (Summed ? 1 : Inner);
        const double inverse = 1.0 / ((Power == 1 ? size : std::sqrt(size + epsilon)) + added);
        if (Part != 0)
            out[o] = static_cast<T>(Part == 1 ? mean : inverse);
        for (long i = 0; i < Inner && Part == 0; ++i)
            out[o * Inner + i] =
                affineOf<Affine>(static_cast<T>(static_cast<double>(differenceTo(mean, x[i])) * inverse), gains, shifts, i);
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
