// Elements of arrays in another order, one array behind the other, and elements at computed positions.
//
//   arrayIndexSelect     out[o] = in at the position of the loop Axes; fill() where a TakeAxis says so
//   arrayConcat     Outer times Length elements of one operand, into lines of Line elements, First from their start
//   arrayConcatRescaled   the same of Epilogue(element - Zero)
//   arrayGather   out[o][j][i] = in[o][index of j][i], or with Each in[o][index of (o, j, i)][i]
//   arrayScatter  out[index of j][i] = combined with update[j][i], in order
//
// Indices below 0 count from the end; those outside are held at the nearest line. Input and output are disjoint.
#pragma once

#include "n2d2/array.hpp"
#include "n2d2/output.hpp"

namespace n2d2 {

template <class Cfg>
struct Taken {
    typedef typename Cfg::Output::Type T;
    const T* in;
    T* out;
    N2D2_INLINE void operator()(long a, long, long, long o) const { out[o] = in[a]; }
    N2D2_INLINE void fill(long o, long count) const {
        for (long i = 0; i < count; ++i)
            out[o + i] = static_cast<T>(Cfg::Fill::value());
    }
};

// Config: planes Input, Output of one type; types Axes, Fill (static value()); enum First.
template <class Cfg>
N2D2_INLINE void arrayIndexSelect(const unsigned char* in, unsigned char* out) {
    const Taken<Cfg> body = {elements<typename Cfg::Input>(in), elements<typename Cfg::Output>(out)};
    Cfg::Axes::run(body, Cfg::First, 0, 0, 0);
}

template <int Outer, int Length, int Line, int First, class T>
N2D2_INLINE void arrayConcat(const T* in, T* out) {
    for (long o = 0; o < Outer; ++o)
        for (long i = 0; i < Length; ++i)
            out[o * Line + First + i] = in[o * Length + i];
}

template <class Epilogue, int Zero, int Outer, int Length, int Line, int First, class T>
N2D2_INLINE void arrayConcatRescaled(const T* in, typename Epilogue::Type* out) {
    for (long o = 0; o < Outer; ++o)
        for (long i = 0; i < Length; ++i)
            out[o * Line + First + i] = Epilogue::apply(static_cast<std::int32_t>(in[o * Length + i]) - Zero, 0);
}

template <int Size, class I>
N2D2_INLINE long wrapped(I index) {
    const std::int64_t i = static_cast<std::int64_t>(index);
    const std::int64_t line = i < 0 ? i + Size : i;
    return static_cast<long>(line < 0 ? 0 : line < Size ? line : Size - 1);
}

template <int Outer, int Size, int Inner, int Count, bool Each, class T, class I>
N2D2_INLINE void arrayGather(const T* in, const I* indices, T* out) {
    for (long o = 0; o < Outer; ++o)
        for (long j = 0; j < Count; ++j)
            for (long i = 0; i < Inner; ++i) {
                const long at = (o * Count + j) * Inner + i;
                out[at] = in[(o * Size + wrapped<Size>(indices[Each ? at : j])) * Inner + i];
            }
}

template <class T>
N2D2_INLINE typename WideType<T>::Type wide(T x) {
    return static_cast<typename WideType<T>::Type>(x);
}
#define N2D2_SCATTER(NAME, EXPRESSION)         \
    struct NAME {                              \
        template <class T>                     \
        static N2D2_INLINE T apply(T a, T b) { \
            return EXPRESSION;                 \
        }                                      \
    };
N2D2_SCATTER(ScatterNone, (static_cast<void>(a), b))
N2D2_SCATTER(ScatterAdd, static_cast<T>(widePlus(wide(a), wide(b))))
N2D2_SCATTER(ScatterMul, static_cast<T>(wideTimes(wide(a), wide(b))))
N2D2_SCATTER(ScatterMax, largest(a, b))
N2D2_SCATTER(ScatterMin, least(a, b))
#undef N2D2_SCATTER

template <int Size, int Inner, int Count, class Combine, class T, class I>
N2D2_INLINE void arrayScatter(const T* in, const I* indices, const T* updates, T* out) {
    for (long i = 0; i < static_cast<long>(Size) * Inner; ++i)
        out[i] = in[i];
    for (long j = 0; j < Count; ++j) {
        T* const to = out + wrapped<Size>(indices[j]) * Inner;
        for (long i = 0; i < Inner; ++i)
            to[i] = Combine::template apply<T>(to[i], updates[j * Inner + i]);
    }
}

}  // namespace n2d2
