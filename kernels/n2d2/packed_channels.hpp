// Integers of 1, 2 and 4 bits, several channels in a byte, and back.
//
//   packChannels    out[y][x][b] = sum over j of (in[y][x][b * 8/Bits + j] - Low) << (j * Bits)
//   unpackChannels  out[y][x][c] = (in[y][x][c / (8/Bits)] >> (c % (8/Bits) * Bits) & (2^Bits - 1)) + Low
//
// The first channel is in the lowest bits of a byte. What is left of the last byte of a pixel is 0.
//
// Config: planes Input, Output; type Isa; enum Bits, Low, Serial, Reverse.
// Line order: out line y is stored while in lines >= y (with Reverse: <= y) are intact.
#pragma once

#include "n2d2/line_order.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

// `Wide` has the elements, `Narrow` the bytes. A line in which all bytes are full and follow each other is one run.
template <class Cfg, class Wide, class Narrow>
struct ChannelPacking {
    typedef typename Wide::Type Element;
    enum : int {
        Bits = Cfg::Bits,
        Each = 8 / Bits,
        Mask = (1 << Bits) - 1,
        Low = Cfg::Low,
        C = Wide::Channels,
        W = Wide::Width,
        Run = C % Each == 0 && PlaneTraits<Wide>::Packed && PlaneTraits<Narrow>::Packed,
        Count = Run ? int(C) * int(W) : int(C),
        Full = Count / Each,
        Left = Count % Each,
        Pixels = Run ? 1 : int(W)
    };
    static_assert(int(Bits) == 1 || int(Bits) == 2 || int(Bits) == 4, "whole elements in a byte");
    static_assert(sizeof(Element) == 1 && sizeof(typename Narrow::Type) == 1, "bytes, packed in bytes");
    static_assert(int(Narrow::Channels) == (int(C) + int(Each) - 1) / int(Each) && int(Narrow::Width) == int(W) &&
                      int(Narrow::Height) == int(Wide::Height),
                  "a packed plane has the pixels of the other one, and the bytes of its channels");

    static N2D2_INLINE Element unpacked(unsigned byte, int at) {
        return static_cast<Element>(static_cast<int>(byte >> (at * Bits) & Mask) + Low);
    }
    static N2D2_INLINE unsigned code(Element element) { return static_cast<unsigned>(element - Low) & Mask; }
    static N2D2_INLINE std::uint8_t packed(const Element* from, int count) {
        unsigned byte = 0;
        for (int j = 0; j < count; ++j)
            byte |= code(from[j]) << (j * Bits);
        return static_cast<std::uint8_t>(byte);
    }

    // A pixel, or a line that is one run. The planes of a line are apart.
    static N2D2_INLINE void unpack(const std::uint8_t* from, Element* to) {
        constexpr int full = Full, each = Each, left = Left;
        for (int i = 0; i < full; ++i)
            for (int j = 0; j < each; ++j)
                to[i * each + j] = unpacked(from[i], j);
        for (int j = 0; j < left; ++j)
            to[full * each + j] = unpacked(from[full], j);
    }
    static N2D2_INLINE void pack(const Element* from, std::uint8_t* to) {
        constexpr int full = Full, each = Each, left = Left;
        for (int i = 0; i < full; ++i)
            to[i] = packed(from + i * each, each);
        if (left > 0)
            to[full] = packed(from + full * each, left);
    }
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct UnpackChannels {
    N2D2_PLANES(Cfg);
    typedef ChannelPacking<Cfg, Output, Input> Packing;

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Rows& rows = Rows::all<Output>()) {
        typedef LineOrder<Input, Output, 1, 0, 1, (Cfg::Reverse != 0), (Cfg::Streamed != 0)> Order;
        LayerTasks<Cfg, 1, static_cast<long>(Packing::C) * Packing::W, Order>::run(rows, [=](int y, int) N2D2_INLINE_LAMBDA {
            const std::uint8_t* const from = line<Input>(in, y);
            typename Output::Type* const to = line<Output>(out, y);
            for (int x = 0; x < Packing::Pixels; ++x)
                Packing::unpack(from + x * Input::Stride, to + x * Output::Stride);
        });
    }
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct PackChannels {
    N2D2_PLANES(Cfg);
    typedef ChannelPacking<Cfg, Input, Output> Packing;

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Rows& rows = Rows::all<Output>()) {
        typedef LineOrder<Input, Output, 1, 0, 1, (Cfg::Reverse != 0), (Cfg::Streamed != 0)> Order;
        LayerTasks<Cfg, 1, static_cast<long>(Packing::C) * Packing::W, Order>::run(rows, [=](int y, int) N2D2_INLINE_LAMBDA {
            const typename Input::Type* const from = line<Input>(in, y);
            std::uint8_t* const to = line<Output>(out, y);
            for (int x = 0; x < Packing::Pixels; ++x)
                Packing::pack(from + x * Input::Stride, to + x * Output::Stride);
        });
    }
};

N2D2_LAYER(unpackChannels, UnpackChannels<Cfg>)
N2D2_LAYER(packChannels, PackChannels<Cfg>)

}  // namespace n2d2
