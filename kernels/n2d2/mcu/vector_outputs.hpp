// Products of bytes for RISC-V vectors of 32-bit elements (Zve32x), of any length: outputs along the vector, four pixels at a time.
//
// A tap is a run of weights, one of each output, widened to 16 bits; VWMACC multiplies it by the input of a pixel and adds 32 bits.
// Sums are exact whatever the weights. Constants of a layer are one stream: biases and twice the multipliers in words, then
// for each tap the weights of all outputs (of all channels, in a depthwise layer).
// q = clamp(zero + ((sum * m + 2^31) >> 32)) is (VMULHSU(sum, 2 m) + 1 + 2 zero) >> 1. Where sums are doubled (lanes::Rounding), shifts follow the
// multipliers: VSMUL by m, or VMULHSU by 2 m without rounding, then VSSRA; both round ties up.
#pragma once

#include "n2d2/mcu/lane_shape.hpp"

namespace n2d2 {
namespace outputs {

using lanes::Results;

// The arguments of the assembly, which knows the offsets.
struct Work {
    const std::int32_t* stream;        // 0
    std::int32_t outputs;              // 4
    std::int32_t inputs;               // 8: of a window, or the taps of a depthwise layer
    std::int32_t round;                // 12: 1 + 2 * zero; the zero point where sums are doubled
    std::int32_t low, high;            // 16, 20
    const unsigned char* window[4];    // 24: of each pixel
    unsigned char* out[4];             // 40
    const unsigned char* const* taps;  // 56: of a depthwise layer

