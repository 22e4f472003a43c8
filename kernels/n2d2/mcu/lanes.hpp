// Products of bytes for the DSP extension of Arm's M profile: four outputs and one or two pixels at a time.
//
// The weights of two outputs A and B share 16-bit lanes, 256 * wB + wA. Two lanes of a word and two inputs are one SMLAD:
//
//   with the word as it is          256 * SB + SA
//   after one SXTB16 of the word    SA
//
// so SB = (first - second) >> 8, which is exact modulo 2^32 while |SB| < 2^23; the exporter has proved that from the weights.
//
// The window of inputs is spread to 16 bits once for all outputs, four inputs at a time in the order (0, 2) (1, 3) that UXTB16
// gives; words of the two pixels alternate. Weights are in the same order. All constants of four outputs are one stream of words:
//
//   first sums (A, 256 B + A, C, 256 D + C), with biases;  (AB, CD) of every two inputs;  multipliers of A, B, C, D
//
// or, where sums are doubled (Rounding), 2 m - 2^32 of A, B; -2^(32 - shift) of A, B; the same of C, D.
//
// q = clamp(zero + ((sum * m + 2^31) >> 32), 0, 255) is one SMMLAR and one USAT; four results are clamped further at once where the layer
// asks for it (max(q, low) is low + saturated q - low). Signed results are computed 128 higher and turned by `mask`. The upper word of 2 m
// times a sum is that of 2 m - 2^32 times it, and the sum: one SMMLAR too, or SMMLA without rounding. The shift that follows is SMMLSR
// with -2^(32 - shift); one less in a number below 0 sends its ties away from it.
#ifndef N2D2_MCU_LANES_HPP
#define N2D2_MCU_LANES_HPP

#include <cstring>

#include "n2d2/mcu/lane_shape.hpp"

