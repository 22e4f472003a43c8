// LSTM, GRU and RNN over the steps of sequences side by side, in floating point: sums in double, bias first, then inputs, then states, each
// from the first element to the last. States are rounded to the type of the output.
//
// Config: planes Input, Output, of one pixel; type Isa; enum Sequences, Steps, Size, Hidden, Backward, LinearBeforeReset, LastCell, Limited,
// Relu (of an RNN), Peepholes and Coupled (of an LSTM). Where Limited, gates and cell states are held within +- limits[0] and limits[1]. Input and
// output are (Steps, Sequences, Size) and (Steps, Sequences, Hidden), of LastCell (Sequences, Hidden). The output lies apart from the input.
// States and gates lie on the stack. The initial states (Sequences, Hidden) are constants, or inputs.
#ifndef N2D2_RECURRENT_HPP
#define N2D2_RECURRENT_HPP

#include "n2d2/array.hpp"
#include "n2d2/functions.hpp"
#include "n2d2/parallel.hpp"

namespace n2d2 {

template <int Count, class T>
N2D2_INLINE double addedProducts(double sum, const T* weights, const T* x) {
    for (int k = 0; k < Count; ++k)
        sum = sum + rounded(static_cast<double>(weights[k]) * static_cast<double>(x[k]));
    return sum;
}

template <class Cfg>
struct Recurrent {
    typedef typename Cfg::Output::Type Real;
    enum : int { Size = Cfg::Size, Hidden = Cfg::Hidden };

    const Real* weights;
    const Real* recurrent;
    const Real* bias;
    const Real* limits;

    N2D2_INLINE double held(double gate) const {
        const double limit = static_cast<double>(limits[0]);
        return Cfg::Limited != 0 ? least(largest(gate, -limit), limit) : gate;
    }
    N2D2_INLINE Real heldCell(Real cell) const {
        return Cfg::Limited != 0 ? least(largest(cell, -limits[1]), limits[1]) : cell;
    }
    N2D2_INLINE double input(const Real* x, int row) const {
        return addedProducts<Size>(static_cast<double>(bias[row]), weights + static_cast<long>(row) * int(Size), x);
    }
    N2D2_INLINE double hidden(double sum, const Real* h, int row) const {
        return addedProducts<Hidden>(sum, recurrent + static_cast<long>(row) * int(Hidden), h);
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
    Loop<SharesSequences<Cfg>::value>::run(Cfg::Sequences, [=](int s) N2D2_INLINE_LAMBDA {
        const Real* const from = elements<typename Cfg::Input>(in) + static_cast<long>(s) * size;
        Real* const to = elements<typename Cfg::Output>(out) + static_cast<long>(s) * count;
        Real h[count], next[count], c[count];
        for (int j = 0; j < count; ++j) {
            h[j] = initialH[s * count + j];
            c[j] = initialC[s * count + j];
        }
        for (int step = 0; step < Cfg::Steps; ++step) {
            const long t = (Cfg::Backward != 0 ? int(Cfg::Steps) - 1 - step : step) * static_cast<long>(Cfg::Sequences);
            for (int j = 0; j < count; ++j) {
                double gates[4];
                for (int k = 0; k < 4; ++k)
                    gates[k] = sums.hidden(sums.input(from + t * size, k * count + j), h, k * count + j);
                for (int k = 0; k < 3 && Cfg::Peepholes != 0; k += 2)
                    gates[k] += rounded(static_cast<double>(peepholes[k * count + j]) * static_cast<double>(c[j]));
                const double entered = exact::sigmoid(sums.held(gates[0]));
                const double keep = Cfg::Coupled != 0 ? 1.0 - entered : exact::sigmoid(sums.held(gates[2]));
                const double kept = rounded(keep * static_cast<double>(c[j]));
                c[j] = sums.heldCell(static_cast<Real>(kept + rounded(entered * exact::tanh(sums.held(gates[3])))));
                if (Cfg::Peepholes != 0)
                    gates[1] += rounded(static_cast<double>(peepholes[count + j]) * static_cast<double>(c[j]));
                next[j] = static_cast<Real>(exact::sigmoid(sums.held(gates[1])) * exact::tanh(static_cast<double>(c[j])));
            }
            for (int j = 0; j < count; ++j)
                h[j] = next[j];
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
    Loop<SharesSequences<Cfg>::value>::run(Cfg::Sequences, [=](int s) N2D2_INLINE_LAMBDA {
        const Real* const from = elements<typename Cfg::Input>(in) + static_cast<long>(s) * size;
        Real* const to = elements<typename Cfg::Output>(out) + static_cast<long>(s) * count;
        Real h[count], reset[count];
        double update[count], gate[count];
        for (int j = 0; j < count; ++j)
            h[j] = initialH[s * count + j];
        for (int step = 0; step < Cfg::Steps; ++step) {
            const long t = (Cfg::Backward != 0 ? int(Cfg::Steps) - 1 - step : step) * static_cast<long>(Cfg::Sequences);
            const Real* const x = from + t * size;
            for (int j = 0; j < count; ++j) {
                update[j] = exact::sigmoid(sums.held(sums.hidden(sums.input(x, j), h, j)));
                const double r = exact::sigmoid(sums.held(sums.hidden(sums.input(x, count + j), h, count + j)));
                if (Cfg::LinearBeforeReset != 0)
                    gate[j] = sums.input(x, 2 * count + j) +
                              rounded(r * sums.hidden(static_cast<double>(recurrentBias[j]), h, 2 * count + j));
                else
                    reset[j] = static_cast<Real>(r * static_cast<double>(h[j]));
            }
            if (Cfg::LinearBeforeReset == 0)
                for (int j = 0; j < count; ++j)
                    gate[j] = sums.hidden(sums.input(x, 2 * count + j), reset, 2 * count + j);
            for (int j = 0; j < count; ++j) {
                const double added = rounded((1.0 - update[j]) * exact::tanh(sums.held(gate[j])));
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
    Loop<SharesSequences<Cfg>::value>::run(Cfg::Sequences, [=](int s) N2D2_INLINE_LAMBDA {
        const Real* const from = elements<typename Cfg::Input>(in) + static_cast<long>(s) * size;
        Real* const to = elements<typename Cfg::Output>(out) + static_cast<long>(s) * count;
        Real h[count];
        for (int j = 0; j < count; ++j)
            h[j] = initialH[s * count + j];
        for (int step = 0; step < Cfg::Steps; ++step) {
            const long t = (Cfg::Backward != 0 ? int(Cfg::Steps) - 1 - step : step) * static_cast<long>(Cfg::Sequences);
            for (int j = 0; j < count; ++j) {
                const double gate = sums.held(sums.hidden(sums.input(from + t * size, j), h, j));
                to[t * count + j] = static_cast<Real>(Cfg::Relu != 0 ? largest(gate, 0.0) : exact::tanh(gate));
            }
            for (int j = 0; j < count; ++j)
                h[j] = to[t * count + j];
        }
    });
}

}  // namespace n2d2

#endif  // N2D2_RECURRENT_HPP
