// LSTM and GRU over the steps of a sequence, in integers (n2d2py/arithmetic/recurrent.py).
//
//   S = inputMultiplier * (W x) + recurrentMultiplier * (R h) + bias, gate = S >> Shift in 2^-12     a row of weights each
//   LSTM   c = f c + i g, h = o tanh(c)        gates i, o, f, g
//   GRU    h = (1 - z) n + z h                 gates z, r, n
//
// The hidden state h and what sigmoid and tanh give have 15 bits behind the point, the cell state c has CellFraction. sigmoid and tanh
// are straight lines between knots (lookup.hpp). The zero point of the input is in the bias. States are stored by the Epilogue: that of
// each step, or the last cell state alone (LastCell).
//
// Config: planes Input, Output, of one pixel; types Weight, InputSum, RecurrentSum, Epilogue, Isa; enum Steps, Size, Hidden, Backward,
// LinearBeforeReset, LastCell, Shift, CellFraction, SigmoidSegments, TanhSegments, CellSegments. The output lies apart from the input.
// States and gates lie on the stack: up to 10 bytes for each unit. The initial states are constants, or inputs (BegunState).
#ifndef N2D2_INTEGER_RECURRENT_HPP
#define N2D2_INTEGER_RECURRENT_HPP

#include "n2d2/array.hpp"
#include "n2d2/pointwise.hpp"

namespace n2d2 {

// The input is a clamped integer of 16 bits; the result is in 2^-15, from -2^15 to 2^15.
template <int Segments>
N2D2_INLINE std::int32_t knotted(const std::int32_t* knots, std::int32_t x) {
    constexpr std::int32_t width = 65536 / Segments;
    const std::int32_t position = x + 32768, piece = position / width, rest = position % width;
    const std::int32_t result = (knots[piece] * (width - rest) + knots[piece + 1] * rest + 4096) >> 13;
    return least<std::int32_t>(largest<std::int32_t>(result, -32768), 32768);
}

template <class T>
N2D2_INLINE std::int32_t heldWithin(T x, T limit) {
    return static_cast<std::int32_t>(least<T>(largest<T>(x, static_cast<T>(-limit)), limit));
}

// A state that a sequence begins with: integers of a tensor, rescaled.
template <class Element, int ZeroPoint, std::int32_t Multiplier, int Shift>
struct BegunState {
    const Element* values;
    N2D2_INLINE std::int16_t operator[](int j) const {
        const std::int64_t centred = static_cast<std::int64_t>(values[j]) - ZeroPoint;
        const std::int64_t scaled = (centred * Multiplier + (std::int64_t(1) << (Shift - 1))) >> Shift;
        return static_cast<std::int16_t>(heldWithin<std::int64_t>(scaled, 32767));
    }
};

template <int Count, class Sum, class Weight, class Element>
N2D2_INLINE Sum productSum(const Weight* weights, const Element* x) {
    Sum sum = 0;
    for (int k = 0; k < Count; ++k)
        sum += static_cast<Sum>(weights[k]) * static_cast<Sum>(x[k]);
    return sum;
}

template <class Cfg>
struct IntegerRecurrent {
    typedef typename Cfg::Input::Type In;
    typedef typename Cfg::Output::Type Out;
    typedef typename Cfg::Weight Weight;
    enum : int { Size = Cfg::Size, Hidden = Cfg::Hidden, Piece = Hidden < 64 ? Hidden : 64, Last = Hidden % Piece };

    const Weight* weights;
    const Weight* recurrent;
    const std::int32_t* inputMultipliers;
    const std::int32_t* recurrentMultipliers;
    const std::int64_t* bias;

    N2D2_INLINE std::int64_t input(const In* x, int row) const {
        const long first = static_cast<long>(row) * int(Size);
        return static_cast<std::int64_t>(productSum<Size, typename Cfg::InputSum>(weights + first, x)) * inputMultipliers[row] +
               bias[row];
    }
    N2D2_INLINE std::int64_t hidden(const std::int16_t* h, int row) const {
        const long first = static_cast<long>(row) * int(Hidden);
        return static_cast<std::int64_t>(productSum<Hidden, typename Cfg::RecurrentSum>(recurrent + first, h)) *
               recurrentMultipliers[row];
    }
    static N2D2_INLINE std::int32_t gate(std::int64_t sum) {
        constexpr int shift = Cfg::Shift;
        return heldWithin<std::int64_t>((sum + (std::int64_t(1) << (shift - 1))) >> shift, 32767);
    }
    static N2D2_INLINE std::int64_t wide(std::int64_t sum) {
        constexpr int shift = int(Cfg::Shift) - 4;
        return heldWithin<std::int64_t>((sum + (std::int64_t(1) << (shift - 1))) >> shift, std::int64_t(1) << 30);
    }

