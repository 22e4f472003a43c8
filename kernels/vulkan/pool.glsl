// Maximum, or sum, of a window of each channel.
//
// An invocation computes a quad of channels at one position. A mean is the sum of the stored integers less `InZero`, rescaled; parameter
// k - 1 is for windows of k elements where `PerCount`, and parameter 0 is for all of them otherwise.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 3) const int Channels = 1;
layout(constant_id = 4) const int InHeight = 1;
layout(constant_id = 5) const int InWidth = 1;
layout(constant_id = 6) const int InStride = 1;
layout(constant_id = 7) const int InPitch = 1;
layout(constant_id = 8) const int InKind = 0;
layout(constant_id = 9) const bool InAligned = true;
layout(constant_id = 10) const int InZero = 0;
layout(constant_id = 11) const int OutHeight = 1;
layout(constant_id = 12) const int OutWidth = 1;
layout(constant_id = 13) const int OutStride = 1;
layout(constant_id = 14) const int OutPitch = 1;
layout(constant_id = 15) const int OutKind = 0;
layout(constant_id = 16) const bool OutAligned = true;
layout(constant_id = 17) const int KernelHeight = 1;
layout(constant_id = 18) const int KernelWidth = 1;
layout(constant_id = 19) const int StrideHeight = 1;
layout(constant_id = 20) const int StrideWidth = 1;
layout(constant_id = 21) const int PadTop = 0;
layout(constant_id = 22) const int PadLeft = 0;
layout(constant_id = 23) const int Low = 0;
layout(constant_id = 24) const int High = 255;
layout(constant_id = 25) const int Zero = 0;
layout(constant_id = 26) const bool Mean = false;
layout(constant_id = 27) const bool PerCount = false;
layout(constant_id = 28) const int Shift = -1;

const int Quads = (Channels + 3) / 4;

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
            value[l] = rescaled(value[l], of.y, shiftOf(of, Shift));
    }
    value = clamp(value, Low, High) + Zero;
    const int at = outAt + oy * OutPitch + ox * OutStride + 4 * quad * elementBytes(OutKind);
    storeQuad(at, OutKind, OutAligned, value, min(4, Channels - 4 * quad));
}
