// LSTM, GRU and RNN over the steps of sequences side by side, in the floating-point type of the output: each product and each sum rounded,
// bias first, then inputs, then states, each from the first element to the last.
//
// Config: planes Input, Output, of one pixel; type Isa; enum Sequences, Steps, Size, Hidden, Backward, LinearBeforeReset, LastCell, Limited,
// Relu (of an RNN), Peepholes and Coupled (of an LSTM). Where Limited, gates and cell states are held within +- limits[0] and limits[1]. Input and
// output are (Steps, Sequences, Size) and (Steps, Sequences, Hidden), of LastCell (Sequences, Hidden). The output lies apart from the input.
// Rows of weights of each gate are in groups of 64, [group][input][64], the last group of a multiple of 8, completed with zeros; biases have
// their order.
// States and gates lie on the stack. The initial states (Sequences, Hidden) are constants, or inputs.
#pragma once

#include "n2d2/array.hpp"
#include "n2d2/functions.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/steady.hpp"

namespace n2d2 {

// Products of Rows rows of weights with Lines vectors of Count elements: sums[line * Pitch + row] += weights[k][row] * x[line * step + k], from
// k = 0 on.
template <class Real, int Count, int Rows, int Lines, int Pitch>
struct RowSums {
    typedef typename Choice<Rows * sizeof(float) % sizeof(reals::Widest) == 0, reals::Widest, reals::PanelPart>::Type Floats;
    typedef typename Choice<std::is_same<Real, float>::value, Floats, Real>::Type V;
    // Vectors of sums that have registers.
    enum : int {
        Width = static_cast<int>(sizeof(V) / sizeof(Real)),
        Vectors = Rows / Width,
        Most = (sizeof(V) == 64 ? 16 : 8) / Lines,
        Piece = Vectors < Most ? Vectors : int(Most),
        Rest = Vectors % Piece
    };

    static N2D2_INLINE void add(const Real* weights, const Real* x, long step, Real* sums) {
        for (int v = 0; v + Piece <= Vectors; v += Piece)
            some<Piece>(weights + v * Width, x, step, sums + v * Width);
        if (Rest > 0)
            some<(Rest > 0 ? Rest : 1)>(weights + (Vectors - Rest) * Width, x, step, sums + (Vectors - Rest) * Width);
    }

    template <int Some>
    static N2D2_INLINE void some(const Real* weights, const Real* x, long step, Real* sums) {
        V total[Lines][Some], part;
        for (int line = 0; line < Lines; ++line)
            std::memcpy(total[line], sums + line * Pitch, sizeof total[line]);
        for (int k = 0; k < Count; ++k, weights += Rows)
            N2D2_UNROLL_FOR(v, Some) {
                std::memcpy(&part, weights + v * Width, sizeof part);
                N2D2_UNROLL_FOR(line, Lines)
                    total[line][v] += reals::rounded(part * x[line * step + k]);
            }
        for (int line = 0; line < Lines; ++line)
            std::memcpy(sums + line * Pitch, total[line], sizeof total[line]);
    }
};

template <class Cfg>
struct Recurrent {
    typedef typename Cfg::Output::Type Real;
    enum : int {
        Size = Cfg::Size,
        Hidden = Cfg::Hidden,
        Rows = (Hidden + 7) / 8 * 8,  // of a gate
        Group = 64,
        Last = Rows % Group,
        Steps = Cfg::Steps,
        Together = N2D2_FLOAT_VECTORS ? least(4, Steps) : 1  // steps whose inputs are multiplied at once
    };

    const Real* weights;
    const Real* recurrent;
    const Real* bias;
    const Real* limits;

