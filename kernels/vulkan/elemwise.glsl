// One or two tensors combined element by element, or one that is looked up or copied.
//
//   Operation 0   first * M0 + second * M1 + Offset       3   product
//             1   largest of first * M0, second * M1      4   table of first - TableLow
//             2   smallest of them                        5   first
//
// `first` and `second` are the stored integers less their zero points, but for a table. The result of 0, 1, 2, 3 and 5 is rescaled by
// parameter 0. An output position reads the input position that nearest interpolation gives: the same one where both have one size.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 3) const int Operation = 0;
layout(constant_id = 4) const int Channels = 1;
layout(constant_id = 5) const int OutHeight = 1;
layout(constant_id = 6) const int OutWidth = 1;
layout(constant_id = 7) const int OutStride = 1;
layout(constant_id = 8) const int OutPitch = 1;
layout(constant_id = 9) const int OutKind = 0;
layout(constant_id = 10) const bool OutAligned = true;
layout(constant_id = 11) const int InHeight0 = 1;
layout(constant_id = 12) const int InWidth0 = 1;
layout(constant_id = 13) const int InStride0 = 1;
layout(constant_id = 14) const int InPitch0 = 1;
layout(constant_id = 15) const int InKind0 = 0;
layout(constant_id = 16) const bool InAligned0 = true;
layout(constant_id = 17) const int InZero0 = 0;
layout(constant_id = 18) const int M0 = 1;
layout(constant_id = 19) const int InHeight1 = 1;
layout(constant_id = 20) const int InWidth1 = 1;
layout(constant_id = 21) const int InStride1 = 1;
layout(constant_id = 22) const int InPitch1 = 1;
layout(constant_id = 23) const int InKind1 = 0;
layout(constant_id = 24) const bool InAligned1 = true;
layout(constant_id = 25) const int InZero1 = 0;
layout(constant_id = 26) const int M1 = 1;
layout(constant_id = 27) const int Offset = 0;
layout(constant_id = 28) const int TableLow = 0;
layout(constant_id = 29) const int Low = 0;
layout(constant_id = 30) const int High = 255;
layout(constant_id = 31) const int Zero = 0;
layout(constant_id = 32) const int Shift = -1;

const int Quads = (Channels + 3) / 4;

void main() {
    const int quad = int(gl_GlobalInvocationID.x), pixel = int(gl_GlobalInvocationID.y);
    if (quad >= Quads || pixel >= OutHeight * OutWidth)
        return;
    const int y = pixel / OutWidth, x = pixel % OutWidth, channel = 4 * quad;
    const int at0 = in0 + y * InHeight0 / OutHeight * InPitch0 + x * InWidth0 / OutWidth * InStride0;
    ivec4 value = quadAt(at0 + channel * elementBytes(InKind0), InKind0, InAligned0);
    if (Operation == 4) {
        const int count = min(4, Channels - channel);  // the others may be beyond the table
        for (int l = 0; l < 4; ++l)
            value[l] = constants.words[weights + (l < count ? max(value[l] - TableLow, 0) : 0)];
    } else {
        value -= InZero0;
        if (Operation < 4) {
            const int at1 = in1 + y * InHeight1 / OutHeight * InPitch1 + x * InWidth1 / OutWidth * InStride1;
            const ivec4 second = quadAt(at1 + channel * elementBytes(InKind1), InKind1, InAligned1) - InZero1;
            if (Operation == 0)
                value = value * M0 + second * M1 + Offset;
            else if (Operation == 1)
                value = max(value * M0, second * M1);
            else if (Operation == 2)
                value = min(value * M0, second * M1);
            else
                value *= second;
        }
        const ivec4 of = parametersOf(0);
        for (int l = 0; l < 4; ++l)
            value[l] = clamp(rescaled(value[l], of.y, shiftOf(of, Shift)), Low, High) + Zero;
    }
    const int at = outAt + y * OutPitch + x * OutStride + channel * elementBytes(OutKind);
    storeQuad(at, OutKind, OutAligned, value, min(4, Channels - channel));
}
