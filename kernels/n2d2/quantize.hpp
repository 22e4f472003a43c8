// Real numbers to stored integers.
#ifndef N2D2_QUANTIZE_HPP
#define N2D2_QUANTIZE_HPP

#include <cmath>

#include "n2d2/env.hpp"

namespace n2d2 {

// real / scale in float32, rounded to nearest (ties to even), plus `zero`, from Low to High; Low for NaN.
template <class Value, int Low, int High>
N2D2_INLINE Value quantized(float real, float scale, int zero) {
    const double steps = static_cast<double>(std::rint(real / scale)) + zero;
    return static_cast<Value>(!(steps >= Low) ? Low : steps > High ? High : steps);
}

}  // namespace n2d2

#endif  // N2D2_QUANTIZE_HPP
