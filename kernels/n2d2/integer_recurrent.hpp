// LSTM, GRU and RNN over the steps of sequences side by side, in integers (n2d2py/arithmetic/recurrent.py).
//
//   S = inputMultiplier * (W x) + recurrentMultiplier * (R h) + bias, gate = S >> Shift in 2^-12     a row of weights each
//   LSTM   c = f c + i g, h = o tanh(c)        gates i, o, f, g
//   GRU    h = (1 - z) n + z h                 gates z, r, n
//   RNN    h = n                               gate n
//
// Results of sigmoid and tanh have 15 fractional bits, the hidden state h HiddenFraction, the cell state c CellFraction. sigmoid and tanh
// are straight lines between knots (lookup.hpp). The zero point of the input is in the bias. States are stored by the Epilogue: that of
// each step, or the last cell state alone (LastCell).
//
// Config: planes Input, Output, of one pixel: (Steps, Sequences, Size), and (Steps, Sequences, Hidden) or of LastCell (Sequences, Hidden);
// types Weight, InputSum, RecurrentSum, Epilogue, Isa; enum Sequences, Steps, Size, Hidden, Gates, Backward,
// LinearBeforeReset, LastCell, Shift, HiddenFraction, CellFraction, GateLimit, CellLimit, SigmoidSegments, TanhSegments, CellSegments.
// The output lies apart from the input.
// States and gates lie on the stack: up to 12 bytes for each unit. The initial states
// (Sequences, Hidden) are constants, or inputs (BegunState).
//
// Sums are made of some rows of weights at a time (row_dots.hpp), gates of all units before their states: compilers make vectors of both.
#pragma once

#include "n2d2/array.hpp"
#include "n2d2/pointwise.hpp"
#include "n2d2/row_dots.hpp"

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

template <class Cfg>
struct IntegerRecurrent {
    N2D2_PLANES(Cfg);
    typedef typename Cfg::Weight Weight;
    enum : int { Size = Cfg::Size, Hidden = Cfg::Hidden, All = Cfg::Gates * Hidden };
    typedef RowProducts<typename Cfg::Isa, In, Weight, typename Cfg::InputSum, Size, Hidden, All> Inputs;
    typedef RowProducts<typename Cfg::Isa, std::int16_t, Weight, typename Cfg::RecurrentSum, Hidden, Hidden, All> States;
    enum : bool { Aligned = bool(Inputs::Aligned) || bool(States::Aligned) };
    enum : int { Most = largest(int(Inputs::Most), int(States::Most)) };  // rows at a time

    const std::int32_t* inputMultipliers;
    const std::int32_t* recurrentMultipliers;
    const std::int64_t* bias;

    // The sums of Count rows from `row` on: of the inputs with their bias, and of the states.
    template <int Count>
    N2D2_INLINE void inputs(const Inputs& x, int row, std::int64_t (&to)[Count]) const {
        typename Cfg::InputSum sums[Count];
        x.template run<Count>(row, sums);
        for (int i = 0; i < Count; ++i)
            to[i] = static_cast<std::int64_t>(sums[i]) * inputMultipliers[row + i] + bias[row + i];
    }
    template <int Count>
    N2D2_INLINE void states(const States& h, int row, std::int64_t (&to)[Count]) const {
        typename Cfg::RecurrentSum sums[Count];
        h.template run<Count>(row, sums);
        for (int i = 0; i < Count; ++i)
            to[i] = static_cast<std::int64_t>(sums[i]) * recurrentMultipliers[row + i];
    }
    static N2D2_INLINE std::int32_t gate(std::int64_t sum) {
        constexpr int shift = Cfg::Shift;
        return heldWithin<std::int64_t>((sum + (std::int64_t(1) << (shift - 1))) >> shift, Cfg::GateLimit);
    }
    static N2D2_INLINE std::int64_t wide(std::int64_t sum) {
        constexpr int shift = int(Cfg::Shift) - 4;
        return heldWithin<std::int64_t>((sum + (std::int64_t(1) << (shift - 1))) >> shift, std::int64_t(1) << 30);
    }

