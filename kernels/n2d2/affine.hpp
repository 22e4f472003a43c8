// Gain and shift per channel.
//
//   out[y][x][c] = Epilogue(weights[c] * in[y][x][c] + bias[c])
//
// Sums are in Cfg::Sum. Config: planes Input, Output; types Weight, Sum, Epilogue, Isa; enum Serial, Reverse.
// May be in place (pointwise.hpp).
#pragma once

#include "n2d2/pointwise.hpp"

namespace n2d2 {

template <class Cfg>
struct AffineReader {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Weight Weight;
    typedef typename Cfg::Sum Sum;
    enum : int { Packed = 0, Shape = SameShape<Input, typename Cfg::Output>::value };

    struct Source {
        const unsigned char* in;
        const Weight* weights;
        const Sum* bias;
    };

    const typename Input::Type* from;
    const Weight* weights;
    const Sum* bias;

    N2D2_INLINE AffineReader(const Source& source, int y)
        : from(line<Input>(source.in, y)), weights(source.weights), bias(source.bias) {}
    N2D2_INLINE AffineReader pixel(int x) const {
        AffineReader moved(*this);
        moved.from += x * Input::Stride;
        return moved;
    }
    N2D2_INLINE Sum at(int i, int channel) const {
        return unfused(static_cast<Sum>(from[i]) * static_cast<Sum>(weights[channel])) + bias[channel];
    }
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct Affine {
    typedef AffineReader<Cfg> Reader;
    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum* bias, const Rows& rows = Rows::all<typename Cfg::Output>()) {
        const typename Reader::Source source = {in, weights, bias};
        pointwise<Cfg, Reader, true>(source, out, rows);
    }
};

N2D2_LAYER(affine, Affine<Cfg>)

}  // namespace n2d2
