// Fully connected layer by MVE (mve.hpp): its input is one pixel.
#pragma once

#include "n2d2/mcu/lane_fullyconnected.hpp"
#include "n2d2/mcu/mve.hpp"

namespace n2d2 {

N2D2_STREAM_KERNEL(MveFullyConnected, Vectors, LaneFullyConnected<Cfg>) {
    N2D2_PLANES(Cfg);
    typedef PlaneRuns<Input> Runs;
    enum : int { K = (Runs::All + mve::Bytes - 1) / mve::Bytes * mve::Bytes, O = Output::Channels };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*) {
        constexpr std::uint32_t turn = mve::turnOf<typename Input::Type>();
        unsigned char window[K];
        for (int i = 0; i < Runs::Count; ++i)
            mve::copy(reinterpret_cast<const unsigned char*>(Runs::at(in, i)), window + i * Runs::Length, Runs::Length, turn);
        mve::Single work = {window, reinterpret_cast<const signed char*>(weights),          int(K) / int(mve::Bytes),
                            O,      reinterpret_cast<unsigned char*>(line<Output>(out, 0)), mve::resultsOf<Cfg>()};
        if (sizeof(typename Output::Type) == 1)
            mve::Kernels<Cfg::Rounding>::template one<>(&work);
        else
            mve::Kernels<Cfg::Rounding>::template oneWide<>(&work);
    }
};

}  // namespace n2d2
