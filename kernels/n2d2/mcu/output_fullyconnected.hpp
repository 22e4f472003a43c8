// Fully connected layer by vectors of outputs (vector_outputs.hpp): its input is one pixel.
#pragma once

#include "n2d2/mcu/vector_outputs.hpp"

namespace n2d2 {

// A layer whose constants are a stream (Cfg::Outputs); the others have the portable kernel.
template <class Cfg, class Found = void>
struct OutputFullyConnected : FullyConnected<Cfg, Portable> {};

template <class Cfg>
struct OutputFullyConnected<Cfg, typename Exists<Cfg::Outputs>::Type> {
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
        outputs::Work work;
        work.stream = elementsOf<std::int32_t>(weights);
        work.outputs = Output::Channels;
        work.inputs = Runs::All;
        work.round = Kernels::round(Cfg::VectorZero);
        work.low = Cfg::VectorLow;
        work.high = Cfg::VectorHigh;
        work.window[0] = from;
        work.out[0] = reinterpret_cast<unsigned char*>(line<Output>(out, 0));
        if (sizeof(typename Output::Type) == 1)
            Signed ? Kernels::template oneSigned<>(&work) : Kernels::template oneUnsigned<>(&work);
        else
            Signed ? Kernels::template wideSigned<>(&work) : Kernels::template wideUnsigned<>(&work);
    }
};

}  // namespace n2d2