    struct Gates {
        const IntegerRecurrent& sums;
        const Inputs& x;
        const States& h;
        int row;
        std::int16_t* to;
        template <int Count>
        N2D2_INLINE void run(int first) const {
            std::int64_t a[Count], b[Count];
            sums.inputs(x, row + first, a);
            sums.states(h, row + first, b);
            for (int i = 0; i < Count; ++i)
                to[first + i] = static_cast<std::int16_t>(gate(a[i] + b[i]));
        }
    };
    // The gates of Count rows from `row` on.
    template <int Count>
    N2D2_INLINE void gates(const Inputs& x, const States& h, int row, std::int16_t* to) const {
        constexpr int run = Aligned ? int(Hidden) : Count;
        for (int first = 0; first < Count; first += run) {
            const Gates body = {*this, x, h, row + first, to + first};
            inPieces<run, Most>(body);
        }
    }

    struct Stored {
        const std::int16_t* states;
        Out* out;
        template <int Count>
        N2D2_INLINE void run(int first) const {
            alignas(64) std::int32_t sums[Count];
            for (int i = 0; i < Count; ++i)
                sums[i] = states[first + i];
            EpilogueRun<typename Cfg::Epilogue, false, typename Cfg::Isa>::template run<Count>(sums, 0, out + first);
        }
    };
    static N2D2_INLINE void store(const std::int16_t* states, Out* out) {
        const Stored body = {states, out};
        inPieces<Hidden, 64>(body);
    }
};

// The next states of units from their gates i, o, f, g, Hidden apart; without States the cell states alone, for which o is not needed.
template <class Cfg, bool States>
struct LstmUnits {
    const std::int16_t* gates;
    std::int16_t* c;
    std::int16_t* h;
    const std::int32_t* sigmoid;
    const std::int32_t* tanh;
    const std::int32_t* cellTanh;

    template <int Count>
    N2D2_INLINE void run(int first) const {
        constexpr int hidden = Cfg::Hidden, fraction = Cfg::CellFraction, narrowed = 30 - int(Cfg::HiddenFraction);
        const std::int16_t* const from = gates + first;
        std::int32_t i[Count], f[Count], g[Count];
        for (int k = 0; k < Count; ++k) {
            i[k] = knotted<Cfg::SigmoidSegments>(sigmoid, from[k]);
            f[k] = knotted<Cfg::SigmoidSegments>(sigmoid, from[2 * hidden + k]);
            g[k] = knotted<Cfg::TanhSegments>(tanh, from[3 * hidden + k]);
        }
        for (int k = 0; k < Count; ++k) {
            const std::int64_t kept = static_cast<std::int64_t>(f[k]) * c[first + k] * (std::int64_t(1) << (15 - fraction));
            const std::int64_t cell = kept + static_cast<std::int64_t>(i[k]) * g[k];
            g[k] = heldWithin<std::int64_t>((cell + (std::int64_t(1) << (29 - fraction))) >> (30 - fraction), Cfg::CellLimit);
            c[first + k] = static_cast<std::int16_t>(g[k]);
        }
        for (int k = 0; States && k < Count; ++k) {
            const std::int32_t o = knotted<Cfg::SigmoidSegments>(sigmoid, from[hidden + k]);
            h[first + k] = static_cast<std::int16_t>(heldWithin<std::int32_t>(
                (o * knotted<Cfg::CellSegments>(cellTanh, g[k]) + (1 << (narrowed - 1))) >> narrowed, 32767));
        }
    }
};

// The gates n of units of a GRU whose reset gate, Hidden before, multiplies what the states give.
template <class Cfg>
struct LinearGates {
    const IntegerRecurrent<Cfg>& sums;
    const typename IntegerRecurrent<Cfg>::Inputs& x;
    const typename IntegerRecurrent<Cfg>::States& h;
    const std::int64_t* recurrentBias;
    const std::int32_t* sigmoid;
    std::int16_t* to;

