// Depthwise convolution with AVX2: four lines of one column of 16 channels at a time.
//
// As in avx512_depthwise.hpp, the lines of a channel are interleaved to one word of four, here of 16-bit integers: an
// interleaved column serves all taps that lie on it, and vpmaddwd multiplies it with the weights of a tap. The
// weights are in the same order; in each whole block of 64 channels, vector j of channels 16 l to 16 l + 15 is part l
// of panel j.
// Stack: Columns * Fours * 128 bytes.
#ifndef N2D2_X86_AVX2_DEPTHWISE_HPP
#define N2D2_X86_AVX2_DEPTHWISE_HPP

#include "n2d2/x86/avx2_tile.hpp"

namespace n2d2 {

template <class Cfg>
struct Depthwise<Cfg, Avx2> {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    typedef typename Cfg::Stage Stage;
    typedef typename Input::Type In;
    typedef typename Output::Type Out;
    static_assert(sizeof(In) == 1 && sizeof(typename Cfg::Weight) == 1 && sizeof(typename Cfg::Sum) == 4,
                  "8-bit inputs and weights, 32-bit sums");

    enum : int {
        KH = Cfg::KernelHeight,
        KW = Cfg::KernelWidth,
        C = Input::Channels,
        H = Input::Height,
        W = Input::Width,
        OW = Output::Width,
        Fours = (KH + 3) / 4,
        Taps = Fours * KW,
        Panels = (C + 15) / 16,
        LastChannels = C - 16 * (Panels - 1),
        Whole = C / 64 * 4,  // panels of the whole blocks of 64 channels
        Piece = OW < 16 ? int(OW) : 16,
        Columns = (Piece - 1) * Cfg::StrideWidth + (KW - 1) * Cfg::DilationWidth + 1
    };

    // `Count` channels of a line as unsigned bytes; null is padding.
    template <int Count>
    static N2D2_INLINE __m128i bytes(const In* from) {
        constexpr std::int16_t zero = avx2::moved<In>(Cfg::InputZero);
        if (!from)
            return _mm_set1_epi8(static_cast<char>(zero));
        __m128i x = _mm_setzero_si128();
        std::memcpy(&x, from, static_cast<std::size_t>(Count));
        return std::numeric_limits<In>::is_signed ? _mm_xor_si128(x, _mm_set1_epi8(static_cast<char>(0x80))) : x;
    }

    // Column x: for each four lines, four vectors of four channels.
    template <int Count>
    static N2D2_INLINE void column(const In* const* rows, int x, int channel, __m256i* to) {
        constexpr int width = W;
        for (int f = 0; f < Fours; ++f) {
            __m128i line[4];
            for (int u = 0; u < 4; ++u) {
                const int row = least(4 * f + u, KH - 1);  // beyond KH the weights are zero
                const bool inside = rows[row] && x >= 0 && x < width;
                line[u] = bytes<Count>(inside ? rows[row] + x * Input::Stride + channel : nullptr);
            }
            const __m128i a = _mm_unpacklo_epi8(line[0], line[1]), b = _mm_unpackhi_epi8(line[0], line[1]);
            const __m128i c = _mm_unpacklo_epi8(line[2], line[3]), d = _mm_unpackhi_epi8(line[2], line[3]);
            to[4 * f] = _mm256_cvtepu8_epi16(_mm_unpacklo_epi16(a, c));
            to[4 * f + 1] = _mm256_cvtepu8_epi16(_mm_unpackhi_epi16(a, c));
            to[4 * f + 2] = _mm256_cvtepu8_epi16(_mm_unpacklo_epi16(b, d));
            to[4 * f + 3] = _mm256_cvtepu8_epi16(_mm_unpackhi_epi16(b, d));
        }
    }

    // Where channels 4 j to 4 j + 3 of panel `panel` are among the positions of the constants.
    static N2D2_INLINE int position(int panel, int j) {
        return panel < Whole ? panel / 4 * 64 + 16 * j + panel % 4 * 4 : panel * 16 + 4 * j;
    }

