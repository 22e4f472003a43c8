// Shared by shaders of rows: `Slices` invocations share a row and combine what they found in shared memory.
//
// Element k of row r lies at element `first + k * Inner` of tensors without gaps.
layout(constant_id = 36) const int Slices = 1;
layout(constant_id = 37) const int Rows = 1;
layout(constant_id = 38) const int Size = 1;
layout(constant_id = 39) const int Inner = 1;

shared uvec4 found[gl_WorkGroupSize.x * gl_WorkGroupSize.y * gl_WorkGroupSize.z];

int slice() { return Slices == 1 ? 0 : int(gl_LocalInvocationID.z); }

// What another slice of the row has found.
uvec4 foundBy(int other) { return found[gl_LocalInvocationIndex + uint(other - slice()) * gl_WorkGroupSize.x * gl_WorkGroupSize.y]; }

int row() { return min(int(gl_GlobalInvocationID.y), Rows - 1); }

int elementOf(int k) { return (row() / Inner * Size + k) * Inner + row() % Inner; }

int loaded(int k) { return elementAt(in0 + elementOf(k) * elementBytes(InKind), InKind); }

void store(int k, int value) {
    if (int(gl_GlobalInvocationID.y) < Rows)
        storeElement(outAt + elementOf(k) * elementBytes(OutKind), OutKind, value);
}
