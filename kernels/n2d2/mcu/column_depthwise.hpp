// Depthwise convolution 3 x 3 for RV32IM: one function for all layers, which reads their shapes from constants.
//
// A channel goes along a line with its nine weights in registers. Each column of three inputs is loaded once: it ends the sum of one
// output, goes on with that of the next and begins that of the one after. At most one column is outside at each end, and lines outside
// have no weights: the sums begin and end with the input's zero point instead. Constants of a channel: its bias, twice its multiplier,
// nine weights in a row of twelve bytes. q = clamp(zero + ((sum * m + 2^31) >> 32)) is (mulhsu(sum, 2 m) + 1 + 2 zero) >> 1.
#ifndef N2D2_MCU_COLUMN_DEPTHWISE_HPP
#define N2D2_MCU_COLUMN_DEPTHWISE_HPP

#include "n2d2/mcu/lane_shape.hpp"
#include "n2d2/mcu/pixel_pairs.hpp"
#include "n2d2/parallel.hpp"

namespace n2d2 {
namespace pixels {

// One line of a layer.
struct Line {
    const unsigned char* rows[3];  // of the input, null outside
    unsigned char* out;
    std::int32_t channels, step, outStep;
    std::int32_t whole;   // outputs whose last column is inside
    bool before, behind;  // the first column, and that behind the last output's second one, are outside
    std::int32_t zero;    // the input's zero point
};

template <bool Signed, int Stride>
N2D2_MCU_FAST void channels(const Line& line, const Results& stored, const std::int32_t* constants) {
    const std::int32_t round = 1 + 2 * stored.zero, low = stored.low, high = stored.high, step = line.step,
                       outStep = line.outStep;
    const unsigned char* const valid = line.rows[1] ? line.rows[1] : line.rows[0] ? line.rows[0] : line.rows[2];
    for (int channel = 0; channel < line.channels; ++channel, constants += 5) {
        const signed char* const w = reinterpret_cast<const signed char*>(constants + 2);
        std::int32_t bias = constants[0], w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3], w4 = w[4], w5 = w[5], w6 = w[6],
                     w7 = w[7], w8 = w[8];
        const std::int64_t multiplier = static_cast<std::uint32_t>(constants[1]);
        const unsigned char *a = line.rows[0], *b = line.rows[1], *c = line.rows[2];
        std::int32_t left = 0, right = 0;
        if (line.zero != 0) {
            left = line.zero * (w0 + w3 + w6);
            right = line.zero * (w2 + w5 + w8);
        }
#define N2D2_COLUMN_NO_LINE(p, u, v, w)                                                                           \
    if (!p) {                                                                                                     \
        bias += line.zero * (u + v + w), left -= line.zero * u, right -= line.zero * w, u = v = w = 0, p = valid; \
    }
        N2D2_COLUMN_NO_LINE(a, w0, w1, w2)
        N2D2_COLUMN_NO_LINE(b, w3, w4, w5)
        N2D2_COLUMN_NO_LINE(c, w6, w7, w8)
#undef N2D2_COLUMN_NO_LINE
        a += channel, b += channel, c += channel;
        unsigned char* out = line.out + channel;
        unsigned char* const whole = out + line.whole * outStep;
        std::int32_t ending = bias + left, going = bias, x0, x1, x2, sum;
#define N2D2_COLUMN_VALUE(p) (Signed ? static_cast<std::int32_t>(static_cast<signed char>(*p)) : static_cast<std::int32_t>(*p))
#define N2D2_COLUMN_LOAD \
    x0 = N2D2_COLUMN_VALUE(a), x1 = N2D2_COLUMN_VALUE(b), x2 = N2D2_COLUMN_VALUE(c), a += step, b += step, c += step
#define N2D2_COLUMN_BEGIN (bias + x0 * w0 + x1 * w3 + x2 * w6)
#define N2D2_COLUMN_GO_ON (x0 * w1 + x1 * w4 + x2 * w7)
#define N2D2_COLUMN_END (x0 * w2 + x1 * w5 + x2 * w8)
#define N2D2_COLUMN_STORE                                                     \
    sum = (static_cast<std::int32_t>((sum * multiplier) >> 32) + round) >> 1; \
    sum = sum < low ? low : sum;                                              \
    sum = sum > high ? high : sum;                                            \
    *out = static_cast<unsigned char>(sum);                                   \
    out += outStep
        if (!line.before) {
            N2D2_COLUMN_LOAD;
            ending = N2D2_COLUMN_BEGIN;
        }
        if (Stride == 1) {
            N2D2_COLUMN_LOAD;
            ending += N2D2_COLUMN_GO_ON;
            going = N2D2_COLUMN_BEGIN;
        }
        while (out != whole) {
            N2D2_COLUMN_LOAD;
            if (Stride == 2) {
                going = ending + N2D2_COLUMN_GO_ON;
                N2D2_COLUMN_LOAD;
                sum = going + N2D2_COLUMN_END;
                ending = N2D2_COLUMN_BEGIN;
            } else {
                sum = ending + N2D2_COLUMN_END;
                ending = going + N2D2_COLUMN_GO_ON;
                going = N2D2_COLUMN_BEGIN;
            }
            N2D2_COLUMN_STORE;
        }
        if (line.behind) {
            sum = ending + right;
            if (Stride == 2) {
                N2D2_COLUMN_LOAD;
                sum += N2D2_COLUMN_GO_ON;
            }
            N2D2_COLUMN_STORE;
        }
#undef N2D2_COLUMN_STORE
#undef N2D2_COLUMN_END
#undef N2D2_COLUMN_GO_ON
#undef N2D2_COLUMN_BEGIN
#undef N2D2_COLUMN_LOAD
#undef N2D2_COLUMN_VALUE
    }
}

template <bool Signed, int Stride>
N2D2_MCU_FAST void depthwise(const lanes::Shape& s, const Results& stored, const unsigned char* in, unsigned char* out,
                             const std::int32_t* stream, int begin, int end) {
    Line line;
    line.channels = s.channels;
    line.step = s.in.stride;
    line.outStep = s.out.stride;
    line.before = s.padLeft > 0;
    line.behind = (s.out.width - 1) * Stride - s.padLeft + 2 >= s.in.width;
    line.whole = s.out.width - (line.behind ? 1 : 0);
    line.zero = Signed ? static_cast<int>(static_cast<signed char>(s.padding)) : int(s.padding);
    for (int turn = begin; turn < end; ++turn) {
        const int y = s.reverse ? s.out.height - 1 - turn : turn, from = y * s.strideHeight - s.padTop;
        for (int u = 0; u < 3; ++u)
            line.rows[u] = from + u >= 0 && from + u < s.in.height ? in + s.in.at(from + u) : nullptr;
        line.out = out + s.out.at(y);
        channels<Signed, Stride>(line, stored, stream);
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
        pixels::depthwise<std::numeric_limits<typename Cfg::Input::Type>::is_signed, Cfg::StrideWidth>(
            shape, stored, in, out, reinterpret_cast<const std::int32_t*>(weights), rows.begin, rows.end);
    }
};

}  // namespace n2d2

#endif  // N2D2_MCU_COLUMN_DEPTHWISE_HPP
