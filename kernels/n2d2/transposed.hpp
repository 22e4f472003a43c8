// A matrix with its rows and columns exchanged, block by block.
//
//   to[c * toPitch + r] = from[r * fromPitch + c]    for r < Rows, c < Columns
//
// A block of 16 x 16 elements lies in a local array, whose halves are interleaved four times: each time the bits of an element's
// place, row before column, rotate by one. Compilers have instructions for interleaving on every processor with vectors.
#pragma once

#include "n2d2/parallel.hpp"

namespace n2d2 {

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

}  // namespace n2d2
