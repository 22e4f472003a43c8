// Real numbers to stored integers.
#pragma once

#include <cmath>

#include "n2d2/env.hpp"

namespace n2d2 {

// real / scale in float32, rounded to nearest (ties to even), plus `zero`, from Low to High; Low for NaN.
template <class Value, int Low, int High>
N2D2_INLINE Value quantized(float real, float scale, int zero) {
    const float steps = std::rint(real / scale), low = static_cast<float>(Low - zero), high = static_cast<float>(High - zero);
    return static_cast<Value>(!(steps >= low) ? Low : steps > high ? High : static_cast<int>(steps) + zero);
}

}  // namespace n2d2
