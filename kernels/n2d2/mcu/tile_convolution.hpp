// Winograd's F(2 x 2, 3 x 3) for the DSP extension of Arm's M profile, in integers, exactly (winograd.hpp has the algebra).
//
// A tile is two by two outputs, of four by four inputs d. Two tiles that lie side by side and four outputs are made at a time. Inputs are
// spread to 16 bits, two channels in a word, and transformed by SADD16 and SSUB16: bytes become at most 4 * 255. Weights are
// transformed by the exporter with 2 G in place of G, at most 9 * 128. SMLAD sums products of two channels, modulo 2^32; four times
// a sum without its bias fits 32 bits, which the exporter has proved, so that a quarter of it is exact.
//
// Transformed inputs: [pair of channels (0, 2) (1, 3) of each four][16 positions][2 tiles], words. A position is a column j, in order, and
// in it the rows i = 1, 2, 0, 3: with sums m1 and m2 of the first ones, those of row 0 go on from m1 + m2, and those of row 3, with
// weights of the other sign, from m1 - m2. These are both lines of the outputs; columns follow in the same way. All constants of four
// outputs are one stream of words:
//
//   [16 positions][pair of channels][4 outputs];  (bias, multiplier) of each output;  second words of doubled sums (lanes.hpp)
//
// Results as in lanes.hpp. One function for all layers reads their shapes from constants. Pairs of lines come in their order. Where the output
// lies over the input, the first stored line of a pair may cover one line of inputs that the pair still needs: that one is copied.
#pragma once

#include "n2d2/mcu/lane_convolution.hpp"

