// Softmax and normalisation of lines of an array, sums in double in eight lanes.
//
//   arraySoftmax      exp(x - largest) / sum along the middle axis of (Outer, Size, Inner), or its logarithm
//   arrayMaskedSoftmax  lines of Size elements, of which those count whose bit of row line % Masks of the mask is set
//   arrayNorm         (x - mean) / (sqrt(variance + epsilon) + added) of Outer lines of Inner elements, Affine: times gains plus shifts; with
//                     Power 1 the mean of |x - mean| replaces the root, with Summed the sum replaces each mean of powers; Part 1: the mean, Part 2: what the differences are multiplied by
//   arrayInterpolate  out[o][j][i] = sum over t of weights[j][t] * in[o][positions[j][t]][i]
#pragma once

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
            largest = reals::largerOf(next, largest);
        }
        std::memcpy(lanes, &largest, sizeof lanes);
    }
    N2D2_UNROLL
    for (int half = whole > 0 ? width / 2 : 0; half > 0; half /= 2)
        for (int i = 0; i < half; ++i)
            lanes[i] = lanes[i + half] > lanes[i] ? lanes[i + half] : lanes[i];
    for (; k < Size; ++k)
        lanes[0] = x[k * Inner] > lanes[0] ? x[k * Inner] : lanes[0];
    return lanes[0];
}

// exp(x - highest)
template <class T>
struct PowerBelow {
    T highest;
    template <class V>
    N2D2_INLINE V apply(V x) const {
        return exact::Exp::apply(x - highest);
    }
};

// Of Count elements of a line the powers, to `y` unless a logarithm is wanted, and to their sum.
template <int Count, int Inner, bool Log, class T>
N2D2_INLINE void softmaxPowers(const T* x, const PowerBelow<T>& power, T* y, LaneSum& sum) {
    T gathered[Inner == 1 ? 1 : Count], apart[Inner == 1 && !Log ? 1 : Count];
    for (long i = 0; i < Count && Inner != 1; ++i)
        gathered[i] = x[i * Inner];
    T* const powers = Inner == 1 && !Log ? y : apart;
    reals::apply<PowerBelow<T>, Count>(Inner == 1 ? x : gathered, powers, power);
    sum.add<Count, false>(powers);
    for (long i = 0; i < Count && Inner != 1 && !Log; ++i)
        y[i * Inner] = powers[i];
}

// Lines of Size elements, at most Most; each step for all, because the next one waits for its results.
template <int Size, int Inner, bool Log, class T>
struct SoftmaxLines {
    enum : int { Most = 8, Piece = 16, Rest = Size % Piece };

    static N2D2_INLINE double powers(const T* x, const PowerBelow<T>& power, T* y) {
        LaneSum sum;
        for (long k = 0; k + Piece <= Size; k += Piece)
            softmaxPowers<Piece, Inner, Log>(x + k * Inner, power, y + k * Inner, sum);
        constexpr long last = static_cast<long>(Size - Rest) * Inner;
        if (Rest > 0)
            softmaxPowers<(Rest > 0 ? Rest : 1), Inner, Log>(x + last, power, y + last, sum);
        return sum.total();
    }

    static N2D2_INLINE void run(const T* const* x, T* const* y, int count) {
        PowerBelow<T> largest[Most];
        double totals[Most];
        for (int i = 0; i < count; ++i)
            largest[i].highest = largestOf<Size, Inner>(x[i]);
        for (int i = 0; i < count; ++i)
            totals[i] = powers(x[i], largest[i], y[i]);
        for (int i = 0; i < count; ++i) {
            const double highest = static_cast<double>(largest[i].highest), logarithm = Log ? exact::log(totals[i]) : 0.0;
            const T share = static_cast<T>(1.0 / totals[i]);
            for (long k = 0; k < Size; ++k)
                y[i][k * Inner] =
                    Log ? static_cast<T>(static_cast<double>(x[i][k * Inner]) - highest - logarithm) : y[i][k * Inner] * share;
        }
    }
};

template <int Outer, int Size, int Inner, bool Log, class T>
N2D2_INLINE void arraySoftmax(const T* in, T* out) {
    typedef SoftmaxLines<Size, Inner, Log, T> Lines;
    constexpr int count = Outer * Inner, inner = Inner, most = Lines::Most, blocks = (count + most - 1) / most;
    Loop<16L * count * Size, (blocks > 1)>::run(blocks, [=](int block) N2D2_INLINE_LAMBDA {
        const T* x[most];
        T* y[most];
        const int first = block * most, lines = least(most, count - first);
        for (int i = 0; i < lines; ++i) {
            const long at = static_cast<long>((first + i) / inner) * Size * inner + (first + i) % inner;
            x[i] = in + at;
            y[i] = out + at;
        }
        Lines::run(x, y, lines);
    });
}

template <int Lines, int Size, int Masks, class T>
N2D2_INLINE void arrayMaskedSoftmax(const T* in, const std::uint8_t* mask, T* out) {
    T line[Size];
    const T* const masked = line;
    for (long k = 0; k < Lines; ++k, out += Size) {
        const MaskedElements counts(mask + (k % Masks) * ((Size + 7) / 8));
        for (int i = 0; i < Size; ++i)
            line[i] = counts[i] ? in[k * Size + i] : std::numeric_limits<T>::lowest();
        SoftmaxLines<Size, 1, false, T>::run(&masked, &out, 1);
    }
}

// The differences of Count elements to the mean, and the sum of their powers.
template <int Count, int Power, class T>
N2D2_INLINE void addDifferences(const T* x, T mean, T* away, LaneSum& powers) {
    for (int i = 0; i < Count; ++i)
        away[i] = x[i] - mean;
    T sizes[Power == 1 ? Count : 1];
    for (int i = 0; i < Count && Power == 1; ++i)
        sizes[i] = std::fabs(away[i]);
    powers.add<Count, Power != 1>(Power == 1 ? sizes : away);
}

template <int Outer, int Inner, bool Centred, int Power, bool Summed, int Part, bool Affine, class T>
N2D2_INLINE void arrayNorm(const T* in, double epsilon, double added, const T* gains, const T* shifts, T* out) {
    constexpr int piece = 64, rest = Inner % piece;
    for (long o = 0; o < Outer; ++o) {
        const T* const x = in + o * Inner;
        T* const y = out + o * (Part == 0 ? Inner : 1);
        T apart[Part == 0 ? 1 : piece];
        LaneSum sum, powers;
        if (Centred)
            sum.add<Inner, false>(x);
        const T mean = static_cast<T>(sum.total() / Inner);
        for (int i = 0; i + piece <= Inner; i += piece)
            addDifferences<piece, Power>(x + i, mean, Part == 0 ? y + i : apart, powers);
        if (rest > 0)
            addDifferences<(rest > 0 ? rest : 1), Power>(x + Inner - rest, mean, Part == 0 ? y + Inner - rest : apart, powers);
        const double size = powers.total() / (Summed ? 1 : Inner);
        const T inverse = static_cast<T>(1.0 / ((Power == 1 ? size : std::sqrt(size + epsilon)) + added));
        if (Part != 0)
            *y = Part == 1 ? mean : inverse;
        for (long i = 0; i < Inner && Part == 0; ++i)
            y[i] = Affine ? unfused(y[i] * inverse * gains[i]) + shifts[i] : y[i] * inverse;
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
