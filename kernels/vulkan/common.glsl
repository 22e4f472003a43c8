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

// Bytes of the arena where the planes begin; elements of the constants where weights (or a table) and parameters begin.
layout(push_constant) uniform Places {
    int in0;
    int in1;
    int outAt;
    int weights;
    int parameters;
};

layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;

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
    if (aligned)
        return arena.words[at >> 2];
    return uint(arenaBytes.bytes[at]) | uint(arenaBytes.bytes[at + 1]) << 8 | uint(arenaBytes.bytes[at + 2]) << 16 |
           uint(arenaBytes.bytes[at + 3]) << 24;
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

// Stores the first `count` elements of a quad.
void storeQuad(int at, int kind, bool aligned, ivec4 values, int count) {
    if (kind < UInt16 && aligned && count >= 4) {
        const uvec4 low = uvec4(values) & 255u;
        arena.words[at >> 2] = low.x | low.y << 8 | low.z << 16 | low.w << 24;
        return;
    }
    for (int i = 0; i < 4; ++i)
        if (i < count) {
            if (kind < UInt16)
                arenaBytes.bytes[at + i] = uint8_t(values[i] & 255);
            else if (kind < Int32)
                arenaHalfwords.halfwords[(at >> 1) + i] = uint16_t(values[i] & 65535);
            else
                arena.words[(at >> 2) + i] = uint(values[i]);
        }
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

// The shift of a channel, or `all`, that of all channels, where it is not negative: the compiler then leaves out the other cases.
int shiftOf(ivec4 parameters, int all) { return all < 0 ? parameters.z : all; }
