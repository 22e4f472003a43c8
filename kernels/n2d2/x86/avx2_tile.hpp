// The matrix product of the panels with AVX2: windows of 16-bit integers, vpmaddwd.
//
// vpmaddubsw would multiply bytes, but saturates its sums of two products; 16-bit products summed in 32 bits are
// exact for all values. Bytes are therefore widened when windows are gathered (signed ones + 128, as the bias
// expects), and weights when they are loaded. A word of four inputs gives two partial sums per output, which
// are added at the end.
#ifndef N2D2_X86_AVX2_TILE_HPP
#define N2D2_X86_AVX2_TILE_HPP

#include <cstring>
#include <immintrin.h>

#include "n2d2/output.hpp"

namespace n2d2 {
namespace avx2 {

// An input as it is multiplied: bytes + 128 where they are signed, 16-bit integers - 32768 where they are not.
template <class In>
N2D2_INLINE constexpr std::int16_t moved(int value) {
    return static_cast<std::int16_t>(sizeof(In) == 1 ? (std::numeric_limits<In>::is_signed ? value + 128 : value)
                                                     : (std::numeric_limits<In>::is_signed ? value : value - 32768));
}

// 16 sums of a panel: vectors of outputs 0 to 3, 4 to 7, ... in pairs (bytes), or 0 to 7 and 8 to 15.
template <class In>
struct Sums {
    enum : bool { Pairs = sizeof(In) == 2 };
    enum : int { Vectors = Pairs ? 2 : 4, Outputs = 16 / Vectors };

    static N2D2_INLINE void collect(const __m256i* sums, std::int32_t* out) {
        for (int i = 0; i < 2; ++i) {
            __m256i x = sums[Pairs ? i : 2 * i];
            if (!Pairs)
                x = _mm256_permute4x64_epi64(_mm256_hadd_epi32(x, sums[Pairs ? i : 2 * i + 1]), 0xd8);
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 8 * i), x);
        }
    }
};

// 16 bytes of weights as 16-bit integers; only the first Count are of the layer.
template <int Count>
N2D2_INLINE __m256i widened(const std::int8_t* from) {
    __m128i x = _mm_setzero_si128();
    if (Count >= 16)
        x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    else
        std::memcpy(&x, from, static_cast<std::size_t>(Count > 0 ? Count : 0));
    return _mm256_cvtepi8_epi16(x);
}

// Rescales Count sums and stores them; 16 at once for bytes rescaled in floating point.
template <class Stage, int Count>
struct Finish {
    static N2D2_INLINE void apply(const std::int32_t* sums, int output, typename Stage::Type* out) {
        store<Stage, Count>(sums, output, out);
    }
};

template <class T, const float* Factors, int FactorCount, bool Bounded, std::int64_t Low, std::int64_t High>
struct FinishBytes {
    static N2D2_INLINE __m256i rescaled(const std::int32_t* sums, int output) {
        const __m256 factors = FactorCount == 1 ? _mm256_set1_ps(Factors[0]) : _mm256_loadu_ps(Factors + output);
        const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums));
        __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(all), factors);
        x = _mm256_min_ps(x, _mm256_set1_ps(static_cast<float>(High)));
        return _mm256_cvtps_epi32(_mm256_max_ps(x, _mm256_set1_ps(static_cast<float>(Low))));
    }
    static N2D2_INLINE void apply(const std::int32_t* sums, int output, T* out) {
        const __m256i halves = _mm256_permute4x64_epi64(
            _mm256_packs_epi32(rescaled(sums, output), rescaled(sums + 8, output + 8)), 0xd8);
        const __m128i low = _mm256_castsi256_si128(halves), high = _mm256_extracti128_si256(halves, 1);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out), std::numeric_limits<T>::is_signed
                                                              ? _mm_packs_epi16(low, high)
                                                              : _mm_packus_epi16(low, high));
    }
};

template <const float* Factors, int FactorCount, bool Bounded, std::int64_t Low, std::int64_t High>
struct Finish<Requantized<std::uint8_t, FloatRescale<Factors, FactorCount, Bounded>, Low, High>, 16>
    : FinishBytes<std::uint8_t, Factors, FactorCount, Bounded, Low, High> {};

