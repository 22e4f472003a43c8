// Products of bytes for RV32IM: two pixels in a word, so that one MUL gives two products; four or six pixels and two outputs at a time.
//
// A word x0 + 2^16 * x1 of the inputs of two pixels times a weight is x0 w + 2^16 * x1 w. Sums of a few taps fit 16 bits each, which the
// exporter has proved from the weights (|x| <= 128; unsigned inputs are taken 128 lower, which the bias makes up for). A group starts at
// 2^15 in both halves, so that neither is negative; then
//
//   high += group >> 16        the sum of the second pixel
//   total += group             modulo 2^32: first + 2^16 * second
//
// and first = total - 2^16 * high at the end. A group has eight taps, or four or two where the weights are too large for more. Constants of
// two outputs are one stream, in words:
//
//   both biases less 2^15 for each group;  for every ten groups their sizes, three bits each from the highest ones on (4: four
//   taps, 2: eight, 1: two, 0: no more), and bytes of weights (A, B);  both multipliers, doubled
//
// q = clamp(zero + ((sum * m + 2^31) >> 32)) is (mulhsu(sum, 2 m) + 1 + 2 zero) >> 1. Where sums are doubled (lanes::Rounding), 2 m of both
// outputs, an addend of both and a shift of both follow: mulhsu(sum, 2 m) is rounded once, with 2^(shift-1) and the zero point less the
// highest result in the addend; mulhsu(2 sum, 2 m), which has a bit more, twice, two less for ties below 0. Clamps do not jump: of x - high what is negative
// stays, of that plus high - low what is not. A shift by -1 is one by 31, which leaves 0 in the byte that is stored.
#pragma once

#include "n2d2/mcu/lane_shape.hpp"

