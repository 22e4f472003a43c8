// The last stage of a kernel: from a sum, or a value that is moved, to the element that is stored.
//
//   Requantized<Type, Rescale, Low, High>  integers: rescale the sum, clamp to [Low, High]
//   Activated<Type, Activation>            floating point: activation of the sum
//   Clamped<Type, Low, High>               integers: the value clamped, no change of scale
//   Moved<Type>                            the value as it is
//
// Every stage has apply(value, index); index selects the constants of a per-output rescale.
#ifndef N2D2_OUTPUT_HPP
#define N2D2_OUTPUT_HPP

#include "n2d2/activation.hpp"
#include "n2d2/rescale.hpp"

namespace n2d2 {

template <class T, class Rescale, std::int64_t Low, std::int64_t High>
struct Requantized {
    static_assert(Low <= High && Low >= std::numeric_limits<std::int32_t>::min() &&
                      High <= std::numeric_limits<std::int32_t>::max(),
                  "the clamp must lie within 32-bit integers");
    static_assert(Low >= static_cast<std::int64_t>(std::numeric_limits<T>::min()) &&
                      High <= static_cast<std::int64_t>(std::numeric_limits<T>::max()),
                  "the clamp must lie within the output type");
    typedef T Type;

    template <class Sum>
    static N2D2_INLINE T apply(Sum sum, int index) {
        return static_cast<T>(Rescale::template apply<Low, High>(sum, index));
    }
};

template <class T, class Activation>
struct Activated {
    typedef T Type;
    static N2D2_INLINE T apply(T sum, int) { return Activation::apply(sum); }
};

template <class T, std::int64_t Low, std::int64_t High>
struct Clamped {
    typedef T Type;
    static N2D2_INLINE T apply(T value, int) {
        return least(largest(value, static_cast<T>(Low)), static_cast<T>(High));
    }
};

template <class T>
struct Moved {
    typedef T Type;
    static N2D2_INLINE T apply(T value, int) { return value; }
};

// out[i] = Stage(sums[i], index + i) for i < Count.
template <class Stage, int Count, class Sum>
N2D2_INLINE void store(const Sum* sums, int index, typename Stage::Type* out) {
    for (int i = 0; i < Count; ++i)
        out[i] = Stage::apply(sums[i], index + i);
}

}  // namespace n2d2

#endif  // N2D2_OUTPUT_HPP
