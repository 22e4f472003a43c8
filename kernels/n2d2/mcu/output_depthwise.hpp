// Depthwise convolution by vectors of channels (vector_outputs.hpp): one function for all layers, which reads their shapes from constants.
#pragma once

#include "n2d2/mcu/lane_shape.hpp"
#include "n2d2/mcu/vector_outputs.hpp"
#include "n2d2/parallel.hpp"

namespace n2d2 {
namespace outputs {

// `rows`: kernelHeight pointers; `taps`: one for each position of the kernel; `padded`: room for the channels.
template <bool Signed, int Rounding>
N2D2_MCU_FAST void depthwise(const lanes::Shape& s, const Results& stored, const unsigned char* in, unsigned char* out,
                             const std::int32_t* stream, const unsigned char** rows, const unsigned char** taps,
                             unsigned char* padded, int begin, int end) {
    std::memset(padded, s.padding, static_cast<std::size_t>(s.channels));
    Work work(stream, s.channels, s.kernelHeight * s.kernelWidth, Kernels<Rounding>::round(stored.zero), stored);
    work.taps = taps;
    for (int turn = begin; turn < end; ++turn) {
        const int y = s.reverse ? s.out.height - 1 - turn : turn;
        int from = y * s.strideHeight - s.padTop;
        for (int u = 0; u < s.kernelHeight; ++u, from += s.dilationHeight)
            rows[u] = from < 0 || from >= s.in.height ? nullptr : in + s.in.at(from);
        work.out[0] = out + s.out.at(y);
        for (int x = 0; x < s.out.width; ++x, work.out[0] += s.out.stride) {
            lanes::placeTaps(s, rows, x, padded, taps);
            Signed ? Kernels<Rounding>::template channelsSigned<>(&work) :
                     Kernels<Rounding>::template channelsUnsigned<>(&work);
        }
    }
}

}  // namespace outputs

N2D2_STREAM_KERNEL(OutputDepthwise, Outputs, Depthwise<Cfg, Portable>) {
    N2D2_PLANES(Cfg);

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*, const Rows& rows = Rows::all<Output>()) {
        static constexpr lanes::Shape shape = lanes::shapeOf<Cfg>(Input::Channels);
        static constexpr outputs::Results stored = {Cfg::VectorZero, Cfg::VectorLow, Cfg::VectorHigh};
        const unsigned char* lines[Cfg::KernelHeight];
        const unsigned char* taps[Cfg::KernelHeight * Cfg::KernelWidth];
        unsigned char padded[Input::Channels];
        outputs::depthwise<std::numeric_limits<typename Input::Type>::is_signed, Cfg::Rounding>(
            shape, stored, in, out, elementsOf<std::int32_t>(weights), lines, taps, padded, rows.begin, rows.end);
    }
};

}  // namespace n2d2
