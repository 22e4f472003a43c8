// Depthwise convolution with AVX2: four lines of one column of 16 channels at a time.
//
// As in avx512_depthwise.hpp, an interleaved column serves all taps that lie on it. Here lines 0 and 2 of four are
// interleaved to pairs of 16-bit integers, and lines 1 and 3, which vpmaddwd multiplies with the weights of a tap: these
// come four lines to a word, and shifts take them apart in the same way. A sum is then a 32-bit element of its own.
//
// Unpacking leaves channels 0 to 3 and 8 to 11 in one vector, the others in a second; packing brings
// them back. The constants are read in that order.
// Stack: Columns * Pairs * 64 bytes, and the weights of 16 channels.
#ifndef N2D2_X86_AVX2_DEPTHWISE_HPP
#define N2D2_X86_AVX2_DEPTHWISE_HPP

#include "n2d2/panels/panel_depthwise.hpp"
#include "n2d2/x86/avx2.hpp"
#include "n2d2/x86/avx2_depthwise3x3.hpp"

namespace n2d2 {
namespace avx2 {

template <class Cfg>
struct Depthwise : PanelDepthwise<Cfg> {
    typedef PanelDepthwise<Cfg> Base;
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    typedef typename Cfg::Stage Stage;
    typedef typename Input::Type In;
    typedef typename Output::Type Out;

    enum : int {
        KH = Base::KH,
        KW = Base::KW,
        W = Base::W,
        OW = Base::OW,
        Fours = Base::Fours,
        Pairs = 2 * (Fours - 1) + (KH % 4 == 1 ? 1 : 2),  // of lines
        Piece = OW < 16 ? int(OW) : 16,
        Three = KH == 3 && KW == 3 && Cfg::DilationWidth == 1 && Cfg::StrideWidth <= 2,
        Columns = (Piece - 1) * Cfg::StrideWidth + (KW - 1) * Cfg::DilationWidth + 1
    };

    typedef typename Base::Lines Lines;

    // Column x: for each pair of lines, two vectors of eight channels.
    template <int Count>
    static N2D2_INLINE void column(const Lines& lines, int x, int channel, __m256i* to) {
        __m256i values[KH];
        N2D2_UNROLL
        for (int u = 0; u < KH; ++u) {
            values[u] = _mm256_cvtepu8_epi16(flipped<In>(loadBytes<Count>(lines.pixel(u, x, channel))));
        }
        N2D2_UNROLL
        for (int i = 0; i < Pairs; ++i) {
            const int first = i / 2 * 4 + i % 2, second = first + 2 < KH ? first + 2 : first;  // its weight is zero
            to[2 * i] = _mm256_unpacklo_epi16(values[first], values[second]);
            to[2 * i + 1] = _mm256_unpackhi_epi16(values[first], values[second]);
        }
    }

    // Four lines of a tap, of channels 4 j to 4 j + 3 and 4 (j + Step) to 4 (j + Step) + 3.
    template <int Count, int Step = 2>
    static N2D2_INLINE __m256i weights(const std::int8_t* w, int panel, int tap, int j) {
        if (Count < 16) {  // the last panel, which has only its channels
            alignas(32) std::int8_t all[64] = {};
            std::memcpy(all, w + static_cast<long>(panel) * Base::Taps * 64 + tap * Count * 4, Count * 4);
            return eight<8>(all + 16 * j, all + 16 * (j + Step));
        }
        return eight<8>(Base::weightsAt(w, Base::position(panel, j), tap),
                              Base::weightsAt(w, Base::position(panel, j + Step), tap));
    }

    // Channels of the vectors, of `Count` of a panel: 0 to 3 and 8 to 11, 4 to 7 and 12 to 15.
    template <int Count, int J, int Step = 2>
    struct Part {
        enum : int {
            Low = Count - 4 * J < 0 ? 0 : Count - 4 * J < 4 ? Count - 4 * J : 4,
            Behind = Count - 4 * (J + Step),
            High = Behind < 0 ? 0 : Behind < 4 ? int(Behind) : 4,
            All = High > 0 ? 4 + High : int(Low)
        };
        static N2D2_INLINE __m256i bias(const std::int32_t* from, int panel) {
            return All == 0 ? _mm256_setzero_si256()
                            : eight<All>(from + Base::position(panel, J), from + (High > 0 ? Base::position(panel, J + Step) : 0));
        }
        typedef Stage8<Stage, (All > 0 ? int(All) : 1)> Rescale;
        static N2D2_INLINE Rescale stage(int panel) {
            return Rescale(All > 0 ? Base::position(panel, J) : 0, High > 0 ? Base::position(panel, J + Step) : 0);
        }
    };

