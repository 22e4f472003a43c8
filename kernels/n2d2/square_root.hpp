// Square root of whole numbers.
#pragma once

#include "n2d2/env.hpp"

namespace n2d2 {

// Square root of a number below 2^56, rounded to nearest: of its upper bits by Newton's method, then exactly.
inline std::uint32_t roundedRoot(std::uint64_t value) {
    if (value == 0)
        return 0;
    const int shift = (64 - bitsOf(value)) & ~1;
    const std::uint64_t whole = value << shift;
    const std::uint32_t upper = static_cast<std::uint32_t>(whole >> 32);
    std::uint32_t root = (upper >> 17) + (upper >> 19) + 22600;  // within 4 %
    root = (root + upper / root) >> 1;
    root = (root + upper / root) >> 1;
    const std::uint64_t square = std::uint64_t{root} * root << 32;
    const std::int32_t rest = static_cast<std::int32_t>(static_cast<std::int64_t>(whole - square) >> 18);
    root = ((root << 16) + static_cast<std::uint32_t>(rest / static_cast<std::int32_t>(root) * 2)) >> (shift / 2);
    const std::int64_t above = static_cast<std::int64_t>(value - std::uint64_t{root} * root), bound = root;
    return above > bound ? root + 1 : above <= -bound ? root - 1 : root;
}

}  // namespace n2d2
