// One or two tensors combined element by element, or one that is looked up, scaled or moved.
//
//   Operation 0   first * M0 + second * M1 + Offset       4   table of first - TableLow
//             1   largest of first * M0, second * M1      5   first
//             2   smallest of them                        6   first times a gain for each channel, plus a bias
//             3   product                                 7   the element at a place that tables give, or Fill
//
// `first` and `second` are the stored integers less their zero points, but for 4 and 7; the second one may be constants of each channel.
// Results but that of 4 are rescaled, by parameter 0 or, of 6, those of the channel. Wide: sums of 64 bits. An output position reads the
// input position that nearest interpolation gives: the same one where both have one size, the only one of an axis that is repeated.
//
// Moved: element n of the output, in the order of memory, is at byte Outer[n / Inner] + Inner[n % Inner] of the input, filled where that is
// negative. The tables follow each other.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "wide.glsl"

layout(constant_id = 36) const int Operation = 0;
layout(constant_id = 37) const int M0 = 1;
layout(constant_id = 38) const int M1 = 1;
layout(constant_id = 39) const int Offset = 0;
layout(constant_id = 40) const int OffsetHigh = 0;
layout(constant_id = 41) const bool Wide = false;
layout(constant_id = 42) const int TableLow = 0;
layout(constant_id = 43) const bool Repeated = false;
layout(constant_id = 44) const bool Repeated1 = false;
layout(constant_id = 45) const bool Constant1 = false;
layout(constant_id = 46) const int Outer = 1;
layout(constant_id = 47) const int Inner = 1;
layout(constant_id = 48) const int Fill = 0;

// A quad of channels, or the only channel for all of them.
ivec4 operandAt(int at, int channel, int kind, bool aligned, bool repeated) {
    return repeated ? ivec4(elementAt(at, kind)) : quadAt(at + channel * elementBytes(kind), kind, aligned);
}

ivec4 moved(int first, int count) {
    ivec4 value = ivec4(0);
    for (int l = 0; l < count; ++l) {
        const int n = first + l;
        const int at = constants.words[4 * weights + n / Inner] + constants.words[4 * weights + Outer + n % Inner];
        value[l] = at < 0 ? Fill : elementAt(in0 + at, InKind);
    }
    return value;
}

void main() {
    const int quad = int(gl_GlobalInvocationID.x), pixel = int(gl_GlobalInvocationID.y);
    if (quad >= Quads || pixel >= OutHeight * OutWidth)
        return;
    const int y = pixel / OutWidth, x = pixel % OutWidth, channel = 4 * quad, count = min(4, Channels - channel);
    const int at0 = in0 + y * InHeight / OutHeight * InPitch + x * InWidth / OutWidth * InStride;
    ivec4 value = Operation == 7 ? moved(pixel * Channels + channel, count) :
                                   operandAt(at0, channel, InKind, InAligned, Repeated);
    if (Operation == 4) {
        for (int l = 0; l < 4; ++l)  // channels behind the last one may be beyond the table
            value[l] = constants.words[4 * weights + (l < count ? max(value[l] - TableLow, 0) : 0)];
    } else {
        ivec4 second = ivec4(0), of = parametersOf(0);
        if (Operation < 4) {
            const int at1 = in1 + y * InHeight1 / OutHeight * InPitch1 + x * InWidth1 / OutWidth * InStride1;
            second = Constant1 ? constantQuads.quads[weights + min(y, InHeight1 - 1) * Quads + quad] :
                                 operandAt(at1, channel, InKind1, InAligned1, Repeated1) - InZero1;
        }
        if (Operation != 7)
            value -= InZero;
        const ivec4 own = value;
        if (Operation == 0)
            value = value * M0 + second * M1 + Offset;
        else if (Operation == 1)
            value = max(value * M0, second * M1);
        else if (Operation == 2)
            value = min(value * M0, second * M1);
        else if (Operation == 3)
            value *= second;
        for (int l = 0; l < 4; ++l) {
            if (Operation == 6) {
                of = parametersOf(channel + min(l, count - 1));
                value[l] = value[l] * of.w + of.x;
            }
            if (Wide) {
                const uvec2 sum = plus(plus(timesSigned(own[l], M0), timesSigned(second[l], M1)), uvec2(Offset, OffsetHigh));
                value[l] = roundedRight(times(sum, uint(of.y)), shiftOf(of));
            } else
                value[l] = rescaled(value[l], of.y, shiftOf(of));
            value[l] = clamp(value[l], Low, High) + Zero;
        }
    }
    const int at = outAt + y * OutPitch + x * OutStride + channel * elementBytes(OutKind);
    storeQuad(at, OutKind, OutAligned, value, count);
}