    template <int Count>
    static N2D2_INLINE void block(const Lines& lines, int panel, Out* out, const std::int8_t* w,
                                  const std::int32_t* bias) {
        constexpr int stride = Cfg::StrideWidth, width = W;
        constexpr bool bytes = sizeof(Out) == 1;
        typedef Part<Count, 0> First;
        typedef Part<Count, 1> Second;
        __m256i taps[KW * Pairs * 2];
        for (int t = 0; t < KW; ++t)
            for (int i = 0; i < 2 * Pairs; ++i) {
                const __m256i four = weights<Count>(w, panel, i / 4 * KW + t, i % 2);
                taps[t * Pairs * 2 + i] =
                    _mm256_srai_epi16(i / 2 % 2 ? four : _mm256_slli_epi16(four, 8), 8);
            }
        const __m256i bias0 = First::bias(bias, panel), bias1 = Second::bias(bias, panel);
        const typename First::Rescale stage0 = First::stage(panel);
        const typename Second::Rescale stage1 = Second::stage(panel);
        const __m256i zero = _mm256_set1_epi16(multiplied<In>(Cfg::InputZero));
        __m256i columns[Columns * Pairs * 2];
        for (int begin = 0; begin < OW; begin += Piece) {
            const int end = least(int(OW), begin + Piece);
            const int left = begin * stride - Cfg::PadLeft;
            const int count = (end - begin - 1) * stride + (KW - 1) * Cfg::DilationWidth + 1;
            int x = 0;
            for (; x < count && left + x < 0; ++x)
                pad(zero, columns + x * Pairs * 2);
            for (const int stop = least(count, width - left); x < stop; ++x)
                column<Count>(lines, left + x, panel * 16, columns + x * Pairs * 2);
            for (; x < count; ++x)
                pad(zero, columns + x * Pairs * 2);
            for (x = begin; x < end; ++x) {
                const __m256i* from = columns + (x - begin) * stride * Pairs * 2;
                // The registers are for the weights: GCC would keep columns for the next pixels, and the weights in memory.
                __asm__("" : "+r"(from));
                __m256i a = bias0, b = bias1;
                N2D2_UNROLL
                for (int t = 0; t < KW; ++t)
                    N2D2_UNROLL
                    for (int i = 0; i < Pairs; ++i) {
                        const __m256i* const pair = from + (t * Cfg::DilationWidth * Pairs + i) * 2;
                        a = _mm256_add_epi32(a, _mm256_madd_epi16(pair[0], taps[(t * Pairs + i) * 2]));
                        b = _mm256_add_epi32(b, _mm256_madd_epi16(pair[1], taps[(t * Pairs + i) * 2 + 1]));
                        __asm__("" : "+x"(a), "+x"(b));
                    }
                finish<Count>(stage0.template apply<bytes>(a), stage1.template apply<bytes>(b),
                              out + x * Output::Stride + panel * 16);
            }
        }
    }

    static N2D2_INLINE void pad(__m256i zero, __m256i* to) {
        for (int i = 0; i < 2 * Pairs; ++i)
            to[i] = zero;
    }

    // a: channels 0 to 3 and 8 to 11, b: the others.
    template <int Count, class T>
    static N2D2_INLINE void finish(__m256i a, __m256i b, T* out) {
        const __m256i low = _mm256_permute2x128_si256(a, b, 0x20), high = _mm256_permute2x128_si256(a, b, 0x31);
        store8<(Count < 8 ? Count : 8)>(low, out);
        if (Count > 8)
            store8<(Count > 8 ? Count - 8 : 1)>(high, out + 8);
    }
    template <int Count>
    static N2D2_INLINE void finish(__m256i a, __m256i b, std::uint8_t* out) { finishBytes<Count>(a, b, out); }
    template <int Count>
    static N2D2_INLINE void finish(__m256i a, __m256i b, std::int8_t* out) { finishBytes<Count>(a, b, out); }

    // Up to eight channels in order.
    template <int Count, class T>
    static N2D2_INLINE void finish(__m256i a, T* out) { store8<Count>(a, out); }
    template <int Count>
    static N2D2_INLINE void finish(__m256i a, std::uint8_t* out) { finishBytes<Count>(a, out); }
    template <int Count>
    static N2D2_INLINE void finish(__m256i a, std::int8_t* out) { finishBytes<Count>(a, out); }
    template <int Count>
    static N2D2_INLINE void finishBytes(__m256i a, Out* out) {
        const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
        storeBytes<Count>(Part<Count, 0, 1>::Rescale::clampBytes(packedBytes<Out>(halves, halves)), out);
    }

    template <int Count>
    static N2D2_INLINE void finishBytes(__m256i a, __m256i b, Out* out) {
        const __m256i halves = _mm256_packs_epi32(a, b);
        const __m256i bytes = _mm256_permute4x64_epi64(packedBytes<Out>(halves, halves), 0x08);
        storeBytes<Count>(Part<Count, 0>::Rescale::clampBytes(_mm256_castsi256_si128(bytes)), out);
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const std::int8_t* w,
                                const std::int32_t* bias, const Rows& rows = Rows::all<Output>()) {
        Run<Three>::run(in, out, w, bias, rows);
    }

    template <bool, class Any = void>
    struct Run {
        static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const std::int8_t* w,
                                    const std::int32_t* bias, const Rows& rows) {
            Base::template lines<Depthwise>(in, out, w, bias, rows);
        }
    };
    template <class Any>
    struct Run<true, Any> : Lines3x3<Cfg, Depthwise, (Cfg::Serial || Cfg::Streamed)> {};
};

}  // namespace avx2
}  // namespace n2d2

#endif  // N2D2_X86_AVX2_DEPTHWISE_HPP
