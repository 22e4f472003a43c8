// Windows of bytes for vpmaddwd: as 16-bit integers, inputs 0 and 2 of each word of four, and behind all words inputs 1 and 3.
#ifndef N2D2_X86_SPLIT_WINDOW_HPP
#define N2D2_X86_SPLIT_WINDOW_HPP

#include "n2d2/panels/microkernel.hpp"
#include "n2d2/x86/bytes.hpp"

namespace n2d2 {
namespace bytes {

// How a window of bytes lies in memory, Words words of four, copied by vectors Vec where they are longer than 16 bytes.
template <class In, int Words, class Vec, bool Pairs = sizeof(In) == 2>
struct SplitWindow {
    enum : bool { Plain = false };
    enum : int { Size = 1, Unit = 4, Bytes = 8 * Words, Odd = 4 * Words };

    template <int Width>
    static N2D2_INLINE void put(const void* from, std::uint8_t* to) {
        if (Width > 16) {
            const typename Vec::Ints x = Vec::template flipped<In>(Vec::load(from));
            Vec::store(Vec::lowBytes(x), to);
            Vec::store(Vec::highBytes(x), to + Odd);
            return;
        }
        const __m128i x = flipped<In>(loadBytes<Width>(from));
        storeBytes < Width< 4 ? 4 : Width>(_mm_and_si128(x, _mm_set1_epi16(0xff)), to);
        storeBytes < Width< 4 ? 4 : Width>(_mm_srli_epi16(x, 8), to + Odd);
    }

    // Count values; unless they end the window, a multiple of Unit.
    template <int Count>
    static N2D2_INLINE void copy(const In* from, std::uint8_t* to) {
        constexpr int words = Count / 4 * 4, tail = Count % 4;
        constexpr int width = Vec::Size > 16 && words >= Vec::Size ? int(Vec::Size) : words >= 16 ? 16 : words >= 8 ? 8 : 4;
        for (int i = 0; i + width <= words; i += width)
            put<width>(from + i, to + i);
        if (words % width != 0)
            put<width>(from + words - width, to + words - width);
        if (tail != 0)
            put<(tail != 0 ? tail : 1)>(from + words, to + words);
    }
    template <int Count>
    static N2D2_INLINE void fill(int value, std::uint8_t* to) {
        const __m128i x = _mm_set1_epi16(multiplied<In>(value));
        for (int i = 0; i + 4 <= Count; i += 4) {
            storeBytes<4>(x, to + i);
            storeBytes<4>(x, to + Odd + i);
        }
        if (Count % 4 != 0) {
            storeBytes<4>(x, to + Count / 4 * 4);
            storeBytes<4>(x, to + Odd + Count / 4 * 4);
        }
    }

    // Values one after the other, for windows of parts that are no multiples of Unit.
    struct Raw {
        template <int Count>
        static N2D2_INLINE void copy(const In* from, std::uint8_t* to) {
            std::memcpy(to, from, Count);
        }
        template <int Count>
        static N2D2_INLINE void fill(int value, std::uint8_t* to) {
            std::memset(to, static_cast<unsigned char>(static_cast<In>(value)), Count);
        }
    };
    static N2D2_INLINE void arrange(const std::uint8_t* raw, std::uint8_t* to) {
        copy<4 * Words>(reinterpret_cast<const In*>(raw), to);
    }
};

// 16-bit integers lie in order.
template <class In, int Words, class Vec>
struct SplitWindow<In, Words, Vec, true> : Halfwords<In, Words> {};

}  // namespace bytes

// Such windows, and tiles (AnyTile) of Pixels pixels of a panel of outputs, or of one pixel of Single panels.
template <class AnyVec, template <class, int, int, int, int, class, class> class AnyTile, int Pixels, int Single>
struct SplitMicrokernel {
    typedef AnyVec Vec;

    template <class In, int Words>
    struct Windows : bytes::SplitWindow<In, Words, Vec> {};
    template <class In, int TilePixels, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Tile : AnyTile<In, TilePixels, Panels, Words, LastOutputs, Epilogue, std::int8_t> {};

    static N2D2_INLINE constexpr int tilePixels(int) { return Pixels; }
    static N2D2_INLINE constexpr int tilePanels(int) { return 1; }
    static N2D2_INLINE constexpr int singlePanels() { return Single; }
};

}  // namespace n2d2

#endif  // N2D2_X86_SPLIT_WINDOW_HPP
