// Depthwise convolution 3 x 3 for the DSP extension of Arm's M profile: a channel goes along two lines with its weights in registers.
//
// Two lines of inputs, four channels, are spread to words of a column, 16 bits of each line. The words U = (w0, w1) and V = (w1, w2) of a
// column of weights serve both lines of outputs, with two multiplications for three taps:
//
//   line 0   SMLAD(rows 01, U) + SMLABx(rows 23, w2)
//   line 1   SMLATx(rows 01, w0) + SMLAD(rows 23, V)
//
// Each column is loaded once for a line: it ends the sum of one output, goes on with that of the next and begins that of the one after.
// Rows 23 are rows 01 of the next two lines, which find them in place unless the lines of the output have an order: a pair of rows is half a
// column, and each next pair half a column further. Constants of a
// channel: its multiplier, U and V of the three columns, bias; the second word of doubled sums (lanes.hpp).
// Lines are computed by chunks of outputs, whose columns are on the stack.
#pragma once

#include "n2d2/mcu/pair_depthwise.hpp"

namespace n2d2 {
namespace rowpairs {

enum : int {
    ColumnWords = 8,  // four channels of two pairs of rows
    Chunk = 24,       // columns of inputs at most, without the border
    Results = Chunk,  // words of a line of results
    PairWords = 4,
    Pairs = 8  // of rows, before the last one moves to the begin of the columns
};

// Columns of a buffer for so many outputs: sums are made by three, by two with a stride of 2.
constexpr int columnsOf(int outputs, int stride) { return stride == 1 ? (outputs + 2) / 3 * 3 + 2 : (outputs + 1) / 2 * 4 + 1; }

// The arguments of `expand`, which knows the offsets.
struct Pair {
    const unsigned char* rows[2];     // 0: of the first column inside the input, of four channels
    std::int32_t steps[2];            // 8: to the next column; 0 for rows outside, which are zero points
    std::uint32_t* to;                // 16: its words of the first column
    std::int32_t left, inner, right;  // 20: columns outside the input, inside, outside
    std::uint32_t zeros;              // 32: two zero points
    std::int32_t moves[2];            // to the next channels, which the assembly does not read
};

// The arguments of the products.
struct Turn {
    std::uint32_t* columns;       // 0
    const std::uint32_t* stream;  // 4
    std::uint32_t* results;       // 8: bytes of four channels; those of the second line `Results` words on
    std::int32_t turns;           // 12: of the loop, less one, in the upper half
    std::int32_t zero;            // 16
    std::int32_t both;            // 20: whether there is a second line
};

// clang-format off
// A column of zero points.
#define N2D2_ROW_PAIRS_ZEROS                                            \
    "str    r8, [r4, #4]\n\t" "str    r8, [r4, #8]\n\t"                 \
    "str    r8, [r4, #12]\n\t" "str    r8, [r4], #32\n\t"

// A column, whose words are in the registers p and q.
#define N2D2_ROW_PAIRS_SPREAD(extend, p, q)                             \
    "pkhbt  r11, " p ", " q ", lsl #16\n\t"                             \
    "pkhtb  " p ", " q ", " p ", asr #16\n\t"                           \
    extend " " q ", r11\n\t"                                            \
    extend " r11, r11, ror #8\n\t"                                      \
    extend " r12, " p "\n\t"                                            \
    extend " " p ", " p ", ror #8\n\t"                                  \
    "str    r11, [r4, #4]\n\t" "str    r12, [r4, #8]\n\t"             \
    "str    " p ", [r4, #12]\n\t" "str    " q ", [r4], #32\n\t"

// Two rows of four channels of a chunk, two columns at a time.
#define N2D2_ROW_PAIRS_EXPAND(name, extend)                 \
    N2D2_ASM_FUNCTION(36, void name(const Pair*), "r4-r11", \
            "ldm    r0, {r0-r8}\n\t"                        \
            "cbz    r5, 2f\n"                               \
        "1:\n\t"                                            \
            N2D2_ROW_PAIRS_ZEROS                            \
            "subs   r5, r5, #1\n\t"                         \
            "bne    1b\n"                                   \
        "2:\n\t"                                            \
            "lsrs   r12, r6, #1\n\t"                        \
            "bcc    7f\n\t"                                 \
            "ldr    r9, [r0]\n\t"                           \
            "ldr    r10, [r1]\n\t"                          \
            "add    r0, r0, r2\n\t"                         \
            "add    r1, r1, r3\n\t"                         \
            N2D2_ROW_PAIRS_SPREAD(extend, "r9", "r10")      \
        "7:\n\t"                                            \
            "bics   r6, r6, #1\n\t"                         \
            "beq    4f\n"                                   \
        "3:\n\t"                                            \
            "ldr    r9, [r0]\n\t"                           \
            "ldr    r10, [r1]\n\t"                          \
            "ldr    r5, [r0, r2]\n\t"                       \
            "ldr    lr, [r1, r3]\n\t"                       \
            "add    r0, r0, r2, lsl #1\n\t"                 \
            "add    r1, r1, r3, lsl #1\n\t"                 \
            N2D2_ROW_PAIRS_SPREAD(extend, "r9", "r10")      \
            N2D2_ROW_PAIRS_SPREAD(extend, "r5", "lr")       \
            "subs   r6, r6, #2\n\t"                         \
            "bne    3b\n"                                   \
        "4:\n\t"                                            \
            "cbz    r7, 6f\n"                               \
        "5:\n\t"                                            \
            N2D2_ROW_PAIRS_ZEROS                            \
            "subs   r7, r7, #1\n\t"                         \
            "bne    5b\n"                                   \
        "6:\n\t")

N2D2_ROW_PAIRS_EXPAND(expandUnsigned, "uxtb16")
N2D2_ROW_PAIRS_EXPAND(expandSigned, "sxtb16")

// The products of a column, rows 01 in r2 and rows 23 in r3, for the output that it begins, goes on with and ends. Weights of line 0: U in r4 to
// r6, w2 in halves of r7 and r8; of line 1: V in r7, r8 and r10, w0 in halves of r4 and r6.
#define N2D2_ROW_PAIRS_BEGIN0(sum, from) "smlad  " sum ", r2, r4, " from "\n\t" "smlabb " sum ", r3, r7, " sum "\n\t"
#define N2D2_ROW_PAIRS_GO_ON0(sum) "smlad  " sum ", r2, r5, " sum "\n\t" "smlabt " sum ", r3, r7, " sum "\n\t"
#define N2D2_ROW_PAIRS_END0(sum)   "smlad  " sum ", r2, r6, " sum "\n\t" "smlabb " sum ", r3, r8, " sum "\n\t"
#define N2D2_ROW_PAIRS_BEGIN1(sum, from) "smlad  " sum ", r3, r7, " from "\n\t" "smlatb " sum ", r2, r4, " sum "\n\t"
#define N2D2_ROW_PAIRS_GO_ON1(sum) "smlad  " sum ", r3, r8, " sum "\n\t" "smlatt " sum ", r2, r4, " sum "\n\t"
#define N2D2_ROW_PAIRS_END1(sum)   "smlad  " sum ", r3, r10, " sum "\n\t" "smlatb " sum ", r2, r6, " sum "\n\t"

// A column `at` bytes on. The bias of the output that it begins is loaded with it, or in a register.
#define N2D2_ROW_PAIRS_LOAD(at)                         \
    "ldr    r2, [r0, #" #at "]\n\t"                          \
    "ldr    r3, [r0, #" #at "+16]\n\t"
#define N2D2_ROW_PAIRS_LOADED(sum) "ldr    " sum ", [sp, #24]\n\t"
#define N2D2_ROW_PAIRS_FROM_LOADED(sum) sum
#define N2D2_ROW_PAIRS_HELD(sum)
#define N2D2_ROW_PAIRS_FROM_HELD(sum) "lr"

// An output whose last column is `at` bytes on.
#define N2D2_ROW_PAIRS_STORE(scaled, sum)                               \
    scaled(sum)                                                         \
    "usat   " sum ", #8, " sum "\n\t"                                   \
    "strb   " sum ", [r9], #4\n\t"
#define N2D2_ROW_PAIRS_OUTPUT1(line, scaled, bias, a, b, c, at)     \
    N2D2_ROW_PAIRS_LOAD(at)                             \
    N2D2_ROW_PAIRS_##bias(c)                                            \
    N2D2_ROW_PAIRS_END##line(a)                                         \
    N2D2_ROW_PAIRS_GO_ON##line(b)                                       \
    N2D2_ROW_PAIRS_BEGIN##line(c, N2D2_ROW_PAIRS_FROM_##bias(c))        \
    N2D2_ROW_PAIRS_STORE(scaled, a)
#define N2D2_ROW_PAIRS_OUTPUT2(line, scaled, bias, a, b, at)    \
    N2D2_ROW_PAIRS_LOAD(at-32)                          \
    N2D2_ROW_PAIRS_GO_ON##line(a)                                       \
    N2D2_ROW_PAIRS_LOAD(at)                             \
    N2D2_ROW_PAIRS_##bias(b)                                            \
    N2D2_ROW_PAIRS_END##line(a)                                         \
    N2D2_ROW_PAIRS_BEGIN##line(b, N2D2_ROW_PAIRS_FROM_##bias(b))        \
    N2D2_ROW_PAIRS_STORE(scaled, a)
// The first column.
#define N2D2_ROW_PAIRS_FIRST(line, bias, sum)           \
    N2D2_ROW_PAIRS_LOAD(0)                              \
    N2D2_ROW_PAIRS_##bias(sum)                                          \
    N2D2_ROW_PAIRS_BEGIN##line(sum, N2D2_ROW_PAIRS_FROM_##bias(sum))

// A line of outputs of a channel, by three with a stride of 1, by two with one of 2. `weights`: a register whose upper half counts.
#define N2D2_ROW_PAIRS_LINE1(line, scaled, bias, a, b, c, weights)  \
    N2D2_ROW_PAIRS_FIRST(line, bias, a)                 \
    N2D2_ROW_PAIRS_LOAD(32)                             \
    N2D2_ROW_PAIRS_##bias(b)                                            \
    N2D2_ROW_PAIRS_GO_ON##line(a)                                       \
    N2D2_ROW_PAIRS_BEGIN##line(b, N2D2_ROW_PAIRS_FROM_##bias(b))        \
    "2" #line ":\n\t"                                                   \
    N2D2_ROW_PAIRS_OUTPUT1(line, scaled, bias, a, b, c, 64)     \
    N2D2_ROW_PAIRS_OUTPUT1(line, scaled, bias, b, c, a, 96)     \
    N2D2_ROW_PAIRS_OUTPUT1(line, scaled, bias, c, a, b, 128)    \
    "add    r0, r0, #96\n\t"                                            \
    "subs   " weights ", " weights ", #0x10000\n\t"                     \
    "bhs    2" #line "b\n\t"
#define N2D2_ROW_PAIRS_LINE2(line, scaled, bias, a, b, c, weights)  \
    N2D2_ROW_PAIRS_FIRST(line, bias, a)                 \
    "2" #line ":\n\t"                                                   \
    N2D2_ROW_PAIRS_OUTPUT2(line, scaled, bias, a, b, 64)    \
    N2D2_ROW_PAIRS_OUTPUT2(line, scaled, bias, b, a, 128)   \
    "add    r0, r0, #128\n\t"                                           \
    "subs   " weights ", " weights ", #0x10000\n\t"                     \
    "bhs    2" #line "b\n\t"

// Four channels of a line, or of two; `words`: what the bias, in lr, and the second word of doubled sums become; `back`: bytes from the next
// constants to V. On the stack: 0 Turn, 24 bias, 28 second word, 32 end of the channels.
#define N2D2_ROW_PAIRS_PRODUCTS(name, outputs, scaled, bias, words, back)   \
    N2D2_ASM_FUNCTION(72, static void name(const Turn*), "r4-r11",          \
            "sub    sp, sp, #36\n\t"                                        \
            "ldm    r0, {r1-r6}\n\t"                                        \
            "stm    sp, {r1-r6}\n\t"                                        \
            "add    r1, r1, #16\n\t"                                        \
            "str    r1, [sp, #32]\n"                                        \
        "1:\n\t"                                                            \
            "ldm    sp, {r0, r3, r9, r12}\n\t"                              \
            "ldm    r3!, {r1, r4-r8, r10, lr}\n\t"                          \
            words                                                           \
            "str    r3, [sp, #4]\n\t"                                       \
            "pkhtb  r7, r8, r7, asr #16\n\t"                                \
            "orr    r8, r12, r10, lsr #16\n\t"                              \
            outputs(0, scaled, bias, "r10", "r11", "r12", "r8")             \
            "ldr    r11, [sp, #20]\n\t"                                     \
            "ldm    sp, {r0, r3, r9, r12}\n\t"                              \
            "cmp    r11, #0\n\t"                                            \
            "beq.w  4f\n\t"                                                 \
            "add    r9, r9, #96\n\t"                                        \
            "sub    r3, r3, #" back "\n\t"                                  \
            "ldm    r3, {r7, r8, r10}\n\t"                                  \
            "pkhbt  r4, r4, r5, lsl #16\n\t"                                \
            "pkhbt  r6, r6, r12\n\t"                                        \
            outputs(1, scaled, bias, "r5", "r11", "r12", "r6")              \
            "ldr    r0, [sp, #0]\n\t"                                       \
            "ldr    r9, [sp, #8]\n"                                         \
        "4:\n\t"                                                            \
            "ldr    r3, [sp, #32]\n\t"                                      \
            "add    r0, r0, #4\n\t"                                         \
            "add    r9, r9, #1\n\t"                                         \
            "str    r0, [sp, #0]\n\t"                                       \
            "str    r9, [sp, #8]\n\t"                                       \
            "cmp    r0, r3\n\t"                                             \
            "bne.w  1b\n\t"                                                 \
            "add    sp, sp, #36\n\t")

#define N2D2_ROW_PAIRS_HIGH(sum) "smmulr " sum ", " sum ", r1\n\t"
#define N2D2_ROW_PAIRS_SCALED(sum) N2D2_SCALED(sum, "r1", "lr")
#define N2D2_ROW_PAIRS_DOUBLED(sum, doubled, away)                      \
    "ldr    r2, [sp, #28]\n\t"                                          \
    doubled(sum, "r1") away(sum)                                        \
    N2D2_SHIFTED(sum, "r2", "lr")
#define N2D2_ROW_PAIRS_TWICE(sum) N2D2_DOUBLED(sum, "r1") "smmulr " sum ", " sum ", lr\n\t"
#define N2D2_ROW_PAIRS_TWICE_SIGNED(sum) N2D2_ROW_PAIRS_DOUBLED(sum, N2D2_DOUBLED, N2D2_AWAY)
#define N2D2_ROW_PAIRS_ONCE(sum) N2D2_ROW_PAIRS_DOUBLED(sum, N2D2_DOUBLED_DOWN, N2D2_AS_IT_IS)
#define N2D2_ROW_PAIRS_FACTOR "str    lr, [sp, #24]\n\t" "ldr    lr, [r3], #4\n\t"
#define N2D2_ROW_PAIRS_ZERO "str    lr, [sp, #24]\n\t" "ldr    lr, [sp, #16]\n\t"
#define N2D2_ROW_PAIRS_WORDS N2D2_ROW_PAIRS_ZERO "ldr    r2, [r3], #4\n\t" "str    r2, [sp, #28]\n\t"

// Zero: whether results have a zero point, or sums are doubled. Those of Twice have none, and their second factor is 2^(32 - shift).
template <int Rounding, bool Zero>
struct Kernels;
#define N2D2_ROW_PAIRS_KERNELS(rounding, zero, channel, scaled, bias, words, back)                              \
    template <>                                                                                                 \
    struct Kernels<rounding, zero> {                                                                            \
        enum : int { Constants = 4 * channel };  /* words of four channels */                                   \
        N2D2_ROW_PAIRS_PRODUCTS(by1, N2D2_ROW_PAIRS_LINE1, scaled, bias, words, back)              \
        N2D2_ROW_PAIRS_PRODUCTS(by2, N2D2_ROW_PAIRS_LINE2, scaled, bias, words, back)              \
    };
N2D2_ROW_PAIRS_KERNELS(lanes::HighWord, false, 8, N2D2_ROW_PAIRS_HIGH, HELD, "", "16")
N2D2_ROW_PAIRS_KERNELS(lanes::HighWord, true, 8, N2D2_ROW_PAIRS_SCALED, LOADED, N2D2_ROW_PAIRS_ZERO, "16")
N2D2_ROW_PAIRS_KERNELS(lanes::Twice, true, 9, N2D2_ROW_PAIRS_TWICE, LOADED, N2D2_ROW_PAIRS_FACTOR, "20")
N2D2_ROW_PAIRS_KERNELS(lanes::TwiceSigned, true, 9, N2D2_ROW_PAIRS_TWICE_SIGNED, LOADED, N2D2_ROW_PAIRS_WORDS, "20")
N2D2_ROW_PAIRS_KERNELS(lanes::Once, true, 9, N2D2_ROW_PAIRS_ONCE, LOADED, N2D2_ROW_PAIRS_WORDS, "20")
// clang-format on

template <bool Clamped>
N2D2_INLINE void store(const lanes::Limits& s, int stride, const std::uint32_t* results, int count, unsigned char* to) {
    const std::uint32_t* const even = results + (count & ~1);
    for (; results != even; results += 2, to += 2 * stride) {
        const std::uint32_t a = results[0], b = results[1];
        lanes::storeWord(to, Clamped ? lanes::limited(s, a) : a);
        lanes::storeWord(to + stride, Clamped ? lanes::limited(s, b) : b);
    }
    if ((count & 1) != 0)
        lanes::storeWord(to, Clamped ? lanes::limited(s, *results) : *results);
}

// A layer while it runs.
template <bool Signed, class Kernels, bool Clamped>
struct Layer {
    const lanes::Shape& s;
    const lanes::Limits limits;
    unsigned char* out;
    const std::uint32_t* stream;
    std::uint32_t* columns;  // ColumnWords for each one of a chunk
    std::uint32_t padding;
    int outputs, begin;  // of a chunk; the first of its columns inside the input
    Pair pairs[2];       // rows 01 and 23
    Turn turn;
    std::uint32_t results[2 * Results];