template <const float* Factors, int FactorCount, bool Bounded, std::int64_t Low, std::int64_t High>
struct Finish<Requantized<std::int8_t, FloatRescale<Factors, FactorCount, Bounded>, Low, High>, 16>
    : FinishBytes<std::int8_t, Factors, FactorCount, Bounded, Low, High> {};

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Stage>
struct Tile {
    static_assert(Panels == 1, "a tile is one panel");
    typedef typename Stage::Type Out;
    typedef Sums<In> S;
    enum : bool { Pairs = S::Pairs };
    enum : int { Each = Pairs ? 2 : 4, Vectors = (LastOutputs + S::Outputs - 1) / S::Outputs };

    // Weights of vector Index, and those of the vectors behind it.
    template <int Index, bool More>
    struct Weights {
        static N2D2_INLINE void load(const std::int8_t* from, __m256i* w) {
            constexpr int left = (LastOutputs - Index * S::Outputs) * Each;
            w[Index] = widened<(left < 16 ? left : 16)>(from + Index * 16);
            Weights<Index + 1, (Index + 1 < Vectors)>::load(from, w);
        }
    };
    template <int Index>
    struct Weights<Index, false> {
        static N2D2_INLINE void load(const std::int8_t*, __m256i*) {}
    };

    static N2D2_INLINE __m256i word(const std::uint8_t* x) {
        if (Pairs) {
            std::int32_t value;
            std::memcpy(&value, x, 4);
            return _mm256_set1_epi32(value);
        }
        long long value;
        std::memcpy(&value, x, 8);
        return _mm256_set1_epi64x(value);
    }

    template <long Pitch, class At>
    static N2D2_NOINLINE void run(const std::uint8_t* x, const std::int8_t* w, const std::int32_t* bias, int output,
                                  const At& at) {
        __m256i sums[Pixels][4];
        N2D2_UNROLL
        for (int p = 0; p < Pixels; ++p)
            N2D2_UNROLL
            for (int v = 0; v < 4; ++v)
                sums[p][v] = _mm256_setzero_si256();
        for (int q = 0; q < Words; ++q) {
            __m256i weights[4], inputs[Pixels];
            Weights<0, true>::load(w + q * LastOutputs * Each, weights);
            N2D2_UNROLL
            for (int p = 0; p < Pixels; ++p)
                inputs[p] = word(x + p * Pitch + q * Each * 2);
            N2D2_UNROLL
            for (int v = 0; v < Vectors; ++v)
                N2D2_UNROLL
                for (int p = 0; p < Pixels; ++p)
                    sums[p][v] = _mm256_add_epi32(sums[p][v], _mm256_madd_epi16(inputs[p], weights[v]));
        }
        for (int p = 0; p < Pixels; ++p) {
            alignas(32) std::int32_t values[16];
            S::collect(sums[p], values);
            // Modulo 2^32, as the bias of moved inputs is.
            for (int o = 0; o < LastOutputs; ++o)
                values[o] = static_cast<std::int32_t>(static_cast<std::uint32_t>(values[o]) +
                                                      static_cast<std::uint32_t>(bias[output + o]));
            Finish<Stage, LastOutputs>::apply(values, output, at(p) + output);
        }
    }
};

struct Machine {
    template <class In>
    struct Windows {
        enum : bool { Plain = sizeof(In) == 2 && std::numeric_limits<In>::is_signed };
        enum : int { Size = 2, Each = sizeof(In) == 2 ? 2 : 4 };

        template <int Count>
        static N2D2_INLINE void copy(const In* from, std::uint8_t* to) {
            for (int i = 0; i < Count; ++i)
                put(to + 2 * i, moved<In>(from[i]));
        }
        template <int Count>
        static N2D2_INLINE void fill(int value, std::uint8_t* to) {
            for (int i = 0; i < Count; ++i)
                put(to + 2 * i, moved<In>(value));
        }
        static N2D2_INLINE void put(std::uint8_t* to, std::int16_t value) { std::memcpy(to, &value, 2); }
    };

    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Stage>
    struct Tile : avx2::Tile<In, Pixels, Panels, Words, LastOutputs, Stage> {};

    // 4 sums of a pixel, 4 weight vectors, one word per pixel.
    static N2D2_INLINE constexpr int tilePixels(int) { return 2; }
    static N2D2_INLINE constexpr int tilePanels(int) { return 1; }
    static N2D2_INLINE constexpr int singlePanels() { return 1; }
};

}  // namespace avx2
}  // namespace n2d2

#endif  // N2D2_X86_AVX2_TILE_HPP
