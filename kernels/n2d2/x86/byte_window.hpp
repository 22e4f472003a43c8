// Windows of bytes in the order of the inputs, for instructions that multiply unsigned bytes; signed ones are stored + 128.
#ifndef N2D2_X86_BYTE_WINDOW_HPP
#define N2D2_X86_BYTE_WINDOW_HPP

#include "n2d2/x86/bytes.hpp"

namespace n2d2 {
namespace bytes {

// Words words of four bytes, copied by vectors Vec where they are longer than 16 bytes. Plain: inputs are multiplied as they lie in the plane.
template <class In, int Words, class Vec>
struct ByteWindow {
    static_assert(sizeof(In) == 1, "windows of bytes");
    typedef ByteWindow Raw;
    enum : bool { Plain = !std::numeric_limits<In>::is_signed };
    enum : int { Size = 1, Unit = 1, Bytes = 4 * Words };

    static N2D2_INLINE void arrange(const std::uint8_t*, std::uint8_t*) {}

    template <int Width>
    static N2D2_INLINE void put(const void* from, std::uint8_t* to) {
        if (Width > 16) {
            Vec::store(Vec::template flipped<In>(Vec::load(from)), to);
            return;
        }
        store128(to, flipped<In>(loadBytes<Width>(from)));
    }

    // Up to 15 bytes behind the values are written too, so that the last word of a window has no undefined bytes.
    template <int Count>
    static N2D2_INLINE void copy(const In* from, std::uint8_t* to) {
        constexpr int width = Vec::Size > 16 && Count >= Vec::Size ? int(Vec::Size) : 16, rest = Count % width;
        constexpr bool again = Count > width && rest % 4 == 0;  // the last values once more with those before them
        for (int i = 0; i + width <= Count; i += width)
            put<width>(from + i, to + i);
        if (rest != 0 && again)
            put<width>(from + Count - width, to + Count - width);
        if (rest > 16 && !again)
            put<16>(from + Count - rest, to + Count - rest);
        if (rest != 0 && !again) {
            constexpr int last = rest > 16 ? rest - 16 : rest;
            put<(last != 0 ? last : 1)>(from + Count - last, to + Count - last);
        }
    }
    template <int Count>
    static N2D2_INLINE void fill(int value, std::uint8_t* to) {
        const __m128i x = _mm_set1_epi8(static_cast<char>(multiplied<In>(value)));
        for (int i = 0; i < Count; i += 16)
            store128(to + i, x);
    }
};

}  // namespace bytes
}  // namespace n2d2

#endif  // N2D2_X86_BYTE_WINDOW_HPP
