// Depthwise convolution 3 x 3 for RV32IM: one function for all layers, which reads their shapes from constants.
//
// A channel goes along a line with its nine weights in registers. Each column of three inputs is loaded once: it ends the sum of one
// output, goes on with that of the next and begins that of the one after. At most one column is outside at each end, and lines outside
// have no weights: the sums begin and end with the input's zero point instead. Constants of a channel: its bias, twice its multiplier,
// nine weights in a row of twelve bytes; where sums are doubled (lanes::Rounding) an addend and a shift, as in pixel_pairs.hpp, come after the
// multiplier. q = clamp(zero + ((sum * m + 2^31) >> 32)) is (mulhsu(sum, 2 m) + 1 + 2 zero) >> 1.
#pragma once

#include "n2d2/mcu/lane_shape.hpp"
#include "n2d2/mcu/pixel_pairs.hpp"
#include "n2d2/parallel.hpp"

namespace n2d2 {
namespace pixels {

// One line of a layer; the assembly knows the offsets.
struct Line {
    const unsigned char* rows[3];  // 0: of the input; any where it is outside
    unsigned char* out;            // 12
    std::int32_t channels;         // 16
    std::int32_t step, outStep;    // 20, 24: from one column to the next
    std::int32_t whole;            // 28: bytes of outputs whose last column is inside
    std::int32_t before, behind;  // 32, 36: whether the first column, and that behind the last output's second one, are outside
    std::int32_t special;         // 40: whether the zero point is not 0 or a line is outside
    std::int32_t zero;            // 44: the input's zero point
    std::int32_t mask[3];         // 48: -1, or 0 for a line outside
    std::int32_t round, range, low;  // 60, 64, 68: as in pixel_pairs.hpp
};

// clang-format off
#define N2D2_COLUMN_LOAD(load)  \
    load " a3, 0(t1)\n\t"       \
    load " a4, 0(t2)\n\t"       \
    load " a5, 0(t3)\n\t"       \
    N2D2_ASM_EACH("t1,t2,t3", "add \\x, \\x, t6")

// to = from + the column times three weights.
#define N2D2_COLUMN_ADD(to, from, u, v, w)  \
    "mul  t0, a3, " u "\n\t"                \
    "mul  a0, a4, " v "\n\t"                \
    "add  " to ", " from ", t0\n\t"         \
    "mul  t0, a5, " w "\n\t"                \
    "add  " to ", " to ", a0\n\t"           \
    "add  " to ", " to ", t0\n\t"
#define N2D2_COLUMN_BEGIN(to) N2D2_COLUMN_ADD(to, "s9", "s0", "s3", "s6")
#define N2D2_COLUMN_GO_ON(to, from) N2D2_COLUMN_ADD(to, from, "s1", "s4", "s7")
#define N2D2_COLUMN_END N2D2_COLUMN_ADD("a6", "a6", "s2", "s5", "s8")

// Stores the sum in a6; `low`: adds the lowest result, where it is not 0. A shift of a channel is on the stack.
#define N2D2_COLUMN_STORE(scaled, low)  \
    scaled                              \
    N2D2_PIXELS_CLAMP("a6", "t0", "a1") \
    low                                 \
    "sb   a6, 0(t4)\n\t"
#define N2D2_COLUMN_HIGH N2D2_PIXELS_HIGH("a6", "s10", "t0", "s11", "")
#define N2D2_COLUMN_ONCE "lw   a0, 68(sp)\n\t" N2D2_PIXELS_ONCE("a6", "s10", "t0", "s11", "a0")
#define N2D2_COLUMN_TWICE "lw   a0, 68(sp)\n\t" N2D2_PIXELS_TWICE("a6", "s10", "t0", "s11", "a0")
#define N2D2_COLUMN_TWICE_SIGNED "lw   a0, 68(sp)\n\t" N2D2_PIXELS_TWICE_SIGNED("a6", "s10", "t0", "s11", "a0")
#define N2D2_COLUMN_WORDS   \
    "lw   s11, 8(a5)\n\t"   \
    "lw   t0, 12(a5)\n\t"   \
    "addi a5, a5, 8\n\t"    \
    "sw   t0, 68(sp)\n\t"
#define N2D2_COLUMN_LOW "add  a6, a6, a2\n\t"

// Of a stride of 1: the column after the first, and an output; at the end the sum waits in a6.
#define N2D2_COLUMN_SECOND1(load) N2D2_COLUMN_LOAD(load) N2D2_COLUMN_GO_ON("a6", "a6") N2D2_COLUMN_BEGIN("a7")
#define N2D2_COLUMN_OUTPUT1(scaled, load, low)                              \
    N2D2_COLUMN_LOAD(load) N2D2_COLUMN_END N2D2_COLUMN_STORE(scaled, low)   \
    N2D2_COLUMN_GO_ON("a6", "a7") N2D2_COLUMN_BEGIN("a7")
#define N2D2_COLUMN_LAST1(load)
// The same of a stride of 2.
#define N2D2_COLUMN_SECOND2(load)
#define N2D2_COLUMN_OUTPUT2(scaled, load, low)                              \
    N2D2_COLUMN_LOAD(load) N2D2_COLUMN_GO_ON("a6", "a6")                    \
    N2D2_COLUMN_LOAD(load) N2D2_COLUMN_END N2D2_COLUMN_STORE(scaled, low)   \
    N2D2_COLUMN_BEGIN("a6")
#define N2D2_COLUMN_LAST2(load) N2D2_COLUMN_LOAD(load) N2D2_COLUMN_GO_ON("a6", "a6")

// All channels of a line. On the stack: 52 Line, 56 constants, 60 the channel, 64 what the column behind the last adds.
#define N2D2_COLUMN_LINE(name, scaled, words, load, stride, low)                            \
    template <int FrameBytes = 80>                                                          \
    __attribute__((naked, noinline)) static void name(const Line*, const std::int32_t*) {   \
        __asm__ volatile(                                                                   \
            "addi sp, sp, -16\n\t"                                                          \
            N2D2_PIXELS_SAVE                                                                \
            "sw   a0, 52(sp)\n\t"                                                           \
            "sw   a1, 56(sp)\n\t"                                                           \
            "sw   zero, 60(sp)\n\t"                                                         \
            "sw   zero, 64(sp)\n\t"                                                         \
            "lw   t6, 20(a0)\n\t"                                                           \
            "lw   ra, 24(a0)\n\t"                                                           \
            "lw   s11, 60(a0)\n\t"                                                          \
            "lw   a1, 64(a0)\n\t"                                                           \
            "lw   a2, 68(a0)\n"                                                             \
        "1:\n\t"                                                                            \
            "lw   a5, 56(sp)\n\t"                                                           \
            "lw   a4, 60(sp)\n\t"                                                           \
            "lw   s9, 0(a5)\n\t"                                                            \
            "lw   s10, 4(a5)\n\t"                                                           \
            words                                                                           \
            N2D2_ASM_EACH("0,1,2,3,4,5,6,7,8", "lb s\\x, 8+\\x(a5)")                        \
            "addi a5, a5, 20\n\t"                                                           \
            "sw   a5, 56(sp)\n\t"                                                           \
            N2D2_ASM_EACH("1,2,3,4", "lw t\\x, 4*\\x-4(a0)")                                \
            "lw   t5, 28(a0)\n\t"                                                           \
            N2D2_ASM_EACH("t1,t2,t3,t4", "add \\x, \\x, a4")                                \
            "add  t5, t5, t4\n\t"                                                           \
            "lw   t0, 40(a0)\n\t"                                                           \
            "mv   a6, s9\n\t"                                                               \
            "bnez t0, 6f\n"                                                                 \
        "2:\n\t"                                                                            \
            "lw   t0, 32(a0)\n\t"                                                           \
            "bnez t0, 3f\n\t"                                                               \
            N2D2_COLUMN_LOAD(load)                                                          \
            N2D2_COLUMN_BEGIN("a6")                                                         \
        "3:\n\t"                                                                            \
            N2D2_COLUMN_SECOND##stride(load)                                                \
            "beq  t4, t5, 5f\n"                                                             \
        "4:\n\t"                                                                            \
            N2D2_COLUMN_OUTPUT##stride(scaled, load, low)                                   \
            "add  t4, t4, ra\n\t"                                                           \
            "bne  t4, t5, 4b\n"                                                             \
        "5:\n\t"                                                                            \
            "lw   a0, 52(sp)\n\t"                                                           \
            "lw   t0, 36(a0)\n\t"                                                           \
            "beqz t0, 7f\n\t"                                                               \
            N2D2_COLUMN_LAST##stride(load)                                                  \
            "lw   t0, 64(sp)\n\t"                                                           \
            "add  a6, a6, t0\n\t"                                                           \
            N2D2_COLUMN_STORE(scaled, low)                                                  \
            "lw   a0, 52(sp)\n"                                                             \
        "7:\n\t"                                                                            \
            "lw   a4, 60(sp)\n\t"                                                           \
            "lw   t0, 16(a0)\n\t"                                                           \
            "addi a4, a4, 1\n\t"                                                            \
            "sw   a4, 60(sp)\n\t"                                                           \
            "bne  a4, t0, 1b\n\t"                                                           \
            N2D2_PIXELS_UNSAVE                                                              \
            "addi sp, sp, 80\n\t"                                                           \
            "ret\n"                                                                         \
        "6:\n\t" /* zero points: of lines outside into the bias, of columns into the first and the last sum */ \
            "lw   a3, 48(a0)\n\t"                                                           \
            "lw   a4, 52(a0)\n\t"                                                           \
            "lw   a5, 56(a0)\n\t"                                                           \
            "lw   t0, 44(a0)\n\t"                                                           \
            "add  a6, s0, s1\n\t"                                                           \
            "add  a6, a6, s2\n\t"                                                           \
            "add  a7, s3, s4\n\t"                                                           \
            "add  a7, a7, s5\n\t"                                                           \
            "add  a1, s6, s7\n\t"                                                           \
            "add  a1, a1, s8\n\t"                                                           \
            N2D2_ASM_EACH("s0,s1,s2", "and \\x, \\x, a3")                                   \
            N2D2_ASM_EACH("s3,s4,s5", "and \\x, \\x, a4")                                   \
            N2D2_ASM_EACH("s6,s7,s8", "and \\x, \\x, a5")                                   \
            N2D2_ASM_EACH("a3,a4,a5", "not \\x, \\x")                                       \
            "and  a6, a6, a3\n\t"                                                           \
            "and  a7, a7, a4\n\t"                                                           \
            "and  a1, a1, a5\n\t"                                                           \
            "add  a6, a6, a7\n\t"                                                           \
            "add  a6, a6, a1\n\t"                                                           \
            "mul  a6, a6, t0\n\t"                                                           \
            "add  s9, s9, a6\n\t"                                                           \
            "add  a6, s0, s3\n\t"                                                           \
            "add  a6, a6, s6\n\t"                                                           \
            "mul  a6, a6, t0\n\t"                                                           \
            "add  a6, a6, s9\n\t"                                                           \
            "add  a7, s2, s5\n\t"                                                           \
            "add  a7, a7, s8\n\t"                                                           \
            "mul  a7, a7, t0\n\t"                                                           \
            "sw   a7, 64(sp)\n\t"                                                           \
            "lw   a1, 64(a0)\n\t"                                                           \
            "j    2b\n\t");                                                                 \
    }

template <int Rounding>
struct ColumnKernels;
#define N2D2_COLUMN_KERNELS(rounding, scaled, words)                                \
    template <>                                                                     \
    struct ColumnKernels<rounding> {                                                \
        N2D2_COLUMN_LINE(unsigned1, scaled, words, "lbu", 1, )                      \
        N2D2_COLUMN_LINE(signed1, scaled, words, "lb", 1, )                         \
        N2D2_COLUMN_LINE(unsigned2, scaled, words, "lbu", 2, )                      \
        N2D2_COLUMN_LINE(signed2, scaled, words, "lb", 2, )                         \
        N2D2_COLUMN_LINE(unsigned1Low, scaled, words, "lbu", 1, N2D2_COLUMN_LOW)    \
        N2D2_COLUMN_LINE(signed1Low, scaled, words, "lb", 1, N2D2_COLUMN_LOW)       \
        N2D2_COLUMN_LINE(unsigned2Low, scaled, words, "lbu", 2, N2D2_COLUMN_LOW)    \
        N2D2_COLUMN_LINE(signed2Low, scaled, words, "lb", 2, N2D2_COLUMN_LOW)       \
    };
N2D2_COLUMN_KERNELS(lanes::HighWord, N2D2_COLUMN_HIGH, )
N2D2_COLUMN_KERNELS(lanes::Twice, N2D2_COLUMN_TWICE, N2D2_COLUMN_WORDS)
N2D2_COLUMN_KERNELS(lanes::TwiceSigned, N2D2_COLUMN_TWICE_SIGNED, N2D2_COLUMN_WORDS)
N2D2_COLUMN_KERNELS(lanes::Once, N2D2_COLUMN_ONCE, N2D2_COLUMN_WORDS)
// clang-format on

// Low: whether the lowest result is not 0.
template <bool Signed, int Stride, bool Low, int Rounding>
N2D2_INLINE void depthwiseLine(const Line& line, const std::int32_t* stream) {
    typedef ColumnKernels<Rounding> K;
    if (Stride == 1 && Low)
        Signed ? K::template signed1Low<>(&line, stream) : K::template unsigned1Low<>(&line, stream);
    else if (Stride == 1)
        Signed ? K::template signed1<>(&line, stream) : K::template unsigned1<>(&line, stream);
    else if (Low)
        Signed ? K::template signed2Low<>(&line, stream) : K::template unsigned2Low<>(&line, stream);
    else
        Signed ? K::template signed2<>(&line, stream) : K::template unsigned2<>(&line, stream);
}

template <bool Signed, int Stride, bool Low, int Rounding>
N2D2_MCU_FAST void depthwise(const lanes::Shape& s, const Results& stored, const unsigned char* in, unsigned char* out,
                             const std::int32_t* stream, int begin, int end) {
    Line line;
    line.channels = s.channels;
    line.step = s.in.stride;
    line.outStep = s.out.stride;
    line.before = s.padLeft > 0;
    line.behind = (s.out.width - 1) * Stride - s.padLeft + 2 >= s.in.width;
    line.whole = (s.out.width - (line.behind ? 1 : 0)) * s.out.stride;
    line.zero = Signed ? static_cast<int>(static_cast<signed char>(s.padding)) : int(s.padding);
    line.round = 1 + 2 * (stored.zero - stored.high);
    line.range = stored.high - stored.low;
    line.low = stored.low;
    for (int turn = begin; turn < end; ++turn) {
        const int y = s.reverse ? s.out.height - 1 - turn : turn, from = y * s.strideHeight - s.padTop;
        line.special = line.zero;
        for (int u = 0; u < 3; ++u) {
            const int row = from + u, last = s.in.height - 1;
            const bool there = row >= 0 && row <= last;
            line.rows[u] = in + s.in.at(row < 0 ? 0 : row > last ? last : row);
            line.mask[u] = there ? -1 : 0;
            line.special |= there ? 0 : 1;
        }
        line.out = out + s.out.at(y);
        depthwiseLine<Signed, Stride, Low, Rounding>(line, stream);
    }
}

}  // namespace pixels

// A layer whose constants are a stream (Cfg::Columns); the others have the portable kernel.
template <class Cfg, class Found = void>
struct ColumnDepthwise : Depthwise<Cfg, Portable> {};

template <class Cfg>
struct ColumnDepthwise<Cfg, typename Exists<Cfg::Columns>::Type> {
    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*, const Rows& rows = Rows::all<typename Cfg::Output>()) {
        static constexpr lanes::Shape shape = lanes::shapeOf<Cfg>(Cfg::Input::Channels);
        static constexpr pixels::Results stored = {Cfg::VectorZero, Cfg::VectorLow, Cfg::VectorHigh};
        pixels::depthwise<std::numeric_limits<typename Cfg::Input::Type>::is_signed, Cfg::StrideWidth, Cfg::VectorLow != 0,
                          Cfg::Rounding>(shape, stored, in, out, elementsOf<std::int32_t>(weights), rows.begin, rows.end);
    }
};

}  // namespace n2d2
