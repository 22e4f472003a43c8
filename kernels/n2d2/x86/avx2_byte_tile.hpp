// Products of bytes with AVX2 (byte_tile.hpp).
#ifndef N2D2_X86_AVX2_BYTE_TILE_HPP
#define N2D2_X86_AVX2_BYTE_TILE_HPP

#include "n2d2/x86/avx2_tile.hpp"
#include "n2d2/x86/byte_tile.hpp"

namespace n2d2 {
namespace avx2 {

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
struct ByteProducts : Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue> {
    typedef Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue> Base;
    typedef avx2::Vec Vec;
    enum : int { TilePixels = Pixels, Vectors = Base::Vectors };
    enum : bool { Part = Base::Rest < 8 };  // the last vector is put together

    // Count words from q on. Weights are operands in memory: there is no register for them.
    template <int Count, long Pitch>
    static N2D2_INLINE void add(const std::uint8_t* x, const std::int8_t* w, int q, __m256i (&sums)[Pixels][Vectors]) {
        const __m256i ones = _mm256_set1_epi16(1);
        __m256i last[Count];
        N2D2_UNROLL
        for (int i = 0; i < (Part ? Count : 0); ++i)
            last[i] = Base::weights(w, Vectors - 1, q + i);
        N2D2_UNROLL
        for (int p = 0; p < Pixels; ++p) {
            __m256i words[Count];
            N2D2_UNROLL
            for (int i = 0; i < Count; ++i)
                words[i] = Base::word(x + p * Pitch + 4 * (q + i));
            N2D2_UNROLL
            for (int v = 0; v < Vectors; ++v) {
                __m256i products[Count];
                N2D2_UNROLL
                for (int i = 0; i < Count; ++i)
                    products[i] =
                        _mm256_maddubs_epi16(words[i], Part && v == Vectors - 1 ? last[i] : Base::weights(w, v, q + i));
                const __m256i sum = Count > 1 ? _mm256_add_epi16(products[0], products[Count - 1]) : products[0];
                sums[p][v] = _mm256_add_epi32(sums[p][v], _mm256_madd_epi16(sum, ones));
                __asm__("" : "+x"(sums[p][v]));
            }
            __asm__("" : "+r"(w));
        }
    }
};

struct BytesMicrokernel : Microkernel {
    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Products : ByteProducts<In, Pixels, Panels, Words, LastOutputs, Epilogue> {};
};

}  // namespace avx2
}  // namespace n2d2

#endif  // N2D2_X86_AVX2_BYTE_TILE_HPP