    N2D2_INLINE Layer(const lanes::Shape& shape, unsigned char* to, const std::uint32_t* constants, std::uint32_t* buffer)
        : s(shape),
          limits(shape),
          out(to),
          stream(constants),
          columns(buffer),
          padding(shape.padding * 0x01010101u),
          outputs(0),
          begin(0) {
        pairs[0].zeros =
            0x00010001u * (Signed ? static_cast<std::uint32_t>(static_cast<signed char>(s.padding)) & 0xffffu : s.padding);
        pairs[0].to = buffer;
        turn.columns = buffer;
        turn.results = results;
        turn.zero = s.zero;
    }
    // Outputs of a chunk.
    N2D2_INLINE int most() const { return s.strideWidth == 1 ? int(Chunk) : Chunk / 2; }
    // Moves the last pair of rows to the begin of the columns.
    N2D2_MCU_FAST void beginAgain() {
        std::uint32_t* to = columns;
        for (int count = columnsOf(outputs, s.strideWidth); count > 0; --count, to += ColumnWords)
            for (int i = 0; i < PairWords; ++i)
                to[i] = to[int(Pairs) * int(PairWords) + i];
    }
    // A chunk that begins with output x.
    N2D2_MCU_FAST const unsigned char* lineOf(const unsigned char* in, int y) const { return line(in, y); }
    N2D2_MCU_FAST void placeRow(int u, const unsigned char* line) { row(pairs[u >> 1], u & 1, line); }
    N2D2_MCU_FAST void place(int x) {
        outputs = least<int>(s.out.width - x, most());
        turn.turns = ((s.strideWidth == 1 ? (outputs + 2) / 3 : (outputs + 1) / 2) - 1) * 65536;
        turn.stream = stream;
        const int left = x * s.strideWidth - s.padLeft, count = (outputs - 1) * s.strideWidth + 3;
        begin = largest(left, 0);
        pairs[0].left = begin - left;
        pairs[0].inner = least<int>(s.in.width - begin, count - pairs[0].left);
        pairs[0].right = count - pairs[0].left - pairs[0].inner;
    }
    // Fills the columns outside the input, which all channels of some lines have.
    N2D2_MCU_FAST void fill() {
        Pair& p = pairs[0];
        std::uint32_t *to = columns, *const first = columns + p.left * ColumnWords;
        while (to != first)
            *to++ = p.zeros;
        to += p.inner * ColumnWords;
        for (std::uint32_t* const end = to + p.right * ColumnWords; to != end;)
            *to++ = p.zeros;
        p.to = first;
        p.left = p.right = 0;
    }
    // Row u of a pair is `line`, null outside the input.
    N2D2_INLINE void row(Pair& pair, int u, const unsigned char* line) {
        pair.rows[u] = line ? line + begin * s.in.stride : reinterpret_cast<const unsigned char*>(&padding);
        pair.steps[u] = line ? s.in.stride : 0;
        pair.moves[u] = line ? 4 : 0;
    }
    N2D2_INLINE const unsigned char* line(const unsigned char* in, int y) const {
        return y < 0 || y >= s.in.height ? nullptr : in + s.in.at(y);
    }
    N2D2_INLINE void expand(const Pair& pair) { (Signed ? expandSigned<> : expandUnsigned<>)(&pair); }
    N2D2_INLINE void expandNext(Pair& pair) {
        expand(pair);
        pair.rows[0] += pair.moves[0];
        pair.rows[1] += pair.moves[1];
    }
    // Outputs of a line or two (turn.both). Stride: along a line; 0 for one function that has both.
    template <int Stride>
    N2D2_INLINE void finish(unsigned char* to, unsigned char* second) {
        (Stride ? int(Stride) : s.strideWidth) == 1 ? Kernels::template by1<>(&turn) : Kernels::template by2<>(&turn);
        turn.stream += int(Kernels::Constants);
        store<Clamped>(limits, s.out.stride, results, outputs, to);
        if (turn.both != 0)
            store<Clamped>(limits, s.out.stride, results + Results, outputs, second);
    }
};

// All lines of some channels.
template <class Layer>
N2D2_INLINE void byChannels(Layer& l, const unsigned char* in, int begin, int end) {
    const lanes::Shape& s = l.s;
    const int lines = s.strideHeight == 1 ? 2 : 1, first = begin * s.strideHeight - s.padTop;
    for (int x = 0; x < s.out.width; x += l.most()) {
        l.place(x);
        for (int channel = 0; channel < s.channels; channel += 4) {
            int pair = 0;
            const std::uint32_t* const stream = l.turn.stream;
            for (int y = begin - lines, top = first; y < end; y += lines, top += 2, ++pair) {
                l.row(l.pairs[0], 0, l.line(in + channel, top));
                l.row(l.pairs[0], 1, l.line(in + channel, top + 1));
                l.pairs[0].to = l.columns + PairWords * pair;
                l.expand(l.pairs[0]);
                if (y < begin)
                    continue;
                l.turn.stream = stream;
                l.turn.columns = l.pairs[0].to - PairWords;
                unsigned char* const to = l.out + x * s.out.stride + channel;
                l.turn.both = lines == 2 && y + 1 < end;
                l.template finish<0>(to + s.out.at(y), l.turn.both != 0 ? to + s.out.at(y + 1) : nullptr);
                if (pair == Pairs) {
                    l.beginAgain();
                    pair = 0;
                }
            }
        }
    }
}

// All channels of some lines. Of two lines the one that is stored first may lie over what only the other one reads (memory/overlap.py):
// that line of inputs is copied to `copy`.
template <int Stride, class Layer>
N2D2_INLINE void byLines(Layer& l, const unsigned char* in, unsigned char* copy, int begin, int end) {
    const lanes::Shape& s = l.s;
    const int covered = s.reverse ? 3 : 0;
    for (int at = begin, count = 0; at < end; at += count) {
        count = s.strideHeight == 1 && at + 1 < end ? 2 : 1;
        const int y = s.reverse ? s.out.height - at - count : at, top = y * s.strideHeight - s.padTop;
        const unsigned char* const first = l.lineOf(in, top + covered);
        const bool copied = count == 2 && copy && first;
        if (copied)
            copyBytes(copy, first, static_cast<std::size_t>((s.in.width - 1) * s.in.stride + s.channels));
        for (int x = 0; x < s.out.width; x += l.most()) {
            l.place(x);
            l.fill();
            l.pairs[1] = l.pairs[0];
            l.pairs[1].to += PairWords;
            for (int u = 0; u < 4; ++u)
                l.placeRow(u, copied && u == covered ? copy : l.lineOf(in, top + u));
            unsigned char* to = l.out + lanes::offsetOf(s.out, y) + x * s.out.stride;
            unsigned char* second = l.out + lanes::offsetOf(s.out, y + count - 1) + x * s.out.stride;
            l.turn.both = count == 2;
            for (int left = s.channels; left > 0; left -= 4, to += 4, second += 4) {
                l.expandNext(l.pairs[0]);
                l.expandNext(l.pairs[1]);
                l.template finish<Stride>(to, second);
            }
        }
    }
}

template <bool Signed, int Stride, class Kernels, bool Clamped, bool Serial>
N2D2_MCU_FAST void depthwise(const lanes::Shape& s, const unsigned char* in, unsigned char* out, const std::uint32_t* stream,
                             std::uint32_t* columns, unsigned char* copy, int begin, int end) {
    Layer<Signed, Kernels, Clamped> layer(s, out, stream, columns);
    if (Serial)
        byLines<Stride>(layer, in, copy, begin, end);
    else
        byChannels(layer, in, begin, end);
}

}  // namespace rowpairs

N2D2_STREAM_KERNEL(RowPairDepthwise, RowPairs, PairDepthwise<Cfg>) {
    N2D2_PLANES(Cfg);
    static_assert(Cfg::KernelHeight == 3 && Cfg::KernelWidth == 3 && Cfg::DilationHeight == 1 && Cfg::DilationWidth == 1 &&
                      Cfg::StrideWidth <= 2,
                  "3 x 3 windows side by side, stride 1 or 2 along a line");
    enum : int {
        C = Input::Channels,
        Outputs = least(int(Output::Width), int(rowpairs::Chunk) / int(Cfg::StrideWidth)),
        More = Cfg::Serial || Cfg::Reverse || Cfg::StrideHeight > 2 ? 0 : int(rowpairs::Pairs) * int(rowpairs::PairWords),
        Copy = Cfg::Serial && Cfg::StrideHeight == 1 ? (int(Input::Width) - 1) * int(PlaneTraits<Input>::Stride) + C : 0
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*, const Rows& rows = Rows::all<Output>()) {
        static constexpr lanes::Shape shape = lanes::shapeOf<Cfg>(C);
        std::uint32_t columns[rowpairs::columnsOf(Outputs, Cfg::StrideWidth) * rowpairs::ColumnWords + int(More)];
        std::uint32_t copy[(int(Copy) + 4) / 4];
        typedef rowpairs::Kernels<Cfg::RowRounding, int(Cfg::RowRounding) != int(lanes::HighWord) || Cfg::LaneZero != 0>
            Kernels;
        constexpr bool serial = int(More) == 0;
        constexpr bool clamped = Cfg::LaneSigned || Cfg::LaneLow != 0 || Cfg::LaneHigh != 255;
        rowpairs::depthwise<std::numeric_limits<typename Input::Type>::is_signed, serial ? int(Cfg::StrideWidth) : 0, Kernels,
                            clamped, serial>(shape, in, out, elementsOf<std::uint32_t>(weights), columns,
                                             int(Copy) > 0 ? reinterpret_cast<unsigned char*>(copy) : nullptr, rows.begin,
                                             rows.end);
    }
};

}  // namespace n2d2