    N2D2_INLINE Work(const std::int32_t* from, int count, int window, std::int32_t rounding, const Results& stored)
        : stream(from), outputs(count), inputs(window), round(rounding), low(stored.low), high(stored.high) {}
};

// clang-format off
#define N2D2_OUTPUTS_REGISTERS(move)    \
    N2D2_ASM_EACH("0,1,2,3,4", move " s\\x, 4*\\x(sp)")

// All outputs, as many at a time as `group` registers of 16 bits hold, which the last argument computes from output s0 on: from the biases in
// v8 and the address of the weights (t3). A template, so that a program has it once wherever it is included.
#define N2D2_OUTPUTS_FUNCTION(name, group, beyond, ...)         \
    template <int = 0>                                          \
    __attribute__((naked, noinline)) static void name(Work*) {  \
        __asm__ volatile(                                       \
            "addi sp, sp, -32\n\t"                              \
            N2D2_OUTPUTS_REGISTERS("sw")                        \
            "lw   a1, 0(a0)\n\t"                                \
            "lw   a2, 4(a0)\n\t"                                \
            "lw   a3, 8(a0)\n\t"                                \
            "mv   t0, a2\n\t"                                   \
            "li   s0, 0\n"                                      \
        "1:\n\t"                                                \
            "vsetvli t1, t0, e16, " group ", ta, ma\n\t"        \
            "slli t2, s0, 2\n\t"                                \
            "add  t2, a1, t2\n\t"                               \
            "slli t3, a2, 3\n\t"                                \
            "add  t3, a1, t3\n\t"                               \
            "add  t3, t3, s0\n\t"                               \
            beyond                                              \
            "vle32.v v8, (t2)\n\t"                              \
            __VA_ARGS__                                         \
            "add  s0, s0, t1\n\t"                               \
            "sub  t0, t0, t1\n\t"                               \
            "bnez t0, 1b\n\t"                                   \
            N2D2_OUTPUTS_REGISTERS("lw")                        \
            "addi sp, sp, 32\n\t"                               \
            "ret\n");                                           \
    }

// Multipliers, shifts, and how results are stored (t4, t5, t6).
#define N2D2_OUTPUTS_CONSTANTS(group, multipliers, shifts)  \
    "add  t2, a2, s0\n\t"                                   \
    "slli t2, t2, 2\n\t"                                    \
    "add  t2, a1, t2\n\t"                                   \
    "lw   t4, 12(a0)\n\t"                                   \
    "lw   t5, 16(a0)\n\t"                                   \
    "lw   t6, 20(a0)\n\t"                                   \
    "vsetvli zero, zero, e32, " group ", ta, ma\n\t"        \
    "vle32.v " multipliers ", (t2)\n\t"                     \
    shifts

#define N2D2_OUTPUTS_HIGH(v, m, by, t)      \
    "vmulhsu.vv " v ", " v ", " m "\n\t"    \
    "vadd.vx " v ", " v ", t4\n\t"          \
    "vsra.vi " v ", " v ", 1\n\t"           \
    N2D2_OUTPUTS_LIMITS(v)
#define N2D2_OUTPUTS_ONCE(v, m, by, t)      \
    "vmulhsu.vv " v ", " v ", " m "\n\t"    \
    N2D2_OUTPUTS_SHIFTED(v, by)
#define N2D2_OUTPUTS_TWICE(v, m, by, t) \
    "vsmul.vv " v ", " v ", " m "\n\t"  \
    N2D2_OUTPUTS_SHIFTED(v, by)
#define N2D2_OUTPUTS_TWICE_SIGNED(v, m, by, t)  \
    "vsmul.vv " v ", " v ", " m "\n\t"          \
    "vsra.vi " t ", " v ", 31\n\t"              \
    "vadd.vv " v ", " v ", " t "\n\t"           \
    N2D2_OUTPUTS_SHIFTED(v, by)
#define N2D2_OUTPUTS_SHIFTED(v, by)     \
    "vssra.vv " v ", " v ", " by "\n\t" \
    "vadd.vx " v ", " v ", t4\n\t"      \
    N2D2_OUTPUTS_LIMITS(v)
#define N2D2_OUTPUTS_LIMITS(v)      \
    "vmax.vx " v ", " v ", t5\n\t"  \
    "vmin.vx " v ", " v ", t6\n\t"

// The shifts of the multipliers at t2, and where the weights lie beyond them.
#define N2D2_OUTPUTS_SHIFTS(by) \
    "slli s1, a2, 2\n\t"        \
    "add  s1, s1, t2\n\t"       \
    "csrwi vxrm, 0\n\t"         \
    "vle32.v " by ", (s1)\n\t"
#define N2D2_OUTPUTS_BEYOND \
    "slli t4, a2, 2\n\t"    \
    "add  t3, t3, t4\n\t"
#define N2D2_OUTPUTS_NO_SHIFTS(by)

#define N2D2_OUTPUTS_TAP(load, i)   \
    "vle8.v v1, (t3)\n\t"           \
    load " s1, " i "(a4)\n\t"       \
    load " s2, " i "(a5)\n\t"       \
    load " s3, " i "(a6)\n\t"       \
    load " s4, " i "(a7)\n\t"       \
    "vsext.vf2 v2, v1\n\t"          \
    "add  t3, t3, a2\n\t"           \
    "vwmacc.vx v8, s1, v2\n\t"      \
    "vwmacc.vx v12, s2, v2\n\t"     \
    "vwmacc.vx v16, s3, v2\n\t"     \
    "vwmacc.vx v20, s4, v2\n\t"

#define N2D2_OUTPUTS_MOVE(by)   \
    N2D2_ASM_EACH("a4,a5,a6,a7", "addi \\x, \\x, " #by)

#define N2D2_OUTPUTS_STORE(at, v)   \
    "lw   s1, " #at "(a0)\n\t"      \
    "add  s1, s1, s0\n\t"           \
    "vse8.v " v ", (s1)\n\t"

// All outputs of four pixels.
#define N2D2_OUTPUTS_FOUR(name, scaled, shifts, beyond, load)                   \
    N2D2_OUTPUTS_FUNCTION(name, "m2", beyond,                                   \
            N2D2_ASM_EACH("4,5,6,7", "lw a\\x, 8+4*\\x(a0)")                    \
            N2D2_ASM_EACH("v12,v16,v20", "vmv4r.v \\x, v8")                     \
            "add  t6, a4, a3\n\t"                                               \
            "andi t5, a3, -4\n\t"                                               \
            "add  t5, a4, t5\n\t"                                               \
            "beq  a4, t5, 3f\n"                                                 \
        "2:\n\t"                                                                \
            N2D2_ASM_EACH("0,1,2,3", N2D2_OUTPUTS_TAP(load, "\\x"))             \
            N2D2_OUTPUTS_MOVE(4)                                                \
            "bne  a4, t5, 2b\n"                                                 \
        "3:\n\t"                                                                \
            "beq  a4, t6, 4f\n\t"                                               \
            N2D2_OUTPUTS_TAP(load, "0")                                         \
            N2D2_OUTPUTS_MOVE(1)                                                \
            "j    3b\n"                                                         \
        "4:\n\t"                                                                \
            N2D2_OUTPUTS_CONSTANTS("m4", "v24", shifts("v28"))                  \
            N2D2_ASM_EACH("v8,v12,v16,v20", scaled("\\x", "v24", "v28", "v4"))  \
            "vsetvli zero, zero, e16, m2, ta, ma\n\t"                           \
            "vnsrl.wi v2, v8, 0\n\t"                                            \
            "vnsrl.wi v4, v12, 0\n\t"                                           \
            "vnsrl.wi v6, v16, 0\n\t"                                           \
            "vnsrl.wi v28, v20, 0\n\t"                                          \
            "vsetvli zero, zero, e8, m1, ta, ma\n\t"                            \
            "vnsrl.wi v8, v2, 0\n\t"                                            \
            "vnsrl.wi v9, v4, 0\n\t"                                            \
            "vnsrl.wi v10, v6, 0\n\t"                                           \
            "vnsrl.wi v11, v28, 0\n\t"                                          \
            N2D2_OUTPUTS_STORE(40, "v8")                                        \
            N2D2_OUTPUTS_STORE(44, "v9")                                        \
            N2D2_OUTPUTS_STORE(48, "v10")                                       \
            N2D2_OUTPUTS_STORE(52, "v11"))

#define N2D2_OUTPUTS_BYTES                      \
    "vsetvli zero, zero, e8, m2, ta, ma\n\t"    \
    "vnsrl.wi v2, v4, 0\n\t"                    \
    N2D2_OUTPUTS_STORE(40, "v2")

#define N2D2_OUTPUTS_HALFWORDS  \
    "lw   s1, 40(a0)\n\t"       \
    "slli s2, s0, 1\n\t"        \
    "add  s1, s1, s2\n\t"       \
    "vse16.v v4, (s1)\n\t"

// All outputs of one pixel, by twice as many; stored as bytes or as 16 bits.
#define N2D2_OUTPUTS_ONE(name, scaled, shifts, beyond, load, stored)    \
    N2D2_OUTPUTS_FUNCTION(name, "m4", beyond,                           \
            "lw   a4, 24(a0)\n\t"                                       \
            "add  t6, a4, a3\n"                                         \
        "2:\n\t"                                                        \
            "vle8.v v2, (t3)\n\t"                                       \
            load " s1, 0(a4)\n\t"                                       \
            "addi a4, a4, 1\n\t"                                        \
            "vsext.vf2 v4, v2\n\t"                                      \
            "add  t3, t3, a2\n\t"                                       \
            "vwmacc.vx v8, s1, v4\n\t"                                  \
            "bne  a4, t6, 2b\n\t"                                       \
            N2D2_OUTPUTS_CONSTANTS("m8", "v16", shifts("v24"))          \
            scaled("v8", "v16", "v24", "v0")                            \
            "vsetvli zero, zero, e16, m4, ta, ma\n\t"                   \
            "vnsrl.wi v4, v8, 0\n\t"                                    \
            stored)

// All channels of one pixel of a depthwise layer, whose taps are at addresses of their own.
#define N2D2_OUTPUTS_CHANNELS(name, scaled, shifts, beyond, extend) \
    N2D2_OUTPUTS_FUNCTION(name, "m2", beyond,                       \
            "lw   a4, 56(a0)\n\t"                                   \
            "slli t6, a3, 2\n\t"                                    \
            "add  t6, a4, t6\n"                                     \
        "2:\n\t"                                                    \
            "lw   s1, 0(a4)\n\t"                                    \
            "vle8.v v6, (t3)\n\t"                                   \
            "add  s1, s1, s0\n\t"                                   \
            "vle8.v v1, (s1)\n\t"                                   \
            "addi a4, a4, 4\n\t"                                    \
            "vsext.vf2 v4, v6\n\t"                                  \
            extend ".vf2 v2, v1\n\t"                                \
            "add  t3, t3, a2\n\t"                                   \
            "vwmacc.vv v8, v2, v4\n\t"                              \
            "bne  a4, t6, 2b\n\t"                                   \
            N2D2_OUTPUTS_CONSTANTS("m4", "v24", shifts("v28"))      \
            scaled("v8", "v24", "v28", "v12")                       \
            "vsetvli zero, zero, e16, m2, ta, ma\n\t"               \
            "vnsrl.wi v2, v8, 0\n\t"                                \
            "vsetvli zero, zero, e8, m1, ta, ma\n\t"                \
            "vnsrl.wi v1, v2, 0\n\t"                                \
            N2D2_OUTPUTS_STORE(40, "v1"))

template <int Rounding>
struct Kernels;
#define N2D2_OUTPUTS_KERNELS(rounding, scaled, shifts, beyond)                                              \
    template <>                                                                                             \
    struct Kernels<rounding> {                                                                              \
        enum : int { Doubled = int(rounding) != int(lanes::HighWord) };                                     \
        N2D2_OUTPUTS_FOUR(fourUnsigned, scaled, shifts, beyond, "lbu")                                      \
        N2D2_OUTPUTS_FOUR(fourSigned, scaled, shifts, beyond, "lb")                                         \
        N2D2_OUTPUTS_ONE(oneUnsigned, scaled, shifts, beyond, "lbu", N2D2_OUTPUTS_BYTES)                    \
        N2D2_OUTPUTS_ONE(oneSigned, scaled, shifts, beyond, "lb", N2D2_OUTPUTS_BYTES)                       \
        N2D2_OUTPUTS_ONE(wideUnsigned, scaled, shifts, beyond, "lbu", N2D2_OUTPUTS_HALFWORDS)               \
        N2D2_OUTPUTS_ONE(wideSigned, scaled, shifts, beyond, "lb", N2D2_OUTPUTS_HALFWORDS)                  \
        N2D2_OUTPUTS_CHANNELS(channelsUnsigned, scaled, shifts, beyond, "vzext")                            \
        N2D2_OUTPUTS_CHANNELS(channelsSigned, scaled, shifts, beyond, "vsext")                              \
                                                                                                            \
        /* `Work::round` */                                                                                 \
        static constexpr std::int32_t round(std::int32_t zero) { return Doubled ? zero : 1 + 2 * zero; }    \
    };
N2D2_OUTPUTS_KERNELS(lanes::HighWord, N2D2_OUTPUTS_HIGH, N2D2_OUTPUTS_NO_SHIFTS, )
N2D2_OUTPUTS_KERNELS(lanes::Twice, N2D2_OUTPUTS_TWICE, N2D2_OUTPUTS_SHIFTS, N2D2_OUTPUTS_BEYOND)
N2D2_OUTPUTS_KERNELS(lanes::TwiceSigned, N2D2_OUTPUTS_TWICE_SIGNED, N2D2_OUTPUTS_SHIFTS, N2D2_OUTPUTS_BEYOND)
N2D2_OUTPUTS_KERNELS(lanes::Once, N2D2_OUTPUTS_ONCE, N2D2_OUTPUTS_SHIFTS, N2D2_OUTPUTS_BEYOND)
// clang-format on

// Copies bytes by vectors.
N2D2_INLINE void copy(const unsigned char* from, unsigned char* to, int count) {
    std::size_t length;
    __asm__ volatile(
        "1:\n\t"
        "vsetvli %[length], %[count], e8, m8, ta, ma\n\t"
        "vle8.v  v8, (%[from])\n\t"
        "add     %[from], %[from], %[length]\n\t"
        "sub     %[count], %[count], %[length]\n\t"
        "vse8.v  v8, (%[to])\n\t"
        "add     %[to], %[to], %[length]\n\t"
        "bnez    %[count], 1b"
        : [from] "+r"(from), [to] "+r"(to), [count] "+r"(count), [length] "=&r"(length)
        :
        : "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "memory");
}

}  // namespace outputs
}  // namespace n2d2
