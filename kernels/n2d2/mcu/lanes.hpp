// Products of bytes for the DSP extension of Arm's M profile: four outputs and one or two pixels at a time.
//
// The weights of two outputs A and B, the first and the third of four, share 16-bit lanes, 256 * wB + wA. Two lanes of a word and two
// inputs are one SMLAD:
//
//   with the word as it is          256 * SB + SA
//   after one SXTB16 of the word    SA
//
// so SB = (first - second) >> 8, which is exact modulo 2^32 while |SB| < 2^23; the exporter has proved that from the weights.
//
// Windows of inputs are spread to 16 bits once for all outputs, four inputs at a time in the order (0, 2) (1, 3) that UXTB16
// gives; words of two pixels alternate. Weights are in the same order. All constants of four outputs, the lanes of A and B and those of
// C and D, are one stream of words:
//
//   first sums (A, C, 256 B + A, 256 D + C), with biases;  (AB, CD) of every two inputs;  multipliers of A, C, B, D
//
// or, where sums are doubled (Rounding), 2 m - 2^32 of A, C; -2^(32 - shift) of A, C; the same of B, D. Where ties below 0 do not count, B
// and D have m and -2^(25 - shift): 256 SB is shifted once, as floor(floor(x / a) / b) = floor(x / (a b)).
//
// q = clamp(zero + ((sum * m + 2^31) >> 32), 0, 255) is one SMMLAR and one USAT, or half a USAT16 where results fit 16 bits; four results
// are clamped further at once where the layer asks for it (max(q, low) is low + saturated q - low). Signed results are computed 128 higher and turned by `mask`. The upper word of 2 m
// times a sum is that of 2 m - 2^32 times it, and the sum: one SMMLAR too, or SMMLA without rounding. The shift that follows is SMMLSR
// with -2^(32 - shift); one less in a number below 0 sends its ties away from it.
#pragma once

#include "n2d2/mcu/lane_shape.hpp"

