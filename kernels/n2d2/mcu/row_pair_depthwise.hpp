// Depthwise convolution 3 x 3 for the DSP extension of Arm's M profile: a channel goes along two lines with its weights in registers.
//
// Four lines of inputs, four channels, are spread to words of a column: rows (0, 1) and rows (2, 3) of each channel, 16 bits each. The words
// U = (w0, w1) and V = (w1, w2) of a column of weights serve both lines of outputs, with two multiplications for three taps:
//
//   line 0   SMLAD(rows 01, U) + SMLABT(rows 23, V)
//   line 1   SMLATB(rows 01, U) + SMLAD(rows 23, V)
//
// Each column is loaded once for a line: it ends the sum of one output, goes on with that of the next and begins that of the one after.
// Constants of four channels: U and V of the three columns and the bias of each; multipliers, or both words of doubled sums (lanes.hpp).
// Lines are computed by chunks of outputs, whose columns are on the stack.
#ifndef N2D2_MCU_ROW_PAIR_DEPTHWISE_HPP
#define N2D2_MCU_ROW_PAIR_DEPTHWISE_HPP

#include <cstring>

#include "n2d2/mcu/pair_depthwise.hpp"

namespace n2d2 {
namespace rowpairs {

enum : int {
    ColumnWords = 12,
    ColumnBytes = 48,
    Chunk = 24,
    Constants = 28
};  // Chunk: columns of inputs at most, without the border

// Columns of a buffer for so many outputs: sums are made by three, by two with a stride of 2.
constexpr int columnsOf(int outputs, int stride) { return stride == 1 ? (outputs + 2) / 3 * 3 + 2 : (outputs + 1) / 2 * 4 + 1; }

// The arguments of `expand`, which knows the offsets.
struct Lines {
    const unsigned char* rows[4];     // 0: of the first column inside the input, of four channels
    std::int32_t steps[4];            // 16: to the next column; 0 for rows outside, which are zero points
    std::uint32_t* columns;           // 32: rows 01 of four channels, rows 23 of them, four sums
    std::int32_t left, inner, right;  // 36: columns outside the input, inside, outside
    std::uint32_t zeros;              // 48: two zero points
};

// The arguments of `finish`, which changes those of a line.
struct Finish {
    const std::uint32_t* sums;       // 0: of the first output of line 0; those of line 1 are 32 bytes before
    const std::uint32_t* end;        // 4: behind those of the last one
    std::int32_t step;               // 8: from one output to the next
    unsigned char *out, *second;     // 12: results of both lines, the second one null where there is none
    std::int32_t outStep;            // 20
    std::int32_t zero;               // 24
    const std::uint32_t* constants;  // 28: words of the rescale
    std::uint32_t low, room, mask;   // 32: as lanes::Work
};

// clang-format off
// Two rows of a column, at p and q, to four words from `at` on.
#define N2D2_ROW_PAIRS_SPREAD(extend, p, q, stepP, stepQ, at)  \
    "ldr    r9, [" p "]\n\t"                  \
    "ldr    r10, [" q "]\n\t"                 \
    "add    " p ", " p ", " stepP "\n\t"      \
    "add    " q ", " q ", " stepQ "\n\t"      \
    "pkhbt  r11, r9, r10, lsl #16\n\t"        \
    "pkhtb  r9, r10, r9, asr #16\n\t"         \
    extend " r10, r11\n\t"                    \
    extend " r11, r11, ror #8\n\t"            \
    "str    r10, [lr, #" #at "]\n\t"          \
    "str    r11, [lr, #" #at "+4]\n\t"        \
    extend " r10, r9\n\t"                     \
    extend " r9, r9, ror #8\n\t"              \
    "str    r10, [lr, #" #at "+8]\n\t"        \
    "str    r9, [lr, #" #at "+12]\n\t"

// A column of zero points.
#define N2D2_ROW_PAIRS_ZEROS                                            \
    "str    r2, [lr]\n\t" "str    r2, [lr, #4]\n\t"                     \
    "str    r2, [lr, #8]\n\t" "str    r2, [lr, #12]\n\t"                \
    "str    r2, [lr, #16]\n\t" "str    r2, [lr, #20]\n\t"               \
    "str    r2, [lr, #24]\n\t" "str    r2, [lr, #28]\n\t"               \
    "add    lr, lr, #48\n\t"

// Four channels of a chunk. Templates, so that a program has each function once wherever it is included.
#define N2D2_ROW_PAIRS_EXPAND(name, extend)                             \
    template <int FrameBytes = 36>                                      \
    __attribute__((naked, noinline)) void name(const Lines*) {          \
        __asm__ volatile(                                               \
            ".syntax unified\n\t"                                       \
            "push   {r4-r11, lr}\n\t"                               \
            "ldr    lr, [r0, #32]\n\t"                                  \
            "ldrd   r1, r8, [r0, #36]\n\t"                              \
            "ldr    r2, [r0, #48]\n\t"                                  \
            "cbz    r1, 2f\n"                                           \
        "1:\n\t"                                                        \
            N2D2_ROW_PAIRS_ZEROS                                        \
            "subs   r1, r1, #1\n\t"                                     \
            "bne    1b\n"                                               \
        "2:\n\t"                                                        \
            "mov    r12, r0\n\t"                                        \
            "cmp    r8, #0\n\t"                                         \
            "beq    4f\n\t"                                             \
            "ldm    r12, {r0-r7}\n"                                     \
        "3:\n\t"                                                        \
            N2D2_ROW_PAIRS_SPREAD(extend, "r0", "r1", "r4", "r5", 0)    \
            N2D2_ROW_PAIRS_SPREAD(extend, "r2", "r3", "r6", "r7", 16)   \
            "add    lr, lr, #48\n\t"                                    \
            "subs   r8, r8, #1\n\t"                                     \
            "bne    3b\n"                                               \
        "4:\n\t"                                                        \
            "ldrd   r1, r2, [r12, #44]\n\t"                             \
            "cbz    r1, 6f\n"                                           \
        "5:\n\t"                                                        \
            N2D2_ROW_PAIRS_ZEROS                                        \
            "subs   r1, r1, #1\n\t"                                     \
            "bne    5b\n"                                               \
        "6:\n\t"                                                        \
            "pop    {r4-r11, pc}\n\t");                             \
    }

N2D2_ROW_PAIRS_EXPAND(expandUnsigned, "uxtb16")
N2D2_ROW_PAIRS_EXPAND(expandSigned, "sxtb16")

// ---- products ---------------------------------------------------------------------------------
// sum = from + a column times its weights; `first` and `second` multiply rows 01 and 23.
#define N2D2_ROW_PAIRS_ADD(first, second, sum, from, u, v)     \
    first "  " sum ", r2, " u ", " from "\n\t"                 \
    second " " sum ", r3, " v ", " sum "\n\t"
#define N2D2_ROW_PAIRS_LOAD(at)                                \
    "ldr    r2, [r0, #" #at "]\n\t"                            \
    "ldr    r3, [r0, #" #at "+16]\n\t"

// An output whose last column is `at` bytes on, stored `slot` bytes behind that.
#define N2D2_ROW_PAIRS_OUTPUT1(first, second, a, b, c, at, slot)        \
    N2D2_ROW_PAIRS_LOAD(at)                                             \
    N2D2_ROW_PAIRS_ADD(first, second, a, a, "r6", "r9")                 \
    N2D2_ROW_PAIRS_ADD(first, second, b, b, "r5", "r8")                 \
    N2D2_ROW_PAIRS_ADD(first, second, c, "lr", "r4", "r7")              \
    "str    " a ", [r0, #" #at "+" #slot "]\n\t"
#define N2D2_ROW_PAIRS_OUTPUT2(first, second, a, b, at, slot)           \
    N2D2_ROW_PAIRS_LOAD(at-48)                                          \
    N2D2_ROW_PAIRS_ADD(first, second, a, a, "r5", "r8")                 \
    N2D2_ROW_PAIRS_LOAD(at)                                             \
    N2D2_ROW_PAIRS_ADD(first, second, a, a, "r6", "r9")                 \
    N2D2_ROW_PAIRS_ADD(first, second, b, "lr", "r4", "r7")              \
    "str    " a ", [r0, #" #at "+" #slot "]\n\t"

// A line of outputs of a channel, by three with a stride of 1, by two with one of 2.
#define N2D2_ROW_PAIRS_LINE1(first, second, slot, label)                \
    N2D2_ROW_PAIRS_LOAD(0)                                              \
    N2D2_ROW_PAIRS_ADD(first, second, "r10", "lr", "r4", "r7")          \
    N2D2_ROW_PAIRS_LOAD(48)                                             \
    N2D2_ROW_PAIRS_ADD(first, second, "r10", "r10", "r5", "r8")         \
    N2D2_ROW_PAIRS_ADD(first, second, "r11", "lr", "r4", "r7")          \
    #label ":\n\t"                                                      \
    N2D2_ROW_PAIRS_OUTPUT1(first, second, "r10", "r11", "r12", 96, slot)   \
    N2D2_ROW_PAIRS_OUTPUT1(first, second, "r11", "r12", "r10", 144, slot)  \
    N2D2_ROW_PAIRS_OUTPUT1(first, second, "r12", "r10", "r11", 192, slot)  \
    "add    r0, r0, #144\n\t"                                           \
    "cmp    r0, r1\n\t"                                                 \
    "bne    " #label "b\n\t"
#define N2D2_ROW_PAIRS_LINE2(first, second, slot, label)                \
    N2D2_ROW_PAIRS_LOAD(0)                                              \
    N2D2_ROW_PAIRS_ADD(first, second, "r10", "lr", "r4", "r7")          \
    #label ":\n\t"                                                      \
    N2D2_ROW_PAIRS_OUTPUT2(first, second, "r10", "r11", 96, slot)       \
    N2D2_ROW_PAIRS_OUTPUT2(first, second, "r11", "r10", 192, slot)      \
    "add    r0, r0, #192\n\t"                                           \
    "cmp    r0, r1\n\t"                                                 \
    "bne    " #label "b\n\t"

// Four channels: `columns` as `expand` leaves them, `bytes` of those whose outputs are made, one or two lines. Sums of line 0 are stored
// behind the words of the last column of an output, those of line 1 over its rows 01. On the stack: 0 columns, 4 stream, 8 bytes, 12
// second line, 16 end of the channels.
#define N2D2_ROW_PAIRS_PRODUCTS(name, line)                             \
    template <int FrameBytes = 56>                                      \
    __attribute__((naked, noinline)) void name(std::uint32_t*, const std::uint32_t*, std::int32_t, bool) {  \
        __asm__ volatile(                                               \
            ".syntax unified\n\t"                                       \
            "push   {r4-r11, lr}\n\t"                                   \
            "add    r4, r0, #16\n\t"                                    \
            "push   {r0-r4}\n"                                          \
        "1:\n\t"                                                        \
            "ldr    r0, [sp, #0]\n\t"                                   \
            "ldr    r1, [sp, #4]\n\t"                                   \
            "ldr    r2, [sp, #8]\n\t"                                   \
            "ldm    r1!, {r4-r9, lr}\n\t"                               \
            "str    r1, [sp, #4]\n\t"                                   \
            "add    r1, r0, r2\n\t"                                     \
            line("smlad", "smlabt", 32, 2)                              \
            "ldr    r2, [sp, #12]\n\t"                                  \
            "ldr    r0, [sp, #0]\n\t"                                   \
            "cmp    r2, #0\n\t"                                         \
            "beq.w  4f\n\t"                                             \
            line("smlatb", "smlad", 0, 3)                               \
            "ldr    r0, [sp, #0]\n"                                     \
        "4:\n\t"                                                        \
            "ldr    r2, [sp, #16]\n\t"                                  \
            "add    r0, r0, #4\n\t"                                     \
            "str    r0, [sp, #0]\n\t"                                   \
            "cmp    r0, r2\n\t"                                         \
            "bne.w  1b\n\t"                                             \
            "add    sp, sp, #20\n\t"                                    \
            "pop    {r4-r11, pc}\n\t");                                 \
    }

N2D2_ROW_PAIRS_PRODUCTS(products1, N2D2_ROW_PAIRS_LINE1)
N2D2_ROW_PAIRS_PRODUCTS(products2, N2D2_ROW_PAIRS_LINE2)

// ---- results ----------------------------------------------------------------------------------
#define N2D2_ROW_PAIRS_STEP_OF(scaled)                                  \
    scaled("r8", "r4", "r12") scaled("r9", "r5", "r12")                 \
    scaled("r10", "r6", "r12") scaled("r11", "r7", "r12")
#define N2D2_ROW_PAIRS_SCALED N2D2_ROW_PAIRS_STEP_OF(N2D2_SCALED)
#define N2D2_ROW_PAIRS_DOUBLED(doubled, away)                           \
    "ldrd   r4, r5, [sp, #12]\n\t"                                      \
    "ldrd   r6, r7, [sp, #20]\n\t"                                      \
    doubled("r8", "r4") doubled("r9", "r5")                             \
    doubled("r10", "r6") doubled("r11", "r7")                           \
    away("r8") away("r9") away("r10") away("r11")                       \
    "ldrd   r4, r5, [sp, #28]\n\t"                                      \
    "ldrd   r6, r7, [sp, #36]\n\t"                                      \
    N2D2_ROW_PAIRS_STEP_OF(N2D2_SHIFTED)

#define N2D2_ROW_PAIRS_RESULTS(scaled, clamped, label)                  \
    #label ":\n\t"                                                      \
    "ldm    r0, {r8-r11}\n\t"                                           \
    "add    r0, r0, r2\n\t"                                             \
    scaled                                                              \
    "usat   r8, #8, r8\n\t"                                             \
    "usat   r9, #8, r9\n\t"                                             \
    "usat   r10, #8, r10\n\t"                                           \
    "usat   r11, #8, r11\n\t"                                           \
    "orr    r8, r8, r9, lsl #8\n\t"                                     \
    "orr    r10, r10, r11, lsl #8\n\t"                                  \
    "orr    r8, r8, r10, lsl #16\n\t"                                   \
    clamped                                                             \
    "str    r8, [r1]\n\t"                                               \
    "add    r1, r1, r3\n\t"                                             \
    "cmp    r0, lr\n\t"                                                 \
    "bne    " #label "b\n\t"
#define N2D2_ROW_PAIRS_CLAMPED                                          \
    "ldm    sp, {r9-r11}\n\t"                                           \
    "uqsub8 r8, r8, r9\n\t"                                             \
    "uadd8  r8, r8, r9\n\t"                                             \
    "uqadd8 r8, r8, r10\n\t"                                            \
    "usub8  r8, r8, r10\n\t"                                            \
    "eor    r8, r8, r11\n\t"

// Four channels of a line, or of two. On the stack: 0 low, room and mask, 12 constants of doubled sums, 44 Finish.
#define N2D2_ROW_PAIRS_FINISH(scaled, again)                           \
    template <int FrameBytes = 84>                                      \
    __attribute__((naked, noinline)) static void finish(const Finish*) {    \
        __asm__ volatile(                                               \
            ".syntax unified\n\t"                                       \
            "push   {r4-r11, lr}\n\t"                                   \
            "sub    sp, sp, #48\n\t"                                    \
            "str    r0, [sp, #44]\n\t"                                  \
            "ldr    r12, [r0, #28]\n\t"                                 \
            "ldm    r12!, {r4-r7}\n\t"                                  \
            again                                                       \
            "add    r8, r0, #32\n\t"                                    \
            "ldm    r8, {r9-r11}\n\t"                                   \
            "stm    sp, {r9-r11}\n"                                     \
        "4:\n\t"                                                        \
            "ldr    r1, [r0, #12]\n\t"                                  \
            "ldrd   r3, r12, [r0, #20]\n\t"                             \
            "ldr    r2, [r0, #8]\n\t"                                   \
            "ldm    sp, {r9-r11}\n\t"                                   \
            "orr    r9, r9, r10\n\t"                                    \
            "ldrd   r0, lr, [r0, #0]\n\t"                               \
            "orrs   r9, r9, r11\n\t"                                    \
            "bne    2f\n\t"                                             \
            N2D2_ROW_PAIRS_RESULTS(scaled, , 1)                         \
            "b      3f\n\t"                                             \
            N2D2_ROW_PAIRS_RESULTS(scaled, N2D2_ROW_PAIRS_CLAMPED, 2)   \
        "3:\n\t"                                                        \
            "ldr    r0, [sp, #44]\n\t"                                  \
            "ldr    r1, [r0, #16]\n\t"                                  \
            "cbz    r1, 5f\n\t"                                         \
            "ldrd   r8, r9, [r0, #0]\n\t"                               \
            "movs   r2, #0\n\t"                                         \
            "sub    r8, r8, #32\n\t"                                    \
            "sub    r9, r9, #32\n\t"                                    \
            "strd   r8, r9, [r0, #0]\n\t"                               \
            "strd   r1, r2, [r0, #12]\n\t"                              \
            "b      4b\n"                                               \
        "5:\n\t"                                                        \
            "add    sp, sp, #48\n\t"                                    \
            "pop    {r4-r11, pc}\n\t");                                 \
    }
#define N2D2_ROW_PAIRS_AGAIN                                            \
    "add    r8, sp, #12\n\t"                                            \
    "stm    r8!, {r4-r7}\n\t"                                           \
    "ldm    r12, {r4-r7}\n\t"                                           \
    "stm    r8, {r4-r7}\n\t"

template <int Rounding>
struct Kernels;
#define N2D2_ROW_PAIRS_KERNELS(rounding, words, scaled, again)         \
    template <>                                                         \
    struct Kernels<rounding> {                                          \
        enum : int { Words = words };                                   \
        N2D2_ROW_PAIRS_FINISH(scaled, again)                            \
    };
N2D2_ROW_PAIRS_KERNELS(lanes::HighWord, 4, N2D2_ROW_PAIRS_SCALED, )
N2D2_ROW_PAIRS_KERNELS(lanes::Twice, 8, N2D2_ROW_PAIRS_DOUBLED(N2D2_DOUBLED, N2D2_AS_IT_IS), N2D2_ROW_PAIRS_AGAIN)
N2D2_ROW_PAIRS_KERNELS(lanes::TwiceSigned, 8, N2D2_ROW_PAIRS_DOUBLED(N2D2_DOUBLED, N2D2_AWAY), N2D2_ROW_PAIRS_AGAIN)
N2D2_ROW_PAIRS_KERNELS(lanes::Once, 8, N2D2_ROW_PAIRS_DOUBLED(N2D2_DOUBLED_DOWN, N2D2_AS_IT_IS), N2D2_ROW_PAIRS_AGAIN)
// clang-format on

// The buffers of a layer while it runs.
struct Buffers {
    std::uint32_t* columns;  // ColumnWords for each one of a chunk
    unsigned char* copy;     // a line of inputs; null where the output lies apart
};

// The lines of inputs that `count` lines of outputs from y on read; null outside the input. Of two lines the one that is stored first may
// lie over what only the other one reads (memory/overlap.py): that line is copied.
N2D2_INLINE void placeRows(const lanes::Shape& s, const unsigned char* in, int y, int count, unsigned char* copy,
                           const unsigned char** rows) {
    const int top = y * s.strideHeight - s.padTop, covered = s.reverse ? 3 : 0;
    for (int u = 0; u < 4; ++u)
        rows[u] = u > count + 1 || top + u < 0 || top + u >= s.in.height ? nullptr : in + s.in.at(top + u);
    if (count == 2 && copy && rows[covered]) {
        copyBytes(copy, rows[covered], static_cast<std::size_t>((s.in.width - 1) * s.in.stride + s.channels));
        rows[covered] = copy;
    }
}

// Outputs [first, first + outputs) of one or two lines.
template <bool Signed, int Stride, int Rounding>
N2D2_INLINE void chunk(const lanes::Shape& s, const std::uint32_t* stream, const unsigned char* const* rows, int first,
                       int outputs, unsigned char* const* to, Lines& lines, Finish& done) {
    const std::uint32_t padding = s.padding * 0x01010101u;
    const int left = first * Stride - s.padLeft, columns = (outputs - 1) * Stride + 3;
    const int bytes = (columnsOf(outputs, Stride) - (Stride == 1 ? 2 : 1)) * ColumnBytes, begin = left > 0 ? left : 0;
    lines.left = begin - left;
    lines.inner = least<int>(s.in.width - begin, columns - lines.left);
    lines.right = columns - lines.left - lines.inner;
    for (int u = 0; u < 4; ++u)
        lines.rows[u] = rows[u] ? rows[u] + begin * s.in.stride : reinterpret_cast<const unsigned char*>(&padding);
    const std::uint32_t* const sums = lines.columns + 2 * ColumnWords + 8;
    const int words = outputs * Stride * ColumnWords;
    for (int channel = 0; channel < s.channels; channel += 4, stream += int(Constants) + int(Kernels<Rounding>::Words)) {
        (Signed ? expandSigned<> : expandUnsigned<>)(&lines);
        (Stride == 1 ? products1<> : products2<>)(lines.columns, stream, bytes, to[1] != nullptr);
        for (int u = 0; u < 4; ++u)
            lines.rows[u] += lines.steps[u] ? 4 : 0;
        done.constants = stream + Constants;
        done.sums = sums;
        done.end = sums + words;
        done.out = to[0] + channel;
        done.second = to[1] ? to[1] + channel : nullptr;
        Kernels<Rounding>::template finish<>(&done);
    }
}

template <bool Signed, int Stride, int Rounding>
N2D2_MCU_FAST void depthwise(const lanes::Shape& s, const unsigned char* in, unsigned char* out, const std::uint32_t* stream,
                             const Buffers& buffers, int begin, int end) {
    Lines lines;
    lines.columns = buffers.columns;
    lines.zeros =
        0x00010001u * (Signed ? static_cast<std::uint32_t>(static_cast<signed char>(s.padding)) & 0xffffu : s.padding);
    Finish done;
    done.step = Stride * ColumnBytes;
    done.outStep = s.out.stride;
    done.zero = s.zero;
    done.low = s.low;
    done.room = s.room;
    done.mask = s.mask;
    for (int turn = begin, count = 0; turn < end; turn += count) {
        const unsigned char* rows[4];
        count = s.strideHeight == 1 && turn + 1 < end ? 2 : 1;
        const int y = s.reverse ? s.out.height - turn - count : turn;
        placeRows(s, in, y, count, buffers.copy, rows);
        for (int u = 0; u < 4; ++u)
            lines.steps[u] = rows[u] ? s.in.stride : 0;
        unsigned char* to[2] = {out + s.out.at(y), count == 2 ? out + s.out.at(y + 1) : nullptr};
        for (int x = 0; x < s.out.width; x += Chunk / Stride) {
            chunk<Signed, Stride, Rounding>(s, stream, rows, x, least<int>(s.out.width - x, Chunk / Stride), to, lines, done);
            to[0] += Chunk / Stride * s.out.stride;
            to[1] = to[1] ? to[1] + Chunk / Stride * s.out.stride : nullptr;
        }
    }
}

}  // namespace rowpairs

// A layer whose stream is in this order (Cfg::RowPairs); the others have the kernel by pairs of taps.
template <class Cfg, class Found = void>
struct RowPairDepthwise : PairDepthwise<Cfg> {};

template <class Cfg>
struct RowPairDepthwise<Cfg, typename Exists<Cfg::RowPairs>::Type> {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    static_assert(Cfg::KernelHeight == 3 && Cfg::KernelWidth == 3 && Cfg::DilationHeight == 1 && Cfg::DilationWidth == 1 &&
                      Cfg::StrideWidth <= 2,
                  "3 x 3 windows side by side, stride 1 or 2 along a line");
    enum : int {
        C = Input::Channels,
        Outputs = least(int(Output::Width), int(rowpairs::Chunk) / int(Cfg::StrideWidth)),
        Copy = Cfg::Serial && Cfg::StrideHeight == 1 ? (int(Input::Width) - 1) * int(PlaneTraits<Input>::Stride) + C : 0
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*, const Rows& rows = Rows::all<Output>()) {
        static constexpr lanes::Shape shape = lanes::shapeOf<Cfg>(C);
        std::uint32_t columns[rowpairs::columnsOf(Outputs, Cfg::StrideWidth) * rowpairs::ColumnWords];
        std::uint32_t copy[(int(Copy) + 4) / 4];
        const rowpairs::Buffers buffers = {columns, int(Copy) > 0 ? reinterpret_cast<unsigned char*>(copy) : nullptr};
        rowpairs::depthwise<std::numeric_limits<typename Input::Type>::is_signed, Cfg::StrideWidth, Cfg::Rounding>(
            shape, in, out, elementsOf<std::uint32_t>(weights), buffers, rows.begin, rows.end);
    }
};

}  // namespace n2d2

#endif  // N2D2_MCU_ROW_PAIR_DEPTHWISE_HPP