    template <int Count>
    static N2D2_INLINE __m256i weight(const std::int8_t* weights, int panel, int tap, int j) {
        if (Count < 16) {  // the last panel, which has only its channels
            std::int8_t all[64] = {};
            std::memcpy(all, weights + static_cast<long>(panel) * Taps * 64 + tap * Count * 4, Count * 4);
            return avx2::widened<16>(all + 16 * j);
        }
        const int at = position(panel, j);
        return avx2::widened<16>(weights + static_cast<long>(at / 16) * Taps * 64 + tap * 64 + at % 16 * 4);
    }

    template <int Count>
    static N2D2_INLINE void block(const In* const* rows, int panel, Out* out, const std::int8_t* weights,
                                  const std::int32_t* bias) {
        constexpr int stride = Cfg::StrideWidth, vectors = (Count + 3) / 4;
        __m256i w[Taps][4];
        for (int t = 0; t < Taps; ++t)
            for (int j = 0; j < vectors; ++j)
                w[t][j] = weight<Count>(weights, panel, t, j);
        __m256i columns[Columns * Fours * 4];
        for (int begin = 0; begin < OW; begin += Piece) {
            const int end = least(int(OW), begin + Piece);
            const int left = begin * stride - Cfg::PadLeft;
            const int count = (end - begin - 1) * stride + (KW - 1) * Cfg::DilationWidth + 1;
            for (int i = 0; i < count; ++i)
                column<Count>(rows, left + i, panel * 16, columns + i * Fours * 4);
            for (int x = begin; x < end; ++x) {
                const __m256i* const from = columns + (x - begin) * stride * Fours * 4;
                __m256i sums[4];
                for (int j = 0; j < 4; ++j)
                    sums[j] = _mm256_setzero_si256();
                N2D2_UNROLL
                for (int u = 0; u < Fours; ++u)
                    N2D2_UNROLL
                    for (int t = 0; t < KW; ++t)
                        N2D2_UNROLL
                        for (int j = 0; j < vectors; ++j)
                            sums[j] = _mm256_add_epi32(
                                sums[j], _mm256_madd_epi16(from[(t * Cfg::DilationWidth * Fours + u) * 4 + j],
                                                           w[u * KW + t][j]));
                finish<Count>(sums, panel, out + x * Output::Stride + panel * 16, bias);
            }
        }
    }

    template <int Count>
    static N2D2_INLINE void finish(const __m256i* sums, int panel, Out* out, const std::int32_t* bias) {
        alignas(32) std::int32_t values[16];
        avx2::Sums<In>::collect(sums, values);
        for (int j = 0; j < (Count + 3) / 4; ++j) {
            const int at = position(panel, j);
            for (int i = 0; i < least(4, Count - 4 * j); ++i) {
                const std::uint32_t sum = static_cast<std::uint32_t>(values[4 * j + i]) +
                                          static_cast<std::uint32_t>(bias[at + i]);
                out[4 * j + i] = Stage::apply(static_cast<std::int32_t>(sum), at + i);
            }
        }
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const std::int8_t* weights,
                                const std::int32_t* bias, const Rows& rows = Rows::all<Output>()) {
        constexpr bool serial = Cfg::Serial != 0, reverse = Cfg::Reverse != 0;
        // A tap takes about four times as long as a product of the convolution.
        constexpr long work = static_cast<long>(KH) * KW * least(16, int(C)) * static_cast<int>(Output::Width) * 4 /
                              N2D2_SIMD_SPEED;
        Tasks<serial, Output::Height, Panels, work, reverse>::run(rows, [=](int y, int panel) N2D2_INLINE_LAMBDA {
            const In* taps[KH];
            for (int u = 0; u < KH; ++u) {
                const int from = y * Cfg::StrideHeight - Cfg::PadTop + u * Cfg::DilationHeight;
                taps[u] = from >= 0 && from < H ? line<Input>(in, from) : nullptr;
            }
            if (panel + 1 < Panels)
                block<16>(taps, panel, line<Output>(out, y), weights, bias);
            else
                block<LastChannels>(taps, panel, line<Output>(out, y), weights, bias);
        });
    }
};

}  // namespace n2d2

#endif  // N2D2_X86_AVX2_DEPTHWISE_HPP
