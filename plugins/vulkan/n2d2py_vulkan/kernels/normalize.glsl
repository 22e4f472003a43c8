// Normalization of rows: elements less their mean, over their deviation, times a gain plus an offset (n2d2py/arithmetic/attention.py).
//
// The constants hold four words for each of `Gains` elements, one for all of them or one for each: offset, its upper word, gain.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "wide.glsl"
#include "rows.glsl"

layout(constant_id = 40) const bool Centred = true;
layout(constant_id = 41) const int EpsilonLow = 0;
layout(constant_id = 42) const int EpsilonHigh = 0;
layout(constant_id = 43) const int Fraction = 0;
layout(constant_id = 44) const int Gains = 1;

void main() {
    int total = 0;
    uvec2 squares = uvec2(0);
    for (int k = slice(); k < Size; k += Slices) {
        const int d = loaded(k) - InZero;
        total += d;
        squares = plus(squares, times(uint(abs(d)), uint(abs(d))));
    }
    if (Slices > 1) {
        found[gl_LocalInvocationIndex] = uvec4(uint(total), squares, 0);
        barrier();
        total = 0;
        squares = uvec2(0);
        for (int s = 0; s < Slices; ++s) {
            const uvec4 part = foundBy(s);
            total += int(part.x);
            squares = plus(squares, part.yz);
        }
    }
    if (!Centred)
        total = 0;
    uvec2 v = plus(times(squares, uint(Size)), negative(times(uint(abs(total)), uint(abs(total)))));
    v = plus(v, uvec2(EpsilonLow, EpsilonHigh));
    const int k4 = (61 - (v.y == 0u ? findMSB(v.x) : 32 + findMSB(v.y))) / 2;
    const uvec2 inverse = quotient(uvec2(0, 1u << 29), integerRoot(shiftedLeft(v, 2 * k4)));
    const ivec4 of = parametersOf(0);
    for (int k = slice(); k < Size; k += Slices) {
        const int away = Size * (loaded(k) - InZero) - total;
        uvec2 product = times(inverse, uint(abs(away)));
        if (away < 0)
            product = negative(product);
        const ivec4 gain = constantQuads.quads[weights + min(k, Gains - 1)];
        const uvec2 acc = plus(timesSigned(roundedRight(product, 61 - k4 - Fraction), gain.z), uvec2(gain.xy));
        store(k, clamp(roundedRight(times(acc, uint(of.y)), shiftOf(of)), Low, High) + Zero);
    }
}
