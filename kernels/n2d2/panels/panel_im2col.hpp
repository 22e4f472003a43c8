// im2col: the windows of a convolution, gathered into a buffer in the form that a microkernel multiplies (Windows), padding included.
#pragma once

#include "n2d2/panels/microkernel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

template <class Cfg, class Microkernel>
struct PanelIm2col {
    N2D2_WINDOWS(Cfg);

    enum : int {
        C = int(Input::Channels) / Cfg::Groups,
        K = KH * KW * C,
        Each = WordOf<In, typename Cfg::Weight>::Each,
        Words = (K + Each - 1) / Each
    };
    typedef typename Microkernel::template Windows<In, Words> Windows;
    enum : int {
        Size = Windows::Size,  // by which the place of an input in a window grows
        Window = Windows::Bytes,
        Direct = C % Windows::Unit == 0 || KH * KW == 1,
        Run = int(PlaneTraits<Input>::Packed) && Cfg::DilationWidth == 1 && Cfg::Groups == 1,
        Extent = (KW - 1) * Cfg::DilationWidth + 1
    };

    // Input lines with their padding, in which windows lie KW * C inputs to a line.
    enum : int {
        PadLeft = Cfg::PadLeft,
        Padded = (OW - 1) * Cfg::StrideWidth + KW,  // pixels of a line
        Inside = least(int(W), Padded - PadLeft),   // of the input
        Right = Padded - PadLeft - Inside,
        LineBytes = Padded * C * static_cast<int>(sizeof(In)),
        PixelBytes = Cfg::StrideWidth * C * static_cast<int>(sizeof(In)),
        // True if every window can be read from them.
        ByLines = Run && int(Size) == static_cast<int>(sizeof(In)) && KH * KW > 1 && KW* C % Each == 0 && PadLeft >= 0 &&
                  Inside > 0 && int(Cfg::StrideHeight) <= KH
    };

    // The input lines that the windows of `lines` output lines read.
    static N2D2_INLINE constexpr int inputLines(int lines) {
        return (lines - 1) * Cfg::StrideHeight + (KH - 1) * Cfg::DilationHeight + 1;
    }
    static N2D2_INLINE void im2colLines(const unsigned char* in, int y, int end, std::uint8_t* to) {
        constexpr bool lines = ByLines;
        constexpr int left = lines ? PadLeft * C : 0, inside = lines ? Inside * C : 1, right = lines ? Right * C : 0;
        constexpr int bytes = static_cast<int>(sizeof(In));
        const int first = y * Cfg::StrideHeight - Cfg::PadTop, stop = first + inputLines(end - y);
        for (int from = first; from < stop; ++from, to += LineBytes) {
            if (from < 0 || from >= H) {
                Windows::template fill<(lines ? Padded * C : 1)>(Cfg::InputZero, to);
                continue;
            }
            if (left > 0)
                Windows::template fill<(left > 0 ? left : 1)>(Cfg::InputZero, to);
            Windows::template copy<inside>(line<Input>(in, from), to + left * bytes);
            if (right > 0)
                Windows::template fill<(right > 0 ? right : 1)>(Cfg::InputZero, to + (left + inside) * bytes);
        }
    }

    // The windows of `count` pixels of a line. What is arranged later is gathered for some pixels before, so that no
    // vector is loaded from bytes that are still on their way to memory.
    static N2D2_INLINE void im2colWindows(const In* const* rows, int x, int count, int channel, std::uint8_t* to) {
        bool whole = true;
        for (int u = 0; u < KH; ++u)
            whole = whole && rows[u];
        if (Direct) {
            for (int i = 0; i < count; ++i)
                im2colParts<Windows>(rows, whole, x + i, channel, to + i * Window);
            return;
        }
        constexpr int pitch = Words * 4, some = largest(1, least(16, 512 / pitch));
        std::uint8_t raw[Direct ? 1 : some * pitch + 64];
        for (int begin = 0; begin < count; begin += some) {
            const int end = least(count, begin + some);
            for (int i = begin; i < end; ++i) {
                std::uint8_t* const window = raw + (Direct ? 0 : (i - begin) * pitch);
                std::memset(window + (Direct ? 0 : pitch - 4), 0, Direct ? 0 : 4);
                im2colParts<typename Windows::Raw>(rows, whole, x + i, channel, window);
            }
            for (int i = begin; i < end; ++i)
                Windows::arrange(raw + (Direct ? 0 : (i - begin) * pitch), to + i * Window);
        }
    }

    // `whole`: no line is padding.
    template <class Form>
    static N2D2_INLINE void im2colParts(const In* const* rows, bool whole, int x, int channel, std::uint8_t* to) {
        constexpr int width = W, extent = Extent, step = Cfg::DilationWidth;
        constexpr bool run = Run;
        const int left = x * Cfg::StrideWidth - Cfg::PadLeft;
        const bool inside = left >= 0 && left + extent <= width;
        if (run && inside && whole) {
            N2D2_UNROLL_FOR(u, KH)
                Form::template copy<KW * C>(rows[u] + left * Input::Stride, to + u * KW * C * Size);
            return;
        }
        for (int u = 0; u < KH; ++u, to += KW * C * Size) {
            if (!rows[u]) {
                Form::template fill<KW * C>(Cfg::InputZero, to);
            } else if (run && inside) {
                Form::template copy<KW * C>(rows[u] + left * Input::Stride, to);
            } else {
                for (int v = 0; v < KW; ++v) {
                    const int column = left + v * step;
                    if (column >= 0 && column < width)
                        Form::template copy<C>(rows[u] + column * Input::Stride + channel, to + v * C * Size);
                    else
                        Form::template fill<C>(Cfg::InputZero, to + v * C * Size);
                }
            }
        }
    }

    // The windows of pixels [begin, end) of the sequence from line y on, one after the other. Threads and a thread alone, blocks and parts of
    // them need them. In a large layer they call one function, and the compiler takes a quarter less time for it; in a small one
    // calls cost up to 3 % of its instructions.
    static N2D2_INLINE void im2col(const unsigned char* in, int y, int begin, int end, int channel, std::uint8_t* to) {
        constexpr bool large = static_cast<long>(Output::Height) * OW * Output::Channels * K >= 8000000;
        if (large)
            im2colCalled(in, y, begin, end, channel, to);
        else
            im2colHere(in, y, begin, end, channel, to);
    }
    static N2D2_NOINLINE void im2colCalled(const unsigned char* in, int y, int begin, int end, int channel, std::uint8_t* to) {
        im2colHere(in, y, begin, end, channel, to);
    }
    static N2D2_INLINE void im2colHere(const unsigned char* in, int y, int begin, int end, int channel, std::uint8_t* to) {
        const In* rows[KH];
        int x = begin % OW;
        y += begin / OW;
        while (begin < end) {
            windowRows<Cfg>(in, y, rows);
            const int stop = least(int(OW), x + end - begin);
            begin += stop - x;
            im2colWindows(rows, x, stop - x, channel, to);
            to += static_cast<long>(stop - x) * Window;
            x = 0;
            ++y;
        }
    }
};

}  // namespace n2d2
