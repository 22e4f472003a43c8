// Depthwise convolution with AVX-512 VNNI: four lines of one column are one dot product per channel.
//
// For a piece of an output line and a block of up to 64 channels, every input column is first interleaved: the
// bytes of lines 0 to 3 (4 to 7, ...) of a channel become one 32-bit element. A tap of the kernel is then one vpdpbusd
// of such a column with the weights of its KH lines, and a column serves all taps that lie on it.
//
// 64 channels are interleaved by unpack instructions, which leave them in another order (the exporter has
// brought weights and constants into it) that packing undoes. What is left of the channels is
// interleaved 16 at a time, in order, by shuffles. Signed inputs are taken + 128, as in the convolution.
// Stack: Columns * Fours * 256 bytes.
#pragma once

#include "n2d2/panels/panel_depthwise.hpp"
#include "n2d2/x86/avx512.hpp"

namespace n2d2 {
namespace avx512 {

// The same of 4, 8, 16 or 32 channels: 64 bytes of a line at a time, which are several pixels.
//
// The bytes of up to four input lines are interleaved by unpack instructions: part l (128 bits) of vector j
// has the bytes 16 l + 4 j to 16 l + 4 j + 3 of the 64, a four of channels. Pixels to the right are so many fours further on, at a constant
// distance: in vector j + 1, or behind vector 3 in vector 0, one part on. So a tap takes parts of two vectors that follow each
// other, in one instruction or none, and one vpdpbusd for 16 outputs. With stride 2 even and odd pixels are such sequences of their own.
// Packing brings the outputs back into order.
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

// Interleaved columns of Panels * 16 channels, the last panel having Last. Lines: of the kernel, in this group of four.
template <class In, int Panels, int Last>
struct InterleavedColumns {
    enum : bool { Whole = Panels == 4 && Last == 16 };

    // from[u]: the first channel of line u, null for padding.
    template <int Lines>
    static N2D2_INLINE void interleave(const In* const* from, __m512i zero, __m512i* to) {
        if (Whole)
            unpack<Lines>(from, zero, to);
        else
            shuffle<Lines>(from, zero, to);
    }

    template <int Lines>
    static N2D2_INLINE void unpack(const In* const* from, __m512i zero, __m512i* to) {
        __m512i x[4];
        N2D2_UNROLL_FOR(u, 4) {
            const int line = u < Lines ? u : Lines - 1;  // its weight is zero
            x[u] = from[line] ? Flip<In>::apply(_mm512_loadu_si512(from[line])) : zero;
        }
        const __m512i a = _mm512_unpacklo_epi8(x[0], x[1]), b = _mm512_unpackhi_epi8(x[0], x[1]);
        const __m512i c = _mm512_unpacklo_epi8(x[2], x[3]), d = _mm512_unpackhi_epi8(x[2], x[3]);
        to[0] = _mm512_unpacklo_epi16(a, c);
        to[1] = _mm512_unpackhi_epi16(a, c);
        to[2] = _mm512_unpacklo_epi16(b, d);
        to[3] = _mm512_unpackhi_epi16(b, d);
    }

    // Moves channel 4 l + i to byte u of element i of part l; the other bytes become zero.
    static N2D2_INLINE __m512i place(int u) {
        const __m512i channels = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const __m512i zeros = _mm512_set1_epi32(static_cast<int>(~(0xffu << (8 * u))));
        return _mm512_or_si512(_mm512_sll_epi32(channels, _mm_cvtsi32_si128(8 * u)), zeros);
    }

    template <int Lines>
    static N2D2_INLINE void shuffle(const In* const* from, __m512i zero, __m512i* to) {
        N2D2_UNROLL_FOR(n, Panels) {
            __m512i all = _mm512_setzero_si512();
            N2D2_UNROLL_FOR(u, Lines) {
                __m512i x = zero;
                if (from[u])
                    x = Flip<In>::apply(_mm512_broadcast_i32x4(n == Panels - 1 && Last < 16 ?
                                                                   _mm_maskz_loadu_epi8(first16(Last), from[u] + 16 * n) :
                                                                   load128(from[u] + 16 * n)));
                all = _mm512_or_si512(all, _mm512_shuffle_epi8(x, place(u)));
            }
            to[n] = all;
        }
    }
};

template <class Cfg>
struct Depthwise {
    typedef PanelDepthwise<Cfg> Geometry;
    N2D2_WINDOWS(Cfg);
    typedef typename Cfg::Epilogue Epilogue;

    enum : int {
        C = Geometry::C,
        Fours = Geometry::Fours,
        LastLines = KH - 4 * (Fours - 1),
        Blocks = (C + 63) / 64,
        LastPanels = (C - 64 * (Blocks - 1) + 15) / 16,
        LastChannels = C - 16 * ((C + 15) / 16 - 1),
        Piece = OW < 16 ? int(OW) : 16,  // output pixels that share a buffer of columns
        Columns = (Piece - 1) * Cfg::StrideWidth + (KW - 1) * Cfg::DilationWidth + 1,
        ByLines = LineDepthwise<Cfg>::Fits
    };

    template <bool Fits, class Found = void>
    struct WholeLine : LineDepthwise<Cfg> {};
    template <class Found>
    struct WholeLine<false, Found> {
        static N2D2_INLINE void run(const In* const*, Out*, const std::int8_t*, const std::int32_t*) {}
    };

