// An activation function of integers, by table.
//
//   out = table[in - lowest value of the input type]
//
// The table has one entry for every value of the input type (256 or 65536), so that no input can lead outside.
// Config: planes Input, Output; types Stage (Moved), Isa; enum Serial, Reverse. May be in place (pointwise.hpp).
#ifndef N2D2_LOOKUP_HPP
#define N2D2_LOOKUP_HPP

#include "n2d2/pointwise.hpp"

namespace n2d2 {

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
        pointwise<Cfg, Reader, false>(source, out, rows);
    }
};

template <class Cfg, class... Lines>
N2D2_INLINE void lookup(const unsigned char* in, unsigned char* out, const typename Cfg::Output::Type* table, const Lines&... rows) {
    Lookup<Cfg>::run(in, out, table, rows...);
}

}  // namespace n2d2

#endif  // N2D2_LOOKUP_HPP
