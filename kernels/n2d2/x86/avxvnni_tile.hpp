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

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue, class Weight = std::int8_t>
struct Tile : DotTile<Vec, In, Pixels, Panels, Words, LastOutputs, Weight, 8> {
    typedef DotTile<Vec, In, Pixels, Panels, Words, LastOutputs, Weight, 8> Base;

    template <class At>
    static N2D2_INLINE void store(const __m256i (&sums)[Pixels][Base::Vectors], int output, const At& at) {
        avx2::Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue, Weight>::store(sums, output, at);
    }
    template <long Pitch, int Lines = 1, long Jump = 0, class At>
    static N2D2_INLINE void run(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output, const At at) {
        Base::template multiply<Tile, Pitch, Lines, Jump>(x, w, bias, output, at);
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

struct WinogradMicrokernel : Microkernel {
    typedef avxvnni::Vec Vec;
};

}  // namespace avxvnni
}  // namespace n2d2
