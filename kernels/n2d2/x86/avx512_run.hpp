// The last stage of a run of 32-bit sums to bytes with AVX-512.
#ifndef N2D2_X86_AVX512_RUN_HPP
#define N2D2_X86_AVX512_RUN_HPP

#include "n2d2/x86/avx512.hpp"

namespace n2d2 {
namespace avx512 {

template <class Stage, bool Varying>
struct ByteRun {
    typedef typename Stage::Type Out;
    enum : int { Block = 64 };

    template <int Count, bool Saturated>
    static N2D2_INLINE __m512i some(const std::int32_t* sums, int index) {
        const Stage16<Stage> stage(index, first16(Count));
        const __m512i x = Count < 16 ? _mm512_maskz_loadu_epi32(first16(Count), sums) : _mm512_loadu_si512(sums);
        return stage.template apply<Saturated>(x, Count);
    }

    template <int Count>
    static N2D2_INLINE void run(const std::int32_t* sums, int index, Out* out) {
        constexpr int step = Varying ? 1 : 0;
        constexpr int whole = Count / Block * Block, sixteens = Count / 16 * 16, rest = Count - sixteens;
        for (int i = 0; i < whole; i += Block) {
            __m512i parts[4];
            N2D2_UNROLL
            for (int j = 0; j < 4; ++j)
                parts[j] = some<16, true>(sums + i + 16 * j, index + step * (i + 16 * j));
            const __m512i bytes = packedInOrder<Out>(parts[0], parts[1], parts[2], parts[3]);
            _mm512_storeu_si512(out + i, Stage16<Stage>::clampBytes(bytes));
        }
        for (int i = whole; i < sixteens; i += 16)
            store16<16>(some<16, false>(sums + i, index + step * i), out + i);
        if (rest > 0)
            store16<(rest > 0 ? rest : 1)>(
                some<(rest > 0 ? rest : 1), false>(sums + sixteens, index + step * sixteens), out + sixteens);
    }
    template <int Count, class Sum>
    static N2D2_INLINE void run(const Sum* sums, int index, Out* out) {
        PortableRun<Stage, Varying>::template run<Count>(sums, index, out);
    }
};

}  // namespace avx512

template <class Rescale, std::int64_t Low, std::int64_t High, int Zero, bool Varying>
struct StageRun<Requantized<std::uint8_t, Rescale, Low, High, Zero>, Varying, Native>
    : Choice<Zero == 0 || InFloat<Rescale>::value, avx512::ByteRun<Requantized<std::uint8_t, Rescale, Low, High, Zero>, Varying>,
             PortableRun<Requantized<std::uint8_t, Rescale, Low, High, Zero>, Varying> >::Type {};

template <class Rescale, std::int64_t Low, std::int64_t High, int Zero, bool Varying>
struct StageRun<Requantized<std::int8_t, Rescale, Low, High, Zero>, Varying, Native>
    : Choice<Zero == 0 || InFloat<Rescale>::value, avx512::ByteRun<Requantized<std::int8_t, Rescale, Low, High, Zero>, Varying>,
             PortableRun<Requantized<std::int8_t, Rescale, Low, High, Zero>, Varying> >::Type {};

}  // namespace n2d2

#endif  // N2D2_X86_AVX512_RUN_HPP
