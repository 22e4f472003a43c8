// Stored values to fixed point, and functions of it: n2d2py/arithmetic/fixed_scale.py has the definition.
#pragma once

#include <cmath>

#include "n2d2/functions.hpp"

namespace n2d2 {

// Stored integers to fixed point.
struct FixedScale {
    std::int64_t multiplier;
    std::int32_t shift, zeroPoint;

    template <class T>
    std::int64_t value(T stored) const {
        return static_cast<std::int64_t>(stored) - zeroPoint;
    }
    std::int32_t fixed(std::int64_t value, std::int32_t low, std::int32_t high) const {
        const std::int64_t steps = (value * multiplier + (std::int64_t(1) << shift >> 1)) >> shift;
        return steps < low ? low : steps > high ? high : static_cast<std::int32_t>(steps);
    }
};

// Floating point to fixed point; NaN becomes `low`.
struct RealScale {
    double factor;

    template <class T>
    T value(T stored) const {
        return stored;
    }
    template <class T>
    std::int32_t fixed(T value, std::int32_t low, std::int32_t high) const {
        const double steps = std::floor(product(static_cast<double>(value), factor) + 0.5);
        return !(steps >= low) ? low : steps > high ? high : static_cast<std::int32_t>(steps);
    }
};

// The logistic function in 1/65536 of a logit in 1/2048 within -16 to 16; `knots`: its 257 values at 0, 1/16, ..., 16.
inline std::int32_t logistic(const std::int32_t* knots, std::int32_t logit) {
    const std::int32_t size = logit < 0 ? -logit : logit, held = size > 32767 ? 32767 : size, rest = held & 127;
    knots += held >> 7;
    const std::int32_t above = (knots[0] * (128 - rest) + knots[1] * rest + 64) >> 7;
    return logit < 0 ? 65536 - above : above;
}

}  // namespace n2d2