    template <int Count>
    N2D2_INLINE void run(int first) const {
        constexpr int hidden = Cfg::Hidden;
        std::int64_t a[Count], b[Count];
        sums.inputs(x, 2 * hidden + first, a);
        sums.states(h, 2 * hidden + first, b);
        for (int i = 0; i < Count; ++i) {
            const std::int64_t r = knotted<Cfg::SigmoidSegments>(sigmoid, to[first - hidden + i]);
            const std::int64_t v = sums.wide(b[i] + recurrentBias[first + i]);
            const std::int64_t mixed = static_cast<std::int64_t>(sums.wide(a[i])) * 32768 + r * v;
            to[first + i] =
                static_cast<std::int16_t>(heldWithin<std::int64_t>((mixed + (std::int64_t(1) << 18)) >> 19, Cfg::GateLimit));
        }
    }
};

template <class Cfg, class InitialH, class InitialC>
N2D2_INLINE void integerLstm(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                             const typename Cfg::Weight* recurrent, const std::int32_t* inputMultipliers,
                             const std::int32_t* recurrentMultipliers, const std::int64_t* bias, const InitialH& initialH,
                             const InitialC& initialC, const std::int32_t* sigmoid, const std::int32_t* tanh,
                             const std::int32_t* cellTanh) {
    constexpr int size = Cfg::Size, count = Cfg::Hidden;
    const IntegerRecurrent<Cfg> sums = {inputMultipliers, recurrentMultipliers, bias};
    constexpr long all = Cfg::Sequences;
    SequenceLoop<Cfg>::run(Cfg::Sequences, [=, &initialH, &initialC](int s) N2D2_INLINE_LAMBDA {
        const typename Cfg::Input::Type* const from = elements<typename Cfg::Input>(in) + static_cast<long>(s) * size;
        typename Cfg::Output::Type* const to = elements<typename Cfg::Output>(out) + static_cast<long>(s) * count;
        std::int16_t h[count], c[count], gates[4 * count];
        for (int j = 0; j < count; ++j) {
            h[j] = initialH[s * count + j];
            c[j] = initialC[s * count + j];
        }
        const LstmUnits<Cfg, true> units = {gates, c, h, sigmoid, tanh, cellTanh};
        const int whole = int(Cfg::Steps) - (Cfg::LastCell != 0 ? 1 : 0);
        for (int step = 0; step < whole; ++step) {
            const long t = (Cfg::Backward != 0 ? int(Cfg::Steps) - 1 - step : step) * all;
            const typename IntegerRecurrent<Cfg>::Inputs x(from + t * size, weights);
            const typename IntegerRecurrent<Cfg>::States before(h, recurrent);
            sums.template gates<4 * count>(x, before, 0, gates);
            inPieces<count, 16>(units);
            if (Cfg::LastCell == 0)
                IntegerRecurrent<Cfg>::store(h, to + t * count);
        }
        if (Cfg::LastCell != 0) {
            const typename IntegerRecurrent<Cfg>::Inputs x(from + (Cfg::Backward != 0 ? 0 : whole * all * size), weights);
            const typename IntegerRecurrent<Cfg>::States before(h, recurrent);
            for (int row = 0; row < 4 * count; row += row == 0 ? 2 * count : count)
                sums.template gates<count>(x, before, row, gates + row);
            const LstmUnits<Cfg, false> cells = {gates, c, h, sigmoid, tanh, cellTanh};
            inPieces<count, 16>(cells);
            IntegerRecurrent<Cfg>::store(c, to);
        }
    });
}

