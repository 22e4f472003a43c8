// Windows of bytes for vpmaddwd: as 16-bit integers, inputs 0 and 2 of each word of four, and behind all words inputs 1 and 3.
#pragma once

#include "n2d2/panels/microkernel.hpp"
#include "n2d2/x86/bytes.hpp"

namespace n2d2 {
namespace bytes {

// The layout of a window of bytes in memory, Words words of four, copied by vectors Vec where they are longer than 16 bytes.
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

// The base of tiles of such windows: Pixels x Panels * 16 sums in vectors Vec, and the weights of a word in as many.
template <class AnyVec, class In, int Pixels, int Panels, int Words, int LastOutputs, class AnyWeight>
struct SplitTile {
    typedef AnyVec Vec;
    typedef AnyWeight Weight;
    typedef typename Vec::Ints Ints;
    enum : bool {
        Wide = sizeof(Weight) == 2,
        Pairs = sizeof(In) == 2 || bool(Wide),
        Many = Vec::Lanes > 4  // sums take all registers
    };
    enum : int {
        Lanes = Vec::Lanes,
        Each = Pairs ? 2 : 4,
        PerPanel = 16 / Lanes,                                                  // vectors
        Vectors = PerPanel * (Panels - 1) + (LastOutputs + Lanes - 1) / Lanes,  // of sums
        Rest = LastOutputs - (LastOutputs - 1) / Lanes * Lanes                  // outputs of the last vector
    };
    enum : long { PanelWeights = 16L * Each * Words, Odd = 4L * Words };

    // The weights of a vector in a word.
    template <int Count>
    static N2D2_INLINE Ints some(const Weight* from) {
        if (Pairs && !Wide)
            return Vec::template halfwords<std::int8_t, 2 * Count>(reinterpret_cast<const std::int8_t*>(from));
        return Count == int(Lanes) ? Vec::load(from) : Vec::template some<Count>(from, from + 4 * Each);
    }
    static N2D2_INLINE Ints weights(const Weight* w, int vector, int word) {
        const int panel = vector / PerPanel;
        const int outputs = panel == Panels - 1 ? LastOutputs : 16;
        const Weight* const from = w + panel * PanelWeights + (word * outputs + vector % PerPanel * Lanes) * Each;
        return vector == Vectors - 1 ? some<Rest>(from) : some<Lanes>(from);
    }
    static N2D2_INLINE Ints word(const std::uint8_t* x) { return Vec::word(x); }

    template <long Pitch>
    static N2D2_INLINE void add(const std::uint8_t* x, const Ints (&w)[Vectors], Ints (&sums)[Pixels][Vectors]) {
        N2D2_UNROLL_FOR(p, Pixels) {
            const Ints inputs = word(x + p * Pitch);
            N2D2_UNROLL_FOR(v, Vectors) {
                sums[p][v] = Vec::addPairs(sums[p][v], inputs, w[v]);
                Vec::pin(sums[p][v]);  // GCC would add the products of two words first, sums on the stack
            }
        }
    }

    // Adds the products of word q: of bytes those of inputs 0 and 2, then of 1 and 3.
    template <long Pitch>
    static N2D2_INLINE void addWord(const std::uint8_t* x, const Weight* w, int q, Ints (&sums)[Pixels][Vectors]) {
        Ints all[Vectors], part[Vectors];
        N2D2_UNROLL_FOR(v, Vectors) {
            all[v] = weights(w, v, q);
            part[v] = bool(Pairs) ? all[v] : Vec::template right16<8>(Vec::template left16<8>(all[v]));
        }
        add<Pitch>(x, part, sums);
        if (Pairs)
            return;
        if (Many)
            __asm__("" : "+r"(w));  // loads the weights again: no register is left for them
        N2D2_UNROLL_FOR(v, Vectors)
            part[v] = Vec::template right16<8>(Many ? weights(w, v, q) : all[v]);
        add<Pitch>(x + Odd, part, sums);
    }
    template <long Pitch>
    static N2D2_INLINE void sum(const std::uint8_t* x, const Weight* w, Ints (&sums)[Pixels][Vectors]) {
        if (Many && Words <= 8 && !N2D2_SMALL_CODE) {  // the end of a short loop costs as much as a word
            N2D2_UNROLL_FOR(q, Words)
                addWord<Pitch>(x + 4 * q, w, q, sums);
        } else {
            for (int q = 0; q < Words; ++q)
                addWord<Pitch>(x + 4 * q, w, q, sums);
        }
    }

