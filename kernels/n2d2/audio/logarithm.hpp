// Logarithms of whole numbers from a table of 33 entries. Config: see input.hpp.
#pragma once

#include "n2d2/env.hpp"

namespace n2d2 {

// log2 of a positive number in 1/65536.
template <class Cfg>
N2D2_INLINE std::int32_t audioLogarithm(std::uint32_t normalized, int bits) {
    const std::uint32_t rest = normalized >> 15 & 2047;
    const int entry = static_cast<int>(normalized >> 26 & 31);
    const std::uint32_t low = Cfg::logarithm(entry), next = Cfg::logarithm(entry + 1);
    return (bits - 1) * 65536 + static_cast<std::int32_t>(low + (((next - low) * rest + 1024) >> 11));
}

template <class Cfg>
N2D2_INLINE std::int32_t audioLogarithm(std::uint32_t value) {
    const int bits = bitsOf(value);
    return audioLogarithm<Cfg>(value << (32 - bits), bits);
}

template <class Cfg>
inline std::int32_t audioLogarithm(std::uint64_t value) {
    const int bits = bitsOf(value);
    return audioLogarithm<Cfg>(static_cast<std::uint32_t>(value << (64 - bits) >> 32), bits);
}

}  // namespace n2d2