    template <int Count>
    static N2D2_INLINE void some(const std::int16_t* states, Out* out) {
        alignas(64) std::int32_t sums[Count];
        for (int i = 0; i < Count; ++i)
            sums[i] = states[i];
        EpilogueRun<typename Cfg::Epilogue, false, typename Cfg::Isa>::template run<Count>(sums, 0, out);
    }
    static N2D2_INLINE void store(const std::int16_t* states, Out* out) {
        constexpr int count = Hidden, piece = Piece, last = Last;
        int i = 0;
        for (; i + piece <= count; i += piece)
            some<piece>(states + i, out + i);
        if (last > 0)
            some<(last > 0 ? last : 1)>(states + i, out + i);
    }
};

template <class Cfg, class InitialH, class InitialC>
N2D2_INLINE void integerLstm(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                             const typename Cfg::Weight* recurrent, const std::int32_t* inputMultipliers,
                             const std::int32_t* recurrentMultipliers, const std::int64_t* bias, const InitialH& initialH,
                             const InitialC& initialC, const std::int32_t* sigmoid, const std::int32_t* tanh,
                             const std::int32_t* cellTanh) {
    constexpr int size = Cfg::Size, count = Cfg::Hidden, fraction = Cfg::CellFraction;
    const IntegerRecurrent<Cfg> sums = {weights, recurrent, inputMultipliers, recurrentMultipliers, bias};
    const typename Cfg::Input::Type* const from = elements<typename Cfg::Input>(in);
    typename Cfg::Output::Type* const to = elements<typename Cfg::Output>(out);
    std::int16_t h[count], next[count], c[count];
    for (int j = 0; j < count; ++j) {
        h[j] = initialH[j];
        c[j] = initialC[j];
    }
    for (int step = 0; step < Cfg::Steps; ++step) {
        const long t = Cfg::Backward != 0 ? int(Cfg::Steps) - 1 - step : step;
        const typename Cfg::Input::Type* const x = from + t * size;
        for (int j = 0; j < count; ++j) {
            std::int32_t gates[4];
            for (int k = 0; k < 4; ++k)
                gates[k] = sums.gate(sums.input(x, k * count + j) + sums.hidden(h, k * count + j));
            const std::int64_t i = knotted<Cfg::SigmoidSegments>(sigmoid, gates[0]);
            const std::int32_t o = knotted<Cfg::SigmoidSegments>(sigmoid, gates[1]);
            const std::int64_t f = knotted<Cfg::SigmoidSegments>(sigmoid, gates[2]);
            const std::int32_t g = knotted<Cfg::TanhSegments>(tanh, gates[3]);
            const std::int64_t cell = f * c[j] * (std::int64_t(1) << (15 - fraction)) + i * g;
            const std::int32_t held =
                heldWithin<std::int64_t>((cell + (std::int64_t(1) << (29 - fraction))) >> (30 - fraction), 32767);
            c[j] = static_cast<std::int16_t>(held);
            next[j] = static_cast<std::int16_t>(
                heldWithin<std::int32_t>((o * knotted<Cfg::CellSegments>(cellTanh, held) + 16384) >> 15, 32767));
        }
        for (int j = 0; j < count; ++j)
            h[j] = next[j];
        if (Cfg::LastCell == 0)
            IntegerRecurrent<Cfg>::store(h, to + t * count);
    }
    if (Cfg::LastCell != 0)
        IntegerRecurrent<Cfg>::store(c, to);
}

template <class Cfg, class InitialH>
N2D2_INLINE void integerGru(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                            const typename Cfg::Weight* recurrent, const std::int32_t* inputMultipliers,
                            const std::int32_t* recurrentMultipliers, const std::int64_t* bias,
                            const std::int64_t* recurrentBias, const InitialH& initialH, const std::int32_t* sigmoid,
                            const std::int32_t* tanh) {
    constexpr int size = Cfg::Size, count = Cfg::Hidden;
    const IntegerRecurrent<Cfg> sums = {weights, recurrent, inputMultipliers, recurrentMultipliers, bias};
    const typename Cfg::Input::Type* const from = elements<typename Cfg::Input>(in);
    typename Cfg::Output::Type* const to = elements<typename Cfg::Output>(out);
    std::int16_t h[count], reset[count];
    std::int32_t update[count], gate[count];
    for (int j = 0; j < count; ++j)
        h[j] = initialH[j];
    for (int step = 0; step < Cfg::Steps; ++step) {
        const long t = Cfg::Backward != 0 ? int(Cfg::Steps) - 1 - step : step;
        const typename Cfg::Input::Type* const x = from + t * size;
        for (int j = 0; j < count; ++j) {
            update[j] = knotted<Cfg::SigmoidSegments>(sigmoid, sums.gate(sums.input(x, j) + sums.hidden(h, j)));
            const std::int32_t r =
                knotted<Cfg::SigmoidSegments>(sigmoid, sums.gate(sums.input(x, count + j) + sums.hidden(h, count + j)));
            if (Cfg::LinearBeforeReset != 0) {
                const std::int64_t v = sums.wide(sums.hidden(h, 2 * count + j) + recurrentBias[j]);
                const std::int64_t mixed = sums.wide(sums.input(x, 2 * count + j)) * 32768 + r * v;
                gate[j] = heldWithin<std::int64_t>((mixed + (std::int64_t(1) << 18)) >> 19, 32767);
            } else {
                reset[j] = static_cast<std::int16_t>((r * h[j] + 16384) >> 15);
            }
        }
        if (Cfg::LinearBeforeReset == 0)
            for (int j = 0; j < count; ++j)
                gate[j] = sums.gate(sums.input(x, 2 * count + j) + sums.hidden(reset, 2 * count + j));
        for (int j = 0; j < count; ++j) {
            const std::int32_t n = knotted<Cfg::TanhSegments>(tanh, gate[j]);
            const std::int32_t mixed = ((32768 - update[j]) * n + update[j] * h[j] + 16384) >> 15;
            h[j] = static_cast<std::int16_t>(heldWithin<std::int32_t>(mixed, 32767));
        }
        IntegerRecurrent<Cfg>::store(h, to + t * count);
    }
}

}  // namespace n2d2

#endif  // N2D2_INTEGER_RECURRENT_HPP
