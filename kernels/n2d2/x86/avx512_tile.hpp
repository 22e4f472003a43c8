// A tile of a matrix product in registers: Pixels x Panels * 16 outputs, all K inputs.
//
// x: the windows of the pixels, Pitch bytes apart, in words of four unsigned bytes or two signed 16-bit integers
// (Pairs). w: panels [Words][16][4 or 2] of bytes, or [Words][16][2] of 16-bit integers, one after the other; the last of a layer
// has only LastOutputs of 16. One instruction multiplies a word of one pixel with those of 16 outputs; a weight vector serves all pixels, a word
// all panels.
#pragma once

#include "n2d2/panels/microkernel.hpp"
#include "n2d2/plane.hpp"
#include "n2d2/x86/avx512.hpp"
#include "n2d2/x86/split_window.hpp"

namespace n2d2 {
namespace avx512 {

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue, class Weight = std::int8_t>
struct Tile : DotTile<Vec, In, Pixels, Panels, Words, LastOutputs, Weight, 0> {
    typedef DotTile<Vec, In, Pixels, Panels, Words, LastOutputs, Weight, 0> Base;
    typedef typename Epilogue::Type Out;
    enum : bool { Bytes = sizeof(Out) == 1 };

    static N2D2_INLINE constexpr int outputs(int panel) { return panel == Panels - 1 ? LastOutputs : 16; }

    static N2D2_INLINE __m512i rescaled(const __m512i (&sums)[Pixels][Panels], int p, int n, int output) {
        const Epilogue16<Epilogue> epilogue(output + 16 * n, outputs(n));
        return epilogue.template apply<Bytes>(sums[p][n]);
    }

    // Part i of 16 bytes.
    template <int I>
    static N2D2_INLINE void storePart(__m512i bytes, int n, Out* to) {
        const __m128i part = _mm512_extracti32x4_epi32(bytes, I);
        if (LastOutputs < 16 && n == Panels - 1)
            _mm_mask_storeu_epi8(to + 16 * n, first16(LastOutputs), part);
        else
            store128(to + 16 * n, part);
    }

    // The addresses of the pixels of a tile, in registers, whatever is stored.
    template <class At, long Step = StepOf<At>::value>
    struct Places {
        Out* const first;
        N2D2_INLINE explicit Places(const At& at) : first(at(0)) {}
        N2D2_INLINE Out* operator()(int p) const { return first + p * Step; }
    };
    template <class At>
    struct Places<At, 0> : At {
        N2D2_INLINE explicit Places(const At& at) : At(at) {}
    };

