// LSTM, GRU and RNN over the steps of sequences side by side, in floating point: sums in double, bias first, then inputs, then states, each
// from the first element to the last. States are rounded to the type of the output.
//
// Config: planes Input, Output, of one pixel; type Isa; enum Sequences, Steps, Size, Hidden, Backward, LinearBeforeReset, LastCell, Limited,
// Relu (of an RNN), Peepholes and Coupled (of an LSTM). Where Limited, gates and cell states are held within +- limits[0] and limits[1]. Input and
// output are (Steps, Sequences, Size) and (Steps, Sequences, Hidden), of LastCell (Sequences, Hidden). The output lies apart from the input.
// Rows of weights of each gate are in panels of 8, [panel][input][8], the last one completed with zeros; biases have their order.
// States and gates lie on the stack. The initial states (Sequences, Hidden) are constants, or inputs.
#ifndef N2D2_RECURRENT_HPP
#define N2D2_RECURRENT_HPP

#include "n2d2/array.hpp"
#include "n2d2/functions.hpp"
#include "n2d2/parallel.hpp"

namespace n2d2 {

template <class Cfg>
struct Recurrent {
    typedef typename Cfg::Output::Type Real;
    typedef NativeDoubles<Native> Doubles;
    enum : int { Size = Cfg::Size, Hidden = Cfg::Hidden, Panels = (Hidden + 7) / 8, Rows = Panels * 8 };

    const Real* weights;
    const Real* recurrent;
    const Real* bias;
    const Real* limits;

