// Square root of whole numbers.
#ifndef N2D2_SQUARE_ROOT_HPP
#define N2D2_SQUARE_ROOT_HPP

#include <cstdint>

namespace n2d2 {

// Square root, rounded to nearest.
inline std::uint32_t roundedRoot(std::uint64_t value) {
    std::uint64_t root = 0;
    for (std::uint64_t bit = std::uint64_t{1} << 62; bit != 0; bit >>= 2) {
        const bool fits = value >= root + bit;
        value -= fits ? root + bit : 0;
        root = (root >> 1) + (fits ? bit : 0);
    }
    return static_cast<std::uint32_t>(root + (value > root));
}

}  // namespace n2d2

#endif  // N2D2_SQUARE_ROOT_HPP
