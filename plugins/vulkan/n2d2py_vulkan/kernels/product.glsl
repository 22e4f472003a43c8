// Product of two matrices that are activations: acc = sum over k of (left - InZero) * (right - InZero1), rescaled.
//
// An invocation computes PIXELS rows of four columns. Operands and result lie at any steps, in bytes, from matrix to matrix, row to
// row and column to column. `Channels` are the columns of the result.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 36) const int Batch = 1;
layout(constant_id = 37) const int Rows = 1;
layout(constant_id = 38) const int Depth = 1;
layout(constant_id = 39) const int LeftBatch = 0;
layout(constant_id = 40) const int LeftRow = 0;
layout(constant_id = 41) const int LeftDepth = 0;
layout(constant_id = 42) const int RightBatch = 0;
layout(constant_id = 43) const int RightDepth = 0;
layout(constant_id = 44) const int RightColumn = 0;
layout(constant_id = 45) const int OutBatch = 0;
layout(constant_id = 46) const int OutRow = 0;
layout(constant_id = 47) const int OutColumn = 0;
// The right operand is read four k at a time for each column, else four columns at a time for each k.
layout(constant_id = 48) const bool ByColumns = true;

const int Blocks = (Rows + PIXELS - 1) / PIXELS;

// Elements k to k + 3, `step` bytes apart; what is behind the last one is of no meaning.
ivec4 quadOf(int first, int k, int step, int kind, bool aligned) {
    if (step == elementBytes(kind))
        return quadAt(first + k * step, kind, aligned);
    ivec4 found;
    for (int j = 0; j < 4; ++j)
        found[j] = elementAt(first + min(k + j, Depth - 1) * step, kind);
    return found;
}

// Column l of k to k + 3, or the columns of k + l.
ivec4 rightQuad(int right[4], int k, int l) {
    if (ByColumns)
        return quadOf(right[l], k, RightDepth, InKind1, InAligned1) - InZero1;
    return quadAt(right[0] + min(k + l, Depth - 1) * RightDepth, InKind1, InAligned1) - InZero1;
}

void main() {
    const int column = 4 * int(gl_GlobalInvocationID.x), block = int(gl_GlobalInvocationID.y);
    if (column >= Channels || block >= Batch * Blocks)
        return;
    const int batch = block / Blocks, row0 = block % Blocks * PIXELS;
    int left[PIXELS];
    ivec4 acc[PIXELS];
    for (int i = 0; i < PIXELS; ++i) {
        left[i] = in0 + batch * LeftBatch + min(row0 + i, Rows - 1) * LeftRow;
        acc[i] = ivec4(0);
    }
    int right[4];
    for (int l = 0; l < 4; ++l)
        right[l] = in1 + batch * RightBatch + min(column + l, Channels - 1) * RightColumn;
    for (int k = 0; k < Depth; k += 4) {
        ivec4 factors[4];  // of columns, for each of four k
        for (int l = 0; l < 4; ++l) {
            const ivec4 loaded = rightQuad(right, k, l);
            for (int j = 0; j < 4; ++j)
                if (ByColumns)
                    factors[j][l] = loaded[j];
                else
                    factors[l][j] = loaded[j];
        }
        for (int i = 0; i < PIXELS; ++i) {
            const ivec4 x = quadOf(left[i], k, LeftDepth, InKind, InAligned) - InZero;
            for (int j = 0; j < 4; ++j)
                if (k + j < Depth)
                    acc[i] += x[j] * factors[j];
        }
    }
    const ivec4 of = parametersOf(0);
    for (int i = 0; i < PIXELS && row0 + i < Rows; ++i)
        for (int l = 0; l < 4 && column + l < Channels; ++l) {
            const int value = clamp(rescaled(acc[i][l], of.y, shiftOf(of)), Low, High) + Zero;
            const int at = outAt + batch * OutBatch + (row0 + i) * OutRow + (column + l) * OutColumn;
            storeElement(at, OutKind, value);
        }
}
