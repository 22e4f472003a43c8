// Products of a vector of bytes or 16-bit integers with panels of rows of signed bytes, by instructions that add four products of bytes.
//
// Panels are [Words][16][4]: 16 rows, words of four weights, for each Run of rows (a gate); the last panel of a run has only the rows that
// are left. Behind them lie All integers of 32 bits, what the sums begin with. Inputs are unsigned: signed bytes + 128, signed 16-bit
// integers + 32768, for which the first sums make up, modulo 2^32; the high and the low bytes of 16-bit integers are multiplied apart.
// No sum crosses a vector.
//
// Vector: a Vec (panels/vec.hpp) that also has dot(sums, x, w), and store<Count>(x, to) of Count integers. Most: rows at a time.
#pragma once

#include "n2d2/row_dots.hpp"

namespace n2d2 {

template <class Vector, int MostRows, class In, int Count, int Run, int All>
struct RowPanels {
    typedef typename Vector::Ints Ints;
    enum : bool { Aligned = true, Two = sizeof(In) == 2 };
    enum : int { Most = MostRows, Lanes = Vector::Lanes, Words = (Count + 3) / 4, Bytes = 4 * Words };

    const std::int8_t* const weights;
    alignas(64) std::uint8_t low[Bytes];
    alignas(64) std::uint8_t high[Two ? int(Bytes) : 4];

    N2D2_INLINE RowPanels(const In* x, const std::int8_t* panels) : weights(panels) {
        constexpr unsigned moved = std::numeric_limits<In>::is_signed ? (Two ? 32768u : 128u) : 0u;
        for (int k = 0; k < Count; ++k)
            low[k] = static_cast<std::uint8_t>(static_cast<unsigned>(x[k]) + moved);
        for (int k = 0; k < (Two ? Count : 0); ++k)
            high[k] = static_cast<std::uint8_t>((static_cast<unsigned>(x[k]) + moved) >> 8);
        for (int k = Count; k < Bytes; ++k)
            low[k] = high[Two ? k : 0] = 0;
    }

    template <int Some>
    static N2D2_INLINE Ints load(const std::int8_t* from) {
        return Vector::template some<Some>(from, from + 16);
    }
    // The products with Rows rows from `row` on, the beginning of a panel.
    template <int Rows>
    N2D2_INLINE void run(int row, std::int32_t (&sums)[Rows]) const {
        constexpr int vectors = (Rows + Lanes - 1) / Lanes, rest = Rows - Lanes * (vectors - 1);
        constexpr int whole = Rows / 16, part = Rows % 16 > 0 ? Rows % 16 : 16;  // panels, and rows of the last one
        const std::int8_t* const from = weights + static_cast<long>(row) * int(Bytes);
        const std::int8_t* const begin = weights + static_cast<long>(All) * int(Bytes) + 4L * row;
        Ints lows[vectors], highs[vectors];
        N2D2_UNROLL_FOR(v, vectors) {
            const std::int8_t* const first = begin + 4 * int(Lanes) * v;
            lows[v] = v == vectors - 1 ? load<rest>(first) : load<Lanes>(first);
            highs[v] = Vector::zero();
        }
        for (int q = 0; q < Words; ++q) {
            const Ints x = Vector::word(low + 4 * q), y = Vector::word(high + (Two ? 4 * q : 0));
            N2D2_UNROLL_FOR(v, vectors) {
                const int panel = v * Lanes / 16, rows = panel < whole ? 16 : part;
                const std::int8_t* const w = from + 16L * panel * int(Bytes) + 4 * (q * rows + v * Lanes % 16);
                const Ints four = v == vectors - 1 ? load<rest>(w) : load<Lanes>(w);
                Vector::dot(lows[v], x, four);
                if (Two)
                    Vector::dot(highs[v], y, four);
            }
        }
        N2D2_UNROLL_FOR(v, vectors) {
            const Ints all = bool(Two) ? Vector::plus(lows[v], Vector::template left<8>(highs[v])) : lows[v];
            if (v == vectors - 1)
                Vector::template store<rest>(all, sums + Lanes * v);
            else
                Vector::template store<Lanes>(all, sums + Lanes * v);
        }
    }
};

}  // namespace n2d2

// Binds them for vectors Vector, Most rows at a time.
#define N2D2_ROW_PANELS(Vector, Most)                                          \
    namespace n2d2 {                                                           \
    template <class In, int Count, int Run, int All>                           \
    struct RowProducts<Native, In, std::int8_t, std::int32_t, Count, Run, All> \
        : RowPanels<Vector, Most, In, Count, Run, All> {                       \
        using RowPanels<Vector, Most, In, Count, Run, All>::RowPanels;         \
    };                                                                         \
    }
