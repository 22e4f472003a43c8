// Depthwise convolution with SSE4.1, as in avx2_depthwise.hpp: pairs of lines of a column interleaved for pmaddwd.
//
// 8 channels at a time, so that the weights of a 3 x 3 kernel stay in registers.
// Stack: Columns * Pairs * 32 bytes, and the weights of 8 channels.
#ifndef N2D2_X86_SSE41_DEPTHWISE_HPP
#define N2D2_X86_SSE41_DEPTHWISE_HPP

#include "n2d2/panels/panel_depthwise.hpp"
#include "n2d2/x86/sse41.hpp"

namespace n2d2 {
namespace sse41 {

template <class Cfg>
struct Depthwise : PanelDepthwise<Cfg> {
    typedef PanelDepthwise<Cfg> Base;
    typedef typename Cfg::Output Output;
    typedef typename Cfg::Stage Stage;
    typedef typename Cfg::Input::Type In;
    typedef typename Output::Type Out;
    typedef typename Base::Lines Lines;

    enum : int {
        KH = Base::KH,
        KW = Base::KW,
        W = Base::W,
        OW = Base::OW,
        Pairs = 2 * (Base::Fours - 1) + (KH % 4 == 1 ? 1 : 2),  // of lines
        Piece = OW < 16 ? int(OW) : 16,
        Columns = (Piece - 1) * Cfg::StrideWidth + (KW - 1) * Cfg::DilationWidth + 1
    };

    // Column x of Count channels: for each pair of lines, two vectors of four channels.
    template <int Count>
    static N2D2_INLINE void column(const Lines& lines, int x, int channel, __m128i* to) {
        __m128i values[KH];
        N2D2_UNROLL
        for (int u = 0; u < KH; ++u)
            values[u] = _mm_cvtepu8_epi16(flipped<In>(loadBytes<Count>(lines.pixel(u, x, channel))));
        N2D2_UNROLL
        for (int i = 0; i < Pairs; ++i) {
            const int first = i / 2 * 4 + i % 2, second = first + 2 < KH ? first + 2 : first;  // its weight is zero
            to[2 * i] = _mm_unpacklo_epi16(values[first], values[second]);
            to[2 * i + 1] = _mm_unpackhi_epi16(values[first], values[second]);
        }
    }
    static N2D2_INLINE void pad(__m128i zero, __m128i* to) {
        for (int i = 0; i < 2 * Pairs; ++i)
            to[i] = zero;
    }

    // Four lines of a tap of channels 4 j to 4 j + 3 of a panel of Channels.
    template <int Channels>
    static N2D2_INLINE __m128i weights(const std::int8_t* w, int panel, int tap, int j) {
        if (Channels < 16) {  // the last panel, which has only its channels
            alignas(16) std::int8_t all[64] = {};
            std::memcpy(all, w + static_cast<long>(panel) * Base::Taps * 64 + tap * Channels * 4, Channels * 4);
            return four<4>(all + 16 * j);
        }
        return four<4>(Base::weightsAt(w, Base::position(panel, j), tap));
    }

    // Four constants of a panel, of which `Count` are there.
    template <int Count>
    static N2D2_INLINE __m128i bias(const std::int32_t* from, int panel, int j) {
        return Count > 0 ? four<(Count > 0 ? Count : 1)>(from + Base::position(panel, j)) : _mm_setzero_si128();
    }

    // Channels 8 Half to 8 Half + 7 of a panel of Channels, if it has any.
    template <int Channels, int Half>
    struct Part {
        enum : int {
            Count = Channels - 8 * Half < 0 ? 0 : Channels - 8 * Half < 8 ? Channels - 8 * Half : 8,
            Low = Count < 4 ? int(Count) : 4,
            High = Count - 4 < 0 ? 0 : Count - 4
        };
        typedef Stage4<Stage, (Low > 0 ? int(Low) : 1)> First;
        typedef Stage4<Stage, (High > 0 ? int(High) : 1)> Second;

        static N2D2_INLINE void run(const Lines& lines, int panel, Out* out, const std::int8_t* w,
                                    const std::int32_t* constants) {
            constexpr int stride = Cfg::StrideWidth, width = W;
            constexpr bool saturated = sizeof(Out) == 1;
            __m128i taps[KW * Pairs * 2];
            for (int t = 0; t < KW; ++t)
                for (int i = 0; i < 2 * Pairs; ++i) {
                    const __m128i lines4 = weights<Channels>(w, panel, i / 4 * KW + t, 2 * Half + i % 2);
                    taps[t * Pairs * 2 + i] = _mm_srai_epi16(i / 2 % 2 ? lines4 : _mm_slli_epi16(lines4, 8), 8);
                }
            const __m128i bias0 = bias<Low>(constants, panel, 2 * Half), bias1 = bias<High>(constants, panel, 2 * Half + 1);
            const First stage0(Base::position(panel, 2 * Half));
            const Second stage1(High > 0 ? Base::position(panel, 2 * Half + 1) : 0);
            const __m128i zero = _mm_set1_epi16(multiplied<In>(Cfg::InputZero));
            __m128i columns[Columns * Pairs * 2];
            for (int begin = 0; begin < OW; begin += Piece) {
                const int end = least(int(OW), begin + Piece);
                const int left = begin * stride - Cfg::PadLeft;
                const int count = (end - begin - 1) * stride + (KW - 1) * Cfg::DilationWidth + 1;
                for (int x = 0; x < count; ++x) {
                    if (left + x < 0 || left + x >= width)
                        pad(zero, columns + x * Pairs * 2);
                    else
                        column<(Count > 0 ? int(Count) : 1)>(lines, left + x, panel * 16 + 8 * Half, columns + x * Pairs * 2);
                }
                for (int x = begin; x < end; ++x) {
                    const __m128i* from = columns + (x - begin) * stride * Pairs * 2;
                    __asm__("" : "+r"(from));  // the registers are for the weights
                    __m128i sums[2] = {bias0, bias1};
                    N2D2_UNROLL
                    for (int t = 0; t < KW; ++t)
                        N2D2_UNROLL
                        for (int i = 0; i < Pairs; ++i) {
                            const __m128i* const pair = from + (t * Cfg::DilationWidth * Pairs + i) * 2;
                            sums[0] = _mm_add_epi32(sums[0], _mm_madd_epi16(pair[0], taps[(t * Pairs + i) * 2]));
                            sums[1] = _mm_add_epi32(sums[1], _mm_madd_epi16(pair[1], taps[(t * Pairs + i) * 2 + 1]));
                        }
                    const __m128i values[2] = {stage0.template apply<saturated>(sums[0]),
                                               stage1.template apply<saturated>(sums[1])};
                    storePanel<Stage, (Count > 0 ? int(Count) : 1)>(
                        values, out + x * Output::Stride + panel * 16 + 8 * Half);
                }
            }
        }
    };

    template <int Channels>
    static N2D2_INLINE void block(const Lines& lines, int panel, Out* out, const std::int8_t* w,
                                  const std::int32_t* constants) {
        Part<Channels, 0>::run(lines, panel, out, w, constants);
        if (Channels > 8)
            Part<(Channels > 8 ? Channels : 16), 1>::run(lines, panel, out, w, constants);
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const std::int8_t* w,
                                const std::int32_t* constants, const Rows& rows = Rows::all<Output>()) {
        Base::template lines<Depthwise>(in, out, w, constants, rows);
    }
};

}  // namespace sse41
}  // namespace n2d2

#endif  // N2D2_X86_SSE41_DEPTHWISE_HPP
