// Windows in the order of the inputs, of bytes as they are multiplied: unsigned, signed ones + 128, or with SignedBytes signed, unsigned
// ones - 128; or of 16-bit integers (halfwords.hpp).
#pragma once

#include "n2d2/halfwords.hpp"

namespace n2d2 {
namespace vectors {

// Width: bytes of the largest vector that is copied at once.
template <class In, int Words, bool SignedBytes = false, int Width = 16, bool Bytes = sizeof(In) == 1>
struct ByteWindow : Halfwords<In, Words> {};

template <class In, int Words, bool SignedBytes, int Width>
struct ByteWindow<In, Words, SignedBytes, Width, true> {
    typedef ByteWindow Raw;
    enum : bool { Plain = std::numeric_limits<In>::is_signed == SignedBytes };
    enum : int { Size = 1, Unit = 1, Bytes = 4 * Words };
    enum : std::uint32_t { Flip = Plain ? 0u : 0x80808080u };

    static N2D2_INLINE void arrange(const std::uint8_t*, std::uint8_t*) {}

    // Some words. Both may be the same bytes to a compiler, which copies them one by one unless it is told how many are loaded first.
    template <int Some>
    static N2D2_INLINE void put(const In* from, std::uint8_t* to) {
        typedef std::uint32_t Vector __attribute__((vector_size(Some)));
        Vector x;
        std::memcpy(&x, from, Some);
        x ^= Vector{} + std::uint32_t(Flip);
        std::memcpy(to, &x, Some);
    }
    template <int Count>
    static N2D2_INLINE void copy(const In* from, std::uint8_t* to) {
        constexpr int whole = Count / 4 * 4, rest = Count % 4;
        constexpr int step = whole >= Width ? Width : whole >= 16 ? 16 : whole >= 8 ? 8 : 4;
        for (int i = 0; i + step <= whole; i += step)
            put<step>(from + i, to + i);
        if (whole % step != 0)  // the last ones once more with those before them
            put<step>(from + whole - step, to + whole - step);
        if (rest != 0) {
            std::uint32_t word = 0;
            std::memcpy(&word, from + whole, rest);
            word ^= Flip;
            std::memcpy(to + whole, &word, 4);
        }
    }
    template <int Count>
    static N2D2_INLINE void fill(int value, std::uint8_t* to) {
        std::memset(to, (value ^ (Plain ? 0 : 128)) & 255, (Count + 3) / 4 * 4);
    }
};

}  // namespace vectors
}  // namespace n2d2