    // Column x of the input, interleaved; `to` has Fours * Panels vectors.
    template <int Panels, int Last>
    static N2D2_INLINE void column(const In* const* rows, int x, int channel, __m512i* to) {
        typedef InterleavedColumns<In, Panels, Last> Block;
        constexpr int width = W;
        const __m512i zero = Flip<In>::apply(Flip<In>::all(Cfg::InputZero));
        if (x < 0 || x >= width) {
            for (int i = 0; i < Fours * Panels; ++i)
                to[i] = zero;
            return;
        }
        const In* from[KH];
        for (int u = 0; u < KH; ++u)
            from[u] = rows[u] ? rows[u] + x * Input::Stride + channel : nullptr;
        for (int f = 0; f + 1 < Fours; ++f)
            Block::template interleave<4>(from + 4 * f, zero, to + f * Panels);
        Block::template interleave<LastLines>(from + 4 * (Fours - 1), zero, to + (Fours - 1) * Panels);
    }

    template <int Panels, int Last>
    static N2D2_INLINE __m512i weights(const std::int8_t* w, int panel, int tap) {
        constexpr int taps = Fours * KW;
        const std::int8_t* const from = w + panel * taps * 64;
        if (Last < 16 && panel == Panels - 1)
            return _mm512_maskz_loadu_epi32(first16(Last), from + tap * 4 * Last);
        return _mm512_loadu_si512(from + tap * 64);
    }

    // A block of channels of one output line.
    template <int Panels, int Last>
    static N2D2_INLINE void block(const In* const* rows, int channel, Out* out, const std::int8_t* weights_,
                                  const std::int32_t* bias) {
        constexpr bool whole = InterleavedColumns<In, Panels, Last>::Whole;
        constexpr int taps = Fours * KW, stride = Cfg::StrideWidth;
        const std::int8_t* const w = weights_ + channel * taps * 4;
        __m512i v[taps * Panels], first[Panels];
        N2D2_UNROLL_FOR(n, Panels) {
            first[n] = _mm512_maskz_loadu_epi32(first16(n == Panels - 1 ? Last : 16), bias + channel + 16 * n);
            N2D2_UNROLL_FOR(t, taps)
                v[t * Panels + n] = weights<Panels, Last>(w, n, t);
        }
        __m512i columns[Columns * Fours * Panels];
        for (int begin = 0; begin < OW; begin += Piece) {
            const int end = least(int(OW), begin + Piece);
            const int left = begin * stride - Cfg::PadLeft;
            const int count = (end - begin - 1) * stride + (KW - 1) * Cfg::DilationWidth + 1;
            for (int i = 0; i < count; ++i)
                column<Panels, Last>(rows, left + i, channel, columns + i * Fours * Panels);
            for (int x = begin; x < end; ++x) {
                const __m512i* const from = columns + (x - begin) * stride * Fours * Panels;
                __m512i sums[Panels];
                N2D2_UNROLL_FOR(n, Panels)
                    sums[n] = first[n];
                N2D2_UNROLL_FOR(u, Fours)
                    N2D2_UNROLL_FOR(t, KW)
                        N2D2_UNROLL_FOR(n, Panels)
                            dot(sums[n], from[(t * Cfg::DilationWidth * Fours + u) * Panels + n], v[(u * KW + t) * Panels + n]);
                finish<Panels, Last, whole>(sums, channel, out + x * Output::Stride + channel);
            }
        }
    }

    template <int Panels, int Last, bool Whole>
    static N2D2_INLINE void finish(const __m512i* sums, int channel, Out* out) {
        __m512i values[4];
        N2D2_UNROLL_FOR(n, Panels) {
            const int count = n == Panels - 1 ? Last : 16;
            const Epilogue16<Epilogue> epilogue(channel + 16 * n, count);
            values[n] = epilogue.template apply < Whole && sizeof(Out) == 1 > (sums[n]);
        }
        if (Whole && sizeof(Out) == 1) {
            _mm512_storeu_si512(out, Epilogue16<Epilogue>::clampBytes(packed<Out>(values[0], values[1], values[2], values[3])));
            return;
        }
        if (Whole) {
            // Part l of vector j belongs to channels 16 l + 4 j: a transposition of 4 x 4 parts.
            const __m512i a = _mm512_shuffle_i32x4(values[0], values[1], 0x44);
            const __m512i b = _mm512_shuffle_i32x4(values[0], values[1], 0xee);
            const __m512i c = _mm512_shuffle_i32x4(values[2], values[3], 0x44);
            const __m512i d = _mm512_shuffle_i32x4(values[2], values[3], 0xee);
            values[0] = _mm512_shuffle_i32x4(a, c, 0x88);
            values[1] = _mm512_shuffle_i32x4(a, c, 0xdd);
            values[2] = _mm512_shuffle_i32x4(b, d, 0x88);
            values[3] = _mm512_shuffle_i32x4(b, d, 0xdd);
        }
        N2D2_UNROLL_FOR(n, Panels) {
            if (n == Panels - 1)
                store16<Last>(values[n], out + 16 * n);
            else
                store16<16>(values[n], out + 16 * n);
        }
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const std::int8_t* weights_,
                                const std::int32_t* bias, const Rows& rows = Rows::all<Output>()) {
        // A tap takes about twice as long as a product of the convolution.
        constexpr long work = static_cast<long>(KH) * KW * least(64, int(C)) * OW * 2 / N2D2_SIMD_SPEED;
        LayerTasks<Cfg, Blocks, work, WindowOrder<Cfg> >::run(rows, [=](int y, int index) N2D2_INLINE_LAMBDA {
            const In* taps[KH];
            windowRows<Cfg>(in, y, taps);
            Out* const to = line<Output>(out, y);
            if (ByLines)
                WholeLine<ByLines>::run(taps, to, weights_, bias);
            else if (index + 1 < Blocks)
                block<4, 16>(taps, index * 64, to, weights_, bias);
            else
                block<LastPanels, LastChannels>(taps, index * 64, to, weights_, bias);
        });
    }
};

}  // namespace avx512
}  // namespace n2d2
