// An activation function of integers, by table.
//
//   out = table[in - lowest value of the input type]
//
// The table has one entry for every value of the input type (256 or 65536), so that no input can lead outside.
// Inputs of 16 bits are interpolated between the knots of a table of 2^s + 1 of them, with pieces of 2^k inputs,
// k = 16 - s. For the input 2^k i + r above the lowest:
//
//   out = (knot[i] * (2^k - r) + knot[i + 1] * r + 2^12) >> 13, held within [Low, High]
//
// Knots are results times 2^(13 - k), below 2^18 * 2^(13 - k), so that the sum has 31 bits.
//
// Config: planes Input, Output; types Epilogue (Moved), Isa; enum Serial, Reverse; for knots Segments (2^s), Low, High. May be in place
// (pointwise.hpp).
#pragma once

#include "n2d2/pointwise.hpp"

namespace n2d2 {

// Elements of a tile: those whose results cores without vectors of tables have in registers.
enum : int { LookupTile = N2D2_M_PROFILE || !N2D2_VECTOR_LOOPS ? 4 : 64 };

// The entry of the table for an input.
template <class Cfg>
struct TableEntry {
    typedef typename Cfg::Output::Type Entry;
    template <class In>
    static N2D2_INLINE Entry of(In x, const Entry* table) {
        return table[static_cast<int>(x) - std::numeric_limits<In>::min()];
    }
};

// The value between two knots.
template <class Cfg>
struct BetweenKnots {
    typedef std::int32_t Entry;
    template <class In>
    static N2D2_INLINE typename Cfg::Output::Type of(In x, const Entry* knots) {
        static_assert(sizeof(In) == 2 && 65536 % Cfg::Segments == 0, "16-bit inputs in equal pieces");
        constexpr std::int32_t first = std::numeric_limits<In>::min(), width = 65536 / Cfg::Segments;
        const std::int32_t position = static_cast<std::int32_t>(x) - first;
        const std::int32_t piece = position / width, rest = position % width;
        const std::int32_t result = (knots[piece] * (width - rest) + knots[piece + 1] * rest + 4096) >> 13;
        return static_cast<typename Cfg::Output::Type>(held<Cfg::Low, Cfg::High>(result));
    }
};

template <class Cfg, class Value>
struct TableReader {
    N2D2_PLANES(Cfg);
    typedef typename Value::Entry Entry;
    enum : int { Packed = PlaneTraits<Input>::Packed, Shape = SameShape<Input, Output>::value };

    struct Source {
        const unsigned char* in;
        const Entry* table;
    };

    const In* from;
    const Entry* table;

    N2D2_INLINE TableReader(const Source& source, int y) : from(line<Input>(source.in, y)), table(source.table) {}
    N2D2_INLINE TableReader pixel(int x) const {
        TableReader moved(*this);
        moved.from += x * Input::Stride;
        return moved;
    }
    N2D2_INLINE Out at(int i, int) const { return Value::of(from[i], table); }
};

template <class Cfg, class Value>
struct TableLayer {
    typedef TableReader<Cfg, Value> Reader;
    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Value::Entry* table,
                                const Rows& rows = Rows::all<typename Cfg::Output>()) {
        const typename Reader::Source source = {in, table};
        pointwise<Cfg, Reader, false, LookupTile>(source, out, rows);
    }
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct Lookup : TableLayer<Cfg, TableEntry<Cfg> > {};

N2D2_LAYER(lookup, Lookup<Cfg>)
N2D2_LAYER(interpolated, TableLayer<Cfg, BetweenKnots<Cfg> >)

}  // namespace n2d2

#define N2D2_BIND_LOOKUP
#include "n2d2/bindings.hpp"
#undef N2D2_BIND_LOOKUP