namespace n2d2 {
namespace lanes {

// What the assembly works on; it knows the offsets.
struct Work {
    const std::uint32_t* window;  // 0: of both pixels
    const std::uint32_t* stream;  // 4
    const std::uint32_t* end;     // 8: of the window, a multiple of 8 inputs behind its beginning
    std::int32_t blocks;          // 12: of four outputs
    unsigned char* first;         // 16: results of the first pixel
    unsigned char* second;        // 20: of the second
    std::int32_t zero;            // 24
    std::uint32_t mask;           // 28
    std::uint32_t low;            // 32: the least result in each byte
    std::uint32_t room;           // 36: 255 less the largest one
};

// clang-format off
#define N2D2_SCALED(x, m, zero) "smmlar " x ", " x ", " m ", " zero "\n\t"
#define N2D2_SHIFTED(x, m, zero) "smmlsr " x ", " x ", " m ", " zero "\n\t"
#define N2D2_DOUBLED(x, m) "smmlar " x ", " x ", " m ", " x "\n\t"
#define N2D2_DOUBLED_DOWN(x, m) "smmla " x ", " x ", " m ", " x "\n\t"
#define N2D2_AWAY(x) "add " x ", " x ", " x ", asr #31\n\t"
#define N2D2_AS_IT_IS(x)

// Of two outputs, a and c, of two pixels.
#define N2D2_LANES_STEP_OF2(scaled, a, b, c, d)   \
    "ldrd   r2, r3, [r1], #8\n\t"                 \
    scaled(a, "r2", "r0")                         \
    scaled(b, "r2", "r0")                         \
    scaled(c, "r3", "r0")                         \
    scaled(d, "r3", "r0")
#define N2D2_LANES_SCALED2(a, b, c, d) N2D2_LANES_STEP_OF2(N2D2_SCALED, a, b, c, d)
#define N2D2_LANES_DOUBLED2(doubled, away, a, b, c, d)  \
    "ldrd   r2, r3, [r1], #8\n\t"                 \
    doubled(a, "r2") doubled(b, "r2")             \
    doubled(c, "r3") doubled(d, "r3")             \
    away(a) away(b) away(c) away(d)               \
    N2D2_LANES_STEP_OF2(N2D2_SHIFTED, a, b, c, d)
#define N2D2_LANES_TWICE2(a, b, c, d) N2D2_LANES_DOUBLED2(N2D2_DOUBLED, N2D2_AS_IT_IS, a, b, c, d)
#define N2D2_LANES_TWICE_SIGNED2(a, b, c, d) N2D2_LANES_DOUBLED2(N2D2_DOUBLED, N2D2_AWAY, a, b, c, d)
#define N2D2_LANES_ONCE2(a, b, c, d) N2D2_LANES_DOUBLED2(N2D2_DOUBLED_DOWN, N2D2_AS_IT_IS, a, b, c, d)

// Of four outputs of one pixel, in r4, r6, r8, r10.
#define N2D2_LANES_SCALED1                        \
    "ldm    r1!, {r5, r7, r12, lr}\n\t"           \
    N2D2_SCALED("r4", "r5", "r2")                 \
    N2D2_SCALED("r6", "r7", "r2")                 \
    N2D2_SCALED("r8", "r12", "r2")                \
    N2D2_SCALED("r10", "lr", "r2")
#define N2D2_LANES_HALF1(doubled, away, a, b)     \
    "ldm    r1!, {r5, r7, r12, lr}\n\t"           \
    doubled(a, "r5") doubled(b, "r7")             \
    away(a) away(b)                               \
    N2D2_SHIFTED(a, "r12", "r2")                   \
    N2D2_SHIFTED(b, "lr", "r2")
#define N2D2_LANES_DOUBLED1(doubled, away)        \
    N2D2_LANES_HALF1(doubled, away, "r4", "r6")   \
    N2D2_LANES_HALF1(doubled, away, "r8", "r10")

#define N2D2_LANES_STEP2              \
    "ldrd   r2, r3, [r0], #8\n\t"     \
    "ldrd   r12, lr, [r1], #8\n\t"    \
    "smlad  r6, r2, r12, r6\n\t"      \
    "smlad  r7, r3, r12, r7\n\t"      \
    "sxtb16 r12, r12\n\t"             \
    "smlad  r10, r2, lr, r10\n\t"     \
    "smlad  r11, r3, lr, r11\n\t"     \
    "sxtb16 lr, lr\n\t"               \
    "smlad  r4, r2, r12, r4\n\t"      \
    "smlad  r5, r3, r12, r5\n\t"      \
    "smlad  r8, r2, lr, r8\n\t"       \
    "smlad  r9, r3, lr, r9\n\t"

// All outputs of two pixels. A template, so that a program has it once wherever it is included.
#define N2D2_LANES_TWO(scaled)                                                                     \
    template <int FrameBytes = 72>                                                                 \
    __attribute__((naked, noinline)) static void two(Work*) {                                      \
        __asm__ volatile(                                                                          \
            ".syntax unified\n\t"                                                                  \
            "push   {r4-r11, lr}\n\t"                                                              \
            "sub    sp, sp, #36\n\t"                                                               \
            "ldr    r1, [r0, #4]\n\t"                                                              \
            "ldr    r2, [r0, #0]\n\t"                                                              \
            "ldr    r3, [r0, #8]\n\t"                                                              \
            "strd   r2, r3, [sp, #0]\n\t"                                                          \
            "ldrd   r2, r3, [r0, #16]\n\t"                                                         \
            "strd   r2, r3, [sp, #8]\n\t"                                                          \
            "ldrd   r2, r3, [r0, #24]\n\t"                                                         \
            "strd   r2, r3, [sp, #16]\n\t"                                                         \
            "ldr    r2, [r0, #12]\n\t"                                                             \
            "str    r2, [sp, #24]\n\t"                                                             \
            "ldrd   r2, r3, [r0, #32]\n\t"                                                         \
            "strd   r2, r3, [sp, #28]\n"                                                           \
        "1:\n\t"                                                                                   \
            "ldm    r1!, {r4, r6, r8, r10}\n\t"                                                    \
            "ldr    r0, [sp, #0]\n\t"                                                              \
            "mov    r5, r4\n\t"                                                                    \
            "mov    r7, r6\n\t"                                                                    \
            "mov    r9, r8\n\t"                                                                    \
            "mov    r11, r10\n"                                                                    \
        "2:\n\t"                                                                                   \
            N2D2_LANES_STEP2                                                                       \
            N2D2_LANES_STEP2                                                                       \
            N2D2_LANES_STEP2                                                                       \
            N2D2_LANES_STEP2                                                                       \
            "ldr    r2, [sp, #4]\n\t"                                                              \
            "cmp    r0, r2\n\t"                                                                    \
            "bne    2b\n\t"                                                                        \
            "ldrd   r0, r12, [sp, #16]\n\t"                                                        \
            "sub    r6, r6, r4\n\t"                                                                \
            "sub    r7, r7, r5\n\t"                                                                \
            "asr    r6, r6, #8\n\t"                                                                \
            "asr    r7, r7, #8\n\t"                                                                \
            scaled("r4", "r5", "r6", "r7")                                                         \
            "sub    r10, r10, r8\n\t"                                                              \
            "sub    r11, r11, r9\n\t"                                                              \
            "asr    r10, r10, #8\n\t"                                                              \
            "asr    r11, r11, #8\n\t"                                                              \
            scaled("r8", "r9", "r10", "r11")                                                       \
            "ldrd   r2, r3, [sp, #8]\n\t"                                                          \
            "usat   r4, #8, r4\n\t"                                                                \
            "usat   r5, #8, r5\n\t"                                                                \
            "usat   r6, #8, r6\n\t"                                                                \
            "usat   r7, #8, r7\n\t"                                                                \
            "usat   r8, #8, r8\n\t"                                                                \
            "usat   r9, #8, r9\n\t"                                                                \
            "usat   r10, #8, r10\n\t"                                                              \
            "usat   r11, #8, r11\n\t"                                                              \
            "orr    r4, r4, r6, lsl #8\n\t"                                                        \
            "orr    r5, r5, r7, lsl #8\n\t"                                                        \
            "orr    r8, r8, r10, lsl #8\n\t"                                                       \
            "orr    r9, r9, r11, lsl #8\n\t"                                                       \
            "orr    r4, r4, r8, lsl #16\n\t"                                                       \
            "orr    r5, r5, r9, lsl #16\n\t"                                                       \
            "ldrd   r6, r7, [sp, #28]\n\t"                                                         \
            "orrs   r8, r6, r7\n\t"                                                                \
            "beq    3f\n\t"                                                                        \
            "uqsub8 r4, r4, r6\n\t"                                                                \
            "uqsub8 r5, r5, r6\n\t"                                                                \
            "uadd8  r4, r4, r6\n\t"                                                                \
            "uadd8  r5, r5, r6\n\t"                                                                \
            "uqadd8 r4, r4, r7\n\t"                                                                \
            "uqadd8 r5, r5, r7\n\t"                                                                \
            "usub8  r4, r4, r7\n\t"                                                                \
            "usub8  r5, r5, r7\n"                                                                  \
        "3:\n\t"                                                                                   \
            "eor    r4, r4, r12\n\t"                                                               \
            "eor    r5, r5, r12\n\t"                                                               \
            "str    r4, [r2], #4\n\t"                                                              \
            "str    r5, [r3], #4\n\t"                                                              \
            "strd   r2, r3, [sp, #8]\n\t"                                                          \
            "ldr    r2, [sp, #24]\n\t"                                                             \
            "subs   r2, r2, #1\n\t"                                                                \
            "str    r2, [sp, #24]\n\t"                                                             \
            "bne    1b\n\t"                                                                        \
            "add    sp, sp, #36\n\t"                                                               \
            "pop    {r4-r11, pc}\n\t");                                                            \
    }

// Four inputs of one pixel, which `inputs` loads to r2 and r3.
#define N2D2_LANES_STEP1(inputs)                            \
            inputs                                          \
            "ldm    r1!, {r5, r7, r12, lr}\n\t"             \
            "smlad  r6, r2, r5, r6\n\t"                     \
            "smlad  r10, r2, r7, r10\n\t"                   \
            "sxtb16 r5, r5\n\t"                             \
            "sxtb16 r7, r7\n\t"                             \
            "smlad  r4, r2, r5, r4\n\t"                     \
            "smlad  r8, r2, r7, r8\n\t"                     \
            "smlad  r6, r3, r12, r6\n\t"                    \
            "smlad  r10, r3, lr, r10\n\t"                   \
            "sxtb16 r12, r12\n\t"                           \
            "sxtb16 lr, lr\n\t"                             \
            "smlad  r4, r3, r12, r4\n\t"                    \
            "smlad  r8, r3, lr, r8\n\t"

// The inputs of a window of one pixel; of the first pixel of a window of two.
#define N2D2_LANES_ALONE "ldrd   r2, r3, [r0], #8\n\t"
#define N2D2_LANES_FIRST "ldr    r2, [r0], #8\n\t" "ldr    r3, [r0], #8\n\t"

// Four results as bytes.
#define N2D2_LANES_BYTES                                    \
            "ldr    r12, [sp, #12]\n\t"                     \
            "usat   r4, #8, r4\n\t"                         \
            "usat   r6, #8, r6\n\t"                         \
            "usat   r8, #8, r8\n\t"                         \
            "usat   r10, #8, r10\n\t"                       \
            "orr    r4, r4, r6, lsl #8\n\t"                 \
            "orr    r8, r8, r10, lsl #8\n\t"                \
            "orr    r4, r4, r8, lsl #16\n\t"                \
            "ldrd   r6, r8, [sp, #16]\n\t"                  \
            "uqsub8 r4, r4, r6\n\t"                         \
            "uadd8  r4, r4, r6\n\t"                         \
            "uqadd8 r4, r4, r8\n\t"                         \
            "usub8  r4, r4, r8\n\t"                         \
            "eor    r4, r4, r12\n\t"                        \
            "str    r4, [r11], #4\n\t"

// Four results as words, not clamped.
#define N2D2_LANES_WORDS "stm    r11!, {r4, r6, r8, r10}\n\t"

// All outputs of one pixel: the first of a window of two (one), the only one (alone), and that in words (aloneWords).
#define N2D2_LANES_ONE(name, inputs, scaled, stored)        \
    template <int FrameBytes = 60>                          \
    __attribute__((naked, noinline)) static void name(Work*) { \
        __asm__ volatile(                                   \
            ".syntax unified\n\t"                           \
            "push   {r4-r11, lr}\n\t"                       \
            "ldr    r1, [r0, #4]\n\t"                       \
            "ldr    r9, [r0, #8]\n\t"                       \
            "ldr    r11, [r0, #16]\n\t"                     \
            "ldr    r2, [r0, #12]\n\t"                      \
            "ldr    r3, [r0, #0]\n\t"                       \
            "ldrd   r4, r5, [r0, #24]\n\t"                  \
            "ldrd   r6, r7, [r0, #32]\n\t"                  \
            "push   {r2-r7}\n"                              \
        "1:\n\t"                                            \
            "ldr    r0, [sp, #4]\n\t"                       \
            "ldm    r1!, {r4, r6, r8, r10}\n"               \
        "2:\n\t"                                            \
            N2D2_LANES_STEP1(inputs)                        \
            N2D2_LANES_STEP1(inputs)                        \
            "cmp    r0, r9\n\t"                             \
            "bne    2b\n\t"                                 \
            "ldr    r2, [sp, #8]\n\t"                       \
            "sub    r6, r6, r4\n\t"                         \
            "sub    r10, r10, r8\n\t"                       \
            "asr    r6, r6, #8\n\t"                         \
            "asr    r10, r10, #8\n\t"                       \
            scaled                                          \
            stored                                          \
            "ldr    r3, [sp, #0]\n\t"                       \
            "subs   r3, r3, #1\n\t"                         \
            "str    r3, [sp, #0]\n\t"                       \
            "bne    1b\n\t"                                 \
            "add    sp, sp, #24\n\t"                        \
            "pop    {r4-r11, pc}\n\t");                     \
    }

template <int Rounding>
struct Kernels;
#define N2D2_LANES_KERNELS(rounding, ofTwo, ofOne)                              \
    template <>                                                             \
    struct Kernels<rounding> {                                              \
        N2D2_LANES_TWO(ofTwo)                                                 \
        N2D2_LANES_ONE(one, N2D2_LANES_FIRST, ofOne, N2D2_LANES_BYTES)        \
        N2D2_LANES_ONE(alone, N2D2_LANES_ALONE, ofOne, N2D2_LANES_BYTES)      \
        N2D2_LANES_ONE(aloneWords, N2D2_LANES_ALONE, ofOne, N2D2_LANES_WORDS) \
    };
N2D2_LANES_KERNELS(HighWord, N2D2_LANES_SCALED2, N2D2_LANES_SCALED1)
N2D2_LANES_KERNELS(Twice, N2D2_LANES_TWICE2, N2D2_LANES_DOUBLED1(N2D2_DOUBLED, N2D2_AS_IT_IS))
N2D2_LANES_KERNELS(TwiceSigned, N2D2_LANES_TWICE_SIGNED2, N2D2_LANES_DOUBLED1(N2D2_DOUBLED, N2D2_AWAY))
N2D2_LANES_KERNELS(Once, N2D2_LANES_ONCE2, N2D2_LANES_DOUBLED1(N2D2_DOUBLED_DOWN, N2D2_AS_IT_IS))
// clang-format on

N2D2_INLINE std::uint32_t alignedWord(const void* at) {
    std::uint32_t word;
    std::memcpy(&word, __builtin_assume_aligned(at, 4), 4);
    return word;
}

// Spreads `quads` times a word of of two pixels to words of a window; returns its end.
template <bool Signed>
N2D2_MCU_FAST std::uint32_t* spread(const unsigned char* p, const unsigned char* q, int quads, std::uint32_t* window) {
    for (; quads > 0; --quads) {
        std::uint32_t a = alignedWord(p), b = alignedWord(q), c, d;
        p += 4;
        q += 4;
        if (Signed) {
            __asm__("sxtb16 %0, %1" : "=r"(c) : "r"(a));
            __asm__("sxtb16 %0, %1" : "=r"(d) : "r"(b));
            __asm__("sxtb16 %0, %1, ror #8" : "=r"(a) : "r"(a));
            __asm__("sxtb16 %0, %1, ror #8" : "=r"(b) : "r"(b));
        } else {
            __asm__("uxtb16 %0, %1" : "=r"(c) : "r"(a));
            __asm__("uxtb16 %0, %1" : "=r"(d) : "r"(b));
            __asm__("uxtb16 %0, %1, ror #8" : "=r"(a) : "r"(a));
            __asm__("uxtb16 %0, %1, ror #8" : "=r"(b) : "r"(b));
        }
        __asm__ volatile(
            "strd %1, %2, [%0], #8\n\t"
            "strd %3, %4, [%0], #8"
            : "+r"(window)
            : "r"(c), "r"(d), "r"(a), "r"(b)
            : "memory");
    }
    return window;
}

// The same of one pixel, whose words follow each other.
template <bool Signed>
N2D2_MCU_FAST std::uint32_t* spread(const unsigned char* p, int quads, std::uint32_t* window) {
    for (; quads > 0; --quads) {
        std::uint32_t a = alignedWord(p), c;
        p += 4;
        if (Signed) {
            __asm__("sxtb16 %0, %1" : "=r"(c) : "r"(a));
            __asm__("sxtb16 %0, %1, ror #8" : "=r"(a) : "r"(a));
        } else {
            __asm__("uxtb16 %0, %1" : "=r"(c) : "r"(a));
            __asm__("uxtb16 %0, %1, ror #8" : "=r"(a) : "r"(a));
        }
        *window++ = c;
        *window++ = a;
    }
    return window;
}

}  // namespace lanes
}  // namespace n2d2

#endif  // N2D2_MCU_LANES_HPP