namespace n2d2 {
namespace tiles {

// The arguments of the assembly, which knows the offsets.
struct Work {
    const std::uint32_t* inputs;  // 0: transformed
    const std::uint32_t* stream;  // 4
    const std::uint32_t* end;     // 8: of the inputs, 128 bytes for each two channels behind their beginning
    std::int32_t back;            // 12: from there to the second position: the bytes of the inputs less 8
    std::int32_t blocks;          // 16: of four outputs
    std::int32_t first;     // 20: bytes of the unrolled products that a sum skips, when two channels are multiplied already
    std::int32_t next;      // 24: the same, when none are
    std::int32_t zero;      // 28
    std::uint32_t low;      // 32: the least result in each byte
    std::uint32_t room;     // 36: 255 less the largest one
    std::uint32_t mask;     // 40
    unsigned char* out[8];  // 44: results of both pixels of the upper line of the first tile, of the second; of the lower line
};

enum : int { StepBytes = 44, Unrolled = 8 };  // of the products of two channels

// clang-format off
// A column of four pixels, four channels: rows 0, 2, 3, 1 of (0, 2), then of (1, 3).
#define N2D2_TILES_COLUMN(extend)                               \
    "ldm    r0!, {r4, r5, r6, r7}\n\t"                          \
    N2D2_ASM_EACH("r4,r5,r6,r7", "ldr \\x, [\\x, r2]")          \
    extend " r8, r4\n\t"                                        \
    extend " r9, r5\n\t"                                        \
    extend " r10, r6\n\t"                                       \
    extend " r11, r7\n\t"                                       \
    "ssub16 r8, r8, r10\n\t"                                    \
    "sadd16 r12, r9, r10\n\t"                                   \
    "ssub16 r10, r10, r9\n\t"                                   \
    "ssub16 r11, r9, r11\n\t"                                   \
    "stm    r3!, {r8, r10, r11, r12}\n\t"                       \
    N2D2_ASM_EACH("r4,r5,r6,r7", extend " \\x, \\x, ror #8")    \
    "ssub16 r4, r4, r6\n\t"                                     \
    "sadd16 r12, r5, r6\n\t"                                    \
    "ssub16 r6, r6, r5\n\t"                                     \
    "ssub16 r7, r5, r7\n\t"                                     \
    "stm    r3!, {r4, r6, r7, r12}\n\t"

// A row of six columns of two tiles becomes four positions of each, the first one `at` bytes behind r1.
#define N2D2_TILES_ROW(a, b, c, d, e, f, at)            \
    "ssub16 " #a ", " #a ", " #c "\n\t"                 \
    "ssub16 r2, " #c ", " #e "\n\t"                     \
    "strd   " #a ", r2, [r1, #" #at "]\n\t"             \
    "ssub16 " #a ", " #b ", " #d "\n\t"                 \
    "ssub16 " #f ", " #d ", " #f "\n\t"                 \
    "strd   " #a ", " #f ", [r1, #" #at " + 96]\n\t"    \
    "sadd16 " #a ", " #b ", " #c "\n\t"                 \
    "sadd16 " #f ", " #d ", " #e "\n\t"                 \
    "strd   " #a ", " #f ", [r1, #" #at " + 32]\n\t"    \
    "ssub16 " #b ", " #c ", " #b "\n\t"                 \
    "ssub16 " #e ", " #e ", " #d "\n\t"                 \
    "strd   " #b ", " #e ", [r1, #" #at " + 64]\n\t"

#define N2D2_TILES_ROWS(from, first, second)        \
    "ldrd   r3, r4, [sp, #" #from "]\n\t"           \
    "ldrd   r5, r6, [sp, #" #from " + 32]\n\t"      \
    "ldrd   r7, r8, [sp, #" #from " + 64]\n\t"      \
    "ldrd   r9, r10, [sp, #" #from " + 96]\n\t"     \
    "ldrd   r11, r12, [sp, #" #from " + 128]\n\t"   \
    "ldrd   r0, lr, [sp, #" #from " + 160]\n\t"     \
    N2D2_TILES_ROW(r3, r5, r7, r9, r11, r0, first)  \
    N2D2_TILES_ROW(r4, r6, r8, r10, r12, lr, second)

// The inputs of two tiles: `taps` are six columns of four pixels, `channels` a multiple of four. On the stack: 192 taps, 196 channels, 200
// those that are done.
#define N2D2_TILES_TRANSFORM(name, extend)                                                          \
    N2D2_ASM_FUNCTION(240, void name(const unsigned char* const*, std::uint32_t*, int), "r4-r11",   \
            "sub    sp, sp, #204\n\t"                                                               \
            "str    r0, [sp, #192]\n\t"                                                             \
            "str    r2, [sp, #196]\n\t"                                                             \
            "mov    r2, #0\n"                                                                       \
        "1:\n\t"                                                                                    \
            "str    r2, [sp, #200]\n\t"                                                             \
            "mov    r3, sp\n\t"                                                                     \
            N2D2_TILES_COLUMN(extend) N2D2_TILES_COLUMN(extend) N2D2_TILES_COLUMN(extend)           \
            N2D2_TILES_COLUMN(extend) N2D2_TILES_COLUMN(extend) N2D2_TILES_COLUMN(extend)           \
            N2D2_TILES_ROWS(0, 16, 8)                                                               \
            N2D2_TILES_ROWS(8, 24, 0)                                                               \
            N2D2_TILES_ROWS(16, 144, 136)                                                           \
            N2D2_TILES_ROWS(24, 152, 128)                                                           \
            "add    r1, r1, #256\n\t"                                                               \
            "ldr    r0, [sp, #192]\n\t"                                                             \
            "ldrd   r3, r2, [sp, #196]\n\t"                                                         \
            "add    r2, r2, #4\n\t"                                                                 \
            "cmp    r2, r3\n\t"                                                                     \
            "bne    1b\n\t"                                                                         \
            "add    sp, sp, #204\n\t")

N2D2_TILES_TRANSFORM(transformUnsigned, "uxtb16")
N2D2_TILES_TRANSFORM(transformSigned, "sxtb16")

// Those of two channels: sums r4, r5 of both tiles of the first output, and so on.
#define N2D2_TILES_PRODUCTS(first, c0, c1, c2, c3, c4, c5, c6, c7)  \
    "ldrd   r2, r3, [r0], #128\n\t"                                 \
    "ldrd   r12, lr, [r1], #8\n\t"                                  \
    first " r4, r2, r12" c0 "\n\t"                                  \
    first " r5, r3, r12" c1 "\n\t"                                  \
    first " r6, r2, lr" c2 "\n\t"                                   \
    first " r7, r3, lr" c3 "\n\t"                                   \
    "ldrd   r12, lr, [r1], #8\n\t"                                  \
    first " r8, r2, r12" c4 "\n\t"                                  \
    first " r9, r3, r12" c5 "\n\t"                                  \
    first " r10, r2, lr" c6 "\n\t"                                  \
    first " r11, r3, lr" c7 "\n\t"
#define N2D2_TILES_FIRST N2D2_TILES_PRODUCTS("smuad ", "", "", "", "", "", "", "", "")
#define N2D2_TILES_STEP N2D2_TILES_PRODUCTS("smlad ", ", r4", ", r5", ", r6", ", r7", ", r8", ", r9", ", r10", ", r11")

// All channels of a position: enters the loop `label` at the address that the stack has at `entry`.
#define N2D2_TILES_POSITION(first, entry, label)                    \
    first                                                           \
    "ldr    pc, [sp, #" #entry "]\n"                                \
    #label ":\n\t"                                                  \
    N2D2_TILES_STEP N2D2_TILES_STEP N2D2_TILES_STEP N2D2_TILES_STEP \
    N2D2_TILES_STEP N2D2_TILES_STEP N2D2_TILES_STEP N2D2_TILES_STEP \
    "ldrd   r2, r3, [sp, #0]\n\t"                                   \
    "cmp    r0, r2\n\t"                                             \
    "blo    " #label "b\n\t"                                        \
    "sub    r0, r0, r3\n\t"

// Where the loop `label` is entered when it skips as many bytes as r2 has. ADR wants a function at a multiple of four.
#define N2D2_TILES_ENTRY(entry, label)  \
    "adr.w  r3, " #label "f\n\t"        \
    "add    r3, r3, r2\n\t"             \
    "orr    r3, r3, #1\n\t"             \
    "str    r3, [sp, #" #entry "]\n\t"

// Sums of rows 1 and 2, at `at` on the stack and in registers: their difference there, their sum here.
#define N2D2_TILES_BOTH(a, b, at)       \
    "ldrd   r2, r3, [sp, #" #at "]\n\t" \
    "sub    r12, r2, " #a "\n\t"        \
    "sub    lr, r3, " #b "\n\t"         \
    "add    " #a ", " #a ", r2\n\t"     \
    "add    " #b ", " #b ", r3\n\t"     \
    "strd   r12, lr, [sp, #" #at "]\n\t"

// Keeps the sums of a line of the outputs.
#define N2D2_TILES_KEEP         \
    "ldr    r2, [sp, #52]\n\t"  \
    "stm    r2!, {r4-r11}\n\t"  \
    "str    r2, [sp, #52]\n\t"

#define N2D2_TILES_STEP_OF(scaled)                      \
    scaled("r4", "r7", "r0") scaled("r5", "r7", "r0")   \
    scaled("r2", "r7", "r0") scaled("r3", "r7", "r0")
#define N2D2_TILES_SCALED(constants) N2D2_TILES_STEP_OF(N2D2_SCALED)
#define N2D2_TILES_DOUBLED(doubled, away, constants)    \
    doubled("r4", "r7") doubled("r5", "r7")             \
    doubled("r2", "r7") doubled("r3", "r7")             \
    away("r4") away("r5") away("r2") away("r3")         \
    "ldr    r7, [r1, #32 + (" #constants ") / 2]\n\t"   \
    N2D2_TILES_STEP_OF(N2D2_SHIFTED)
#define N2D2_TILES_TWICE(constants) N2D2_TILES_DOUBLED(N2D2_DOUBLED, N2D2_AS_IT_IS, constants)
#define N2D2_TILES_TWICE_SIGNED(constants) N2D2_TILES_DOUBLED(N2D2_DOUBLED, N2D2_AWAY, constants)
#define N2D2_TILES_ONCE(constants) N2D2_TILES_DOUBLED(N2D2_DOUBLED_DOWN, N2D2_AS_IT_IS, constants)

// Four results of an output: two pixels of a line in each of two tiles, of the sums of four columns that begin at `sums`.
// `store(register, result)` puts a byte into the word of a pixel.
#define N2D2_TILES_OUTPUT(scaled, sums, constants, store)   \
    "ldrd   r4, r5, [sp, #" #sums " + 64]\n\t"              \
    "ldrd   r6, r7, [sp, #" #sums " + 128]\n\t"             \
    "sub    r2, r4, r6\n\t"                                 \
    "sub    r3, r5, r7\n\t"                                 \
    "add    r4, r4, r6\n\t"                                 \
    "add    r5, r5, r7\n\t"                                 \
    "ldrd   r6, r7, [sp, #" #sums "]\n\t"                   \
    "add    r4, r4, r6\n\t"                                 \
    "add    r5, r5, r7\n\t"                                 \
    "ldrd   r6, r7, [sp, #" #sums " + 192]\n\t"             \
    "add    r2, r2, r6\n\t"                                 \
    "add    r3, r3, r7\n\t"                                 \
    "ldrd   r6, r7, [r1, #" #constants "]\n\t"              \
    "add    r4, r6, r4, asr #2\n\t"                         \
    "add    r5, r6, r5, asr #2\n\t"                         \
    "add    r2, r6, r2, asr #2\n\t"                         \
    "add    r3, r6, r3, asr #2\n\t"                         \
    scaled(constants)                                       \
    store(r8, r4) store(r9, r2) store(r10, r5) store(r11, r3)
#define N2D2_TILES_BYTE0(word, result) "usat   " #word ", #8, " #result "\n\t"
#define N2D2_TILES_BYTE(word, result, shift)    \
    "usat   " #result ", #8, " #result "\n\t"   \
    "orr    " #word ", " #word ", " #result ", lsl #" #shift "\n\t"
#define N2D2_TILES_BYTE1(word, result) N2D2_TILES_BYTE(word, result, 8)
#define N2D2_TILES_BYTE2(word, result) N2D2_TILES_BYTE(word, result, 16)
#define N2D2_TILES_BYTE3(word, result) N2D2_TILES_BYTE(word, result, 24)

// Four outputs of a line of both tiles, whose pointers the stack has at `out`.
#define N2D2_TILES_LINE(scaled, sums, out, label)                   \
    N2D2_TILES_OUTPUT(scaled, sums, 0, N2D2_TILES_BYTE0)            \
    N2D2_TILES_OUTPUT(scaled, sums + 8, 8, N2D2_TILES_BYTE1)        \
    N2D2_TILES_OUTPUT(scaled, sums + 16, 16, N2D2_TILES_BYTE2)      \
    N2D2_TILES_OUTPUT(scaled, sums + 24, 24, N2D2_TILES_BYTE3)      \
    "ldrd   r2, r3, [sp, #40]\n\t"                                  \
    "orrs   r4, r2, r3\n\t"                                         \
    "beq    " #label "f\n\t"                                        \
    N2D2_ASM_EACH("r8,r9,r10,r11", N2D2_LIMITED("\\x", "r2", "r3")) \
    #label ":\n\t"                                                  \
    "ldr    r2, [sp, #48]\n\t"                                      \
    "ldr    r3, [sp, #28]\n\t"                                      \
    "ldrd   r4, r5, [sp, #" #out "]\n\t"                            \
    "ldrd   r6, r7, [sp, #" #out " + 8]\n\t"                        \
    N2D2_ASM_EACH("r8,r9,r10,r11", "eor \\x, \\x, r2")              \
    "str    r8, [r4, r3]\n\t"                                       \
    "str    r9, [r5, r3]\n\t"                                       \
    "str    r10, [r6, r3]\n\t"                                      \
    "str    r11, [r7, r3]\n\t"

// All outputs of two tiles. On the stack: 0 end and back, 8 the inputs, 12 entries of four loops, 28 outputs that are stored, 32 blocks that
// are left, 36 zero, 40 low and room, 48 mask, 52 where sums are kept next, 56 the pointers of the results, 88 a row of sums, 120 the
// sums [4 columns][2 lines][4 outputs][2 tiles].
#define N2D2_TILES_OUTPUTS(scaled, bytes)                                                       \
    N2D2_ASM_FUNCTION(412, __attribute__((aligned(4))) static void outputs(Work*), "r4-r11",    \
            "sub    sp, sp, #376\n\t"                                                           \
            "ldrd   r2, r1, [r0, #0]\n\t"                                                       \
            "str    r2, [sp, #8]\n\t"                                                           \
            "ldrd   r2, r3, [r0, #8]\n\t"                                                       \
            "strd   r2, r3, [sp, #0]\n\t"                                                       \
            "ldr    r2, [r0, #20]\n\t"                                                          \
            N2D2_TILES_ENTRY(12, 2)                                                             \
            N2D2_TILES_ENTRY(16, 3)                                                             \
            "ldr    r2, [r0, #24]\n\t"                                                          \
            N2D2_TILES_ENTRY(20, 4)                                                             \
            N2D2_TILES_ENTRY(24, 5)                                                             \
            "mov    r2, #0\n\t"                                                                 \
            "ldr    r3, [r0, #16]\n\t"                                                          \
            "strd   r2, r3, [sp, #28]\n\t"                                                      \
            "add    r0, r0, #28\n\t"                                                            \
            "add    r2, sp, #36\n\t"                                                            \
            "ldm    r0!, {r4-r7}\n\t"                                                           \
            "stm    r2, {r4-r7}\n\t"                                                            \
            "add    r2, sp, #56\n\t"                                                            \
            "ldm    r0, {r4-r11}\n\t"                                                           \
            "stm    r2, {r4-r11}\n"                                                             \
        "1:\n\t"                                                                                \
            "ldr    r0, [sp, #8]\n\t"                                                           \
            "add    r2, sp, #120\n\t"                                                           \
            "str    r2, [sp, #52]\n"                                                            \
        "6:\n\t"                                                                                \
            N2D2_TILES_POSITION(N2D2_TILES_FIRST, 12, 2)                                        \
            "add    r2, sp, #88\n\t"                                                            \
            "stm    r2, {r4-r11}\n\t"                                                           \
            N2D2_TILES_POSITION(N2D2_TILES_FIRST, 16, 3)                                        \
            N2D2_TILES_BOTH(r4, r5, 88)                                                         \
            N2D2_TILES_BOTH(r6, r7, 96)                                                         \
            N2D2_TILES_BOTH(r8, r9, 104)                                                        \
            N2D2_TILES_BOTH(r10, r11, 112)                                                      \
            N2D2_TILES_POSITION("", 20, 4)                                                      \
            N2D2_TILES_KEEP                                                                     \
            "add    r2, sp, #88\n\t"                                                            \
            "ldm    r2, {r4-r11}\n\t"                                                           \
            N2D2_TILES_POSITION("", 24, 5)                                                      \
            N2D2_TILES_KEEP                                                                     \
            "add    r3, sp, #376\n\t"                                                           \
            "cmp    r2, r3\n\t"                                                                 \
            "bne    6b\n\t"                                                                     \
            "ldr    r0, [sp, #36]\n\t"                                                          \
            N2D2_TILES_LINE(scaled, 120, 56, 7)                                                 \
            N2D2_TILES_LINE(scaled, 152, 72, 8)                                                 \
            "add    r1, r1, #" #bytes "\n\t"                                                    \
            "add    r3, r3, #4\n\t"                                                             \
            "ldr    r2, [sp, #32]\n\t"                                                          \
            "str    r3, [sp, #28]\n\t"                                                          \
            "subs   r2, r2, #1\n\t"                                                             \
            "str    r2, [sp, #32]\n\t"                                                          \
            "bne    1b\n\t"                                                                     \
            "add    sp, sp, #376\n\t")

template <int Rounding>
struct Kernels;
#define N2D2_TILES_KERNELS(rounding, scaled, bytes) \
    template <>                                     \
    struct Kernels<rounding> {                      \
        N2D2_TILES_OUTPUTS(scaled, bytes)           \
    };
N2D2_TILES_KERNELS(lanes::HighWord, N2D2_TILES_SCALED, 32)
N2D2_TILES_KERNELS(lanes::Twice, N2D2_TILES_TWICE, 48)
N2D2_TILES_KERNELS(lanes::TwiceSigned, N2D2_TILES_TWICE_SIGNED, 48)
N2D2_TILES_KERNELS(lanes::Once, N2D2_TILES_ONCE, 48)
// clang-format on

// The buffers of a layer while it runs.
struct Buffers {
    std::uint32_t* inputs;  // 16 for each channel: those of two tiles, transformed
    unsigned char* padded;  // channels
    // Outputs rounded up to four: of pixels that are not there; of eight pixels where outputs are no multiple of four.
    unsigned char* results;
    unsigned char* copy;  // a line of inputs; null where the output lies apart
};

// The four lines of inputs of a pair of lines; null outside the input.
N2D2_INLINE void placeLines(const lanes::Shape& s, const unsigned char* in, int y, unsigned char* copy,
                            const unsigned char** lines) {
    const int top = y - s.padTop, covered = top + (s.reverse ? 3 : 0);
    for (int u = 0; u < 4; ++u)
        lines[u] = top + u < 0 || top + u >= s.in.height ? nullptr : in + s.in.at(top + u);
    const unsigned char*& line = lines[covered - top];
    if (copy && line) {
        copyBytes(copy, line, static_cast<std::size_t>((s.in.width - 1) * s.in.stride + s.channels));
        line = copy;
    }
}

// The inputs of the two tiles whose outputs begin at column x: six columns of four pixels.
N2D2_INLINE void place(const lanes::Shape& s, const unsigned char* const* lines, int x, const unsigned char* padded,
                       const unsigned char** taps) {
    const int left = x - s.padLeft;
    const bool inside = left >= 0 && left + 6 <= s.in.width;
    for (int u = 0; u < 4; ++u) {
        const int step = lines[u] ? s.in.stride : 0;
        const unsigned char* at = lines[u] ? lines[u] + left * step : padded;
        if (inside) {
            N2D2_UNROLL
            for (int v = 0; v < 6; ++v, at += step)
                taps[4 * v + u] = at;
            continue;
        }
        for (int v = 0; v < 6; ++v, at += step)
            taps[4 * v + u] = left + v >= 0 && left + v < s.in.width ? at : padded;
    }
}

template <bool Signed, int Rounding>
N2D2_MCU_FAST void convolution(const lanes::Shape& s, const unsigned char* in, unsigned char* out, const std::uint32_t* stream,
                               const Buffers& buffers) {
    const int words = s.channels >> 1, pairs = (s.out.height + 1) >> 1, wide = (s.outputs + 3) & ~3;
    const bool whole = wide == s.outputs;
    Work work;
    work.inputs = buffers.inputs;
    work.stream = stream;
    work.end = buffers.inputs + 32 * words;
    work.back = 128 * words - 8;
    work.blocks = wide >> 2;
    work.first = (Unrolled - (words - 1) % Unrolled) % Unrolled * StepBytes;
    work.next = (Unrolled - words % Unrolled) % Unrolled * StepBytes;
    lanes::limit(work, s);
    std::memset(buffers.padded, s.padding, static_cast<std::size_t>(s.channels));
    for (int pair = 0; pair < pairs; ++pair) {
        const int y = 2 * (s.reverse ? pairs - 1 - pair : pair);
        const unsigned char *lines[4], *taps[24];
        placeLines(s, in, y, buffers.copy, lines);
        unsigned char* to[2] = {out + s.out.at(y), y + 1 < s.out.height ? out + s.out.at(y + 1) : nullptr};
        for (int x = 0; x < s.out.width; x += 4) {
            place(s, lines, x, buffers.padded, taps);
            (Signed ? transformSigned<> : transformUnsigned<>)(taps, buffers.inputs, s.channels);
            if (whole && to[1] && x + 4 <= s.out.width) {
                const std::int32_t step = s.out.stride;
                unsigned char *upper = to[0] + x * step, *lower = to[1] + x * step;
                N2D2_UNROLL
                for (int j = 0; j < 4; ++j, upper += step, lower += step) {
                    work.out[j] = upper;
                    work.out[4 + j] = lower;
                }
                Kernels<Rounding>::template outputs<>(&work);
                continue;
            }
            unsigned char* results[8];
            for (int j = 0; j < 8; ++j) {
                const int column = x + j % 4;
                results[j] = to[j / 4] && column < s.out.width ? to[j / 4] + column * s.out.stride : nullptr;
                work.out[j] = !whole ? buffers.results + j * wide : results[j] ? results[j] : buffers.results;
            }
            Kernels<Rounding>::template outputs<>(&work);
            if (!whole)
                for (int j = 0; j < 8; ++j)
                    if (results[j])
                        copyBytes(results[j], work.out[j], static_cast<std::size_t>(s.outputs));
        }
    }
}

}  // namespace tiles

N2D2_STREAM_KERNEL(TileConvolution, Transformed, LaneConvolution<Cfg>) {
    N2D2_PLANES(Cfg);
    static_assert(Cfg::KernelHeight == 3 && Cfg::KernelWidth == 3 && Cfg::StrideHeight == 1 && Cfg::StrideWidth == 1 &&
                      Cfg::DilationHeight == 1 && Cfg::DilationWidth == 1 && Cfg::Groups == 1 && !Cfg::Streamed,
                  "3 x 3 windows of one group, stride 1, whole");
    enum : int {
        C = Input::Channels,
        Wide = (int(Output::Channels) + 3) / 4 * 4,
        Results = Wide == int(Output::Channels) ? int(Wide) : 8 * Wide,
        Copy = Cfg::Serial ? (int(Input::Width) - 1) * int(PlaneTraits<Input>::Stride) + C : 0
    };
    static_assert(C % 4 == 0, "channels by four");

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*) {
        static constexpr lanes::Shape shape = lanes::shapeOf<Cfg>(C);
        std::uint32_t inputs[16 * C], padded[C / 4], results[Results / 4], copy[(int(Copy) + 4) / 4];
        const tiles::Buffers buffers = {inputs, reinterpret_cast<unsigned char*>(padded),
                                        reinterpret_cast<unsigned char*>(results),
                                        int(Copy) > 0 ? reinterpret_cast<unsigned char*>(copy) : nullptr};
        tiles::convolution<std::numeric_limits<typename Input::Type>::is_signed, Cfg::Rounding>(
            shape, in, out, elementsOf<std::uint32_t>(weights), buffers);
    }
};

}  // namespace n2d2
