// Products of signed bytes for MVE (Helium): dense layers by VMLADAVA, four pixels and two outputs or one pixel and four outputs at a
// time; depthwise ones by VMULL, 16 channels at a time. The exporter (forms/vector_streams.py) makes their constants.
//
// q = clamp(zero + ((sum * m + 2^31) >> 32)) is VRMULH, a saturating narrowing to 16 bits, VQADD, VMAX and VMIN, or a saturating
// narrowing to 8 bits. Where sums are doubled
// (lanes::Rounding), VQRDMULH, or VQDMULH, and VRSHL take the place of VRMULH: vectors of shifts to the left follow those of multipliers.
//
// Inputs are copied to windows or lines before they are multiplied, unsigned ones 128 lower (VEOR); the bias makes up for that. Loops
// whose last turn is no whole vector are predicated by their number of elements (DLSTP, LETP), so nothing beyond is read or written.
#pragma once

#include "n2d2/mcu/lane_shape.hpp"

namespace n2d2 {
namespace mve {

enum : int { Bytes = 16 };  // of a vector

using lanes::Results;

template <class Cfg>
constexpr Results resultsOf() {
    return Results{Cfg::VectorZero, Cfg::VectorLow, Cfg::VectorHigh};
}

// Bytes turned while they are copied: unsigned ones become 128 less, as signed ones.
template <class T>
constexpr std::uint32_t turnOf() {
    return std::numeric_limits<T>::is_signed ? 0u : 0x80808080u;
}

// A piece of a window: `from` + `step` * where the window is.
struct Piece {
    const unsigned char* from;
    std::int32_t step;
};

// Copies `runs` pieces of `count` bytes for a window that is at `at`: the 16 bytes of a vector to every 64th address, a part of a window of
// four pixels. `count` is a multiple of 16, or there is one.
template <int = 0>
N2D2_MCU_FAST void spread(const Piece* from, int runs, unsigned char* to, int count, std::uint32_t turn, int at) {
    const unsigned char* run;
    __asm__ volatile(
        "vdup.32  q1, %[turn]\n"
        "1:\n\t"
        "ldrd     %[run], lr, [%[from]], #8\n\t"
        "mla      %[run], lr, %[at], %[run]\n\t"
        "dlstp.8  lr, %[count]\n"
        "2:\n\t"
        "vldrb.8  q0, [%[run]], #16\n\t"
        "veor     q0, q0, q1\n\t"
        "vstrb.8  q0, [%[to]], #64\n\t"
        "letp     lr, 2b\n\t"
        "subs     %[runs], %[runs], #1\n\t"
        "bne      1b"
        : [from] "+r"(from), [to] "+r"(to), [run] "=&r"(run), [runs] "+r"(runs)
        : [count] "r"(count), [turn] "r"(turn), [at] "r"(at)
        : "lr", "q0", "q1", "memory", "cc");
}

// The same of four pixels, a run of each.
template <int = 0>
N2D2_MCU_FAST void spreadFour(const unsigned char* const* from, unsigned char* to, int count, std::uint32_t turn) {
    const unsigned char *a = from[0], *b = from[1], *c = from[2], *d = from[3];
    __asm__ volatile(
        "vdup.32  q1, %[turn]\n\t"
        "dlstp.8  lr, %[count]\n"
        "1:\n\t"
        "vldrb.8  q0, [%[a]], #16\n\t"
        "veor     q0, q0, q1\n\t"
        "vldrb.8  q2, [%[b]], #16\n\t"
        "vstrb.8  q0, [%[to]]\n\t"
        "veor     q2, q2, q1\n\t"
        "vldrb.8  q0, [%[c]], #16\n\t"
        "vstrb.8  q2, [%[to], #16]\n\t"
        "veor     q0, q0, q1\n\t"
        "vldrb.8  q2, [%[d]], #16\n\t"
        "vstrb.8  q0, [%[to], #32]\n\t"
        "veor     q2, q2, q1\n\t"
        "vstrb.8  q2, [%[to], #48]\n\t"
        "adds     %[to], %[to], #64\n\t"
        "letp     lr, 1b"
        : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [to] "+r"(to)
        : [count] "r"(count), [turn] "r"(turn)
        : "lr", "q0", "q1", "q2", "memory", "cc");
}

// Copies such pieces as they are, to every `pitch`-th address.
template <int = 0>
N2D2_MCU_FAST void join(const Piece* from, int runs, unsigned char* to, int count, int pitch, int at) {
    const unsigned char* run;
    unsigned char* place;
    __asm__ volatile(
        "1:\n\t"
        "ldrd     %[run], lr, [%[from]], #8\n\t"
        "mov      %[place], %[to]\n\t"
        "mla      %[run], lr, %[at], %[run]\n\t"
        "add      %[to], %[to], %[pitch]\n\t"
        "dlstp.8  lr, %[count]\n"
        "2:\n\t"
        "vldrb.8  q0, [%[run]], #16\n\t"
        "vstrb.8  q0, [%[place]], #16\n\t"
        "letp     lr, 2b\n\t"
        "subs     %[runs], %[runs], #1\n\t"
        "bne      1b"
        : [from] "+r"(from), [to] "+r"(to), [run] "=&r"(run), [runs] "+r"(runs), [place] "=&r"(place)
        : [count] "r"(count), [at] "r"(at), [pitch] "r"(pitch)
        : "lr", "q0", "memory", "cc");
}

// Copies `count` bytes.
template <int = 0>
N2D2_MCU_FAST void copy(const unsigned char* from, unsigned char* to, int count, std::uint32_t turn) {
    __asm__ volatile(
        "vdup.32  q1, %[turn]\n\t"
        "wlstp.8  lr, %[count], 2f\n"
        "1:\n\t"
        "vldrb.8  q0, [%[from]], #16\n\t"
        "veor     q0, q0, q1\n\t"
        "vstrb.8  q0, [%[to]], #16\n\t"
        "letp     lr, 1b\n"
        "2:"
        : [from] "+r"(from), [to] "+r"(to)
        : [count] "r"(count), [turn] "r"(turn)
        : "lr", "q0", "q1", "memory");
}

// The arguments of `four`, which knows the offsets.
struct Work {
    const unsigned char* window;   // 0: 16 bytes of each pixel, and so on
    const unsigned char* end;      // 4: of the window
    const signed char* stream;     // 8
    const signed char* streamEnd;  // 12
    unsigned char* out;            // 16: of one of the pixels
    std::int32_t skip;             // 20: bytes of code before the first product of the last turn that is not whole, odd
    Results results;               // 24
    std::uint32_t places[4];       // 36: pixels 0, 2, 0, 2, 1, 3, 1, 3 from `out`, 16 bits each, the second for output B
};

enum : int {
    Turn = 8,
    StepBytes = 56,
    EndBytes = 6
};  // vectors of inputs in a turn of the loop of `four`; bytes of code for one, of the end

// For windows of `vectors` times 16 inputs: the first one is outside of the loop, which is entered in the middle, or skipped with its end.
inline std::int32_t skipOf(int vectors) {
    const int rest = vectors - 1;
    return rest > 0 ? StepBytes * ((Turn - rest % Turn) % Turn) + 1 : StepBytes * Turn + EndBytes + 1;
}

// clang-format off
#define N2D2_MVE_AWAY(x, t) "vshr.s32 " t ", " x ", #31\n\t" "vadd.i32 " x ", " x ", " t "\n\t"
#define N2D2_MVE_AS_IT_IS(x, t)

// Sums of output A are r0, r4, r8, r12, those of output B r2, r6, r10, lr. The first vectors of weights and inputs are in q0 and q2; those of
// the next step are loaded while the last products are made, 16 bytes of inputs behind the window at its end.
#define N2D2_MVE_STEP(multiply)       \
    multiply " r0, q0, q2\n\t"        \
    "vldrb.8 q1, [r3], #16\n\t"       \
    multiply " r2, q1, q2\n\t"        \
    "vldrb.8 q3, [r1], #16\n\t"       \
    multiply " r4, q0, q3\n\t"        \
    "vldrb.8 q2, [r1], #16\n\t"       \
    multiply " r6, q1, q3\n\t"        \
    "vldrb.8 q3, [r1], #16\n\t"       \
    multiply " r8, q0, q2\n\t"        \
    multiply " r10, q1, q2\n\t"       \
    "vldrb.8 q2, [r1], #16\n\t"       \
    multiply " r12, q0, q3\n\t"       \
    "vldrb.8 q0, [r3], #16\n\t"       \
    multiply " lr, q1, q3\n\t"

#define N2D2_MVE_FOUR_STEPS                                                 \
    N2D2_MVE_STEP("vmladava.s8") N2D2_MVE_STEP("vmladava.s8")               \
    N2D2_MVE_STEP("vmladava.s8") N2D2_MVE_STEP("vmladava.s8")

// All outputs of four pixels, two at a time.
#define N2D2_MVE_FOUR(multiply, shifted, narrowed)              \
    N2D2_ASM_FUNCTION(112, static void four(Work*), "r4-r11",   \
            "vpush   {d8-d15}\n\t"                              \
            "sub     sp, sp, #12\n\t"                           \
            "ldrd    r11, r5, [r0, #0]\n\t"                     \
            "ldrd    r3, r2, [r0, #8]\n\t"                      \
            "str     r2, [sp, #0]\n\t"                          \
            "ldrd    r9, r2, [r0, #16]\n\t"                     \
            "adr.w   r7, 2f\n\t"                                \
            "add     r7, r7, r2\n\t"                            \
            "ldrd    r1, r2, [r0, #24]\n\t"                     \
            "vdup.16 q6, r1\n\t"                                \
            "vdup.16 q4, r2\n\t"                                \
            "ldr     r1, [r0, #32]\n\t"                         \
            "vdup.16 q5, r1\n\t"                                \
            "add     r0, r0, #36\n\t"                           \
            "vldrw.32 q7, [r0]\n\t"                             \
            "mov     r1, r11\n\t"                               \
            "add     r5, r5, #16\n\t"                           \
            "vldrb.8 q2, [r1], #16\n"                           \
        "1:\n\t"                                                \
            "vldrb.8 q0, [r3], #16\n\t"                         \
            N2D2_MVE_STEP("vmladav.s8")                         \
            "bx      r7\n\t"                                    \
            ".balign 4\n"                                       \
        "2:\n\t"                                                \
            N2D2_MVE_FOUR_STEPS                                 \
            N2D2_MVE_FOUR_STEPS                                 \
            "cmp.n   r1, r5\n\t"                                \
            "bne.w   2b\n\t"                                    \
            "vmov    q1[2], q1[0], r0, r4\n\t"                  \
            "vldrw.32 q3, [r3], #16\n\t"                        \
            "vmov    q1[3], q1[1], r2, r6\n\t"                  \
            "mov     r1, r11\n\t"                               \
            "vadd.i32 q1, q1, q0\n\t"                           \
            multiply " q1, q1, q3\n\t"                          \
            "vmov    q2[2], q2[0], r8, r12\n\t"                 \
            "ldr     r0, [sp, #0]\n\t"                          \
            "vmov    q2[3], q2[1], r10, lr\n\t"                 \
            "vadd.i32 q2, q2, q0\n\t"                           \
            multiply " q2, q2, q3\n\t"                          \
            shifted                                             \
            "vqmovnb.s32 q1, q1\n\t"                            \
            "cmp     r3, r0\n\t"                                \
            "vqmovnt.s32 q1, q2\n\t"                            \
            "vldrb.8 q2, [r1], #16\n\t"                         \
            "vqadd.s16 q1, q1, q6\n\t"                          \
            narrowed                                            \
            "vstrb.16 q1, [r9, q7]\n\t"                         \
            "add     r9, r9, #2\n\t"                            \
            "bne.w   1b\n\t"                                    \
            "add     sp, sp, #12\n\t"                           \
            "vpop    {d8-d15}\n\t")
#define N2D2_MVE_SHIFT_FOUR(away)         \
    "vldrw.32 q0, [r3], #16\n\t"          \
    away("q1", "q3")                      \
    "vrshl.s32 q1, q1, q0\n\t"            \
    away("q2", "q3")                      \
    "vrshl.s32 q2, q2, q0\n\t"
// clang-format on

// The arguments of `one` and `oneWide`.
struct Single {
    const unsigned char* window;  // 0
    const signed char* stream;    // 4
    std::int32_t vectors;         // 8: of the window
    std::int32_t outputs;         // 12
    unsigned char* out;           // 16
    Results results;              // 20
};

// clang-format off
// All outputs of one pixel, four at a time, which `stored` stores: as bytes, or as 16-bit integers.
#define N2D2_MVE_ONE(name, multiply, shifted, stored)           \
    N2D2_ASM_FUNCTION(36, static void name(Single*), "r4-r11",  \
            "ldrd    r9, r1, [r0, #0]\n\t"                      \
            "ldrd    r7, r5, [r0, #8]\n\t"                      \
            "ldrd    r3, r12, [r0, #16]\n\t"                    \
            "ldrd    r10, r11, [r0, #24]\n"                     \
            "1:\n\t"                                            \
            "ldm     r1!, {r0, r2, r4, r6}\n\t"                 \
            "mov     r8, r9\n\t"                                \
            "dls     lr, r7\n"                                  \
            "2:\n\t"                                            \
            "vldrb.8 q0, [r8], #16\n\t"                         \
            "vldrb.8 q1, [r1], #16\n\t"                         \
            "vmladava.s8 r0, q0, q1\n\t"                        \
            "vldrb.8 q2, [r1], #16\n\t"                         \
            "vmladava.s8 r2, q0, q2\n\t"                        \
            "vldrb.8 q3, [r1], #16\n\t"                         \
            "vmladava.s8 r4, q0, q3\n\t"                        \
            "vldrb.8 q1, [r1], #16\n\t"                         \
            "vmladava.s8 r6, q0, q1\n\t"                        \
            "le      lr, 2b\n\t"                                \
            "vmov    q0[2], q0[0], r0, r4\n\t"                  \
            "vmov    q0[3], q0[1], r2, r6\n\t"                  \
            "vldrw.32 q1, [r1], #16\n\t"                        \
            multiply " q0, q0, q1\n\t"                          \
            shifted                                             \
            "vdup.32 q2, r10\n\t"                               \
            "vdup.32 q3, r11\n\t"                               \
            "vadd.i32 q0, q0, r12\n\t"                          \
            "vctp.32 r5\n\t"                                    \
            "vmax.s32 q0, q0, q2\n\t"                           \
            "vmin.s32 q0, q0, q3\n\t"                           \
            "vpst\n\t"                                          \
            stored                                              \
            "subs    r5, r5, #4\n\t"                            \
            "bgt.w   1b\n\t")

#define N2D2_MVE_SHIFT_ONE(away)          \
    "vldrw.32 q1, [r1], #16\n\t"          \
    away("q0", "q2")                      \
    "vrshl.s32 q0, q0, q1\n\t"
// clang-format on

// The arguments of `pixels`.
struct Line {
    const unsigned char* rows[3];  // 0: pixels of 16 bytes, or of 8, from the leftmost tap of the first pixel on
    const signed char* stream;     // 12: of the 16 channels
    unsigned char* out;            // 16
    std::int32_t stride;           // 20: from one result to the next
    std::int32_t count;            // 24: of results
    std::int32_t bytes;            // 28: of each that are stored
    Results results;               // 32
};

// clang-format off
// Even (b) or odd (t) channels of two taps, whose products fit into 16 bits together, to q2. The sums that were there go to x and y
// meanwhile: instructions of different units alternate, so that they overlap. `between` is one more.
#define N2D2_MVE_TAPS(half, x, y, first, weights, second, others, between)  \
    "vldrb.8 q0, " first "\n\t"                              \
    "vmovlb.s16 q3, q2\n\t"                                 \
    "vldrw.32 q1, [r3, #" weights "]\n\t"                   \
    "vadd.i32 " x ", " x ", q3\n\t"                         \
    between                                                 \
    "vmovlt.s16 q3, q2\n\t"                                 \
    "vmull" half ".s8 q2, q0, q1\n\t"                       \
    "vldrb.8 q0, " second "\n\t"                            \
    "vadd.i32 " y ", " y ", q3\n\t"                         \
    "vldrw.32 q1, [r3, #" others "]\n\t"                    \
    "vmull" half ".s8 q0, q0, q1\n\t"                       \
    "vadd.i16 q2, q2, q0\n\t"

// The same of the last tap.
#define N2D2_MVE_TAP(half, x, y, at)                        \
    "vldrb.8 q0, " at "\n\t"                                \
    "vmovlb.s16 q3, q2\n\t"                                 \
    "vldrw.32 q1, [r3, #192]\n\t"                           \
    "vadd.i32 " x ", " x ", q3\n\t"                         \
    "vmovlt.s16 q3, q2\n\t"                                 \
    "vmull" half ".s8 q2, q0, q1\n\t"                       \
    "vadd.i32 " y ", " y ", q3\n\t"

// `count` results of 16 channels, or of 8 of two pixels; taps are `tap` bytes apart, pixels `move`.
#define N2D2_MVE_PIXELS(name, multiply, shifted, narrowed, tap, tap2, move)                                                 \
    N2D2_ASM_FUNCTION(136, static void name(Line*), "r4-r11",                                                               \
            "vpush   {d8-d15}\n\t"                                                                                          \
            "sub     sp, sp, #36\n\t"                                                                                       \
            "ldr     r1, [r0, #36]\n\t"                                                                                     \
            "vdup.16 q0, r1\n\t"                                                                                            \
            "vstrw.32 q0, [sp]\n\t"                                                                                         \
            "ldr     r1, [r0, #40]\n\t"                                                                                     \
            "vdup.16 q0, r1\n\t"                                                                                            \
            "vstrw.32 q0, [sp, #16]\n\t"                                                                                    \
            "ldrd    r1, r8, [r0, #28]\n\t"                                                                                 \
            "vctp.8  r1\n\t"                                                                                                \
            "ldrd    r7, r2, [r0, #20]\n\t"                                                                                 \
            "dls     lr, r2\n\t"                                                                                            \
            "ldrd    r3, r6, [r0, #12]\n\t"                                                                                 \
            "ldm     r0, {r0, r1, r2}\n"                                                                                    \
            "1:\n\t"                                                                                                        \
            "vldrb.8 q0, [r0, #" tap2 "]\n\t"                                                                               \
            "vldrw.32 q1, [r3, #64]\n\t"                                                                                    \
            "vmullb.s8 q2, q0, q1\n\t"                                                                                      \
            "vldrb.8 q0, [r0, #" tap "]\n\t"                                                                                \
            "vldrw.32 q1, [r3, #80]\n\t"                                                                                    \
            "vmullb.s8 q0, q0, q1\n\t"                                                                                      \
            "vldrw.32 q4, [r3]\n\t"                                                                                         \
            "vadd.i16 q2, q2, q0\n\t"                                                                                       \
            N2D2_MVE_TAPS("b", "q4", "q5", "[r0]", "96", "[r1, #" tap2 "]", "112", "vldrw.32 q5, [r3, #16]\n\t")            \
            N2D2_MVE_TAPS("b", "q4", "q5", "[r1, #" tap "]", "128", "[r1]", "144", "vldrw.32 q6, [r3, #32]\n\t")            \
            N2D2_MVE_TAPS("b", "q4", "q5", "[r2, #" tap2 "]", "160", "[r2, #" tap "]", "176", "vldrw.32 q7, [r3, #48]\n\t") \
            N2D2_MVE_TAP("b", "q4", "q5", "[r2]")                                                                           \
            N2D2_MVE_TAPS("t", "q4", "q5", "[r0, #" tap2 "]", "64", "[r0, #" tap "]", "80", "")                             \
            N2D2_MVE_TAPS("t", "q6", "q7", "[r0], #" move, "96", "[r1, #" tap2 "]", "112", "")                              \
            N2D2_MVE_TAPS("t", "q6", "q7", "[r1, #" tap "]", "128", "[r1], #" move, "144", "")                              \
            N2D2_MVE_TAPS("t", "q6", "q7", "[r2, #" tap2 "]", "160", "[r2, #" tap "]", "176", "")                           \
            N2D2_MVE_TAP("t", "q6", "q7", "[r2], #" move)                                                                   \
            "vldrw.32 q0, [r3, #208]\n\t"                                                                                   \
            "vmovlb.s16 q3, q2\n\t"                                                                                         \
            multiply " q4, q4, q0\n\t"                                                                                      \
            "vadd.i32 q6, q6, q3\n\t"                                                                                       \
            "vldrw.32 q1, [r3, #224]\n\t"                                                                                   \
            "vmovlt.s16 q3, q2\n\t"                                                                                         \
            multiply " q5, q5, q1\n\t"                                                                                      \
            "vadd.i32 q7, q7, q3\n\t"                                                                                       \
            "vldrw.32 q2, [r3, #240]\n\t"                                                                                   \
            multiply " q6, q6, q2\n\t"                                                                                      \
            "vldrw.32 q3, [r3, #256]\n\t"                                                                                   \
            multiply " q7, q7, q3\n\t"                                                                                      \
            shifted                                                                                                         \
            "vqmovnb.s32 q4, q4\n\t"                                                                                        \
            "vqmovnt.s32 q4, q5\n\t"                                                                                        \
            "vqmovnb.s32 q6, q6\n\t"                                                                                        \
            "vqadd.s16 q4, q4, r8\n\t"                                                                                      \
            "vqmovnt.s32 q6, q7\n\t"                                                                                        \
            narrowed                                                                                                        \
            "vpst\n\t"                                                                                                      \
            "vstrbt.8 q4, [r6]\n\t"                                                                                         \
            "add     r6, r6, r7\n\t"                                                                                        \
            "le      lr, 1b\n\t"                                                                                            \
            "add     sp, sp, #36\n\t"                                                                                       \
            "vpop    {d8-d15}\n\t")

#define N2D2_MVE_SHIFT_PIXELS(away)       \
    "vldrw.32 q0, [r3, #272]\n\t"         \
    "vldrw.32 q2, [r3, #288]\n\t"         \
    away("q4", "q1")                      \
    "vrshl.s32 q4, q4, q0\n\t"            \
    "vldrw.32 q0, [r3, #304]\n\t"         \
    away("q5", "q1")                      \
    "vrshl.s32 q5, q5, q2\n\t"            \
    "vldrw.32 q2, [r3, #320]\n\t"         \
    away("q6", "q1")                      \
    "vrshl.s32 q6, q6, q0\n\t"            \
    away("q7", "q1")                      \
    "vrshl.s32 q7, q7, q2\n\t"

// The ways to bytes: between the limits of a layer, or saturated where these are those of the type.
#define N2D2_MVE_LIMIT_FOUR "vmax.s16 q1, q1, q4\n\t" "vmin.s16 q1, q1, q5\n\t"
#define N2D2_MVE_LIMIT_PIXELS             \
    "vldrw.32 q0, [sp]\n\t"               \
    "vqadd.s16 q6, q6, r8\n\t"            \
    "vldrw.32 q1, [sp, #16]\n\t"          \
    "vmax.s16 q4, q4, q0\n\t"             \
    "vmax.s16 q6, q6, q0\n\t"             \
    "vmin.s16 q4, q4, q1\n\t"             \
    "vmin.s16 q6, q6, q1\n\t"             \
    "vmovnt.i16 q4, q6\n\t"
#define N2D2_MVE_SATURATE_FOUR(narrow) narrow "b.s16 q1, q1\n\t"
#define N2D2_MVE_SATURATE_PIXELS(narrow)  \
    "vqadd.s16 q6, q6, r8\n\t"            \
    narrow "b.s16 q4, q4\n\t"             \
    narrow "t.s16 q4, q6\n\t"

enum Range : int { Limited, SignedBytes, UnsignedBytes };

template <class Cfg>
constexpr Range rangeOf() {
    typedef std::numeric_limits<typename Cfg::Output::Type> Limits;
    return int(Cfg::VectorLow) != int(Limits::lowest()) || int(Cfg::VectorHigh) != int(Limits::max()) ? Limited :
           Limits::is_signed                                                                          ? SignedBytes :
                                                                                                        UnsignedBytes;
}

template <int Rounding, int Range = Limited>
struct Kernels;
#define N2D2_MVE_KERNELS_TO(rounding, range, multiply, ofFour, ofOne, ofPixels, toFour, toPixels) \
    template <>                                                                          \
    struct Kernels<rounding, range> {                                                    \
        enum : int { Words = 1 + (int(rounding) != int(lanes::HighWord)) };              \
        N2D2_MVE_FOUR(multiply, ofFour, toFour)                                          \
        N2D2_MVE_ONE(one, multiply, ofOne, "vstrbt.32 q0, [r3], #4\n\t")                 \
        N2D2_MVE_ONE(oneWide, multiply, ofOne, "vstrht.32 q0, [r3], #8\n\t")             \
        N2D2_MVE_PIXELS(pixels, multiply, ofPixels, toPixels, "16", "32", "16")          \
        N2D2_MVE_PIXELS(everyOther, multiply, ofPixels, toPixels, "16", "32", "32")      \
        N2D2_MVE_PIXELS(twoPixels, multiply, ofPixels, toPixels, "8", "16", "16")        \
    };
#define N2D2_MVE_KERNELS(rounding, multiply, ofFour, ofOne, ofPixels)                    \
    N2D2_MVE_KERNELS_TO(rounding, Limited, multiply, ofFour, ofOne, ofPixels, N2D2_MVE_LIMIT_FOUR, N2D2_MVE_LIMIT_PIXELS) \
    N2D2_MVE_KERNELS_TO(rounding, SignedBytes, multiply, ofFour, ofOne, ofPixels,        \
                        N2D2_MVE_SATURATE_FOUR("vqmovn"), N2D2_MVE_SATURATE_PIXELS("vqmovn")) \
    N2D2_MVE_KERNELS_TO(rounding, UnsignedBytes, multiply, ofFour, ofOne, ofPixels,      \
                        N2D2_MVE_SATURATE_FOUR("vqmovun"), N2D2_MVE_SATURATE_PIXELS("vqmovun"))
#define N2D2_MVE_DOUBLED(rounding, multiply, away)                                       \
    N2D2_MVE_KERNELS(rounding, multiply, N2D2_MVE_SHIFT_FOUR(away), N2D2_MVE_SHIFT_ONE(away), N2D2_MVE_SHIFT_PIXELS(away))
N2D2_MVE_KERNELS(lanes::HighWord, "vrmulh.s32", "", "", "")
N2D2_MVE_DOUBLED(lanes::Twice, "vqrdmulh.s32", N2D2_MVE_AS_IT_IS)
N2D2_MVE_DOUBLED(lanes::TwiceSigned, "vqrdmulh.s32", N2D2_MVE_AWAY)
N2D2_MVE_DOUBLED(lanes::Once, "vqdmulh.s32", N2D2_MVE_AS_IT_IS)
// clang-format on

}  // namespace mve
}  // namespace n2d2