    // Rescales and stores the outputs from `output` on; places(p) is where pixel p begins. Bytes are packed four vectors at
    // a time, and stored so where pixels follow each other.
    template <class At>
    static N2D2_INLINE void store(const __m512i (&sums)[Pixels][Panels], int output, const At& places) {
        const Places<At> at(places);
        constexpr int vectors = Pixels * Panels;
        constexpr bool run = StepOf<At>::value == 16 * Panels && LastOutputs == 16;
        constexpr bool halves = StepOf<At>::value == 8 && Panels == 1 && LastOutputs == 8;
        N2D2_UNROLL
        for (int i = 0; i < (Bytes ? vectors / 4 * 4 : 0); i += 4) {
            __m512i four[4];
            N2D2_UNROLL_FOR(j, 4)
                four[j] = rescaled(sums, (i + j) / Panels, (i + j) % Panels, output);
            if (halves) {
                const __m512i order = _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 0, 4, 1, 5, 2, 6, 3, 7);
                const __m512i mixed = Epilogue16<Epilogue>::clampBytes(packed<Out>(four[0], four[1], four[2], four[3]));
                store256(at(i) + output, _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, mixed)));
                continue;
            }
            const __m512i bytes = Epilogue16<Epilogue>::clampBytes(packedInOrder<Out>(four[0], four[1], four[2], four[3]));
            if (run || (Panels == 4 && LastOutputs == 16)) {
                _mm512_storeu_si512(at(i / Panels) + i % Panels * 16 + output, bytes);
                continue;
            }
            if (Panels == 2 && LastOutputs == 16) {
                store256(at(i / 2) + output, _mm512_castsi512_si256(bytes));
                store256(at(i / 2 + 1) + output, _mm512_extracti64x4_epi64(bytes, 1));
                continue;
            }
            storePart<0>(bytes, i % Panels, at(i / Panels) + output);
            storePart<1>(bytes, (i + 1) % Panels, at((i + 1) / Panels) + output);
            storePart<2>(bytes, (i + 2) % Panels, at((i + 2) / Panels) + output);
            storePart<3>(bytes, (i + 3) % Panels, at((i + 3) / Panels) + output);
        }
        N2D2_UNROLL
        for (int i = Bytes ? vectors / 4 * 4 : 0; i < vectors; ++i) {
            const int p = i / Panels, n = i % Panels;
            const Epilogue16<Epilogue> epilogue(output + 16 * n, outputs(n));
            const __m512i values = epilogue.template apply<false>(sums[p][n]);
            Out* const to = at(p) + output + 16 * n;
            if (LastOutputs < 16 && n == Panels - 1)
                store16<LastOutputs>(values, to);
            else
                store16<16>(values, to);
        }
    }

    template <long Pitch, int Lines = 1, long Jump = 0, class At>
    static N2D2_INLINE void run(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output, const At& at) {
        Base::template multiply<Tile, Pitch, Lines, Jump>(x, w, bias, output, at);
    }
};

struct Microkernel {
    typedef WideWeights<Microkernel, avx512::Tile> Wide;
    enum : int { LineVector = 64 };

    // Plain: values of the type are multiplied as they are.
    template <class In, int Words>
    struct Windows {
        enum : bool { Plain = !bool(Flip<In>::value) };
        enum : int { Size = static_cast<int>(sizeof(In)), Unit = 1, Bytes = 4 * Words };
        typedef Windows Raw;
        static N2D2_INLINE void arrange(const std::uint8_t*, std::uint8_t*) {}

        // Up to 63 bytes behind the values may be written.
        template <int Count>
        static N2D2_INLINE void copy(const In* from, std::uint8_t* to) {
            constexpr int bytes = Count * int(Size), whole = bytes / 64 * 64, rest = bytes - whole;
            const unsigned char* const source = reinterpret_cast<const unsigned char*>(from);
            for (int i = 0; i < whole; i += 64)
                _mm512_storeu_si512(to + i, Flip<In>::apply(_mm512_loadu_si512(source + i)));
            if (rest > 0)
                storeAtLeast<rest>(Flip<In>::apply(loadBytes<rest>(source + whole)), to + whole);
        }
        template <int Count>
        static N2D2_INLINE void fill(int value, std::uint8_t* to) {
            constexpr int bytes = Count * int(Size), whole = bytes / 64 * 64, rest = bytes - whole;
            const __m512i x = Flip<In>::apply(Flip<In>::all(value));
            for (int i = 0; i < whole; i += 64)
                _mm512_storeu_si512(to + i, x);
            if (rest > 0)
                storeAtLeast<rest>(x, to + whole);
        }
    };

    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Tile : avx512::Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue> {};

    // Registers hold Panels * Pixels sums, Panels weight vectors and one word; some are left for what compilers hoist.
    static N2D2_INLINE constexpr int tilePixels(int panels) {
        return panels == 1 ? 16 : panels == 2 ? 12 : panels == 3 ? 8 : panels == 4 ? 6 : panels == 5 ? 4 : 4;
    }

    // Panels of a tile of a layer with `panels` of them.
    static N2D2_INLINE constexpr int tilePanels(int panels) {
        return panels <= 4 ? panels : panels % 4 == 0 ? 4 : panels % 3 == 0 ? 3 : panels % 5 == 0 ? 5 : 4;
    }

    // Panels of a tile of one pixel.
    static N2D2_INLINE constexpr int singlePanels() { return 8; }
};

}  // namespace avx512
}  // namespace n2d2
