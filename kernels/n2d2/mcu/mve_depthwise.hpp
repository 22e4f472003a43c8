// Depthwise convolution 3 x 3 by MVE (mve.hpp): one function for all layers, which reads their shapes from constants.
//
// The 16 channels of a turn are copied to three lines of pixels with their padding, so that the taps of a pixel are at fixed distances;
// lines that the next line of the output needs too are kept. Layers of 8 channels take two pixels at once, where their results lie
// side by side.
#pragma once

#include "n2d2/mcu/mve.hpp"
#include "n2d2/mcu/pair_depthwise.hpp"

namespace n2d2 {
namespace mve {

// Copies `count` pixels of up to 16 `bytes`, `stride` apart, to one behind the other, `wide` apart.
template <int = 0>
N2D2_MCU_FAST void slice(const unsigned char* from, int stride, unsigned char* to, int wide, int count, int bytes,
                         std::uint32_t turn) {
    if (bytes == Bytes)
        __asm__ volatile(
            "vdup.32  q1, %[turn]\n\t"
            "dls      lr, %[count]\n"
            "1:\n\t"
            "vldrb.8  q0, [%[from]]\n\t"
            "add      %[from], %[from], %[stride]\n\t"
            "veor     q0, q0, q1\n\t"
            "vstrb.8  q0, [%[to]], #16\n\t"
            "le       lr, 1b"
            : [from] "+r"(from), [to] "+r"(to)
            : [stride] "r"(stride), [count] "r"(count), [turn] "r"(turn)
            : "lr", "q0", "q1", "memory");
    else if (stride == wide)
        copy(from, to, count * wide, turn);
    else
        __asm__ volatile(
            "vdup.32  q1, %[turn]\n\t"
            "vctp.8   %[bytes]\n\t"
            "dls      lr, %[count]\n"
            "1:\n\t"
            "vpst\n\t"
            "vldrbt.8 q0, [%[from]]\n\t"
            "veor     q0, q0, q1\n\t"
            "add      %[from], %[from], %[stride]\n\t"
            "vpst\n\t"
            "vstrbt.8 q0, [%[to]]\n\t"
            "add      %[to], %[to], %[wide]\n\t"
            "le       lr, 1b"
            : [from] "+r"(from), [to] "+r"(to)
            : [stride] "r"(stride), [wide] "r"(wide), [count] "r"(count), [bytes] "r"(bytes), [turn] "r"(turn)
            : "lr", "q0", "q1", "memory");
}

// The line buffer of a layer.
struct Kept {
    unsigned char* lines;  // three of `pitch` bytes each, those of all blocks of 16 channels with `all`
    std::int32_t pitch;
    std::int32_t wide;  // bytes of a pixel
    bool all;
    bool serial;  // the lines of the output have an order
};

template <int Rounding, int Range>
N2D2_MCU_FAST void depthwise(const lanes::Shape& s, const Results& stored, const unsigned char* in, unsigned char* out,
                             const signed char* stream, const Kept& kept, std::uint32_t turn, int begin, int end) {
    const int blocks = (s.channels + Bytes - 1) / Bytes, pitch = kept.pitch, wide = kept.wide, columns = pitch / wide;
    // Without an order, all lines of some channels, so that each is copied once; else all channels of a line.
    const bool inner = !kept.serial && !kept.all, two = wide < Bytes;
    const int outside = inner ? blocks : end - begin, inside = inner ? end - begin : blocks;
    const int read = s.in.width + s.padLeft < columns ? s.in.width : columns - s.padLeft;  // columns of the input
    const int zero = static_cast<int>((s.padding * 0x01010101u ^ turn) & 255);
    int held[3] = {-3, -3, -3}, fresh[3] = {}, from = 0, y = 0;
    Line line;
    line.stride = two ? int(Bytes) : s.out.stride;
    line.count = two ? s.out.width / 2 : s.out.width;
    line.results = stored;
    std::memset(kept.lines, zero, static_cast<std::size_t>((kept.all ? blocks : 1) * 3 * pitch));
    for (int o = 0; o < outside; ++o) {
        if (inner)
            held[0] = held[1] = held[2] = -3;
        for (int i = 0; i < inside; ++i) {
            const int block = inner ? o : i, channel = block * Bytes;
            const int bytes = s.channels - channel < Bytes ? s.channels - channel : int(Bytes);
            unsigned char* const lines = kept.lines + (kept.all ? block * 3 * pitch : 0) + s.padLeft * wide;
            if (inner || i == 0) {
                const int row = begin + (inner ? i : o);
                y = s.reverse ? s.out.height - 1 - row : row;
                from = y * s.strideHeight - s.padTop;
                for (int u = 0; u < 3; ++u) {
                    const int at = (from + u + 3) % 3;
                    fresh[u] = held[at] != from + u || (!inner && !kept.all && blocks > 1);
                    held[at] = from + u;
                }
            }
            int at = (from + 3) % 3;
            for (int u = 0; u < 3; ++u) {
                unsigned char* const to = lines + at * pitch;
                line.rows[u] = to - s.padLeft * wide;
                at = at == 2 ? 0 : at + 1;
                if (!fresh[u])
                    continue;
                if (from + u < 0 || from + u >= s.in.height)
                    std::memset(to, zero, static_cast<std::size_t>(read * wide));
                else
                    slice(in + s.in.at(from + u) + channel, s.in.stride, to, wide, read, bytes, turn);
            }
            line.stream = stream + block * (13 + 4 * Kernels<Rounding, Range>::Words) * Bytes;
            line.out = out + s.out.at(y) + channel;
            line.bytes = two ? int(Bytes) : bytes;
            if (two)  // by name, not by a pointer, so that the stack is known from the calls
                Kernels<Rounding, Range>::template twoPixels<>(&line);
            else if (s.strideWidth == 1)
                Kernels<Rounding, Range>::template pixels<>(&line);
            else
                Kernels<Rounding, Range>::template everyOther<>(&line);
        }
    }
}

}  // namespace mve

N2D2_STREAM_KERNEL(MveDepthwise, Vectors, PairDepthwise<Cfg>) {
    N2D2_PLANES(Cfg);
    enum : int {
        C = Input::Channels,
        Wide = C == 8 && int(Cfg::StrideWidth) == 1 && int(Output::Width) % 2 == 0 && int(PlaneTraits<Output>::Packed) ? 8 : 16,
        Columns = (int(Output::Width) - 1) * Cfg::StrideWidth + 3,
        Pitch = Columns * Wide,
        Blocks = (C + mve::Bytes - 1) / mve::Bytes,
        All = 3 * Pitch * Blocks <= 1536
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*, const Rows& rows = Rows::all<Output>()) {
        static constexpr lanes::Shape shape = lanes::shapeOf<Cfg>(C);
        static constexpr mve::Results stored = mve::resultsOf<Cfg>();
        unsigned char lines[3 * Pitch * (All ? Blocks : 1)];
        const mve::Kept kept = {lines, Pitch, Wide, All != 0, Cfg::Serial != 0};
        mve::depthwise<Cfg::Rounding, mve::rangeOf<Cfg>()>(shape, stored, in, out,
                                                           reinterpret_cast<const signed char*>(weights), kept,
                                                           mve::turnOf<typename Input::Type>(), rows.begin, rows.end);
    }
};

}  // namespace n2d2
