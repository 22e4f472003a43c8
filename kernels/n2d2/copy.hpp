// A tensor moved to another plane, element by element, each value through Epilogue (an activation function, or
// nothing).
//
//   out[y][x][c] = Epilogue(in[y][x][c])
//
// Config: planes Input, Output; types Epilogue, Isa; enum Serial, Reverse. May be in place (pointwise.hpp).
#pragma once

#include "n2d2/pointwise.hpp"

namespace n2d2 {

template <class Cfg>
struct CopyReader {
    typedef typename Cfg::Input Input;
    typedef typename Input::Type In;
    enum : int { Packed = PlaneTraits<Input>::Packed, Shape = SameShape<Input, typename Cfg::Output>::value };

    const In* from;

    N2D2_INLINE CopyReader(const unsigned char* in, int y) : from(line<Input>(in, y)) {}
    N2D2_INLINE CopyReader pixel(int x) const {
        CopyReader moved(*this);
        moved.from += x * Input::Stride;
        return moved;
    }
    N2D2_INLINE In at(int i, int) const { return from[i]; }
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct Copy {
    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out,
                                const Rows& rows = Rows::all<typename Cfg::Output>()) {
        pointwise<Cfg, CopyReader<Cfg>, false>(in, out, rows);
    }
};

N2D2_LAYER(copy, Copy<Cfg>)

}  // namespace n2d2
