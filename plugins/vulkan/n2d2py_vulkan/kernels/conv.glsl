// Convolution, dense or grouped, and fully connected layers: acc = bias + sum of weights times inputs, then rescaled.
//
// An invocation computes a quad of output channels at PIXELS positions that follow each other. The constants hold, for each quad, tap
// and four input channels, one word of four weights for each output channel of the quad; missing channels have weights of 0. Where
// `Slices` is more than 1, that many invocations share the input channels and add their sums in shared memory.
//
// DOT: products by OpSDot of SPV_KHR_integer_dot_product. Bytes without sign become signed ones by subtracting 128, and the bias makes
// up for that. Otherwise products are summed in float32, 512 at a time: such sums are below 2^24, so that every one is exact.
#version 450
#extension GL_GOOGLE_include_directive : require
#if DOT
#extension GL_EXT_spirv_intrinsics : require
#endif
#include "common.glsl"

#if DOT
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4450)
int signedDot(uint a, uint b, spirv_literal int format);
#endif

layout(constant_id = 36) const int Slices = 1;
layout(constant_id = 37) const int Groups = 1;
layout(constant_id = 38) const int GroupOutputs = 1;
layout(constant_id = 39) const int GroupInputs = 1;
layout(constant_id = 40) const int InputQuads = 1;
layout(constant_id = 41) const int PadWord = 0;
// The sum with a second input, as ResidualAdd in n2d2py/graph/quant.py.
layout(constant_id = 42) const bool Residual = false;
layout(constant_id = 43) const int OwnMultiplier = 1;
layout(constant_id = 44) const int ResidualMultiplier = 1;
layout(constant_id = 45) const int ResidualOffset = 0;
layout(constant_id = 46) const int SumMultiplier = 1;
layout(constant_id = 47) const int SumShift = 0;
layout(constant_id = 48) const int SumLow = 0;
layout(constant_id = 49) const int SumHigh = 255;
layout(constant_id = 50) const int SumZero = 0;

shared ivec4 partial[gl_WorkGroupSize.x * gl_WorkGroupSize.y * gl_WorkGroupSize.z];

const int GroupQuads = (GroupOutputs + 3) / 4;

void main() {
    const int quad = min(int(gl_GlobalInvocationID.x), Groups * GroupQuads - 1);
    const int pixel0 = int(gl_GlobalInvocationID.y) * PIXELS;
    const int slice = int(gl_LocalInvocationID.z);
    const int group = quad / GroupQuads;
    const bool isSigned = InKind == Int8;
    const int first = InputQuads * slice / Slices, stop = InputQuads * (slice + 1) / Slices;

    int top[PIXELS], left[PIXELS];
    ivec4 acc[PIXELS];
    for (int i = 0; i < PIXELS; ++i) {
        const int pixel = min(pixel0 + i, OutHeight * OutWidth - 1);
        top[i] = pixel / OutWidth * StrideHeight - PadTop;
        left[i] = pixel % OutWidth * StrideWidth - PadLeft;
        acc[i] = ivec4(0);
    }
#if !DOT
    vec4 sums[PIXELS];
    for (int i = 0; i < PIXELS; ++i)
        sums[i] = vec4(0);
    int summed = 0;
#endif
    int weight = weights + quad * KernelHeight * KernelWidth * InputQuads;
    for (int ky = 0; ky < KernelHeight; ++ky)
        for (int kx = 0; kx < KernelWidth; ++kx, weight += InputQuads) {
            int at[PIXELS];
            for (int i = 0; i < PIXELS; ++i) {
                const int y = top[i] + ky * DilationHeight, x = left[i] + kx * DilationWidth;
                const bool inside = uint(y) < uint(InHeight) && uint(x) < uint(InWidth);
                at[i] = inside ? in0 + y * InPitch + x * InStride + group * GroupInputs : -1;
            }
#if DOT
            for (int q = first; q < stop; ++q) {
                const uvec4 w = uvec4(constantQuads.quads[weight + q]);
                for (int i = 0; i < PIXELS; ++i) {
                    uint x = at[i] < 0 ? uint(PadWord) : wordAt(at[i] + 4 * q, InAligned);
                    if (!isSigned)
                        x ^= 0x80808080u;
                    acc[i] += ivec4(signedDot(x, w.x, 0), signedDot(x, w.y, 0), signedDot(x, w.z, 0), signedDot(x, w.w, 0));
                }
            }
#else
            for (int begin = first; begin < stop; begin += 128) {
                const int end = min(begin + 128, stop);
                if (summed + end - begin > 128) {
                    for (int i = 0; i < PIXELS; ++i) {
                        acc[i] += ivec4(sums[i]);
                        sums[i] = vec4(0);
                    }
                    summed = 0;
                }
                summed += end - begin;
                for (int q = begin; q < end; ++q) {
                    const uvec4 w = uvec4(constantQuads.quads[weight + q]);
                    const mat4 taps = mat4(vec4(bytesOf(w.x, true)), vec4(bytesOf(w.y, true)), vec4(bytesOf(w.z, true)),
                                           vec4(bytesOf(w.w, true)));
                    for (int i = 0; i < PIXELS; ++i) {
                        const uint x = at[i] < 0 ? uint(PadWord) : wordAt(at[i] + 4 * q, InAligned);
                        sums[i] += vec4(bytesOf(x, isSigned)) * taps;
                    }
                }
            }
#endif
        }
#if !DOT
    for (int i = 0; i < PIXELS; ++i)
        acc[i] += ivec4(sums[i]);
#endif
#if PIXELS == 1
    if (Slices > 1) {
        const uint place = gl_LocalInvocationIndex, plane = gl_WorkGroupSize.x * gl_WorkGroupSize.y;
        partial[place] = acc[0];
        barrier();
        if (slice > 0)
            return;
        for (int s = 1; s < Slices; ++s)
            acc[0] += partial[place + uint(s) * plane];
    }
#endif
    if (int(gl_GlobalInvocationID.x) >= Groups * GroupQuads)
        return;
    const int channel = group * GroupOutputs + quad % GroupQuads * 4;
    const int count = min(4, GroupOutputs - quad % GroupQuads * 4);
    ivec4 bias, multiplier, shift;
    for (int l = 0; l < 4; ++l) {
        const ivec4 of = parametersOf(4 * quad + l);
        bias[l] = of.x;
#if DOT
        if (!isSigned)
            bias[l] += of.w;
#endif
        multiplier[l] = of.y;
        shift[l] = shiftOf(of);
    }
    for (int i = 0; i < PIXELS; ++i) {
        const int pixel = pixel0 + i;
        if (pixel >= OutHeight * OutWidth)
            return;
        const int y = pixel / OutWidth, x = pixel % OutWidth;
        ivec4 value;
        for (int l = 0; l < 4; ++l)
            value[l] = clamp(rescaled(acc[i][l] + bias[l], multiplier[l], shift[l]), Low, High) + Zero;
        if (Residual) {
            const int at = in1 + y * InPitch1 + x * InStride1 + channel * elementBytes(InKind1);
            const ivec4 other = quadAt(at, InKind1, InAligned1);
            for (int l = 0; l < 4; ++l) {
                const int sum = OwnMultiplier * value[l] + ResidualMultiplier * other[l] + ResidualOffset;
                value[l] = clamp(rescaled(sum, SumMultiplier, SumShift), SumLow, SumHigh) + SumZero;
            }
        }
        storeQuad(outAt + y * OutPitch + x * OutStride + channel * elementBytes(OutKind), OutKind, OutAligned, value, count);
    }
}