template <class Cfg, class InitialH>
N2D2_INLINE void integerGru(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                            const typename Cfg::Weight* recurrent, const std::int32_t* inputMultipliers,
                            const std::int32_t* recurrentMultipliers, const std::int64_t* bias,
                            const std::int64_t* recurrentBias, const InitialH& initialH, const std::int32_t* sigmoid,
                            const std::int32_t* tanh) {
    constexpr int size = Cfg::Size, count = Cfg::Hidden, narrowed = 15 - int(Cfg::HiddenFraction);
    const IntegerRecurrent<Cfg> sums = {inputMultipliers, recurrentMultipliers, bias};
    constexpr long all = Cfg::Sequences;
    SequenceLoop<Cfg>::run(Cfg::Sequences, [=, &initialH](int s) N2D2_INLINE_LAMBDA {
        const typename Cfg::Input::Type* const from = elements<typename Cfg::Input>(in) + static_cast<long>(s) * size;
        typename Cfg::Output::Type* const to = elements<typename Cfg::Output>(out) + static_cast<long>(s) * count;
        std::int16_t h[count], reset[count], gates[3 * count];
        std::int16_t* const last = gates + 2 * count;
        for (int j = 0; j < count; ++j)
            h[j] = initialH[s * count + j];
        for (int step = 0; step < Cfg::Steps; ++step) {
            const long t = (Cfg::Backward != 0 ? int(Cfg::Steps) - 1 - step : step) * all;
            const typename IntegerRecurrent<Cfg>::Inputs x(from + t * size, weights);
            const typename IntegerRecurrent<Cfg>::States before(h, recurrent);
            sums.template gates<2 * count>(x, before, 0, gates);
            if (Cfg::LinearBeforeReset != 0) {
                const LinearGates<Cfg> linear = {sums, x, before, recurrentBias, sigmoid, last};
                inPieces<count, IntegerRecurrent<Cfg>::Most>(linear);
            } else {
                for (int j = 0; j < count; ++j)
                    reset[j] = static_cast<std::int16_t>(
                        (knotted<Cfg::SigmoidSegments>(sigmoid, gates[count + j]) * h[j] + 16384) >> 15);
                sums.template gates<count>(x, typename IntegerRecurrent<Cfg>::States(reset, recurrent), 2 * count, last);
            }
            for (int j = 0; j < count; ++j) {
                const std::int32_t n = (knotted<Cfg::TanhSegments>(tanh, last[j]) + ((1 << narrowed) >> 1)) >> narrowed;
                const std::int32_t z = knotted<Cfg::SigmoidSegments>(sigmoid, gates[j]);
                h[j] = static_cast<std::int16_t>(heldWithin<std::int32_t>(((32768 - z) * n + z * h[j] + 16384) >> 15, 32767));
            }
            IntegerRecurrent<Cfg>::store(h, to + t * count);
        }
    });
}

template <class Cfg, class InitialH>
N2D2_INLINE void integerRnn(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                            const typename Cfg::Weight* recurrent, const std::int32_t* inputMultipliers,
                            const std::int32_t* recurrentMultipliers, const std::int64_t* bias, const InitialH& initialH,
                            const std::int32_t* tanh) {
    constexpr int size = Cfg::Size, count = Cfg::Hidden, narrowed = 15 - int(Cfg::HiddenFraction);
    const IntegerRecurrent<Cfg> sums = {inputMultipliers, recurrentMultipliers, bias};
    constexpr long all = Cfg::Sequences;
    SequenceLoop<Cfg>::run(Cfg::Sequences, [=, &initialH](int s) N2D2_INLINE_LAMBDA {
        const typename Cfg::Input::Type* const from = elements<typename Cfg::Input>(in) + static_cast<long>(s) * size;
        typename Cfg::Output::Type* const to = elements<typename Cfg::Output>(out) + static_cast<long>(s) * count;
        std::int16_t h[count], gates[count];
        for (int j = 0; j < count; ++j)
            h[j] = initialH[s * count + j];
        for (int step = 0; step < Cfg::Steps; ++step) {
            const long t = (Cfg::Backward != 0 ? int(Cfg::Steps) - 1 - step : step) * all;
            const typename IntegerRecurrent<Cfg>::Inputs x(from + t * size, weights);
            sums.template gates<count>(x, typename IntegerRecurrent<Cfg>::States(h, recurrent), 0, gates);
            for (int j = 0; j < count; ++j)
                h[j] = static_cast<std::int16_t>(heldWithin<std::int32_t>(
                    (knotted<Cfg::TanhSegments>(tanh, gates[j]) + ((1 << narrowed) >> 1)) >> narrowed, 32767));
            IntegerRecurrent<Cfg>::store(h, to + t * count);
        }
    });
}

}  // namespace n2d2