    N2D2_INLINE Real held(Real gate) const { return Cfg::Limited != 0 ? least(largest(gate, -limits[0]), limits[0]) : gate; }
    N2D2_INLINE void hold(Real* gates, int count) const {
        for (int i = 0; i < count && Cfg::Limited != 0; ++i)
            gates[i] = held(gates[i]);
    }
    N2D2_INLINE Real heldCell(Real cell) const {
        return Cfg::Limited != 0 ? least(largest(cell, -limits[1]), limits[1]) : cell;
    }
    // The index of the sequence's elements of a step.
    static N2D2_INLINE long at(int step) {
        return (Cfg::Backward != 0 ? Steps - 1 - step : step) * static_cast<long>(Cfg::Sequences);
    }
    // The sums of all gates over the bias and the inputs of a step, and of the next ones, which stay in `sums`.
    template <int Gates>
    N2D2_INLINE Real* begin(int step, const Real* in, Real* sums) const {
        constexpr int each = Gates * Rows, last = Steps % Together;
        Real* const gates = sums + step % Together * each;
        if (step % Together != 0)
            return gates;
        for (int line = 0; line < Together; ++line)
            for (int i = 0; i < each; ++i)
                sums[line * each + i] = bias[i];
        const long pitch = at(1) * Size - at(0) * Size;
        if (step + Together <= Steps)
            addGates<Size, Gates, Together, each>(weights, in + at(step) * Size, pitch, sums);
        else
            addGates<Size, Gates, (last > 0 ? last : 1), each>(weights, in + at(step) * Size, pitch, sums);
        return gates;
    }
    template <int Count, int Gates, int Lines, int Pitch>
    static N2D2_INLINE void addGates(const Real* rows, const Real* x, long step, Real* sums) {
        for (int gate = 0; gate < Gates; ++gate, rows += Last * Count, sums += Last) {
            for (int group = 0; group < Rows / Group; ++group, rows += Group * Count, sums += Group)
                RowSums<Real, Count, Group, Lines, Pitch>::add(rows, x, step, sums);
            if (Last > 0)
                RowSums<Real, Count, (Last > 0 ? Last : 8), Lines, Pitch>::add(rows, x, step, sums);
        }
    }
    // Adds the products of `Gates` gates, from gate `first` on, with states.
    template <int Gates>
    N2D2_INLINE void add(int first, const Real* h, Real* gates) const {
        addGates<Hidden, Gates, 1, 0>(recurrent + static_cast<long>(first) * Rows * Hidden, h, 0, gates);
    }
};

template <class Cfg, class InitialH, class InitialC>
N2D2_INLINE void lstm(const unsigned char* in, unsigned char* out, const typename Cfg::Output::Type* weights,
                      const typename Cfg::Output::Type* recurrent, const typename Cfg::Output::Type* bias,
                      const InitialH& initialH, const InitialC& initialC, const typename Cfg::Output::Type* peepholes,
                      const typename Cfg::Output::Type* limits) {
    typedef typename Cfg::Output::Type Real;
    constexpr int size = Cfg::Size, count = Cfg::Hidden;
    const Recurrent<Cfg> sums = {weights, recurrent, bias, limits};
    SequenceLoop<Cfg>::run(Cfg::Sequences, [=, &initialH, &initialC](int s) N2D2_INLINE_LAMBDA {
        const Real* const from = elements<typename Cfg::Input>(in) + static_cast<long>(s) * size;
        Real* const to = elements<typename Cfg::Output>(out) + static_cast<long>(s) * count;
        constexpr int rows = Recurrent<Cfg>::Rows;
        Real h[count], c[count], begun[Recurrent<Cfg>::Together * 4 * rows], cells[rows] = {};
        for (int j = 0; j < count; ++j) {
            h[j] = initialH[s * count + j];
            c[j] = initialC[s * count + j];
        }
        for (int step = 0; step < Cfg::Steps; ++step) {
            const long t = sums.at(step);
            Real *const gates = sums.template begin<4>(step, from, begun), *const entered = gates, *const shown = gates + rows,
                        *const kept = shown + rows, *const fresh = kept + rows;
            sums.template add<4>(0, h, gates);
            for (int j = 0; j < count && Cfg::Peepholes != 0; ++j) {
                entered[j] += unfused(peepholes[j] * c[j]);
                kept[j] += unfused(peepholes[2 * count + j] * c[j]);
            }
            sums.hold(entered, rows);
            sums.hold(kept, 2 * rows);
            reals::apply<exact::Sigmoid, rows>(entered, entered);
            if (Cfg::Coupled == 0)
                reals::apply<exact::Sigmoid, rows>(kept, kept);
            reals::apply<exact::Tanh, rows>(fresh, fresh);
            for (int j = 0; j < count; ++j) {
                const Real keep = Cfg::Coupled != 0 ? Real(1) - entered[j] : kept[j];
                c[j] = sums.heldCell(unfused(keep * c[j]) + unfused(entered[j] * fresh[j]));
                cells[j] = c[j];
                if (Cfg::Peepholes != 0)
                    shown[j] += unfused(peepholes[count + j] * cells[j]);
            }
            sums.hold(shown, rows);
            reals::apply<exact::Sigmoid, rows>(shown, shown);
            reals::apply<exact::Tanh, rows>(cells, cells);
            for (int j = 0; j < count; ++j)
                h[j] = shown[j] * cells[j];
            if (Cfg::LastCell == 0)
                for (int j = 0; j < count; ++j)
                    to[t * count + j] = h[j];
        }
        if (Cfg::LastCell != 0)
            for (int j = 0; j < count; ++j)
                to[j] = c[j];
    });
}

template <class Cfg, class InitialH>
N2D2_INLINE void gru(const unsigned char* in, unsigned char* out, const typename Cfg::Output::Type* weights,
                     const typename Cfg::Output::Type* recurrent, const typename Cfg::Output::Type* bias,
                     const typename Cfg::Output::Type* recurrentBias, const InitialH& initialH,
                     const typename Cfg::Output::Type* limits) {
    typedef typename Cfg::Output::Type Real;
    constexpr int size = Cfg::Size, count = Cfg::Hidden;
    const Recurrent<Cfg> sums = {weights, recurrent, bias, limits};
    SequenceLoop<Cfg>::run(Cfg::Sequences, [=, &initialH](int s) N2D2_INLINE_LAMBDA {
        const Real* const from = elements<typename Cfg::Input>(in) + static_cast<long>(s) * size;
        Real* const to = elements<typename Cfg::Output>(out) + static_cast<long>(s) * count;
        constexpr int rows = Recurrent<Cfg>::Rows;
        Real h[count], reset[count], begun[Recurrent<Cfg>::Together * 3 * rows], linear[rows];
        for (int j = 0; j < count; ++j)
            h[j] = initialH[s * count + j];
        for (int step = 0; step < Cfg::Steps; ++step) {
            const long t = sums.at(step);
            Real *const gates = sums.template begin<3>(step, from, begun), *const update = gates,
                        *const gate = gates + 2 * rows;
            sums.template add<2>(0, h, gates);
            sums.hold(gates, 2 * rows);
            reals::apply<exact::Sigmoid, 2 * rows>(gates, gates);
            for (int j = 0; j < count && Cfg::LinearBeforeReset == 0; ++j)
                reset[j] = gates[rows + j] * h[j];
            for (int j = 0; j < rows && Cfg::LinearBeforeReset != 0; ++j)
                linear[j] = recurrentBias[j];
            sums.template add<1>(2, Cfg::LinearBeforeReset != 0 ? h : reset, Cfg::LinearBeforeReset != 0 ? linear : gate);
            for (int j = 0; j < rows && Cfg::LinearBeforeReset != 0; ++j)
                gate[j] += unfused(gates[rows + j] * linear[j]);
            sums.hold(gate, rows);
            reals::apply<exact::Tanh, rows>(gate, gate);
            for (int j = 0; j < count; ++j) {
                h[j] = unfused((Real(1) - update[j]) * gate[j]) + unfused(update[j] * h[j]);
                to[t * count + j] = h[j];
            }
        }
    });
}

template <class Cfg, class InitialH>
N2D2_INLINE void rnn(const unsigned char* in, unsigned char* out, const typename Cfg::Output::Type* weights,
                     const typename Cfg::Output::Type* recurrent, const typename Cfg::Output::Type* bias,
                     const InitialH& initialH, const typename Cfg::Output::Type* limits) {
    typedef typename Cfg::Output::Type Real;
    constexpr int size = Cfg::Size, count = Cfg::Hidden;
    const Recurrent<Cfg> sums = {weights, recurrent, bias, limits};
    SequenceLoop<Cfg>::run(Cfg::Sequences, [=, &initialH](int s) N2D2_INLINE_LAMBDA {
        const Real* const from = elements<typename Cfg::Input>(in) + static_cast<long>(s) * size;
        Real* const to = elements<typename Cfg::Output>(out) + static_cast<long>(s) * count;
        constexpr int rows = Recurrent<Cfg>::Rows;
        Real h[count], begun[Recurrent<Cfg>::Together * rows];
        for (int j = 0; j < count; ++j)
            h[j] = initialH[s * count + j];
        for (int step = 0; step < Cfg::Steps; ++step) {
            const long t = sums.at(step);
            Real* const gates = sums.template begin<1>(step, from, begun);
            sums.template add<1>(0, h, gates);
            sums.hold(gates, rows);
            if (Cfg::Relu == 0)
                reals::apply<exact::Tanh, rows>(gates, gates);
            for (int j = 0; j < count; ++j)
                to[t * count + j] = Cfg::Relu != 0 ? largest(gates[j], Real(0)) : gates[j];
            for (int j = 0; j < count; ++j)
                h[j] = to[t * count + j];
        }
    });
}

}  // namespace n2d2