namespace n2d2 {
namespace pixels {

using lanes::Results;

// The arguments of the assembly, which knows the offsets.
struct Work {
    const std::uint32_t* window;  // 0: pixels (0, 1), (2, 3) and so on of each tap
    const std::uint32_t* stream;  // 4
    const std::uint32_t* end;     // 8: of the window, an even number of taps behind its beginning
    std::int32_t outputs;         // 12: a multiple of two
    std::int32_t round;           // 16: 1 + 2 * (zero - high)
    std::int32_t range, low;      // 20: high - low; 24
    unsigned char* out[6];        // 28: results of each pixel
};

// clang-format off
// The registers of the caller, at the end of the stack: stored (sw) or loaded (lw).
#define N2D2_PIXELS_REGISTERS(move) \
    move " ra, 0(sp)\n\t"           \
    N2D2_ASM_EACH("0,1,2,3,4,5,6,7,8,9,10,11", move " s\\x, 4+4*\\x(sp)")
#define N2D2_PIXELS_SAVE "addi sp, sp, -64\n\t" N2D2_PIXELS_REGISTERS("sw")
#define N2D2_PIXELS_UNSAVE N2D2_PIXELS_REGISTERS("lw")
#define N2D2_PIXELS_RESTORE N2D2_PIXELS_UNSAVE "addi sp, sp, 64\n\t" "ret\n"

#define N2D2_PIXELS_PRODUCTS(tap)   \
    "lw   a6, 8*" #tap "(a2)\n\t"   \
    "lw   a7, 8*" #tap "+4(a2)\n\t" \
    "lb   t0, 2*" #tap "(a1)\n\t"   \
    "lb   t1, 2*" #tap "+1(a1)\n\t" \
    "mul  t2, a6, t0\n\t"           \
    "mul  t3, a7, t0\n\t"           \
    "mul  t6, a6, t1\n\t"           \
    "mul  t0, a7, t1\n\t"

// The first tap of a group.
#define N2D2_PIXELS_FIRST(tap)  \
    N2D2_PIXELS_PRODUCTS(tap)   \
    "add  s0, t2, a5\n\t"       \
    "add  s1, t3, a5\n\t"       \
    "add  s2, t6, a5\n\t"       \
    "add  s3, t0, a5\n\t"

#define N2D2_PIXELS_STEP(tap)   \
    N2D2_PIXELS_PRODUCTS(tap)   \
    "add  s0, s0, t2\n\t"       \
    "add  s1, s1, t3\n\t"       \
    "add  s2, s2, t6\n\t"       \
    "add  s3, s3, t0\n\t"

#define N2D2_PIXELS_GROUP                           \
    N2D2_ASM_EACH("0,1,2,3", "srli t\\x, s\\x, 16") \
    "add  s4, s4, s0\n\t"                           \
    "add  s5, s5, s1\n\t"                           \
    "add  s6, s6, s2\n\t"                           \
    "add  s7, s7, s3\n\t"                           \
    "add  s8, s8, t0\n\t"                           \
    "add  s9, s9, t1\n\t"                           \
    "add  s10, s10, t2\n\t"                         \
    "add  s11, s11, t3\n\t"

// The byte of x - low, clamped, from x - high.
#define N2D2_PIXELS_CLAMP(x, t, range)  \
    "srai " t ", " x ", 31\n\t"         \
    "and  " x ", " x ", " t "\n\t"      \
    "add  " x ", " x ", " range "\n\t"  \
    "srai " t ", " x ", 31\n\t"         \
    "sll  " x ", " x ", " t "\n\t"

// Sums times m: the high word, or doubled.
#define N2D2_PIXELS_HIGH(x, m, t, round, by)    \
    "mulhsu " x ", " x ", " m "\n\t"            \
    "add  " x ", " x ", " round "\n\t"          \
    "srai " x ", " x ", 1\n\t"
#define N2D2_PIXELS_ONCE(x, m, t, round, by)    \
    "mulhsu " x ", " x ", " m "\n\t"            \
    "add  " x ", " x ", " round "\n\t"          \
    "sra  " x ", " x ", " by "\n\t"
#define N2D2_PIXELS_TWICE(x, m, t, round, by)   \
    "slli " x ", " x ", 1\n\t"                  \
    N2D2_PIXELS_ONCE(x, m, t, round, by)
#define N2D2_PIXELS_TWICE_SIGNED(x, m, t, round, by)    \
    "slli " x ", " x ", 1\n\t"                          \
    "mulhsu " x ", " x ", " m "\n\t"                    \
    "addi " t ", " x ", 1\n\t"                          \
    "srai " t ", " t ", 31\n\t"                         \
    "add  " x ", " x ", " t "\n\t"                      \
    "add  " x ", " x ", " t "\n\t"                      \
    "add  " x ", " x ", " round "\n\t"                  \
    "sra  " x ", " x ", " by "\n\t"

// The constants of outputs A and B: the addend of high words is that of the layer.
#define N2D2_PIXELS_HIGH_A(m, round, by, work) "lw   " m ", 0(a1)\n\t" "lw   " round ", 16(" work ")\n\t"
#define N2D2_PIXELS_HIGH_B(m, round, by) "lw   " m ", 4(a1)\n\t" "addi a1, a1, 8\n\t"
#define N2D2_PIXELS_WORDS_A(m, round, by, work) \
    "lw   " m ", 0(a1)\n\t" "lw   " round ", 8(a1)\n\t" "lw   " by ", 16(a1)\n\t"
#define N2D2_PIXELS_WORDS_B(m, round, by)   \
    "lw   " m ", 4(a1)\n\t" "lw   " round ", 12(a1)\n\t" "lw   " by ", 20(a1)\n\t" "addi a1, a1, 24\n\t"

// The results of an output less the lowest one, `first` and `second` of two pixels, with the multiplier m.
#define N2D2_PIXELS_RESULTS(scaled, first, second, m, t, round, by, range)  \
    "slli " t ", " second ", 16\n\t"                                        \
    "sub  " first ", " first ", " t "\n\t"                                  \
    scaled(second, m, t, round, by)                                         \
    scaled(first, m, t, round, by)                                          \
    N2D2_PIXELS_CLAMP(second, t, range)                                     \
    N2D2_PIXELS_CLAMP(first, t, range)

// Adds the lowest result, unless it is 0.
#define N2D2_PIXELS_LOW(low, a, b, c, d)    \
    "add  " a ", " a ", " low "\n\t"        \
    "add  " b ", " b ", " low "\n\t"        \
    "add  " c ", " c ", " low "\n\t"        \
    "add  " d ", " d ", " low "\n\t"

#define N2D2_PIXELS_STORE_TO(at, a, b, work, offset, t) \
    "lw   " t ", " #at "(" work ")\n\t"                 \
    "add  " t ", " t ", " offset "\n\t"                 \
    "sb   " a ", 0(" t ")\n\t"                          \
    "sb   " b ", 1(" t ")\n\t"
#define N2D2_PIXELS_STORE(at, a, b) N2D2_PIXELS_STORE_TO(at, a, b, "a0", "ra", "t3")

// The taps of a group, from those of `first` and `step`.
#define N2D2_PIXELS_TWO(first, step) first(0) step(1)
#define N2D2_PIXELS_FOUR(first, step) N2D2_PIXELS_TWO(first, step) step(2) step(3)
#define N2D2_PIXELS_EIGHT(first, step) N2D2_PIXELS_FOUR(first, step) step(4) step(5) step(6) step(7)

// To the next group, `inputs` and `weights` bytes on; goes on where it has four or eight taps.
#define N2D2_PIXELS_NEXT(inputs, weights, four) \
    "slli a4, a4, 3\n\t"                        \
    "addi a1, a1, " #weights "\n\t"             \
    "addi a2, a2, " #inputs "\n\t"              \
    "bltz a4, " four "\n\t"                     \
    "slli t0, a4, 1\n\t"                        \
    "bltz t0, 8b\n\t"

// All groups of a window, whose end is in the register `end`, of taps of `bytes` bytes; at 4 all sums are made.
#define N2D2_PIXELS_GROUPS(end, first, step, group, bytes)  \
        "2:\n\t"                                            \
            "beq  a2, " end ", 4f\n\t"                      \
            "lw   a4, 0(a1)\n\t"                            \
            "addi a1, a1, 4\n"                              \
        "3:\n\t"                                            \
            "bltz a4, 6f\n\t"                               \
            "slli t0, a4, 1\n\t"                            \
            "bgez t0, 7f\n"                                 \
        "8:\n\t"                                            \
            N2D2_PIXELS_EIGHT(first, step)                  \
            group                                           \
            N2D2_PIXELS_NEXT(8*bytes, 16, "6f")             \
            "j    7f\n"                                     \
        "6:\n\t"                                            \
            N2D2_PIXELS_FOUR(first, step)                   \
            group                                           \
            N2D2_PIXELS_NEXT(4*bytes, 8, "6b")              \
        "7:\n\t"                                            \
            "beqz a4, 2b\n\t"                               \
            N2D2_PIXELS_TWO(first, step)                    \
            group                                           \
            "slli a4, a4, 3\n\t"                            \
            "addi a1, a1, 4\n\t"                            \
            "addi a2, a2, 2*" #bytes "\n\t"                 \
            "j    3b\n"                                     \
        "4:\n\t"

// All outputs of four pixels. A template, so that a program has it once wherever it is included.
#define N2D2_PIXELS_OF_FOUR(scaled, constantsA, constantsB)                                     \
template <int FrameBytes = 64>                                                                  \
__attribute__((naked, noinline)) static void fourPixels(Work*) {                                \
        __asm__ volatile(                                                                       \
            N2D2_PIXELS_SAVE                                                                    \
            "lw   a1, 4(a0)\n\t"                                                                \
            "lw   t4, 8(a0)\n\t"                                                                \
            "lw   t5, 12(a0)\n\t"                                                               \
            "li   ra, 0\n\t"                                                                    \
            "li   a5, 0x80008000\n"                                                             \
        "1:\n\t"                                                                                \
            "lw   s8, 0(a1)\n\t"                                                                \
            "lw   s10, 4(a1)\n\t"                                                               \
            "addi a1, a1, 8\n\t"                                                                \
            "lw   a2, 0(a0)\n\t"                                                                \
            "slli s4, s8, 16\n\t"                                                               \
            "slli s6, s10, 16\n\t"                                                              \
            "add  s4, s4, s8\n\t"                                                               \
            "add  s6, s6, s10\n\t"                                                              \
            "mv   s5, s4\n\t"                                                                   \
            "mv   s7, s6\n\t"                                                                   \
            "mv   s9, s8\n\t"                                                                   \
            "mv   s11, s10\n"                                                                   \
            N2D2_PIXELS_GROUPS("t4", N2D2_PIXELS_FIRST, N2D2_PIXELS_STEP, N2D2_PIXELS_GROUP, 8) \
            constantsA("t0", "a6", "t6", "a0")                                                  \
            "lw   a7, 20(a0)\n\t"                                                               \
            "lw   t2, 24(a0)\n\t"                                                               \
            N2D2_PIXELS_RESULTS(scaled, "s4", "s8", "t0", "t3", "a6", "t6", "a7")               \
            N2D2_PIXELS_RESULTS(scaled, "s5", "s9", "t0", "t3", "a6", "t6", "a7")               \
            constantsB("t0", "a6", "t6")                                                        \
            N2D2_PIXELS_RESULTS(scaled, "s6", "s10", "t0", "t3", "a6", "t6", "a7")              \
            N2D2_PIXELS_RESULTS(scaled, "s7", "s11", "t0", "t3", "a6", "t6", "a7")              \
            "beqz t2, 5f\n\t"                                                                   \
            N2D2_PIXELS_LOW("t2", "s4", "s5", "s6", "s7")                                       \
            N2D2_PIXELS_LOW("t2", "s8", "s9", "s10", "s11")                                     \
        "5:\n\t"                                                                                \
            N2D2_PIXELS_STORE(28, "s4", "s6")                                                   \
            N2D2_PIXELS_STORE(32, "s8", "s10")                                                  \
            N2D2_PIXELS_STORE(36, "s5", "s7")                                                   \
            N2D2_PIXELS_STORE(40, "s9", "s11")                                                  \
            "addi ra, ra, 2\n\t"                                                                \
            "bne  ra, t5, 1b\n\t"                                                               \
            N2D2_PIXELS_RESTORE);                                                               \
}

// The same for six pixels. Here sums are in s0 to s5, their totals in s6 to s11, those of second pixels in t1 to t6.
#define N2D2_PIXELS_TAP6(tap, from0, from1, from2, from3, from4, from5) \
    "lw   a5, 12*" #tap "(a2)\n\t"                                      \
    "lb   a0, 2*" #tap "(a1)\n\t"                                       \
    "lw   a6, 12*" #tap "+4(a2)\n\t"                                    \
    "lw   a7, 12*" #tap "+8(a2)\n\t"                                    \
    "mul  t0, a5, a0\n\t"                                               \
    "add  s0, " from0 ", t0\n\t"                                        \
    "mul  t0, a6, a0\n\t"                                               \
    "add  s1, " from1 ", t0\n\t"                                        \
    "mul  t0, a7, a0\n\t"                                               \
    "lb   a0, 2*" #tap "+1(a1)\n\t"                                     \
    "add  s2, " from2 ", t0\n\t"                                        \
    "mul  a5, a5, a0\n\t"                                               \
    "mul  a6, a6, a0\n\t"                                               \
    "mul  a7, a7, a0\n\t"                                               \
    "add  s3, " from3 ", a5\n\t"                                        \
    "add  s4, " from4 ", a6\n\t"                                        \
    "add  s5, " from5 ", a7\n\t"
#define N2D2_PIXELS_FIRST6(tap) N2D2_PIXELS_TAP6(tap, "ra", "ra", "ra", "ra", "ra", "ra")
#define N2D2_PIXELS_STEP6(tap) N2D2_PIXELS_TAP6(tap, "s0", "s1", "s2", "s3", "s4", "s5")

#define N2D2_PIXELS_GROUP6  \
    "srli t0, s0, 16\n\t"   \
    "srli a5, s1, 16\n\t"   \
    "srli a6, s2, 16\n\t"   \
    "srli a7, s3, 16\n\t"   \
    "srli a0, s4, 16\n\t"   \
    "add  t1, t1, t0\n\t"   \
    "srli t0, s5, 16\n\t"   \
    "add  t2, t2, a5\n\t"   \
    "add  t3, t3, a6\n\t"   \
    "add  t4, t4, a7\n\t"   \
    "add  t5, t5, a0\n\t"   \
    "add  t6, t6, t0\n\t"   \
    "add  s6, s6, s0\n\t"   \
    "add  s7, s7, s1\n\t"   \
    "add  s8, s8, s2\n\t"   \
    "add  s9, s9, s3\n\t"   \
    "add  s10, s10, s4\n\t" \
    "add  s11, s11, s5\n\t"

#define N2D2_PIXELS_RESULTS6(scaled, first, second) N2D2_PIXELS_RESULTS(scaled, first, second, "a6", "t0", "a7", "s0", "a4")
#define N2D2_PIXELS_STORE6(at, a, b) N2D2_PIXELS_STORE_TO(at, a, b, "a5", "a2", "t0")

// On the stack: 52 Work, 56 the end of the window, 60 the offset of the outputs.
#define N2D2_PIXELS_OF_SIX(scaled, constantsA, constantsB)                                          \
template <int FrameBytes = 64>                                                                      \
__attribute__((naked, noinline)) static void sixPixels(Work*) {                                     \
        __asm__ volatile(                                                                           \
            N2D2_PIXELS_SAVE                                                                        \
            "sw   a0, 52(sp)\n\t"                                                                   \
            "lw   a1, 4(a0)\n\t"                                                                    \
            "lw   t0, 8(a0)\n\t"                                                                    \
            "sw   t0, 56(sp)\n\t"                                                                   \
            "sw   zero, 60(sp)\n\t"                                                                 \
            "lw   a2, 0(a0)\n\t"                                                                    \
            "li   ra, 0x80008000\n"                                                                 \
        "1:\n\t"                                                                                    \
            "lw   t1, 0(a1)\n\t"                                                                    \
            "lw   t4, 4(a1)\n\t"                                                                    \
            "addi a1, a1, 8\n\t"                                                                    \
            "slli s6, t1, 16\n\t"                                                                   \
            "slli s9, t4, 16\n\t"                                                                   \
            "add  s6, s6, t1\n\t"                                                                   \
            "add  s9, s9, t4\n\t"                                                                   \
            N2D2_ASM_EACH("s7,s8", "mv \\x, s6")                                                    \
            N2D2_ASM_EACH("s10,s11", "mv \\x, s9")                                                  \
            N2D2_ASM_EACH("t2,t3", "mv \\x, t1")                                                    \
            N2D2_ASM_EACH("t5,t6", "mv \\x, t4")                                                    \
            "lw   a3, 56(sp)\n"                                                                     \
            N2D2_PIXELS_GROUPS("a3", N2D2_PIXELS_FIRST6, N2D2_PIXELS_STEP6, N2D2_PIXELS_GROUP6, 12) \
            "lw   a5, 52(sp)\n\t"                                                                   \
            "lw   a2, 60(sp)\n\t"                                                                   \
            constantsA("a6", "a7", "s0", "a5")                                                      \
            "lw   a4, 20(a5)\n\t"                                                                   \
            "lw   a3, 24(a5)\n\t"                                                                   \
            N2D2_PIXELS_RESULTS6(scaled, "s6", "t1")                                                \
            N2D2_PIXELS_RESULTS6(scaled, "s7", "t2")                                                \
            N2D2_PIXELS_RESULTS6(scaled, "s8", "t3")                                                \
            constantsB("a6", "a7", "s0")                                                            \
            N2D2_PIXELS_RESULTS6(scaled, "s9", "t4")                                                \
            N2D2_PIXELS_RESULTS6(scaled, "s10", "t5")                                               \
            N2D2_PIXELS_RESULTS6(scaled, "s11", "t6")                                               \
            "beqz a3, 5f\n\t"                                                                       \
            N2D2_PIXELS_LOW("a3", "s6", "s7", "s8", "s9")                                           \
            N2D2_PIXELS_LOW("a3", "s10", "s11", "t1", "t2")                                         \
            N2D2_PIXELS_LOW("a3", "t3", "t4", "t5", "t6")                                           \
        "5:\n\t"                                                                                    \
            N2D2_PIXELS_STORE6(28, "s6", "s9")                                                      \
            N2D2_PIXELS_STORE6(32, "t1", "t4")                                                      \
            N2D2_PIXELS_STORE6(36, "s7", "s10")                                                     \
            N2D2_PIXELS_STORE6(40, "t2", "t5")                                                      \
            N2D2_PIXELS_STORE6(44, "s8", "s11")                                                     \
            N2D2_PIXELS_STORE6(48, "t3", "t6")                                                      \
            "lw   t0, 12(a5)\n\t"                                                                   \
            "addi a2, a2, 2\n\t"                                                                    \
            "sw   a2, 60(sp)\n\t"                                                                   \
            "sub  t0, t0, a2\n\t"                                                                   \
            "lw   a2, 0(a5)\n\t"                                                                    \
            "bnez t0, 1b\n\t"                                                                       \
            N2D2_PIXELS_RESTORE);                                                                   \
}

template <int Rounding>
struct Kernels;
#define N2D2_PIXELS_KERNELS(rounding, scaled, constants)            \
    template <>                                                     \
    struct Kernels<rounding> {                                      \
        N2D2_PIXELS_OF_FOUR(scaled, constants##_A, constants##_B)   \
        N2D2_PIXELS_OF_SIX(scaled, constants##_A, constants##_B)    \
    };
N2D2_PIXELS_KERNELS(lanes::HighWord, N2D2_PIXELS_HIGH, N2D2_PIXELS_HIGH)
N2D2_PIXELS_KERNELS(lanes::Twice, N2D2_PIXELS_TWICE, N2D2_PIXELS_WORDS)
N2D2_PIXELS_KERNELS(lanes::TwiceSigned, N2D2_PIXELS_TWICE_SIGNED, N2D2_PIXELS_WORDS)
N2D2_PIXELS_KERNELS(lanes::Once, N2D2_PIXELS_ONCE, N2D2_PIXELS_WORDS)
// clang-format on

}  // namespace pixels
}  // namespace n2d2
