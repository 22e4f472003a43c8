// Reductions over axes of an array, running sums along one, positions of its elements in order.
//
// Sums are made in double (of integers in 64 bits) from the first element to the last. Config: planes Input, Output;
// types Kept, Reduced (loops, array.hpp), Function.
#pragma once

#include "n2d2/array.hpp"
#include "n2d2/functions.hpp"

namespace n2d2 {
namespace reductions {

template <class T>
struct Base {
    typedef typename WideType<T>::Type W;
    W total;
    Base() : total(0) {}
    N2D2_INLINE void plus(W x) { total = widePlus(total, x); }
};

template <class T>
struct Sum : Base<T> {
    N2D2_INLINE void take(T x, long) { this->plus(static_cast<typename Base<T>::W>(x)); }
    N2D2_INLINE typename Base<T>::W value(long) const { return this->total; }
};

template <class T>
struct Mean : Sum<T> {
    N2D2_INLINE typename Base<T>::W value(long count) const { return this->total / static_cast<typename Base<T>::W>(count); }
};

template <class T>
struct L1 : Sum<T> {
    N2D2_INLINE void take(T x, long) {
        this->plus(x < T(0) ? wideTimes(-1, static_cast<typename Base<T>::W>(x)) : static_cast<typename Base<T>::W>(x));
    }
};

template <class T>
struct SumSquare : Sum<T> {
    typedef typename Base<T>::W W;
    N2D2_INLINE void take(T x, long) {
        const W square = wideTimes(static_cast<W>(x), static_cast<W>(x));
        this->plus(std::is_same<T, double>::value ? static_cast<W>(rounded(static_cast<double>(square))) : square);
    }
};

template <class T>
struct L2 : SumSquare<T> {
    N2D2_INLINE double value(long) const { return std::sqrt(static_cast<double>(this->total)); }
};

template <class T>
struct LogSum : Sum<T> {
    N2D2_INLINE double value(long) const { return exact::log(static_cast<double>(this->total)); }
};

template <class T>
struct Prod {
    typename WideType<T>::Type total;
    Prod() : total(1) {}
    N2D2_INLINE void take(T x, long) { total = wideTimes(total, static_cast<typename WideType<T>::Type>(x)); }
    N2D2_INLINE typename WideType<T>::Type value(long) const { return total; }
};

template <class T, bool Largest, bool Last>
struct Extreme {
    T best;
    long position;
    Extreme() : best(0), position(-1) {}
    N2D2_INLINE void take(T x, long at) {
        const bool better = position < 0 || (Largest ? best < x : x < best) || (Last && !(Largest ? x < best : best < x));
        if (better || (x != x && best == best)) {
            best = x;
            position = at;
        }
    }
};

template <class T>
struct Max : Extreme<T, true, false> {
    N2D2_INLINE T value(long) const { return this->best; }
};
template <class T>
struct Min : Extreme<T, false, false> {
    N2D2_INLINE T value(long) const { return this->best; }
};
template <class T, bool Largest, bool Last>
struct Position : Extreme<T, Largest, Last> {
    N2D2_INLINE std::int64_t value(long) const { return this->position; }
};
template <class T>
struct ArgMax : Position<T, true, false> {};
template <class T>
struct ArgMin : Position<T, false, false> {};
template <class T>
struct ArgMaxLast : Position<T, true, true> {};
template <class T>
struct ArgMinLast : Position<T, false, true> {};

}  // namespace reductions

// Takes all elements that a result depends on, from the one at `first` on.
template <class Cfg, class F>
N2D2_INLINE void takeReduced(const typename Cfg::Input::Type* in, long first, F& f) {
    const auto take = [&](long a, long, long, long o) N2D2_INLINE_LAMBDA { f.take(in[a], o); };
    Cfg::Reduced::run(take, first, 0, 0, 0);
}

template <class Cfg>
N2D2_INLINE void arrayReduce(const unsigned char* in, unsigned char* out) {
    typedef typename Cfg::Output::Type R;
    const typename Cfg::Input::Type* const from = elements<typename Cfg::Input>(in);
    R* const to = elements<typename Cfg::Output>(out);
    const auto body = [=](long a, long, long, long o) N2D2_INLINE_LAMBDA {
        typename Cfg::Function f;
        takeReduced<Cfg>(from, a, f);
        to[o] = static_cast<R>(f.value(static_cast<long>(Cfg::Reduced::Count)));
    };
    Cfg::Kept::run(body, 0, 0, 0, 0);
}

template <class Cfg>
N2D2_INLINE void arrayLogSumExp(const unsigned char* in, unsigned char* out) {
    typedef typename Cfg::Input::Type T;
    typedef typename Cfg::Output::Type R;
    const T* const from = elements<typename Cfg::Input>(in);
    R* const to = elements<typename Cfg::Output>(out);
    const auto body = [=](long a, long, long, long o) N2D2_INLINE_LAMBDA {
        reductions::Max<T> top;
        takeReduced<Cfg>(from, a, top);
        const double largest = static_cast<double>(top.value(0)), highest = largest - largest == 0.0 ? largest : 0.0;
        double total = 0.0;
        const auto add = [&](long i, long, long, long)
                             N2D2_INLINE_LAMBDA { total = total + exact::exp(static_cast<double>(from[i]) - highest); };
        Cfg::Reduced::run(add, a, 0, 0, 0);
        to[o] = static_cast<R>(exact::log(total) + highest);
    };
    Cfg::Kept::run(body, 0, 0, 0, 0);
}

// True if a comes before b where the largest is first (the smallest); what is not a number is larger than all numbers.
template <bool Largest, class T>
N2D2_INLINE bool isBefore(T a, T b) {
    return Largest ? b < a || (a != a && b == b) : a < b || (b != b && a == a);
}

// Positions of the Count first elements in order along the middle axis of (Outer, Size, Inner), equal ones by position. Each
// is the first of those behind the one before it: nothing is kept but the result.
template <int Outer, int Size, int Inner, int Count, bool Largest, class T>
N2D2_INLINE void arrayTopK(const T* in, std::int64_t* out) {
    for (long o = 0; o < Outer; ++o)
        for (long i = 0; i < Inner; ++i) {
            const T* line = in + o * Size * Inner + i;
            long last = -1;
            for (long rank = 0; rank < Count; ++rank) {
                long best = -1;
                for (long at = 0; at < Size; ++at) {
                    const T x = line[at * Inner];
                    if (last >= 0 &&
                        (isBefore<Largest>(x, line[last * Inner]) || (at <= last && !isBefore<Largest>(line[last * Inner], x))))
                        continue;
                    if (best < 0 || isBefore<Largest>(x, line[best * Inner]))
                        best = at;
                }
                last = best;
                out[(o * Count + rank) * Inner + i] = best;
            }
        }
}

// Running sums or products along the middle axis of (Outer, Size, Inner).
template <int Outer, int Size, int Inner, bool Exclusive, bool Reverse, bool Product, class T>
N2D2_INLINE void arrayCumSum(const T* in, T* out) {
    typedef typename WideType<T>::Type W;
    for (long o = 0; o < Outer; ++o)
        for (long i = 0; i < Inner; ++i) {
            W total = Product ? W(1) : W(0);
            for (long step = 0; step < Size; ++step) {
                const long at = (o * Size + (Reverse ? Size - 1 - step : step)) * Inner + i;
                const W x = static_cast<W>(in[at]);
                const W next = Product ? wideTimes(total, x) : widePlus(total, x);
                out[at] = static_cast<T>(Exclusive ? total : next);
                total = next;
            }
        }
}

}  // namespace n2d2
