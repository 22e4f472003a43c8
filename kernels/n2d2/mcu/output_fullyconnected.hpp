// Fully connected layer by vectors of outputs (vector_outputs.hpp): its input is one pixel.
#ifndef N2D2_MCU_OUTPUT_FULLYCONNECTED_HPP
#define N2D2_MCU_OUTPUT_FULLYCONNECTED_HPP

#include "n2d2/mcu/vector_outputs.hpp"

namespace n2d2 {

// A layer whose constants are a stream (Cfg::Outputs); the others have the portable kernel.
template <class Cfg, class Found = void>
struct OutputFullyConnected : FullyConnected<Cfg, Portable> {};

template <class Cfg>
struct OutputFullyConnected<Cfg, typename Exists<Cfg::Outputs>::Type> {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    enum : int {
        C = Input::Channels,
        Pixels = int(Input::Height) * int(Input::Width),
        K = Pixels * C,
        Whole = PlaneTraits<Input>::Whole,
        Signed = std::numeric_limits<typename Input::Type>::is_signed
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*) {
        unsigned char gathered[Whole ? 1 : int(K)];
        const unsigned char* from = reinterpret_cast<const unsigned char*>(line<Input>(in, 0));
        if (!Whole) {
            for (int i = 0; i < Pixels; ++i)
                outputs::copy(reinterpret_cast<const unsigned char*>(line<Input>(in, i / Input::Width)) +
                                  i % Input::Width * Input::Stride,
                              gathered + i * C, C);
            from = gathered;
        }
        typedef outputs::Kernels<Cfg::Rounding> Kernels;
        outputs::Work work;
        work.stream = elementsOf<std::int32_t>(weights);
        work.outputs = Output::Channels;
        work.inputs = K;
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

#endif  // N2D2_MCU_OUTPUT_FULLYCONNECTED_HPP