    // The sums before the first product.
    static N2D2_INLINE void start(const std::int32_t* bias, Ints (&sums)[Pixels][Vectors]) {
        N2D2_UNROLL_FOR(v, Vectors) {
            const std::int32_t* const from = bias + Lanes * v;
            const Ints first =
                v == Vectors - 1 ? Vec::template some<Rest>(from, from + 4) : Vec::template some<Lanes>(from, from + 4);
            N2D2_UNROLL_FOR(p, Pixels)
                sums[p][v] = first;
        }
    }

    // A function of its own, so that no constant of the epilogue takes a register from the sums. Product::sum adds the products,
    // Product::store is the epilogue.
    template <class Product, long Pitch, class At>
    static N2D2_NOINLINE void multiply(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output,
                                       const At at) {
        Ints sums[Pixels][Vectors];
        start(bias + output, sums);
        Product::template sum<Pitch>(x, w, sums);
        Product::store(sums, output, at);
    }
};

// Tiles where an instruction adds the four products of a word, or both of 16 bits, to each sum: windows lie in order, in Lines pieces,
// Jump bytes apart (panel_tiles.hpp). Unrolled: words of a line whose loop has no jumps.
template <class Vec, class In, int Pixels, int Panels, int Words, int LastOutputs, class Weight, int Unrolled>
struct DotTile : SplitTile<Vec, In, Pixels, Panels, Words, LastOutputs, Weight> {
    typedef SplitTile<Vec, In, Pixels, Panels, Words, LastOutputs, Weight> Base;
    typedef typename Vec::Ints Ints;
    enum : int { Vectors = Base::Vectors };

    template <long Pitch>
    static N2D2_INLINE void addWord(const std::uint8_t* x, const Weight* w, int q, Ints (&sums)[Pixels][Vectors]) {
        Ints part[Vectors];
        N2D2_UNROLL_FOR(v, Vectors)
            part[v] = Base::weights(w, v, q);
        N2D2_UNROLL_FOR(p, Pixels) {
            const Ints inputs = Base::word(x + p * Pitch);
            N2D2_UNROLL_FOR(v, Vectors) {
                if (Base::Pairs)
                    sums[p][v] = Vec::addPairs(sums[p][v], inputs, part[v]);
                else
                    Vec::dot(sums[p][v], inputs, part[v]);
            }
        }
    }
    template <long Pitch, int Lines, long Jump>
    static N2D2_INLINE void addWords(const std::uint8_t* x, const Weight* w, int q, Ints (&sums)[Pixels][Vectors]) {
        N2D2_UNROLL_FOR(u, Lines)
            addWord<Pitch>(x + u * Jump, w, u * (Words / Lines) + q, sums);
    }

    // A function of its own, so that no constant of the epilogue, Product::store, takes a register from the sums.
    template <class Product, long Pitch, int Lines, long Jump, class At>
    static N2D2_NOINLINE void multiply(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output,
                                       const At at) {
        Ints sums[Pixels][Vectors];
        Base::start(bias + output, sums);
        constexpr int words = Words / Lines;  // of a line; all lines in one loop, whose end costs as much as some words
        if (words <= Unrolled) {
            N2D2_UNROLL_FOR(q, words)
                addWords<Pitch, Lines, Jump>(x + 4 * q, w, q, sums);
        } else {
            for (int q = 0; q < words; ++q)
                addWords<Pitch, Lines, Jump>(x + 4 * q, w, q, sums);
        }
        Product::store(sums, output, at);
    }
};

// Such windows, and tiles (AnyTile) of Pixels pixels of a panel of outputs, or of one pixel of Single panels.
template <class AnyVec, template <class, int, int, int, int, class, class> class AnyTile, int Pixels, int Single>
struct SplitMicrokernel : OnePanelTiles<Pixels, Single> {
    typedef AnyVec Vec;
    typedef WideWeights<SplitMicrokernel, AnyTile> Wide;

    template <class In, int Words>
    struct Windows : bytes::SplitWindow<In, Words, Vec> {};
    template <class In, int TilePixels, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Tile : AnyTile<In, TilePixels, Panels, Words, LastOutputs, Epilogue, std::int8_t> {};
};

}  // namespace n2d2
