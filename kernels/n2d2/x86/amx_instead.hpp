// The sums of the AMX registers, computed by AVX-512 where the system does not give them: one function for all layers of a source file,
// so that a layer is compiled once.
#pragma once

#include "n2d2/x86/avx512.hpp"

namespace n2d2 {
namespace amx {

// Sums of Panels panels of 16 outputs for some pixels: bias + the products of their windows, `pitch` bytes apart, with `weights`, both of
// `words` words of four inputs. 16 * Panels sums to a pixel go to `to`.
template <int Panels>
struct Instead {
    const std::uint8_t* x;
    long pitch;
    const std::int8_t* weights[Panels];
    const std::int32_t* bias[Panels];
    int words;
    std::int32_t* to;

    template <int Pixels>
    N2D2_INLINE void some() {
        __m512i sums[Pixels][Panels];
        N2D2_UNROLL_FOR(i, Pixels * Panels)
            sums[i / Panels][i % Panels] = _mm512_loadu_si512(bias[i % Panels]);
        const std::uint8_t* four[(Pixels + 3) / 4];  // pixels have few pointers, so that all are in registers
        N2D2_UNROLL_FOR(i, (Pixels + 3) / 4)
            four[i] = x + 4 * i * pitch;
        for (int q = 0; q < words; ++q) {
            __m512i w[Panels];
            N2D2_UNROLL_FOR(n, Panels)
                w[n] = _mm512_loadu_si512(weights[n] + 64 * q);
            N2D2_UNROLL_FOR(p, Pixels) {
                std::int32_t word;
                std::memcpy(&word, four[p / 4] + p % 4 * pitch + 4 * q, 4);
                const __m512i xs = _mm512_set1_epi32(word);
                N2D2_UNROLL_FOR(n, Panels)
                    avx512::dot(sums[p][n], xs, w[n]);
            }
        }
        N2D2_UNROLL_FOR(i, Pixels * Panels)
            _mm512_storeu_si512(to + 16 * i, sums[i / Panels][i % Panels]);
        x += Pixels * pitch;
        to += Pixels * Panels * 16;
    }

    // Of an even number of pixels.
    N2D2_NOINLINE void run(int pixels) {
        for (; pixels >= 12; pixels -= 12)
            some<12>();
        for (; pixels >= 4; pixels -= 4)
            some<4>();
        for (; pixels > 0; pixels -= 2)
            some<2>();
    }
};

}  // namespace amx
}  // namespace n2d2
