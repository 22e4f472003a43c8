// A constant for each element of a vector, added; they repeat after Constants elements:
//
//   addConstants  out[i] = in[i] + constants[i % Constants]
//   addShifted    out[i] = Epilogue(weight * (in[i] - zero) + constantWeight * constants[i % Constants]), integers
//
// Config: planes Input, Output, of one pixel; Constants, a divisor of their size; for integers types Sum, Terms (with these numbers),
// Epilogue, Isa.
// The output lies apart from the input.
#pragma once

#include "n2d2/array.hpp"
#include "n2d2/pointwise.hpp"

namespace n2d2 {

template <class Cfg, class T>
N2D2_INLINE void addConstants(const unsigned char* in, unsigned char* out, const T* constants) {
    const typename Cfg::Input::Type* const from = elements<typename Cfg::Input>(in);
    typename Cfg::Output::Type* const to = elements<typename Cfg::Output>(out);
    for (long first = 0; first < Cfg::Output::Channels; first += Cfg::Constants)
        for (long i = 0; i < Cfg::Constants; ++i)
            to[first + i] = from[first + i] + constants[i];
}

template <class Cfg>
struct ShiftedSums {
    typedef typename Cfg::Sum Sum;
    template <int Count, class C>
    static N2D2_INLINE void run(const typename Cfg::Input::Type* in, const C* constants, typename Cfg::Output::Type* out) {
        alignas(64) Sum sums[Count];
        for (int i = 0; i < Count; ++i)
            sums[i] = Cfg::Terms::weight() * (static_cast<Sum>(in[i]) - Cfg::Terms::zero()) +
                      Cfg::Terms::constantWeight() * static_cast<Sum>(constants[i]);
        EpilogueRun<typename Cfg::Epilogue, false, typename Cfg::Isa>::template run<Count>(sums, 0, out);
    }
};

template <class Cfg, class C>
N2D2_INLINE void addShifted(const unsigned char* in, unsigned char* out, const C* constants) {
    constexpr int size = Cfg::Constants, piece = size < 64 ? size : 64, last = size % piece;
    const typename Cfg::Input::Type* from = elements<typename Cfg::Input>(in);
    typename Cfg::Output::Type* to = elements<typename Cfg::Output>(out);
    for (long first = 0; first < Cfg::Output::Channels; first += size, from += size, to += size) {
        int i = 0;
        for (; i + piece <= size; i += piece)
            ShiftedSums<Cfg>::template run<piece>(from + i, constants + i, to + i);
        if (last > 0)
            ShiftedSums<Cfg>::template run<(last > 0 ? last : 1)>(from + i, constants + i, to + i);
    }
}

}  // namespace n2d2
