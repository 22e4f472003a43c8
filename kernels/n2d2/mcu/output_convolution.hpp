// Dense convolution by vectors of outputs (vector_outputs.hpp): one function for all layers, which reads their shapes from constants.
//
// Pixels are taken in the order of their lines, four at a time. All windows are gathered before a result is stored but for those of 1 x 1
// in one line, which are used where they are; so the order of lines is that of the portable kernel (convolution.hpp).
#pragma once

#include "n2d2/mcu/pixel_walk.hpp"
#include "n2d2/mcu/vector_outputs.hpp"
#include "n2d2/parallel.hpp"

namespace n2d2 {
namespace outputs {

// The bytes of the window of a pixel.
N2D2_INLINE void gather(const lanes::Shape& s, const lanes::Place& place, const unsigned char* padded, unsigned char* window) {
    const int run = s.kernelWidth * s.channels;
    const bool inside = s.packed && place.left >= 0 && place.left + s.kernelWidth <= s.in.width;
    for (int u = 0; u < s.kernelHeight; ++u) {
        const unsigned char* const line = place.lines[u];
        if (inside) {
            copy(line ? line + place.left * s.channels : padded, window, run);
            window += run;
            continue;
        }
        int column = place.left;
        for (int v = 0; v < s.kernelWidth; ++v, column += s.dilationWidth, window += s.channels)
            copy(line && column >= 0 && column < s.in.width ? line + column * s.in.stride : padded, window, s.channels);
    }
}

// The buffers of a layer while it runs.
struct Buffers {
    unsigned char* window;        // 4 * inputs
    unsigned char* padded;        // kernelWidth * channels
    const unsigned char** lines;  // 4 * kernelHeight
};

template <bool Signed, int Rounding>
N2D2_MCU_FAST void convolution(const lanes::Shape& s, const Results& stored, const unsigned char* in, unsigned char* out,
                               const std::int32_t* stream, const Buffers& buffers, int begin, int end) {
    Work work(stream, s.outputs, s.inputs, Kernels<Rounding>::round(stored.zero), stored);
    std::memset(buffers.padded, s.padding, static_cast<std::size_t>(s.kernelWidth * s.channels));
    lanes::Place places[4];
    lanes::PixelWalk<4> walk(s, in, out, buffers.lines, begin, end);
    while (walk.next(places)) {
        const bool there = s.point && places[0].lines == places[3].lines;
        for (int j = 0; j < 4; ++j) {
            unsigned char* const window = buffers.window + j * s.inputs;
            if (!there)
                gather(s, places[j], buffers.padded, window);
            work.window[j] = there ? places[j].lines[0] + places[j].left * s.in.stride : window;
            work.out[j] = places[j].out;
        }
        Signed ? Kernels<Rounding>::template fourSigned<>(&work) : Kernels<Rounding>::template fourUnsigned<>(&work);
    }
}

}  // namespace outputs

N2D2_STREAM_KERNEL(OutputConvolution, Outputs, Convolution<Cfg, Portable>) {
    N2D2_PLANES(Cfg);
    enum : int { C = Input::Channels, K = Cfg::KernelHeight * Cfg::KernelWidth * C };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*, const Rows& rows = Rows::all<Output>()) {
        static constexpr lanes::Shape shape = lanes::shapeOf<Cfg>(K);
        static constexpr outputs::Results stored = {Cfg::VectorZero, Cfg::VectorLow, Cfg::VectorHigh};
        unsigned char window[4 * K], padded[int(Cfg::KernelWidth) * C];
        const unsigned char* lines[4 * Cfg::KernelHeight];
        const outputs::Buffers buffers = {window, padded, lines};
        outputs::convolution<std::numeric_limits<typename Input::Type>::is_signed, Cfg::Rounding>(
            shape, stored, in, out, elementsOf<std::int32_t>(weights), buffers, rows.begin, rows.end);
    }
};

}  // namespace n2d2
