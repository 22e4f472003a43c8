// The same elements, in channel, line, column order, as another shape.
//
//   with n = (c * Height + y) * Width + x counted in the output's shape, out[y][x][c] = Epilogue(in at element n
//   counted in the input's shape)
//
// Both planes are HWC in memory, so elements move whenever more than one axis is longer than 1. Input and output
// are disjoint. An image as a vector, and back, is a matrix of pixels and channels transposed.
// Config: planes Input, Output; types Epilogue, Isa.
#pragma once

#include <type_traits>

#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

// A matrix with its rows and columns exchanged, block by block.
//
//   to[c * toPitch + r] = from[r * fromPitch + c]    for r < Rows, c < Columns
//
// A block of 16 x 16 elements lies in a local array, whose halves are interleaved four times: each time the bits of an element's
// place, row before column, rotate by one. Compilers have instructions for interleaving on every processor with vectors.
template <class T>
struct BlockTransposed {
    enum : int { Size = 16, Half = Size * Size / 2 };

    static N2D2_INLINE void interleave(const T* from, T* to) {
        for (int i = 0; i < Half; ++i) {
            to[2 * i] = from[i];
            to[2 * i + 1] = from[Half + i];
        }
    }

    template <int Rows, int Columns>
    static N2D2_INLINE void run(const T* from, long fromPitch, T* to, long toPitch) {
        alignas(64) T a[2 * Half];
        alignas(64) T b[2 * Half];
        if (Rows < Size || Columns < Size)
            std::memset(a, 0, sizeof(a));
        for (int r = 0; r < Rows; ++r)
            copyBytes(a + r * Size, from + r * fromPitch, Columns * sizeof(T));
        interleave(a, b);
        interleave(b, a);
        interleave(a, b);
        interleave(b, a);
        for (int c = 0; c < Columns; ++c)
            copyBytes(to + c * toPitch, a + c * Size, Rows * sizeof(T));
    }
};

template <class T, int Rows, int Columns>
struct Transposed {
    typedef BlockTransposed<T> Block;
    enum : int { Size = Block::Size, LastRows = Rows % Size, LastColumns = Columns % Size, Blocks = (Rows + Size - 1) / Size };

    template <int Count>
    static N2D2_INLINE void rows(const T* from, long fromPitch, T* to, long toPitch) {
        constexpr int last = LastColumns;
        int c = 0;
        for (; c + Size <= Columns; c += Size)
            Block::template run<Count, Size>(from + c, fromPitch, to + c * toPitch, toPitch);
        if (last > 0)
            Block::template run<Count, (last > 0 ? last : 1)>(from + c, fromPitch, to + c * toPitch, toPitch);
    }

    static N2D2_INLINE void run(const T* from, long fromPitch, T* to, long toPitch) {
        constexpr int last = LastRows;
        Tasks<false, Blocks, 1, 4L * Size * Columns>::run([=](int i, int) N2D2_INLINE_LAMBDA {
            const T* const block = from + i * Size * fromPitch;
            if (last == 0 || i + 1 < Blocks)
                rows<Size>(block, fromPitch, to + i * Size, toPitch);
            else
                rows<(last > 0 ? last : 1)>(block, fromPitch, to + i * Size, toPitch);
        });
    }
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct Reshape {
    N2D2_PLANES(Cfg);
    enum : int {
        C = Output::Channels,
        H = Output::Height,
        W = Output::Width,
        InputHeight = Input::Height,
        InputWidth = Input::Width,
        Flat = bool(PlaneTraits<Input>::Flat) && bool(PlaneTraits<Output>::Flat) &&
               std::is_same<typename Cfg::Epilogue, Moved<typename Input::Type> >::value,
        ToVector = Flat && H * W == 1,
        ToImage = Flat && !ToVector && InputHeight * InputWidth == 1
    };
    static_assert(C * H * W == int(Input::Channels) * InputHeight * InputWidth, "a reshape keeps the number of elements");

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out) {
        Form<ToVector ? 1 : ToImage ? 2 : 0>::run(in, out);
    }

    template <int, class Any = void>
    struct Form {
        static N2D2_INLINE void run(const unsigned char* in, unsigned char* out) { single(in, out); }
    };
    template <class Any>
    struct Form<1, Any> {
        static N2D2_INLINE void run(const unsigned char* in, unsigned char* out) {
            constexpr int pixels = InputHeight * InputWidth;
            Transposed<In, pixels, Input::Channels>::run(line<Input>(in, 0), Input::Stride, line<Output>(out, 0), pixels);
        }
    };
    template <class Any>
    struct Form<2, Any> {
        static N2D2_INLINE void run(const unsigned char* in, unsigned char* out) {
            Transposed<In, C, H * W>::run(line<Input>(in, 0), H * W, line<Output>(out, 0), Output::Stride);
        }
    };

    static N2D2_INLINE void single(const unsigned char* in, unsigned char* out) {
        Tasks<false, H, 1, 4L * C * W>::run([=](int y, int) N2D2_INLINE_LAMBDA {
            typename Output::Type* const to = line<Output>(out, y);
            for (int x = 0; x < W; ++x)
                for (int c = 0; c < C; ++c) {
                    const int n = (c * H + y) * W + x;
                    const int column = n % InputWidth, row = n / InputWidth % InputHeight;
                    const int channel = n / (InputWidth * InputHeight);
                    to[x * Output::Stride + c] =
                        Cfg::Epilogue::apply(line<Input>(in, row)[column * Input::Stride + channel], c);
                }
        });
    }
};

N2D2_LAYER(reshape, Reshape<Cfg>)

}  // namespace n2d2