    N2D2_INLINE double held(double gate) const {
        const double limit = static_cast<double>(limits[0]);
        return Cfg::Limited != 0 ? least(largest(gate, -limit), limit) : gate;
    }
    N2D2_INLINE void hold(double* gates, int count) const {
        for (int i = 0; i < count && Cfg::Limited != 0; ++i)
            gates[i] = held(gates[i]);
    }
    N2D2_INLINE Real heldCell(Real cell) const {
        return Cfg::Limited != 0 ? least(largest(cell, -limits[1]), limits[1]) : cell;
    }
    // The sums of all gates over the bias and an input.
    template <int Gates>
    N2D2_INLINE void begin(const Real* x, double* gates) const {
        for (int i = 0; i < Gates * Rows; ++i)
            gates[i] = static_cast<double>(bias[i]);
        Doubles::template addProducts<Size, Gates * Panels>(weights, x, gates);
    }
    // Adds the products of `Gates` gates, from gate `first` on, with states.
    template <int Gates>
    N2D2_INLINE void add(int first, const Real* h, double* gates) const {
        Doubles::template addProducts<Hidden, Gates * Panels>(recurrent + static_cast<long>(first) * Rows * Hidden, h, gates);
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
    Loop<SharesSequences<Cfg>::value>::run(Cfg::Sequences, [=, &initialH, &initialC](int s) N2D2_INLINE_LAMBDA {
        const Real* const from = elements<typename Cfg::Input>(in) + static_cast<long>(s) * size;
        Real* const to = elements<typename Cfg::Output>(out) + static_cast<long>(s) * count;
        constexpr int rows = Recurrent<Cfg>::Rows;
        Real h[count], c[count];
        double gates[4 * rows], cells[rows] = {};
        double *const entered = gates, *const shown = gates + rows, *const kept = shown + rows, *const fresh = kept + rows;
        for (int j = 0; j < count; ++j) {
            h[j] = initialH[s * count + j];
            c[j] = initialC[s * count + j];
        }
        for (int step = 0; step < Cfg::Steps; ++step) {
            const long t = (Cfg::Backward != 0 ? int(Cfg::Steps) - 1 - step : step) * static_cast<long>(Cfg::Sequences);
            sums.template begin<4>(from + t * size, gates);
            sums.template add<4>(0, h, gates);
            for (int j = 0; j < count && Cfg::Peepholes != 0; ++j) {
                entered[j] += rounded(static_cast<double>(peepholes[j]) * static_cast<double>(c[j]));
                kept[j] += rounded(static_cast<double>(peepholes[2 * count + j]) * static_cast<double>(c[j]));
            }
            sums.hold(entered, rows);
            sums.hold(kept, 2 * rows);
            exact::sigmoids<rows>(entered);
            if (Cfg::Coupled == 0)
                exact::sigmoids<rows>(kept);
            exact::tanhs<rows>(fresh);
            for (int j = 0; j < count; ++j) {
                const double keep = Cfg::Coupled != 0 ? 1.0 - entered[j] : kept[j];
                const double old = rounded(keep * static_cast<double>(c[j]));
                c[j] = sums.heldCell(static_cast<Real>(old + rounded(entered[j] * fresh[j])));
                cells[j] = static_cast<double>(c[j]);
                if (Cfg::Peepholes != 0)
                    shown[j] += rounded(static_cast<double>(peepholes[count + j]) * cells[j]);
            }
            sums.hold(shown, rows);
            exact::sigmoids<rows>(shown);
            exact::tanhs<rows>(cells);
            for (int j = 0; j < count; ++j)
                h[j] = static_cast<Real>(shown[j] * cells[j]);
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
    Loop<SharesSequences<Cfg>::value>::run(Cfg::Sequences, [=, &initialH](int s) N2D2_INLINE_LAMBDA {
        const Real* const from = elements<typename Cfg::Input>(in) + static_cast<long>(s) * size;
        Real* const to = elements<typename Cfg::Output>(out) + static_cast<long>(s) * count;
        constexpr int rows = Recurrent<Cfg>::Rows;
        Real h[count], reset[count];
        double gates[3 * rows], linear[rows];
        double *const update = gates, *const gate = gates + 2 * rows;
        for (int j = 0; j < count; ++j)
            h[j] = initialH[s * count + j];
        for (int step = 0; step < Cfg::Steps; ++step) {
            const long t = (Cfg::Backward != 0 ? int(Cfg::Steps) - 1 - step : step) * static_cast<long>(Cfg::Sequences);
            sums.template begin<3>(from + t * size, gates);
            sums.template add<2>(0, h, gates);
            sums.hold(gates, 2 * rows);
            exact::sigmoids<2 * rows>(gates);
            for (int j = 0; j < count && Cfg::LinearBeforeReset == 0; ++j)
                reset[j] = static_cast<Real>(gates[rows + j] * static_cast<double>(h[j]));
            for (int j = 0; j < rows && Cfg::LinearBeforeReset != 0; ++j)
                linear[j] = static_cast<double>(recurrentBias[j]);
            sums.template add<1>(2, Cfg::LinearBeforeReset != 0 ? h : reset, Cfg::LinearBeforeReset != 0 ? linear : gate);
            for (int j = 0; j < rows && Cfg::LinearBeforeReset != 0; ++j)
                gate[j] += rounded(gates[rows + j] * linear[j]);
            sums.hold(gate, rows);
            exact::tanhs<rows>(gate);
            for (int j = 0; j < count; ++j) {
                const double added = rounded((1.0 - update[j]) * gate[j]);
                h[j] = static_cast<Real>(added + rounded(update[j] * static_cast<double>(h[j])));
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
    Loop<SharesSequences<Cfg>::value>::run(Cfg::Sequences, [=, &initialH](int s) N2D2_INLINE_LAMBDA {
        const Real* const from = elements<typename Cfg::Input>(in) + static_cast<long>(s) * size;
        Real* const to = elements<typename Cfg::Output>(out) + static_cast<long>(s) * count;
        constexpr int rows = Recurrent<Cfg>::Rows;
        Real h[count];
        double gates[rows];
        for (int j = 0; j < count; ++j)
            h[j] = initialH[s * count + j];
        for (int step = 0; step < Cfg::Steps; ++step) {
            const long t = (Cfg::Backward != 0 ? int(Cfg::Steps) - 1 - step : step) * static_cast<long>(Cfg::Sequences);
            sums.template begin<1>(from + t * size, gates);
            sums.template add<1>(0, h, gates);
            sums.hold(gates, rows);
            if (Cfg::Relu == 0)
                exact::tanhs<rows>(gates);
            for (int j = 0; j < count; ++j)
                to[t * count + j] = static_cast<Real>(Cfg::Relu != 0 ? largest(gates[j], 0.0) : gates[j]);
            for (int j = 0; j < count; ++j)
                h[j] = to[t * count + j];
        }
    });
}

}  // namespace n2d2

#endif  // N2D2_RECURRENT_HPP
