// Windows of 16-bit integers, as the kernels without byte products multiply them.
#pragma once

#include "n2d2/env.hpp"

namespace n2d2 {

// An input as it is multiplied: bytes + 128 where they are signed, 16-bit integers - 32768 where they are not.
template <class In>
N2D2_INLINE constexpr std::int16_t multiplied(int value) {
    return static_cast<std::int16_t>(sizeof(In) == 1 ? (std::numeric_limits<In>::is_signed ? value + 128 : value) :
                                                       (std::numeric_limits<In>::is_signed ? value : value - 32768));
}

// A window in the order of the inputs; Words words of Each inputs, four bytes or two 16-bit integers, or two of either.
template <class In, int Words, int Each = 4 / static_cast<int>(sizeof(In))>
struct Halfwords {
    typedef Halfwords Raw;
    enum : bool { Plain = sizeof(In) == 2 && std::numeric_limits<In>::is_signed };
    enum : int { Size = 2, Unit = 1, Bytes = Words * 2 * Each };

    static N2D2_INLINE void arrange(const std::uint8_t*, std::uint8_t*) {}

    template <int Count>
    static N2D2_INLINE void copy(const In* from, std::uint8_t* to) {
        for (int i = 0; i < Count; ++i)
            put(to + 2 * i, multiplied<In>(from[i]));
    }
    template <int Count>
    static N2D2_INLINE void fill(int value, std::uint8_t* to) {
        for (int i = 0; i < Count; ++i)
            put(to + 2 * i, multiplied<In>(value));
    }
    static N2D2_INLINE void put(std::uint8_t* to, std::int16_t value) { std::memcpy(to, &value, 2); }
};

}  // namespace n2d2
