// Fully connected layer by vectors of outputs (vector_outputs.hpp): its input is one pixel.
#pragma once

#include "n2d2/mcu/vector_outputs.hpp"

namespace n2d2 {

N2D2_STREAM_KERNEL(OutputFullyConnected, Outputs, FullyConnected<Cfg, Portable>) {
    N2D2_PLANES(Cfg);
    typedef PlaneRuns<Input> Runs;
    enum : int { Whole = int(Runs::Count) == 1, Signed = std::numeric_limits<typename Input::Type>::is_signed };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*) {
        unsigned char gathered[Whole ? 1 : int(Runs::All)];
        const unsigned char* from = reinterpret_cast<const unsigned char*>(line<Input>(in, 0));
        if (!Whole) {
            for (int i = 0; i < Runs::Count; ++i)
                outputs::copy(reinterpret_cast<const unsigned char*>(Runs::at(in, i)), gathered + i * Runs::Length,
                              Runs::Length);
            from = gathered;
        }
        typedef outputs::Kernels<Cfg::Rounding> Kernels;
        const outputs::Results stored = {Cfg::VectorZero, Cfg::VectorLow, Cfg::VectorHigh};
        outputs::Work work(elementsOf<std::int32_t>(weights), Output::Channels, Runs::All, Kernels::round(stored.zero), stored);
        work.window[0] = from;
        work.out[0] = reinterpret_cast<unsigned char*>(line<Output>(out, 0));
        if (sizeof(typename Output::Type) == 1)
            Signed ? Kernels::template oneSigned<>(&work) : Kernels::template oneUnsigned<>(&work);
        else
            Signed ? Kernels::template wideSigned<>(&work) : Kernels::template wideUnsigned<>(&work);
    }
};

}  // namespace n2d2
