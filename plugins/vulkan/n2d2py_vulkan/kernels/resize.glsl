// Bilinear interpolation: acc = sum of the four neighbours less InZero, times the integer weights of their line and column, rescaled.
//
// The constants hold a quad for each output line, then for each output column: the bytes of its two neighbours, and their weights.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

// A quad of channels at two columns of a line, weighted.
ivec4 across(int line, ivec4 column) {
    return column.z * (quadAt(line + column.x, InKind, InAligned) - InZero) +
           column.w * (quadAt(line + column.y, InKind, InAligned) - InZero);
}

void main() {
    const int channel = 4 * int(gl_GlobalInvocationID.x), pixel = int(gl_GlobalInvocationID.y);
    if (channel >= Channels || pixel >= OutHeight * OutWidth)
        return;
    const int y = pixel / OutWidth, x = pixel % OutWidth;
    const ivec4 line = constantQuads.quads[weights + y], column = constantQuads.quads[weights + OutHeight + x];
    const int first = in0 + channel * elementBytes(InKind);
    const ivec4 of = parametersOf(0);
    ivec4 value = line.z * across(first + line.x, column) + line.w * across(first + line.y, column);
    for (int l = 0; l < 4; ++l)
        value[l] = clamp(rescaled(value[l], of.y, shiftOf(of)), Low, High) + Zero;
    const int at = outAt + y * OutPitch + x * OutStride + channel * elementBytes(OutKind);
    storeQuad(at, OutKind, OutAligned, value, min(4, Channels - channel));
}
