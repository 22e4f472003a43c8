// Windows in the order of the inputs, of bytes as they are multiplied: unsigned, signed ones + 128, or with SignedBytes signed, unsigned
// ones - 128; or of 16-bit integers (halfwords.hpp).
#ifndef N2D2_VECTORS_BYTE_WINDOW_HPP
#define N2D2_VECTORS_BYTE_WINDOW_HPP

#include "n2d2/halfwords.hpp"

namespace n2d2 {
namespace vectors {

template <class In, int Words, bool SignedBytes = false, bool Bytes = sizeof(In) == 1>
struct ByteWindow : Halfwords<In, Words> {};

template <class In, int Words_, bool SignedBytes>
struct ByteWindow<In, Words_, SignedBytes, true> {
    typedef ByteWindow Raw;
    enum : bool { Plain = std::numeric_limits<In>::is_signed == SignedBytes };
    enum : int { Size = 1, Unit = 1, Bytes = 4 * Words_ };
    static N2D2_INLINE void arrange(const std::uint8_t*, std::uint8_t*) {}
    template <int Count>
    static N2D2_INLINE void copy(const In* from, std::uint8_t* to) {
        std::memcpy(to, from, Count);
        for (int i = 0; !Plain && i < Count; ++i)
            to[i] = static_cast<std::uint8_t>(to[i] ^ 128);
    }
    template <int Count>
    static N2D2_INLINE void fill(int value, std::uint8_t* to) {
        std::memset(to, (value ^ (Plain ? 0 : 128)) & 255, Count);
    }
};

}  // namespace vectors
}  // namespace n2d2

#endif  // N2D2_VECTORS_BYTE_WINDOW_HPP
