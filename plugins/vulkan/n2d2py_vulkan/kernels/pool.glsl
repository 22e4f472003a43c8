// Maximum, or sum, of a window of each channel.
//
// An invocation computes a quad of channels at one position. A mean is the sum of the stored integers less `InZero`, rescaled; parameter
// k - 1 is for windows of k elements where `PerCount`, and parameter 0 is for all of them otherwise.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 36) const bool Mean = false;
layout(constant_id = 37) const bool PerCount = false;

void main() {
    const int quad = int(gl_GlobalInvocationID.x), pixel = int(gl_GlobalInvocationID.y);
    if (quad >= Quads || pixel >= OutHeight * OutWidth)
        return;
    const int oy = pixel / OutWidth, ox = pixel % OutWidth;
    const int top = oy * StrideHeight - PadTop, left = ox * StrideWidth - PadLeft;
    const int y0 = max(top, 0), y1 = min(top + KernelHeight, InHeight), x0 = max(left, 0), x1 = min(left + KernelWidth, InWidth);
    ivec4 value = ivec4(Mean ? 0 : int(0x80000000u));
    for (int y = y0; y < y1; ++y)
        for (int x = x0; x < x1; ++x) {
            const ivec4 in4 =
                quadAt(in0 + y * InPitch + x * InStride + 4 * quad * elementBytes(InKind), InKind, InAligned);
            value = Mean ? value + in4 - InZero : max(value, in4);
        }
    if (Mean) {
        const ivec4 of = parametersOf(PerCount ? (y1 - y0) * (x1 - x0) - 1 : 0);
        for (int l = 0; l < 4; ++l)
            value[l] = rescaled(value[l], of.y, shiftOf(of));
    }
    value = clamp(value, Low, High) + Zero;
    const int at = outAt + oy * OutPitch + ox * OutStride + 4 * quad * elementBytes(OutKind);
    storeQuad(at, OutKind, OutAligned, value, min(4, Channels - 4 * quad));
}
