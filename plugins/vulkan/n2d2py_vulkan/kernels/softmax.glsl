// Softmax of rows: shares of powers e of how far each element is below the largest one (n2d2py/arithmetic/attention.py).
//
// The constants hold the 256 powers of bytes, where `Multiplier` is 0, and then a row of bits for each of `Masks` rows that tells which
// elements count.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "wide.glsl"
#include "rows.glsl"

layout(constant_id = 40) const int Multiplier = 0;
layout(constant_id = 41) const int PowerShift = 0;
layout(constant_id = 42) const int Limit = 0;
layout(constant_id = 43) const int NumeratorLow = 0;
layout(constant_id = 44) const int NumeratorHigh = 0;
layout(constant_id = 45) const int Masks = 0;

bool counts(int k) {
    if (Masks == 0)
        return true;
    const int line = 4 * weights + (Multiplier == 0 ? 256 : 0) + row() % Masks * ((Size + 31) / 32);
    return (constants.words[line + k / 32] >> (k % 32) & 1) != 0;
}

// e, in 2^-15, of an element that is `below` under the largest one.
int powerOf(int below) {
    if (Multiplier == 0)
        return constants.words[4 * weights + below];
    const int x = min(min(below, Limit) * Multiplier >> PowerShift, 17 << 16);
    const uint f = uint(x & 65535);
    const uint lost = (45423u - ((15701u - ((3496u - (450u * f >> 16)) * f >> 16)) * f >> 16)) * f >> 16;
    return (int(65536u - lost) >> (x >> 16)) + 1 >> 1;
}

void main() {
    int largest = int(0x80000000u);
    for (int k = slice(); k < Size; k += Slices)
        if (counts(k))
            largest = max(largest, loaded(k));
    if (Slices > 1) {
        found[gl_LocalInvocationIndex].x = uint(largest);
        barrier();
        for (int s = 0; s < Slices; ++s)
            largest = max(largest, int(foundBy(s).x));
        barrier();
    }
    int total = 0;
    for (int k = slice(); k < Size; k += Slices)
        if (counts(k))
            total += powerOf(largest - loaded(k));
    if (Slices > 1) {
        found[gl_LocalInvocationIndex].x = uint(total);
        barrier();
        total = 0;
        for (int s = 0; s < Slices; ++s)
            total += int(foundBy(s).x);
    }
    const uvec2 inverse = quotient(uvec2(NumeratorLow, NumeratorHigh), uint(total));
    for (int k = slice(); k < Size; k += Slices) {
        const int power = counts(k) ? powerOf(largest - loaded(k)) : 0;
        store(k, clamp(roundedRight(times(inverse, uint(power)), 32), Low, High) + Zero);
    }
}
