// The matrix product of the panels with AVX-VNNI: windows of bytes, vpdpbusd of 256 bits.
//
// One instruction adds the products of four unsigned bytes with four signed ones to each of eight sums, exactly, where AVX2 needs four.
// Windows are those of the AVX-512 kernels, unsigned bytes as they are and signed ones + 128, so that 1x1 windows of unsigned bytes are
// read in place; a panel is two vectors of weights for each word. Inputs of 16 bits are multiplied in pairs, by vpdpwssd.
// The epilogue and the tile's shape are those of AVX2.
#pragma once

#include "n2d2/x86/avx2_tile.hpp"

namespace n2d2 {
namespace avxvnni {

// The prefix keeps assemblers from the encoding of AVX-512.
#if defined(__clang__) || defined(N2D2_EMULATED_AVXVNNI)
N2D2_DOT_BY_INTRINSIC(dot, __m256i, _mm256_dpbusd_avx_epi32)
N2D2_DOT_BY_INTRINSIC(dotPairs, __m256i, _mm256_dpwssd_avx_epi32)
#else
N2D2_DOT_BY_NAME(dot, __m256i, "x", "%{vex%} vpdpbusd")
N2D2_DOT_BY_NAME(dotPairs, __m256i, "x", "%{vex%} vpdpwssd")
#endif

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue, class Weight = std::int8_t>
struct Tile : avx2::Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue, Weight> {
    typedef avx2::Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue, Weight> Base;
    enum : int { Vectors = Base::Vectors };

    template <long Pitch>
    static N2D2_INLINE void addWord(const std::uint8_t* x, const Weight* w, int q, __m256i (&sums)[Pixels][Vectors]) {
        __m256i part[Vectors];
        N2D2_UNROLL_FOR(v, Vectors)
            part[v] = Base::weights(w, v, q);
        N2D2_UNROLL_FOR(p, Pixels) {
            const __m256i inputs = Base::word(x + p * Pitch);
            N2D2_UNROLL_FOR(v, Vectors) {
                if (Base::Pairs)
                    dotPairs(sums[p][v], inputs, part[v]);
                else
                    dot(sums[p][v], inputs, part[v]);
            }
        }
    }

    template <long Pitch, int Lines, long Jump>
    static N2D2_INLINE void addWords(const std::uint8_t* x, const Weight* w, int q, __m256i (&sums)[Pixels][Vectors]) {
        N2D2_UNROLL_FOR(u, Lines)
            addWord<Pitch>(x + u * Jump, w, u * (Words / Lines) + q, sums);
    }

    // A function of its own, so that no constant of the epilogue takes a register from the sums.
    // Lines: pieces of a window, Jump bytes apart (panel_tiles.hpp).
    template <long Pitch, int Lines = 1, long Jump = 0, class At>
    static N2D2_NOINLINE void run(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output, const At at) {
        __m256i sums[Pixels][Vectors];
        Base::start(bias + output, sums);
        constexpr int words = Words / Lines;  // of a line; all lines in one loop, whose end costs as much as some words
        if (words <= 8) {
            N2D2_UNROLL_FOR(q, words)
                addWords<Pitch, Lines, Jump>(x + 4 * q, w, q, sums);
        } else {
            for (int q = 0; q < words; ++q)
                addWords<Pitch, Lines, Jump>(x + 4 * q, w, q, sums);
        }
        Base::store(sums, output, at);
    }
};

// 12 sums of eight outputs, two weight vectors, a word.
struct Microkernel : OnePanelTiles<6, 4> {
    typedef WideWeights<Microkernel, avxvnni::Tile> Wide;
    enum : int { LineVector = 32 };

    template <class In, int Words>
    struct Windows : vectors::ByteWindow<In, Words, false, 32> {};

    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Tile : avxvnni::Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue> {};
};

struct Vec : avx2::Vec {
    using avx2::Vec::store;
    static N2D2_INLINE void dot(Ints& sums, Ints x, Ints w) { avxvnni::dot(sums, x, w); }
    template <int Count>
    static N2D2_INLINE void store(Ints x, std::int32_t* to) {
        avx2::store8<Count>(x, to);
    }
    static N2D2_INLINE Ints addPairs(Ints sums, Ints a, Ints b) {
        dotPairs(sums, a, b);
        return sums;
    }
};

struct WinogradMicrokernel : Microkernel {
    typedef avxvnni::Vec Vec;
};

}  // namespace avxvnni
}  // namespace n2d2
