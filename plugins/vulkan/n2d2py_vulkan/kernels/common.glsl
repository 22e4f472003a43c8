// Shared by all shaders: buffers, loads, stores, and the rescaling that n2d2py/arithmetic/rescale.py defines.
//
// Binding 0 is the arena of the memory plan, binding 1 the constants of all layers. A plane is a tensor in channels-last order: the
// element (y, x, c) is at byte `offset + y * pitch + x * stride + c * size`. A quad is four channels that follow each other.
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require

layout(set = 0, binding = 0) buffer ArenaWords { uint words[]; } arena;
layout(set = 0, binding = 0) buffer ArenaHalfwords { uint16_t halfwords[]; } arenaHalfwords;
layout(set = 0, binding = 0) buffer ArenaBytes { uint8_t bytes[]; } arenaBytes;
layout(set = 0, binding = 1) readonly buffer ConstantWords { int words[]; } constants;
layout(set = 0, binding = 1) readonly buffer ConstantQuads { ivec4 quads[]; } constantQuads;

// Bytes of the arena where the planes begin; quads of the constants where weights (or a table) and parameters begin.
layout(push_constant) uniform Places {
    int in0;
    int in1;
    int outAt;
    int weights;
    int parameters;
};

layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;

// Specialization constants of all shaders; those of a shader follow.
// Input and output: elements, bytes from pixel to pixel and from line to line, kind, whether a quad of bytes is a word, zero point; the
// limits of the result before the zero point is added, and the shift of all channels, negative where each has its own.
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
layout(constant_id = 17) const int Low = 0;
layout(constant_id = 18) const int High = 255;
layout(constant_id = 19) const int Zero = 0;
layout(constant_id = 20) const int Shift = -1;
// Window of a convolution or a pool.
layout(constant_id = 21) const int KernelHeight = 1;
layout(constant_id = 22) const int KernelWidth = 1;
layout(constant_id = 23) const int StrideHeight = 1;
layout(constant_id = 24) const int StrideWidth = 1;
layout(constant_id = 25) const int DilationHeight = 1;
layout(constant_id = 26) const int DilationWidth = 1;
layout(constant_id = 27) const int PadTop = 0;
layout(constant_id = 28) const int PadLeft = 0;
// Second input.
layout(constant_id = 29) const int InHeight1 = 1;
layout(constant_id = 30) const int InWidth1 = 1;
layout(constant_id = 31) const int InStride1 = 1;
layout(constant_id = 32) const int InPitch1 = 1;
layout(constant_id = 33) const int InKind1 = 0;
layout(constant_id = 34) const bool InAligned1 = true;
layout(constant_id = 35) const int InZero1 = 0;

const int Quads = (Channels + 3) / 4;

// Kinds of elements.
const int UInt8 = 0, Int8 = 1, UInt16 = 2, Int16 = 3, Int32 = 4;

int elementBytes(int kind) { return kind < UInt16 ? 1 : kind < Int32 ? 2 : 4; }

// Four elements of a word, or of two.
ivec4 bytesOf(uint word, bool isSigned) {
    return isSigned ? ivec4(bitfieldExtract(int(word), 0, 8), bitfieldExtract(int(word), 8, 8),
                            bitfieldExtract(int(word), 16, 8), bitfieldExtract(int(word), 24, 8))
                    : ivec4(word & 255u, word >> 8 & 255u, word >> 16 & 255u, word >> 24);
}

// The word at a byte of the arena, which the buffer holds also behind the last plane.
uint wordAt(int at, bool aligned) {
    const uint word = arena.words[at >> 2];
    const int past = 8 * (at & 3);
    return aligned || past == 0 ? word : word >> past | arena.words[(at >> 2) + 1] << (32 - past);
}

// A quad of elements. Those behind the last channel are of no meaning.
ivec4 quadAt(int at, int kind, bool aligned) {
    if (kind < UInt16)
        return bytesOf(wordAt(at, aligned), kind == Int8);
    if (kind == Int32)
        return ivec4(arena.words[at >> 2], arena.words[(at >> 2) + 1], arena.words[(at >> 2) + 2], arena.words[(at >> 2) + 3]);
    const int half0 = at >> 1;
    const ivec4 values = ivec4(uint(arenaHalfwords.halfwords[half0]), uint(arenaHalfwords.halfwords[half0 + 1]),
                               uint(arenaHalfwords.halfwords[half0 + 2]), uint(arenaHalfwords.halfwords[half0 + 3]));
    return kind == Int16 ? values << 16 >> 16 : values;
}

// An element.
int elementAt(int at, int kind) {
    if (kind < UInt16) {
        const int value = int(arenaBytes.bytes[at]);
        return kind == Int8 ? bitfieldExtract(value, 0, 8) : value;
    }
    if (kind == Int32)
        return int(arena.words[at >> 2]);
    const int value = int(arenaHalfwords.halfwords[at >> 1]);
    return kind == Int16 ? value << 16 >> 16 : value;
}

void storeElement(int at, int kind, int value) {
    if (kind < UInt16)
        arenaBytes.bytes[at] = uint8_t(value & 255);
    else if (kind < Int32)
        arenaHalfwords.halfwords[at >> 1] = uint16_t(value & 65535);
    else
        arena.words[at >> 2] = uint(value);
}

// Stores the first `count` elements of a quad.
void storeQuad(int at, int kind, bool aligned, ivec4 values, int count) {
    if (kind < UInt16 && aligned && count >= 4) {
        const uvec4 low = uvec4(values) & 255u;
        arena.words[at >> 2] = low.x | low.y << 8 | low.z << 16 | low.w << 24;
        return;
    }
    for (int i = 0; i < 4; ++i)
        if (i < count)
            storeElement(at + i * elementBytes(kind), kind, values[i]);
}

// (acc * multiplier + 2^(shift - 1)) >> shift, cut to 32 bits; |acc * multiplier| < 2^62, 0 <= shift <= 50.
// Two words hold the product, so the result is defined on every device.
int rescaled(int acc, int multiplier, int shift) {
    int high, lowSigned;
    imulExtended(acc, multiplier, high, lowSigned);
    uint low = uint(lowSigned);
    if (shift == 32)
        return high + int(low >> 31);
    if (shift > 32) {
        // Bits below 2^32 cannot carry into the half that is added above them.
        return (high + (1 << (shift - 33))) >> (shift - 32);
    }
    if (shift == 0)
        return high == lowSigned >> 31 ? lowSigned : (high < 0 ? int(0x80000000u) : 0x7fffffff);
    uint carry;
    low = uaddCarry(low, 1u << (shift - 1), carry);
    high += int(carry);
    const int result = int(uint(high) << (32 - shift) | low >> shift);
    return high >> shift == result >> 31 ? result : (high < 0 ? int(0x80000000u) : 0x7fffffff);
}

// Parameters of an output channel: bias, multiplier, shift, and what signed bytes of unsigned inputs add to the bias.
ivec4 parametersOf(int channel) { return constantQuads.quads[parameters + channel]; }

// The shift of a channel; that of all channels is a constant, so the compiler leaves out the other cases.
int shiftOf(ivec4 parameters) { return Shift < 0 ? parameters.z : Shift; }
