// Depthwise convolution with AVX-512 VNNI of 4, 8, 16 or 32 channels: 64 bytes of a line at a time, which are several pixels.
//
// The bytes of up to four input lines are interleaved by unpack instructions, as in avx512_depthwise.hpp: part l (128 bits) of vector j
// has the bytes 16 l + 4 j to 16 l + 4 j + 3 of the 64, a four of channels. Pixels to the right are so many fours further on, at a constant
// distance: in vector j + 1, or behind vector 3 in vector 0, one part on. So a tap takes parts of two vectors that follow each
// other, in one instruction or none, and one vpdpbusd for 16 outputs. With stride 2 even and odd pixels are such sequences of their own.
// Packing brings the outputs back into order.
#pragma once

#include "n2d2/panels/panel_depthwise.hpp"
#include "n2d2/x86/avx512.hpp"

namespace n2d2 {
namespace avx512 {

template <class Cfg>
struct LineDepthwise {
    N2D2_WINDOWS(Cfg);
    typedef typename Cfg::Epilogue Epilogue;

    enum : int {
        C = Input::Channels,
        Stride = Cfg::StrideWidth,
        PerPixel = C < 4 ? 1 : C / 4,  // fours
        Reach = (KW - 1) * Cfg::DilationWidth / Stride * PerPixel,
        // Pixels of padding on the left, whole steps.
        Begin = (int(Cfg::PadLeft) + Stride - 1) / Stride * Stride,
        First = Begin - int(Cfg::PadLeft),  // where the first tap is
        InBytes = W * C,
        OutBytes = OW * C,
        Different = PerPixel < 4 ? int(PerPixel) : 4,  // vectors of constants
        Panel = C < 16 ? int(C) : 16
    };
    enum : bool {
        Fits = (C == 4 || C == 8 || C == 16 || C == 32) && KH <= 4 && Stride <= 2 && int(Cfg::PadLeft) >= 0 &&
               int(Input::Stride) == C && int(Output::Stride) == C && sizeof(Out) == 1 && OutBytes >= 64 &&
               (First + (KW - 1) * Cfg::DilationWidth) / Stride * PerPixel <= 16
    };
    typedef Fours<Fits ? int(C) : 4> Place;

    // 64 bytes of a line from `position` on, what is outside of it being padding.
    static N2D2_INLINE __m512i load(const In* line, int position, __m512i padding) {
        constexpr int bytes = InBytes;
        if (position >= 0 && position + 64 <= bytes)
            return _mm512_loadu_si512(line + position);
        const int low = position < 0 ? least(-position, 64) : 0, high = largest(0, least(bytes - position, 64));
        return _mm512_mask_loadu_epi8(padding, first64(high) & ~first64(low), line + (low < high ? position : 0));
    }

    // The pixels at an even (Phase 0) or odd place of the 128 bytes of a and b.
    template <int Phase>
    static N2D2_INLINE __m512i everySecond(__m512i a, __m512i b) {
        if (C == 32)
            return _mm512_shuffle_i32x4(a, b, Phase == 0 ? 0x44 : 0xee);
        if (C == 16)
            return _mm512_shuffle_i32x4(a, b, Phase == 0 ? 0x88 : 0xdd);
        const __m512i pixels = C == 8 ? _mm512_setr_epi32(0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29) :
                                        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        return _mm512_permutex2var_epi32(a, _mm512_add_epi32(pixels, _mm512_set1_epi32(Phase * PerPixel)), b);
    }

