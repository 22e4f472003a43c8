// Depthwise convolution: each channel has its own window.
//
// An invocation computes a quad of channels at PIXELS positions of a line. The constants hold a word of four weights for each tap and
// quad. Products are summed in float32: at most 512 of bytes, below 2^24, so that every sum is exact.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

const int Blocks = (OutWidth + PIXELS - 1) / PIXELS;

void main() {
    const int quad = int(gl_GlobalInvocationID.x), block = int(gl_GlobalInvocationID.y);
    if (quad >= Quads || block >= OutHeight * Blocks)
        return;
    const int oy = block / Blocks, ox = block % Blocks * PIXELS;
    vec4 sums[PIXELS];
    for (int i = 0; i < PIXELS; ++i)
        sums[i] = vec4(0);
    for (int ky = 0; ky < KernelHeight; ++ky) {
        const int y = oy * StrideHeight - PadTop + ky * DilationHeight;
        const bool inLine = uint(y) < uint(InHeight);
        for (int kx = 0; kx < KernelWidth; ++kx) {
            const vec4 weight = vec4(bytesOf(uint(constants.words[4 * weights + (ky * KernelWidth + kx) * Quads + quad]), true));
            for (int i = 0; i < PIXELS; ++i) {
                const int x = (ox + i) * StrideWidth - PadLeft + kx * DilationWidth;
                const bool inside = inLine && uint(x) < uint(InWidth);
                const int at = in0 + y * InPitch + x * InStride + 4 * quad;
                sums[i] += weight * (inside ? vec4(quadAt(at, InKind, InAligned)) : vec4(InZero));
            }
        }
    }
    const int channel = 4 * quad, count = min(4, Channels - channel);
    ivec4 of[4];
    for (int l = 0; l < 4; ++l)
        of[l] = parametersOf(channel + l);
    for (int i = 0; i < PIXELS && ox + i < OutWidth; ++i) {
        ivec4 value;
        for (int l = 0; l < 4; ++l)
            value[l] = clamp(rescaled(int(sums[i][l]) + of[l].x, of[l].y, shiftOf(of[l])), Low, High) + Zero;
        const int at = outAt + oy * OutPitch + (ox + i) * OutStride + channel * elementBytes(OutKind);
        storeQuad(at, OutKind, OutAligned, value, count);
    }
}