namespace n2d2 {
namespace lanes {

// The arguments of the assembly, which knows the offsets.
struct Work {
    const std::uint32_t* window;  // 0: of both pixels
    const std::uint32_t* stream;  // 4
    const std::uint32_t* end;     // 8: of the window, a multiple of 2 inputs behind its beginning, of 8 for one pixel alone
    std::int32_t blocks;          // 12: of four outputs
    unsigned char* first;         // 16: results of the first pixel
    unsigned char* second;        // 20: of the second
    std::int32_t zero;            // 24
    std::uint32_t mask;           // 28; 128 + 256 zero for `two`
    std::uint32_t low;            // 32: the least result in each byte
    std::uint32_t room;           // 36: 255 less the largest one
    std::int32_t skip;            // 40: bytes of a window of two pixels that `two` skips in its first turn
    std::int32_t entry;           // 44: of the code of these steps, odd
    std::int32_t pixels;          // 48: pairs of pixels of `two`
    std::int32_t move;            // 52: bytes from a window to that of the next pair
    std::int32_t next;            // 56: bytes from a result to that of the next pair
};

// Steps of two inputs in each half of a turn of the loop of `two`, whose last one moves the pointers; bytes of code for one, and the
// last one's more.
enum : int { Half = 16, StepBytes = 52, MoveBytes = 4 };

// Sets the entry of `two` for windows of so many inputs.
N2D2_INLINE void enter(Work& work, int inputs) {
    const int skipped = (2 * Half - inputs / 2 % (2 * Half)) % (2 * Half);
    work.skip = 8 * (skipped % Half);
    work.entry = StepBytes * skipped + (skipped >= Half ? MoveBytes : 0) + 1;
}

// clang-format off
#define N2D2_SCALED(x, m, zero) "smmlar " x ", " x ", " m ", " zero "\n\t"
#define N2D2_SHIFTED(x, m, zero) "smmlsr " x ", " x ", " m ", " zero "\n\t"
#define N2D2_DOUBLED(x, m) "smmlar " x ", " x ", " m ", " x "\n\t"
#define N2D2_DOUBLED_DOWN(x, m) "smmla " x ", " x ", " m ", " x "\n\t"
#define N2D2_AWAY(x) "add " x ", " x ", " x ", asr #31\n\t"
#define N2D2_AS_IT_IS(x)
// Four bytes between their limits.
#define N2D2_LIMITED(x, low, room)                                          \
    "uqsub8 " x ", " x ", " low "\n\t" "uadd8 " x ", " x ", " low "\n\t"    \
    "uqadd8 " x ", " x ", " room "\n\t" "usub8 " x ", " x ", " room "\n\t"

// Of four outputs of two pixels, in r4 to r11; of two outputs, whose first words are in r2 and r3.
#define N2D2_LANES_STEP_OF2(scaled, first, second, a, b, c, d)  \
    scaled(a, first, "r0")                                      \
    scaled(b, first, "r0")                                      \
    scaled(c, second, "r0")                                     \
    scaled(d, second, "r0")
#define N2D2_LANES_CONSTANTS2   \
    "ldr    r2, [r1, #4]\n\t"   \
    "ldr    r3, [r1, #8]\n\t"   \
    "ldr    r12, [r1, #12]\n\t" \
    "ldr    lr, [r1, #16]!\n\t"
#define N2D2_LANES_SHIFT2   \
    N2D2_ASM_EACH("r8,r9,r10,r11", "asr \\x, \\x, #8")
#define N2D2_LANES_SCALED2                                                  \
    N2D2_LANES_SHIFT2                                                       \
    N2D2_LANES_CONSTANTS2                                                   \
    N2D2_LANES_STEP_OF2(N2D2_SCALED, "r2", "r3", "r4", "r5", "r6", "r7")    \
    N2D2_LANES_STEP_OF2(N2D2_SCALED, "r12", "lr", "r8", "r9", "r10", "r11")
// Those of B and D stay 256 times as large: (256 x m + (128 + 256 zero) * 2^32) >> 40 is zero + ((x m + 2^31) >> 32).
#define N2D2_LANES_TOPS2                                                    \
    N2D2_LANES_CONSTANTS2                                                   \
    N2D2_LANES_STEP_OF2(N2D2_SCALED, "r2", "r3", "r4", "r5", "r6", "r7")    \
    "ldr    r0, [sp, #32]\n\t"                                              \
    N2D2_ASM_EACH("r8,r9", "smmla \\x, \\x, r12, r0")                       \
    N2D2_ASM_EACH("r10,r11", "smmla \\x, \\x, lr, r0")
#define N2D2_LANES_SHIFTED2(a, b, c, d) N2D2_LANES_STEP_OF2(N2D2_SHIFTED, "r12", "lr", a, b, c, d)
#define N2D2_LANES_HALF2(doubled, away, a, b, c, d) \
    "ldm    r1!, {r2, r3, r12, lr}\n\t"             \
    doubled(a, "r2") doubled(b, "r2")               \
    doubled(c, "r3") doubled(d, "r3")               \
    away(a) away(b) away(c) away(d)                 \
    N2D2_LANES_SHIFTED2(a, b, c, d)
#define N2D2_LANES_SIGNED2                                              \
    N2D2_LANES_SHIFT2                                                   \
    "add    r1, r1, #4\n\t"                                             \
    N2D2_LANES_HALF2(N2D2_DOUBLED, N2D2_AWAY, "r4", "r5", "r6", "r7")   \
    N2D2_LANES_HALF2(N2D2_DOUBLED, N2D2_AWAY, "r8", "r9", "r10", "r11")
// 64 of rounding are 2^38 in the product of 256 SB.
#define N2D2_LANES_DOUBLED2(doubled, rounding)                          \
    "add    r1, r1, #4\n\t"                                             \
    N2D2_LANES_HALF2(doubled, N2D2_AS_IT_IS, "r4", "r5", "r6", "r7")    \
    "ldm    r1!, {r2, r3}\n\t"                                          \
    "mov    r12, #" rounding "\n\t"                                     \
    N2D2_ASM_EACH("r8,r9", "smmla \\x, \\x, r2, r12")                   \
    N2D2_ASM_EACH("r10,r11", "smmla \\x, \\x, r3, r12")                 \
    "ldm    r1!, {r12, lr}\n\t"                                         \
    N2D2_LANES_SHIFTED2("r8", "r9", "r10", "r11")

// Of four outputs of one pixel, in r4, r6, r8, r10.
#define N2D2_LANES_SHIFT1   \
    N2D2_ASM_EACH("r8,r10", "asr \\x, \\x, #8")
#define N2D2_LANES_SCALED1              \
    N2D2_LANES_SHIFT1                   \
    "ldm    r1!, {r5, r7, r12, lr}\n\t" \
    N2D2_SCALED("r4", "r5", "r2")       \
    N2D2_SCALED("r6", "r7", "r2")       \
    N2D2_SCALED("r8", "r12", "r2")      \
    N2D2_SCALED("r10", "lr", "r2")
#define N2D2_LANES_HALF1(doubled, away, a, b)   \
    "ldm    r1!, {r5, r7, r12, lr}\n\t"         \
    doubled(a, "r5") doubled(b, "r7")           \
    away(a) away(b)                             \
    N2D2_SHIFTED(a, "r12", "r2")                \
    N2D2_SHIFTED(b, "lr", "r2")
#define N2D2_LANES_SIGNED1                                  \
    N2D2_LANES_SHIFT1                                       \
    N2D2_LANES_HALF1(N2D2_DOUBLED, N2D2_AWAY, "r4", "r6")   \
    N2D2_LANES_HALF1(N2D2_DOUBLED, N2D2_AWAY, "r8", "r10")
#define N2D2_LANES_UPPER(x, m) "smmla " x ", " x ", " m ", r3\n\t"
#define N2D2_LANES_DOUBLED1(doubled, rounding)              \
    N2D2_LANES_HALF1(doubled, N2D2_AS_IT_IS, "r4", "r6")    \
    "mov    r3, #" rounding "\n\t"                          \
    N2D2_LANES_HALF1(N2D2_LANES_UPPER, N2D2_AS_IT_IS, "r8", "r10")

// Two inputs of both pixels. Four loads in a row take five cycles on Cortex-M4, where no base is updated.
#define N2D2_LANES_PRODUCTS2        \
    "smlad  r8, r2, r12, r8\n\t"    \
    "smlad  r9, r3, r12, r9\n\t"    \
    "sxtb16 r12, r12\n\t"           \
    "smlad  r10, r2, lr, r10\n\t"   \
    "smlad  r11, r3, lr, r11\n\t"   \
    "sxtb16 lr, lr\n\t"             \
    "smlad  r4, r2, r12, r4\n\t"    \
    "smlad  r5, r3, r12, r5\n\t"    \
    "smlad  r6, r2, lr, r6\n\t"     \
    "smlad  r7, r3, lr, r7\n\t"
// The words behind `at` bytes on; those of the last step, to which the pointers move.
#define N2D2_LANES_STEP2(at)            \
    "ldr.n  r2, [r0, #" at "+4]\n\t"    \
    "ldr    r12, [r1, #" at "+4]\n\t"   \
    "ldr.n  r3, [r0, #" at "+8]\n\t"    \
    "ldr    lr, [r1, #" at "+8]\n\t"    \
    N2D2_LANES_PRODUCTS2
#define N2D2_LANES_LAST2            \
    "ldr.w  r2, [r0, #124]\n\t"     \
    "ldr    r12, [r1, #124]\n\t"    \
    "ldr    r3, [r0, #128]!\n\t"    \
    "ldr    lr, [r1, #128]!\n\t"    \
    N2D2_LANES_PRODUCTS2
#define N2D2_LANES_STEPS2   \
    N2D2_ASM_EACH("0,8,16,24,32,40,48,56,64,72,80,88,96,104,112", N2D2_LANES_STEP2("\\x")) N2D2_LANES_LAST2

// Four results of both pixels as bytes; those of B and D `up` bits below the upper half.
#define N2D2_LANES_HALVES2(up)                          \
    "pkhbt  r4, r4, r8, lsl #" up "\n\t"                \
    "pkhbt  r5, r5, r9, lsl #" up "\n\t"                \
    "pkhbt  r6, r6, r10, lsl #" up "\n\t"               \
    "pkhbt  r7, r7, r11, lsl #" up "\n\t"               \
    N2D2_ASM_EACH("r4,r5,r6,r7", "usat16 \\x, #8, \\x") \
    "orr    r4, r4, r6, lsl #8\n\t"                     \
    "orr    r5, r5, r7, lsl #8\n\t"
// The same of results of any size, between their limits, and turned; the constants of that to the stack.
#define N2D2_LANES_CLAMPS2          \
    "ldrd   r6, r7, [r0, #32]\n\t"  \
    "strd   r6, r7, [sp, #36]\n\t"
#define N2D2_LANES_CLAMP2                                           \
    N2D2_ASM_EACH("r4,r5,r6,r7,r8,r9,r10,r11", "usat \\x, #8, \\x") \
    "orr    r4, r4, r6, lsl #8\n\t"                                 \
    "orr    r5, r5, r7, lsl #8\n\t"                                 \
    "orr    r8, r8, r10, lsl #8\n\t"                                \
    "orr    r9, r9, r11, lsl #8\n\t"                                \
    "orr    r4, r4, r8, lsl #16\n\t"                                \
    "orr    r5, r5, r9, lsl #16\n\t"                                \
    "ldr    r6, [sp, #32]\n\t"                                      \
    "ldr    r8, [sp, #36]\n\t"                                      \
    "ldr    r9, [sp, #40]\n\t"                                      \
    N2D2_ASM_EACH("r4,r5", N2D2_LIMITED("\\x", "r8", "r9"))         \
    N2D2_ASM_EACH("r4,r5", "eor \\x, \\x, r6")

// All outputs of some pairs of pixels. The loop is entered in the middle, and r0 and r1 are a word before the next one. Between blocks r1 is
// `ahead` bytes before the stream, and `sums` loads the first sums, after which it is `behind` bytes beyond the word before the products. On the
// stack: 0 the window, 4 results of the first pixel, 8 from behind them to those of the second, 12 their end; 16 the way back of the stream, for
// the steps that are skipped; 20 the entry; 24 the last word of the window; 28 Work::zero and what follows it; 44 pairs that are left, 48
// Work::move, 52 Work::next, 56 the stream, 60 bytes of results.
#define N2D2_LANES_TWO(name, ahead, sums, behind, scaled, clamps, clamped)                  \
    N2D2_ASM_FUNCTION(100, __attribute__((aligned(4))) static void name(Work*), "r4-r11",   \
            "sub    sp, sp, #64\n\t"                                                        \
            "ldm    r0, {r2-r9}\n\t"                                                        \
            "add    r12, r0, #48\n\t"                                                       \
            "ldm    r12, {r10-r12}\n\t"                                                     \
            "sub    r1, r3, #" ahead "\n\t"                                                 \
            "lsl    r5, r5, #2\n\t"                                                         \
            "strd   r10, r11, [sp, #44]\n\t"                                                \
            "strd   r12, r1, [sp, #52]\n\t"                                                 \
            "str    r5, [sp, #60]\n\t"                                                      \
            "add    r5, r5, r6\n\t"                                                         \
            "sub    r7, r7, r6\n\t"                                                         \
            "sub    r7, r7, #4\n\t"                                                         \
            "strd   r6, r7, [sp, #4]\n\t"                                                   \
            "str    r5, [sp, #12]\n\t"                                                      \
            "strd   r8, r9, [sp, #28]\n\t"                                                  \
            clamps                                                                          \
            "ldrd   r3, r6, [r0, #40]\n\t"                                                  \
            "sub    r2, r2, r3\n\t"                                                         \
            "sub    r2, r2, #4\n\t"                                                         \
            "add    r3, r3, #" behind "\n\t"                                                \
            "sub    r4, r4, #4\n\t"                                                         \
            "adr.w  r5, 2f\n\t"                                                             \
            "add    r5, r5, r6\n\t"                                                         \
            "str    r2, [sp, #0]\n\t"                                                       \
            "strd   r3, r5, [sp, #16]\n\t"                                                  \
            "str    r4, [sp, #24]\n\t"                                                      \
            "ldm    sp, {r0, r2, r3, r7, r9, r12}\n"                                        \
        "1:\n\t"                                                                            \
            sums                                                                            \
            "sub    r1, r1, r9\n\t"                                                         \
            "mov    r5, r4\n\t"                                                             \
            "mov    r7, r6\n\t"                                                             \
            "mov    r9, r8\n\t"                                                             \
            "mov    r11, r10\n\t"                                                           \
            "bx     r12\n\t"                                                                \
            ".balign 4\n"                                                                   \
        "2:\n\t"                                                                            \
            N2D2_LANES_STEPS2 N2D2_LANES_STEPS2                                             \
            "ldr    r2, [sp, #24]\n\t"                                                      \
            "cmp    r0, r2\n\t"                                                             \
            "bne.w  2b\n\t"                                                                 \
            "sub    r8, r8, r4\n\t"                                                         \
            "sub    r9, r9, r5\n\t"                                                         \
            "sub    r10, r10, r6\n\t"                                                       \
            "sub    r11, r11, r7\n\t"                                                       \
            "ldr    r0, [sp, #28]\n\t"                                                      \
            scaled                                                                          \
            clamped                                                                         \
            "ldm    sp, {r0, r2, r3, r7, r9, r12}\n\t"                                      \
            "str    r4, [r2], #4\n\t"                                                       \
            "str    r5, [r2, r3]\n\t"                                                       \
            "str    r2, [sp, #4]\n\t"                                                       \
            "cmp    r2, r7\n\t"                                                             \
            "bne.w  1b\n\t"                                                                 \
            "add    r11, sp, #44\n\t"                                                       \
            "ldm    r11, {r4-r6, r8, r10}\n\t"                                              \
            "ldr    lr, [sp, #24]\n\t"                                                      \
            "mov    r1, r8\n\t"                                                             \
            "add    r7, r7, r6\n\t"                                                         \
            "sub    r2, r7, r10\n\t"                                                        \
            "add    r0, r0, r5\n\t"                                                         \
            "add    lr, lr, r5\n\t"                                                         \
            "subs   r4, r4, #1\n\t"                                                         \
            "strd   r0, r2, [sp, #0]\n\t"                                                   \
            "str    r7, [sp, #12]\n\t"                                                      \
            "str    lr, [sp, #24]\n\t"                                                      \
            "str    r4, [sp, #44]\n\t"                                                      \
            "bne.w  1b\n\t"                                                                 \
            "add    sp, sp, #64\n\t")

// Two inputs of one pixel in `x`, with the words of AB and CD.
#define N2D2_LANES_PRODUCTS1(x, ab, cd)             \
            "smlad  r8, " x ", " ab ", r8\n\t"      \
            "smlad  r10, " x ", " cd ", r10\n\t"    \
            "sxtb16 " ab ", " ab "\n\t"             \
            "sxtb16 " cd ", " cd "\n\t"             \
            "smlad  r4, " x ", " ab ", r4\n\t"      \
            "smlad  r6, " x ", " cd ", r6\n\t"
// Four inputs in `x` and `y`.
#define N2D2_LANES_FOUR1(x, y)                  \
            "ldm    r1!, {r5, r7, r12, lr}\n\t" \
            N2D2_LANES_PRODUCTS1(x, "r5", "r7") \
            N2D2_LANES_PRODUCTS1(y, "r12", "lr")

// All inputs of the only pixel, eight at a time, four times in a turn; the first turn begins in the middle. r2: bytes of the window.
#define N2D2_LANES_EIGHT1                       \
            "ldm    r0!, {r2, r3, r9, r11}\n\t" \
            N2D2_LANES_FOUR1("r2", "r3")        \
            N2D2_LANES_FOUR1("r9", "r11")
#define N2D2_LANES_ALONE                \
            "lsls   r2, r2, #27\n\t"    \
            "bcc    6f\n\t"             \
            "bmi.w  3f\n\t"             \
            "b.w    4f\n"               \
        "6:\n\t"                        \
            "bmi.w  5f\n"               \
        "2:\n\t" N2D2_LANES_EIGHT1      \
        "3:\n\t" N2D2_LANES_EIGHT1      \
        "4:\n\t" N2D2_LANES_EIGHT1      \
        "5:\n\t" N2D2_LANES_EIGHT1      \
            "ldr    r2, [sp, #28]\n\t"  \
            "cmp    r0, r2\n\t"         \
            "bne.w  2b\n\t"
// Those of the first of two pixels, a multiple of two, at every other word: four at a time, twice in a turn.
#define N2D2_LANES_FIRST_FOUR           \
            "ldr    r2, [r0], #8\n\t"   \
            "ldr    r3, [r0], #8\n\t"   \
            N2D2_LANES_FOUR1("r2", "r3")
#define N2D2_LANES_FIRST                            \
            "lsls   r3, r2, #29\n\t"                \
            "bcc    5f\n\t"                         \
            "ldr    r2, [r0], #8\n\t"               \
            "ldm    r1!, {r5, r7}\n\t"              \
            N2D2_LANES_PRODUCTS1("r2", "r5", "r7")  \
            "subs   r2, r9, r0\n\t"                 \
            "beq    4f\n"                           \
        "5:\n\t"                                    \
            "lsls   r2, r2, #27\n\t"                \
            "bmi    3f\n"                           \
        "2:\n\t" N2D2_LANES_FIRST_FOUR              \
        "3:\n\t" N2D2_LANES_FIRST_FOUR              \
            "cmp    r0, r9\n\t"                     \
            "bne    2b\n"                           \
        "4:\n\t"

// Four results as bytes.
#define N2D2_LANES_BYTES                                        \
            "ldr    r12, [sp, #12]\n\t"                         \
            "ldr    r5, [sp, #16]\n\t"                          \
            "ldr    r7, [sp, #20]\n\t"                          \
            "ldr    r11, [sp, #24]\n\t"                         \
            N2D2_ASM_EACH("r4,r6,r8,r10", "usat \\x, #8, \\x")  \
            "orr    r4, r4, r6, lsl #8\n\t"                     \
            "orr    r8, r8, r10, lsl #8\n\t"                    \
            "orr    r4, r4, r8, lsl #16\n\t"                    \
            N2D2_LIMITED("r4", "r5", "r7")                      \
            "eor    r4, r4, r12\n\t"                            \
            "str    r4, [r11], #4\n\t"                          \
            "str    r11, [sp, #24]\n\t"

// Four results as words, not clamped.
#define N2D2_LANES_WORDS                            \
            "ldr    r11, [sp, #24]\n\t"             \
            "stm    r11!, {r4, r6, r8, r10}\n\t"    \
            "str    r11, [sp, #24]\n\t"

// All outputs of one pixel: the first of a window of two (one), the only one (alone), and that in words (aloneWords).
#define N2D2_LANES_ONE(name, products, scaled, stored)          \
    N2D2_ASM_FUNCTION(68, static void name(Work*), "r4-r11",    \
            "ldm    r0, {r3, r8, r9}\n\t"                       \
            "mov    r1, r8\n\t"                                 \
            "ldrd   r2, r8, [r0, #12]\n\t"                      \
            "ldrd   r4, r5, [r0, #24]\n\t"                      \
            "ldrd   r6, r7, [r0, #32]\n\t"                      \
            "push   {r2-r9}\n"                                  \
        "1:\n\t"                                                \
            "ldr    r0, [sp, #4]\n\t"                           \
            "ldr    r2, [sp, #28]\n\t"                          \
            "ldm    r1!, {r4, r6, r8, r10}\n\t"                 \
            "sub    r2, r2, r0\n\t"                             \
            products                                            \
            "ldr    r2, [sp, #8]\n\t"                           \
            "sub    r8, r8, r4\n\t"                             \
            "sub    r10, r10, r6\n\t"                           \
            scaled                                              \
            stored                                              \
            "ldr    r3, [sp, #0]\n\t"                           \
            "subs   r3, r3, #1\n\t"                             \
            "str    r3, [sp, #0]\n\t"                           \
            "bne.w  1b\n\t"                                     \
            "add    sp, sp, #32\n\t")

template <int Rounding>
struct Kernels;
#define N2D2_LANES_KERNELS(rounding, ahead, sums, behind, ofHalves, up, ofTwo, ofOne)                   \
    template <>                                                                                         \
    struct Kernels<rounding> {                                                                          \
        N2D2_LANES_TWO(two, ahead, sums, behind, ofHalves, "", N2D2_LANES_HALVES2(up))                  \
        N2D2_LANES_TWO(twoClamped, ahead, sums, behind, ofTwo, N2D2_LANES_CLAMPS2, N2D2_LANES_CLAMP2)   \
        N2D2_LANES_ONE(one, N2D2_LANES_FIRST, ofOne, N2D2_LANES_BYTES)                                  \
        N2D2_LANES_ONE(alone, N2D2_LANES_ALONE, ofOne, N2D2_LANES_BYTES)                                \
        N2D2_LANES_ONE(aloneWords, N2D2_LANES_ALONE, ofOne, N2D2_LANES_WORDS)                           \
    };
// Single loads take a cycle less than LDM, which takes fewer instructions.
#define N2D2_LANES_SUMS "ldr    r4, [r1, #4]\n\t" "ldr    r6, [r1, #8]\n\t" "ldr    r8, [r1, #12]\n\t" "ldr    r10, [r1, #16]\n\t"
#define N2D2_LANES_SUMS_OF_DOUBLED "ldm    r1!, {r4, r6, r8, r10}\n\t"
#define N2D2_LANES_KERNELS_DOUBLED(rounding, ofTwo, ofOne)  \
    N2D2_LANES_KERNELS(rounding, "0", N2D2_LANES_SUMS_OF_DOUBLED, "4", ofTwo, "16", ofTwo, ofOne)
N2D2_LANES_KERNELS(HighWord, "4", N2D2_LANES_SUMS, "-16", N2D2_LANES_TOPS2, "8", N2D2_LANES_SCALED2, N2D2_LANES_SCALED1)
N2D2_LANES_KERNELS_DOUBLED(Twice, N2D2_LANES_DOUBLED2(N2D2_DOUBLED, "64"), N2D2_LANES_DOUBLED1(N2D2_DOUBLED, "64"))
N2D2_LANES_KERNELS_DOUBLED(TwiceSigned, N2D2_LANES_SIGNED2, N2D2_LANES_SIGNED1)
N2D2_LANES_KERNELS_DOUBLED(Once, N2D2_LANES_DOUBLED2(N2D2_DOUBLED_DOWN, "0"), N2D2_LANES_DOUBLED1(N2D2_DOUBLED_DOWN, "0"))
// clang-format on

N2D2_INLINE std::uint32_t alignedWord(const void* at) {
    std::uint32_t word;
    std::memcpy(&word, __builtin_assume_aligned(at, 4), 4);
    return word;
}

N2D2_INLINE void storeWord(void* at, std::uint32_t word) { std::memcpy(__builtin_assume_aligned(at, 4), &word, 4); }

// Four results between their limits, and turned; Limits has `low`, `room` and `mask` as Work.
template <class Limits>
N2D2_INLINE std::uint32_t limited(const Limits& s, std::uint32_t four) {
    __asm__(N2D2_LIMITED("%0", "%1", "%2") : "+r"(four) : "r"(s.low), "r"(s.room));
    return four ^ s.mask;
}

// How the assembly goes along pixels of a line, after each of them: bytes from behind its channels to the next ones, bytes from behind its
// words of windows to the next ones. Quads: words of a pixel.
struct Along {
    std::int32_t skipFrom, skipTo, quads, pixels;
};

// clang-format off
#define N2D2_LANES_SPREAD(extend, a, at)                    \
    extend " lr, " a "\n\t" "str lr, [r1, #" #at "]\n\t"    \
    extend " " a ", " a ", ror #8\n\t" "str " a ", [r1, #" #at "+8]\n\t"
// Spreads pixels, at least one, to every other word of windows.
#define N2D2_LANES_SPREAD_LINE(name, extend)                                                        \
    N2D2_ASM_FUNCTION(28, void name(const unsigned char*, std::uint32_t*, const Along*), "r4-r9",   \
            "ldm    r2, {r2, r3, r8, r9}\n"                                                         \
        "1:\n\t"                                                                                    \
            "subs   r7, r8, #4\n\t"                                                                 \
            "blt    3f\n"                                                                           \
        "2:\n\t"                                                                                    \
            "ldr    r4, [r0]\n\t"                                                                   \
            "ldr    r5, [r0, #4]\n\t"                                                               \
            "ldr    r6, [r0, #8]\n\t"                                                               \
            "ldr    r12, [r0, #12]\n\t"                                                             \
            N2D2_LANES_SPREAD(extend, "r4", 0)                                                      \
            N2D2_LANES_SPREAD(extend, "r5", 16)                                                     \
            N2D2_LANES_SPREAD(extend, "r6", 32)                                                     \
            N2D2_LANES_SPREAD(extend, "r12", 48)                                                    \
            "add    r0, r0, #16\n\t"                                                                \
            "add    r1, r1, #64\n\t"                                                                \
            "subs   r7, r7, #4\n\t"                                                                 \
            "bge    2b\n"                                                                           \
        "3:\n\t"                                                                                    \
            "lsls   r7, r7, #31\n\t"                                                                \
            "bcc    4f\n\t"                                                                         \
            "ldr    r4, [r0]\n\t"                                                                   \
            "ldr    r5, [r0, #4]\n\t"                                                               \
            "add    r0, r0, #8\n\t"                                                                 \
            N2D2_LANES_SPREAD(extend, "r4", 0)                                                      \
            N2D2_LANES_SPREAD(extend, "r5", 16)                                                     \
            "add    r1, r1, #32\n"                                                                  \
        "4:\n\t"                                                                                    \
            "bpl    5f\n\t"                                                                         \
            "ldr    r4, [r0], #4\n\t"                                                               \
            N2D2_LANES_SPREAD(extend, "r4", 0)                                                      \
            "add    r1, r1, #16\n"                                                                  \
        "5:\n\t"                                                                                    \
            "add    r0, r0, r2\n\t"                                                                 \
            "add    r1, r1, r3\n\t"                                                                 \
            "subs   r9, r9, #1\n\t"                                                                 \
            "bne    1b\n\t")
N2D2_LANES_SPREAD_LINE(spreadUnsigned, "uxtb16")
N2D2_LANES_SPREAD_LINE(spreadSigned, "sxtb16")
// clang-format on

// Two bytes as 16-bit integers in a word.
template <bool Signed>
N2D2_INLINE std::uint32_t pairOf(unsigned char low, unsigned char high) {
    if (!Signed)
        return low | static_cast<std::uint32_t>(high) << 16;
    const std::int32_t first = static_cast<signed char>(low), second = static_cast<signed char>(high);
    return (static_cast<std::uint32_t>(first) & 0xffffu) | static_cast<std::uint32_t>(second) << 16;
}

// Bytes 0 and 2, and 1 and 3, as 16-bit integers. By name: compilers rotate first.
template <bool Signed>
N2D2_INLINE void halves(std::uint32_t four, std::uint32_t& even, std::uint32_t& odd) {
    if (Signed) {
        __asm__("sxtb16 %0, %1" : "=r"(even) : "r"(four));
        __asm__("sxtb16 %0, %1, ror #8" : "=r"(odd) : "r"(four));
    } else {
        __asm__("uxtb16 %0, %1" : "=r"(even) : "r"(four));
        __asm__("uxtb16 %0, %1, ror #8" : "=r"(odd) : "r"(four));
    }
}

// Spreads `quads` times a word of one pixel, to words that follow each other.
template <bool Signed>
N2D2_MCU_FAST std::uint32_t* spread(const unsigned char* p, int quads, std::uint32_t* window) {
    for (; quads > 0; --quads, p += 4, window += 2)
        halves<Signed>(alignedWord(p), window[0], window[1]);
    return window;
}

}  // namespace lanes
}  // namespace n2d2
