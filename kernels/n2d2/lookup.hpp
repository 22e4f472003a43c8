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
#ifndef N2D2_LOOKUP_HPP
#define N2D2_LOOKUP_HPP

#include "n2d2/pointwise.hpp"

namespace n2d2 {

// Elements of a tile: those whose results cores without vectors of tables have in registers.
enum : int { LookupTile = N2D2_M_PROFILE || !N2D2_VECTOR_LOOPS ? 4 : 64 };

template <class Cfg>
struct LookupReader {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output::Type Out;
    enum : int { Packed = PlaneTraits<Input>::Packed, Shape = SameShape<Input, typename Cfg::Output>::value };

    struct Source {
        const unsigned char* in;
        const Out* table;
    };

    const typename Input::Type* from;
    const Out* table;

    N2D2_INLINE LookupReader(const Source& source, int y) : from(line<Input>(source.in, y)), table(source.table) {}
    N2D2_INLINE LookupReader pixel(int x) const {
        LookupReader moved(*this);
        moved.from += x * Input::Stride;
        return moved;
    }
    N2D2_INLINE Out at(int i, int) const {
        constexpr int first = std::numeric_limits<typename Input::Type>::min();
        return table[static_cast<int>(from[i]) - first];
    }
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct Lookup {
    typedef LookupReader<Cfg> Reader;
    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Output::Type* table,
                                const Rows& rows = Rows::all<typename Cfg::Output>()) {
        const typename Reader::Source source = {in, table};
        pointwise<Cfg, Reader, false, LookupTile>(source, out, rows);
    }
};

template <class Cfg, class... Lines>
N2D2_INLINE void lookup(const unsigned char* in, unsigned char* out, const typename Cfg::Output::Type* table,
                        const Lines&... rows) {
    Lookup<Cfg>::run(in, out, table, rows...);
}

template <class Cfg>
struct KnotReader {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output::Type Out;
    enum : int { Packed = PlaneTraits<Input>::Packed, Shape = SameShape<Input, typename Cfg::Output>::value };

    struct Source {
        const unsigned char* in;
        const std::int32_t* knots;
    };

    const typename Input::Type* from;
    const std::int32_t* knots;

    N2D2_INLINE KnotReader(const Source& source, int y) : from(line<Input>(source.in, y)), knots(source.knots) {}
    N2D2_INLINE KnotReader pixel(int x) const {
        KnotReader moved(*this);
        moved.from += x * Input::Stride;
        return moved;
    }
    N2D2_INLINE Out at(int i, int) const {
        static_assert(sizeof(typename Input::Type) == 2 && 65536 % Cfg::Segments == 0, "16-bit inputs in equal pieces");
        constexpr std::int32_t first = std::numeric_limits<typename Input::Type>::min(), width = 65536 / Cfg::Segments;
        const std::int32_t position = static_cast<std::int32_t>(from[i]) - first;
        const std::int32_t piece = position / width, rest = position % width;
        const std::int32_t result = (knots[piece] * (width - rest) + knots[piece + 1] * rest + 4096) >> 13;
        return static_cast<Out>(held<Cfg::Low, Cfg::High>(result));
    }
};

template <class Cfg>
N2D2_INLINE void interpolated(const unsigned char* in, unsigned char* out, const std::int32_t* knots,
                              const Rows& rows = Rows::all<typename Cfg::Output>()) {
    const typename KnotReader<Cfg>::Source source = {in, knots};
    pointwise<Cfg, KnotReader<Cfg>, false, LookupTile>(source, out, rows);
}

}  // namespace n2d2

#define N2D2_BIND_LOOKUP
#include "n2d2/bindings.hpp"

#endif  // N2D2_LOOKUP_HPP
