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

// The three inputs of a column, whose lines are at `from`; it moves to the next one.
template <bool Signed>
struct Column {
    const unsigned char *first, *second, *third;
    const int step;
    std::int32_t x, y, z;

    N2D2_INLINE void load() {
        x = value(*first), y = value(*second), z = value(*third);
        first += step, second += step, third += step;
    }
    static N2D2_INLINE std::int32_t value(unsigned char input) { return Signed ? static_cast<signed char>(input) : input; }
    N2D2_INLINE std::int32_t times(std::int32_t u, std::int32_t v, std::int32_t w) const { return x * u + y * v + z * w; }
};

// What is the same for all channels of a line.
struct Line {
    const unsigned char* rows[3];      // of the input; any where it is outside
    std::int32_t mask[3];              // -1, or 0 for a line outside
    bool special;                      // whether the zero point is not 0 or a line is outside
    bool before, behind;               // whether the first column, and that behind the last output's second one, are outside
    std::int32_t zero, step, outStep;  // the input's zero point; from one column to the next
    std::int32_t whole;                // bytes of outputs whose last column is inside
};

// A channel of a line, whose weights are at `w`.
template <bool Signed, int Stride, class Scale>
N2D2_INLINE void channelOfLine(const Line& line, int channel, std::int32_t bias, const std::int8_t* w, const Scale& scale,
                               unsigned char* to) {
    std::int32_t w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3], w4 = w[4], w5 = w[5], w6 = w[6], w7 = w[7], w8 = w[8];
    std::int32_t sum = bias, last = 0, next = 0;
    if (line.special) {  // zero points: of lines outside into the bias, of columns into the first and the last sum
        const std::int32_t *const m = line.mask, zero = line.zero;
        bias += zero * (((w0 + w1 + w2) & ~m[0]) + ((w3 + w4 + w5) & ~m[1]) + ((w6 + w7 + w8) & ~m[2]));
        w0 &= m[0], w1 &= m[0], w2 &= m[0];
        w3 &= m[1], w4 &= m[1], w5 &= m[1];
        w6 &= m[2], w7 &= m[2], w8 &= m[2];
        sum = bias + zero * (w0 + w3 + w6);
        last = zero * (w2 + w5 + w8);
    }
    Column<Signed> column = {line.rows[0] + channel, line.rows[1] + channel, line.rows[2] + channel, line.step, 0, 0, 0};
    if (!line.before) {
        column.load();
        sum = bias + column.times(w0, w3, w6);
    }
    if (Stride == 1) {
        column.load();
        sum += column.times(w1, w4, w7);
        next = bias + column.times(w0, w3, w6);
    }
    for (unsigned char* const end = to + line.whole; to != end; to += line.outStep) {
        if (Stride == 2) {
            column.load();
            sum += column.times(w1, w4, w7);
        }
        column.load();
        *to = scale.of(static_cast<std::uint32_t>(sum + column.times(w2, w5, w8)));
        sum = (Stride == 1 ? next : bias) + (Stride == 1 ? column.times(w1, w4, w7) : column.times(w0, w3, w6));
        if (Stride == 1)
            next = bias + column.times(w0, w3, w6);
    }
    if (!line.behind)
        return;
    if (Stride == 2) {
        column.load();
        sum += column.times(w1, w4, w7);
    }
    *to = scale.of(static_cast<std::uint32_t>(sum + last));
}

template <bool Signed, int Stride, bool Low, int Rounding>
N2D2_MCU_FAST void depthwise(const lanes::Shape& s, const Results& stored, const unsigned char* in, unsigned char* out,
                             const std::int32_t* stream, int begin, int end) {
    constexpr int words = Rounding == int(lanes::HighWord) ? 1 : 3;
    const int channels = s.channels;
    const Results limits = stored;
    Line line;
    line.step = s.in.stride;
    line.outStep = s.out.stride;
    line.before = s.padLeft > 0;
    line.behind = (s.out.width - 1) * Stride - s.padLeft + 2 >= s.in.width;
    line.whole = (s.out.width - (line.behind ? 1 : 0)) * s.out.stride;
    line.zero = Signed ? static_cast<int>(static_cast<signed char>(s.padding)) : int(s.padding);
    for (int turn = begin; turn < end; ++turn) {
        const int y = s.reverse ? s.out.height - 1 - turn : turn, from = y * s.strideHeight - s.padTop;
        line.special = line.zero != 0;
        for (int u = 0; u < 3; ++u) {
            const int row = from + u, last = s.in.height - 1;
            const bool there = row >= 0 && row <= last;
            line.rows[u] = in + s.in.at(row < 0 ? 0 : row > last ? last : row);
            line.mask[u] = there ? -1 : 0;
            line.special = line.special || !there;
        }
        const std::int32_t* constants = stream;
        unsigned char* const to = out + s.out.at(y);
        for (int channel = 0; channel < channels; ++channel, constants += words + 4)
            channelOfLine<Signed, Stride>(line, channel, constants[0], elementsOf<std::int8_t>(constants + 1 + words),
                                          Scale<Rounding, Low>(constants + 1, 1, limits), to + channel);
    }
}

}  // namespace pixels

N2D2_STREAM_KERNEL(ColumnDepthwise, Columns, Depthwise<Cfg, Portable>) {
    N2D2_PLANES(Cfg);

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*, const Rows& rows = Rows::all<Output>()) {
        static constexpr lanes::Shape shape = lanes::shapeOf<Cfg>(Input::Channels);
        static constexpr pixels::Results stored = {Cfg::VectorZero, Cfg::VectorLow, Cfg::VectorHigh};
        pixels::depthwise<std::numeric_limits<typename Input::Type>::is_signed, Cfg::StrideWidth, Cfg::VectorLow != 0,
                          Cfg::Rounding>(shape, stored, in, out, elementsOf<std::int32_t>(weights), rows.begin, rows.end);
    }
};

}  // namespace n2d2