    // Interleaves 64 bytes, of each phase of the stride, from input byte `position` on.
    static N2D2_INLINE void interleave(const In* const* rows, int position, __m512i (&to)[Stride][4]) {
        const __m512i padding = Flip<In>::all(Cfg::InputZero);
        __m512i x[Stride][4];
        N2D2_UNROLL_FOR(u, KH) {
            __m512i a = padding, b = padding;
            if (rows[u]) {
                a = load(rows[u], position, padding);
                if (Stride == 2)
                    b = load(rows[u], position + 64, padding);
            }
            a = Flip<In>::apply(a);
            b = Flip<In>::apply(b);
            x[0][u] = Stride == 2 ? everySecond<0>(a, b) : a;
            if (Stride == 2)
                x[Stride - 1][u] = everySecond<1>(a, b);
        }
        N2D2_UNROLL_FOR(s, Stride) {
            const __m512i second = x[s][least(1, KH - 1)], third = x[s][least(2, KH - 1)], fourth = x[s][least(3, KH - 1)];
            const __m512i e = _mm512_unpacklo_epi8(x[s][0], second), f = _mm512_unpackhi_epi8(x[s][0], second);
            const __m512i g = _mm512_unpacklo_epi8(third, fourth), h = _mm512_unpackhi_epi8(third, fourth);
            to[s][0] = _mm512_unpacklo_epi16(e, g);
            to[s][1] = _mm512_unpackhi_epi16(e, g);
            to[s][2] = _mm512_unpacklo_epi16(f, h);
            to[s][3] = _mm512_unpackhi_epi16(f, h);
        }
    }

    // The fours from Four on, every fourth.
    template <int Four>
    static N2D2_INLINE __m512i from(const __m512i (&now)[4], const __m512i (&next)[4]) {
        constexpr int part = Four / 4;
        if (part == 0)
            return now[Four % 4];
        return part == 4 ? next[Four % 4] : _mm512_alignr_epi32(next[Four % 4], now[Four % 4], part % 4 * 4);
    }

    // Tap T and those behind it of vector J.
    template <int J, int T, bool End = T == KW>
    struct Taps {
        enum : int { Pixel = First + T * Cfg::DilationWidth, Phase = Pixel % Stride, Four = J + Pixel / Stride * PerPixel };
        static N2D2_INLINE void add(const __m512i (&now)[Stride][4], const __m512i (&next)[Stride][4],
                                    const __m512i (&w)[KW][Different], __m512i& sum) {
            dot(sum, from<Four>(now[Phase], next[Phase]), w[T][J % Different]);
            Taps<J, T + 1>::add(now, next, w, sum);
        }
    };
    template <int J, int T>
    struct Taps<J, T, true> {
        static N2D2_INLINE void add(const __m512i (&)[Stride][4], const __m512i (&)[Stride][4],
                                    const __m512i (&)[KW][Different], __m512i&) {}
    };

    static N2D2_INLINE void run(const In* const* rows, Out* out, const std::int8_t* weights, const std::int32_t* bias) {
        typedef VectorEpilogue<Vec, Epilogue, Place> End;
        constexpr int bytes = OutBytes, different = Different;
        __m512i w[KW][Different], first[Different];
        N2D2_UNROLL_FOR(j, different) {
            first[j] = Place{4 * j}.ints(bias);
            N2D2_UNROLL_FOR(t, KW) {
                const std::int8_t* const from = weights + t * 4 * Panel + 16 * j;
                w[t][j] = Place::parts(from, from + (Place::Two ? KW * 4 * Panel : 0));
            }
        }
        const End e0(Place{0}), e1(Place{4 * (1 % different)}), e2(Place{4 * (2 % different)}), e3(Place{4 * (3 % different)});
        __m512i now[Stride][4], next[Stride][4];
        int position = -Begin * C;
        interleave(rows, position, now);
        for (int i = 0; i < bytes; i += 64) {
            position += 64 * Stride;
            interleave(rows, position, next);
            __m512i sums[4] = {first[0], first[1 % different], first[2 % different], first[3 % different]};
            Taps<0, 0>::add(now, next, w, sums[0]);
            Taps<1, 0>::add(now, next, w, sums[1]);
            Taps<2, 0>::add(now, next, w, sums[2]);
            Taps<3, 0>::add(now, next, w, sums[3]);
            const __m512i results =
                End::clampBytes(packed<Out>(e0.template apply<true>(sums[0]), e1.template apply<true>(sums[1]),
                                            e2.template apply<true>(sums[2]), e3.template apply<true>(sums[3])));
            if (bytes - i >= 64)
                _mm512_storeu_si512(out + i, results);
            else
                _mm512_mask_storeu_epi8(out + i, first64(bytes - i), results);
            N2D2_UNROLL_FOR(s, Stride)
                N2D2_UNROLL_FOR(j, 4)
                    now[s][j] = next[s][j];
        }
    }
};

}  // namespace avx512
}  // namespace n2d2
