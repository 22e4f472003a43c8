// Fully connected layer by lanes (lanes.hpp): its input is one pixel.
#pragma once

#include "n2d2/mcu/lanes.hpp"

namespace n2d2 {
namespace lanes {

struct Vector {
    std::int32_t inputs, outputs, zero;
    std::uint32_t mask, low, room;
    std::int32_t least, most;
};

enum : int { WideBlocks = 16 };  // of four outputs of 16 bits, which are computed before they are stored

// `window`: half as many words as inputs, rounded up to 8 of these. `in` begins at a word, `out` too where it is `direct`. `results`: else their bytes, rounded up
// to four; for outputs of 16 bits 4 * WideBlocks words.
template <bool Signed, int Rounding, class T>
N2D2_MCU_FAST void fullyConnected(const Vector& v, bool direct, const unsigned char* in, T* out, const std::uint32_t* stream,
                                  std::uint32_t* window, std::uint32_t* results) {
    const int whole = v.inputs / 4, rest = v.inputs % 4;
    std::uint32_t* end = spread<Signed>(in, whole, window);
    if (rest > 0) {
        alignas(4) unsigned char last[4] = {};
        for (int i = 0; i < rest; ++i)
            last[i] = in[4 * whole + i];
        end = spread<Signed>(last, 1, end);
    }
    for (std::uint32_t* const full = window + (v.inputs + 7) / 8 * 4; end < full; ++end)
        *end = 0;
    Work work;
    work.window = window;
    work.stream = stream;
    work.end = end;
    work.blocks = (v.outputs + 3) / 4;
    work.first = direct ? reinterpret_cast<unsigned char*>(out) : reinterpret_cast<unsigned char*>(results);
    work.second = work.first;
    work.zero = v.zero;
    work.mask = v.mask;
    work.low = v.low;
    work.room = v.room;
    if (sizeof(T) == 1) {
        Kernels<Rounding>::template alone<>(&work);
        if (!direct)
            copyBytes(out, results, static_cast<std::size_t>(v.outputs));
        return;
    }
    const int blocks = work.blocks;
    for (int block = 0; block < blocks; block += WideBlocks) {
        work.blocks = least<int>(blocks - block, WideBlocks);
        work.stream = stream + block * ((v.inputs + 7) / 8 * 8 + (Rounding == HighWord ? 8 : 12));
        Kernels<Rounding>::template aloneWords<>(&work);
        const int count = least<int>(v.outputs - 4 * block, 4 * work.blocks);
        for (int o = 0; o < count; ++o)
            *out++ = static_cast<T>(least(largest(static_cast<std::int32_t>(results[o]), v.least), v.most));
    }
}

}  // namespace lanes

N2D2_STREAM_KERNEL(LaneFullyConnected, Lanes, FullyConnected<Cfg, Portable>) {
    N2D2_PLANES(Cfg);
    typedef PlaneRuns<Input> Runs;
    enum : int {
        K = Runs::All,
        O = Output::Channels,
        Whole = int(Runs::Count) == 1 && Cfg::WordInput,
        Wide = sizeof(typename Output::Type) > 1,
        Direct = !Wide && O % 4 == 0 && Cfg::WordOutput
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*) {
        static constexpr lanes::Vector shape = {K,
                                                O,
                                                Cfg::LaneZero,
                                                Cfg::LaneSigned ? 0x80808080u : 0u,
                                                0x01010101u * static_cast<std::uint32_t>(Cfg::LaneLow),
                                                0x01010101u * static_cast<std::uint32_t>(255 - Cfg::LaneHigh),
                                                Cfg::LaneLow,
                                                Cfg::LaneHigh};
        std::uint32_t window[(K + 7) / 8 * 4];
        std::uint32_t results[Wide ? 4 * lanes::WideBlocks : Direct ? 1 : (O + 3) / 4];
        std::uint32_t gathered[Whole ? 1 : (K + 3) / 4];
        const unsigned char* from = reinterpret_cast<const unsigned char*>(line<Input>(in, 0));
        if (!Whole) {
            unsigned char* to = reinterpret_cast<unsigned char*>(gathered);
            for (int i = 0; i < Runs::Count; ++i, to += Runs::Length)
                copyBytes(to, Runs::at(in, i), static_cast<std::size_t>(Runs::Length));
            from = reinterpret_cast<const unsigned char*>(gathered);
        }
        lanes::fullyConnected<std::numeric_limits<typename Input::Type>::is_signed, Cfg::Rounding>(
            shape, Direct, from, line<Output>(out, 0), elementsOf<std::uint32_t>(weights), window, results);
    }
};

}  // namespace n2d2
