// Depthwise convolution 3 x 3 by MVE (mve.hpp): one function for all layers, which reads their shapes from constants.
//
// The 16 channels of a turn are copied to three lines of pixels with their padding, so that the taps of a pixel are at fixed distances;
// lines that the next line of the output needs too are kept. Layers of 8 channels take two pixels at once, where their results lie
// side by side.
#ifndef N2D2_MCU_MVE_DEPTHWISE_HPP
#define N2D2_MCU_MVE_DEPTHWISE_HPP

#include "n2d2/mcu/mve.hpp"
#include "n2d2/mcu/pair_depthwise.hpp"

namespace n2d2 {
namespace mve {

// Copies `count` pixels of up to 16 `bytes`, `stride` apart, to one behind the other, `pitch` apart.
template <int = 0>
N2D2_MCU_FAST void slice(const unsigned char* from, int stride, unsigned char* to, int pitch, int count, int bytes,
                         std::uint32_t turn) {
    __asm__ volatile(
        "vdup.32  q1, %[turn]\n\t"
        "vctp.8   %[bytes]\n\t"
        "wls      lr, %[count], 2f\n"
        "1:\n\t"
        "vpst\n\t"
        "vldrbt.8 q0, [%[from]]\n\t"
        "veor     q0, q0, q1\n\t"
        "add      %[from], %[from], %[stride]\n\t"
        "vpst\n\t"
        "vstrbt.8 q0, [%[to]]\n\t"
        "add      %[to], %[to], %[pitch]\n\t"
        "le       lr, 1b\n"
        "2:"
        : [from] "+r"(from), [to] "+r"(to)
        : [stride] "r"(stride), [pitch] "r"(pitch), [count] "r"(count), [bytes] "r"(bytes), [turn] "r"(turn)
        : "lr", "q0", "q1", "memory");
}

// `lines`: three lines of `pitch` bytes, pixels of `wide` bytes.
template <int = 0>
N2D2_MCU_FAST void depthwise(const lanes::Shape& s, const Results& stored, const unsigned char* in, unsigned char* out,
                             const signed char* stream, unsigned char* lines, int pitch, int wide, bool serial,
                             std::uint32_t turn, int begin, int end) {
    const int blocks = (s.channels + Bytes - 1) / Bytes, count = (end - begin) * blocks, columns = pitch / wide;
    const int last =
        s.in.width + s.padLeft < columns ? s.in.width : columns - s.padLeft;  // of the input's columns, the first not read
    const int zero = (s.padding * 0x01010101u ^ turn) & 255;
    const bool two = wide < Bytes;
    int held[3] = {-3, -3, -3}, block = -1;
    Line line;
    line.stride = two ? int(Bytes) : s.out.stride;
    line.count = two ? s.out.width / 2 : s.out.width;
    line.results = stored;
    std::memset(lines, zero, static_cast<std::size_t>(3 * pitch));
    for (int i = 0; i < count; ++i) {
        // Where lines have no order, all those of some channels, so that lines are copied once.
        const int now = serial ? i % blocks : i / (end - begin), row = begin + (serial ? i / blocks : i % (end - begin));
        const int y = s.reverse ? s.out.height - 1 - row : row, channel = now * Bytes;
        const int bytes = s.channels - channel < Bytes ? s.channels - channel : int(Bytes);
        if (now != block)
            held[0] = held[1] = held[2] = -3;
        block = now;
        int from = y * s.strideHeight - s.padTop;
        for (int u = 0; u < 3; ++u, ++from) {
            const int at = (from + 3) % 3;
            unsigned char* const to = lines + at * pitch;
            line.rows[u] = to;
            if (held[at] == from)
                continue;
            held[at] = from;
            if (from < 0 || from >= s.in.height)
                std::memset(to + s.padLeft * wide, zero, static_cast<std::size_t>(last * wide));
            else
                slice(in + s.in.at(from) + channel, s.in.stride, to + s.padLeft * wide, wide, last, bytes, turn);
        }
        line.stream = stream + now * 17 * Bytes;
        line.out = out + s.out.at(y) + channel;
        line.bytes = two ? int(Bytes) : bytes;
        if (two)
            twoPixels(&line);
        else if (s.strideWidth == 1)
            pixels(&line);
        else
            everyOther(&line);
    }
}

}  // namespace mve

// A layer whose constants are a stream for vectors (Cfg::Vectors); the others have what the DSP extension has.
template <class Cfg, class Found = void>
struct MveDepthwise : PairDepthwise<Cfg> {};

template <class Cfg>
struct MveDepthwise<Cfg, typename Exists<Cfg::Vectors>::Type> {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    enum : int {
        C = Input::Channels,
        Wide = C == 8 && int(Cfg::StrideWidth) == 1 && int(Output::Width) % 2 == 0 && int(PlaneTraits<Output>::Packed) ? 8 : 16,
        Columns = (int(Output::Width) - 1) * Cfg::StrideWidth + 3,
        Pitch = Columns * Wide
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*, const Rows& rows = Rows::all<Output>()) {
        static constexpr lanes::Shape shape = lanes::shapeOf<Cfg>(C);
        static constexpr mve::Results stored = mve::resultsOf<Cfg>();
        unsigned char lines[3 * Pitch];
        mve::depthwise(shape, stored, in, out, reinterpret_cast<const signed char*>(weights), lines, Pitch, Wide,
                       Cfg::Serial != 0, mve::turnOf<typename Input::Type>(), rows.begin, rows.end);
    }
};

}  // namespace n2d2

#endif  // N2D2_MCU_MVE_DEPTHWISE_HPP
