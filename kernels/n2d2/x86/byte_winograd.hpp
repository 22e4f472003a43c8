// A Winograd convolution in bytes, of inputs of 4 bits with packed weights of 4 bits.
//
// Inputs from 0 to 15 become, transformed, integers from -30 to 60, which are stored + 30; weights those of a byte, as the exporter has proved. pmaddubsw
// multiplies them, and sums of 16 bits are kept over WinogradSums words of four channels, for which the exporter has proved that they fit.
// The 30 times the weights that are too much are taken away where the sums of a position begin.
// The weights of a panel are those of the direct form. They are unpacked and transformed on the stack, 16 bytes for nine, before the tiles of a
// block are multiplied with them, as much work as some of these tiles; or once, where PrepackedWinograd of the config says so.
#ifndef N2D2_X86_BYTE_WINOGRAD_HPP
#define N2D2_X86_BYTE_WINOGRAD_HPP

#include "n2d2/packed.hpp"
#include "n2d2/panels/panel_winograd.hpp"
#include "n2d2/panels/winograd_kept_panels.hpp"
#include "n2d2/x86/pair_winograd.hpp"

namespace n2d2 {

template <class Cfg, class Found = void>
struct WinogradSumsOf {
    enum : int { Words = 0 };
};
template <class Cfg>
struct WinogradSumsOf<Cfg, typename Exists<Cfg::WinogradSums>::Type> {
    enum : int { Words = Cfg::WinogradSums };
};

// WinogradPanel: the transformed weights [16 positions][Quads][outputs][4 channels], and [16 positions][outputs] of first sums.
template <class Cfg, class Vec, int Outputs>
struct ByteWinogradPanel {
    typedef PackedWeights<Cfg> Packing;
    enum : int { C = Cfg::Input::Channels, Quads = C / 4, Bytes = 4 * Outputs, Position = Quads * Bytes, Moved = 30 };
    static_assert(C % 4 == 0 && Bytes % int(Vec::Size) == 0, "whole vectors of weights");

    alignas(64) std::int8_t first[16 * Position + 64 * Outputs];

    // 2 G g of the weights of a place, from three of them to four.
    static N2D2_INLINE void column(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c, std::uint8_t* to,
                                   int pitch) {
        for (int i = 0; i < Bytes; ++i) {
            const std::uint8_t ends = static_cast<std::uint8_t>(a[i] + c[i]);
            to[i] = static_cast<std::uint8_t>(a[i] + a[i]);
            to[pitch + i] = static_cast<std::uint8_t>(ends + b[i]);
            to[2 * pitch + i] = static_cast<std::uint8_t>(ends - b[i]);
            to[3 * pitch + i] = static_cast<std::uint8_t>(c[i] + c[i]);
        }
    }

    N2D2_INLINE ByteWinogradPanel(const std::uint8_t* weights, int output, int) {
        transform(weights + static_cast<long>(output) * 9 * C / Packing::PerByte);
        start();
    }

    N2D2_NOINLINE void transform(const std::uint8_t* weights) {
        std::uint8_t* const to = reinterpret_cast<std::uint8_t*>(first);
        for (int q = 0; q < Quads; ++q) {
            alignas(64) std::int8_t raw[9 * Bytes];
            alignas(64) std::uint8_t half[12 * Bytes];
            for (int tap = 0; tap < 9; ++tap)
                Packing::unpack(weights + (tap * Quads + q) * Bytes / Packing::PerByte, 0, Bytes, raw + tap * Bytes);
            const std::uint8_t* const g = reinterpret_cast<const std::uint8_t*>(raw);
            for (int v = 0; v < 3; ++v)  // the lines of each column: [4 lines][3 columns]
                column(g + v * Bytes, g + (3 + v) * Bytes, g + (6 + v) * Bytes, half + v * Bytes, 3 * Bytes);
            for (int i = 0; i < 4; ++i)
                column(half + 3 * i * Bytes, half + (3 * i + 1) * Bytes, half + (3 * i + 2) * Bytes,
                       to + 4 * i * Position + q * Bytes, Position);
        }
    }

    // The sums of the weights of each position times -Moved, in 32 bits; those of 16 bits hold 128 * 2 * Quads.
    N2D2_NOINLINE void start() {
        static_assert(Quads < 128, "sums of 16 bits hold the weights");
        typedef typename Vec::Ints Ints;
        enum : int { Vectors = Bytes / int(Vec::Size) };
        const Ints ones = Vec::spread16(0x0101), moved = Vec::spread16(-Moved);
        for (int position = 0; position < 16; ++position) {
            N2D2_UNROLL
            for (int v = 0; v < Vectors; ++v) {
                Ints sum = Vec::zero();
                for (int q = 0; q < Quads; ++q)
                    sum = Vec::plus16(sum, Vec::byteProducts(ones, Vec::loadAligned(first + position * Position + q * Bytes +
                                                                                    v * Vec::Size)));
                Vec::storeAligned(Vec::addPairs(Vec::zero(), sum, moved),
                                  first + 16 * Position + position * Bytes + v * Vec::Size);
            }
        }
    }
};

template <class Vec>
struct BytePanelsOf {
    template <class Cfg, int Outputs, int>
    using Panel = ByteWinogradPanel<Cfg, Vec, Outputs>;
};

// Microkernel, Tiles: as in pair_winograd.hpp.
template <class Microkernel, int Tiles, int Run>
struct ByteWinograd : PairWinograd<Microkernel, Tiles> {
    typedef typename Microkernel::Vec Vec;
    typedef typename Vec::Ints Inputs;
    typedef std::uint8_t Stored;
    enum : int { ElementBytes = 1, Lanes = Vec::Size };
    template <class Cfg, int Outputs>
    using Panel = typename Choice<bool(IsPrepackedWinograd<Cfg>::value), WinogradKeptPanel<Cfg, BytePanelsOf<Vec>, Outputs, 1>,
                                  ByteWinogradPanel<Cfg, Vec, Outputs> >::Type;

    template <int Count, class In>
    static N2D2_INLINE Inputs load(const In* from) {
        static_assert(!std::numeric_limits<In>::is_signed, "inputs from 0 to 15");
        return Vec::template loadSome<Count>(from);
    }
    static N2D2_INLINE Inputs add(Inputs a, Inputs b) { return Vec::plus8(a, b); }
    static N2D2_INLINE Inputs subtract(Inputs a, Inputs b) { return Vec::minus8(a, b); }
    static N2D2_INLINE void store(Inputs x, std::uint8_t* to) { Vec::storeAligned(Vec::plus8(x, Vec::spread16(30 * 257)), to); }
};

// Positions of tiles of which Places are stored.
template <class Microkernel, int Count, int Group, int Depth, int Words, int Outputs, int Places>
struct ByteWinogradProducts {
    typedef typename Microkernel::Vec Vec;
    typedef typename Vec::Ints Ints;
    enum : int { Bytes = 4 * Outputs, Vectors = Bytes / int(Vec::Size), Tile = Places * Depth };

    static N2D2_INLINE void word(const std::uint8_t* x, const std::int8_t* w, Ints (&places)[Count][Vectors]) {
        Ints weights[Vectors];
        N2D2_UNROLL
        for (int v = 0; v < Vectors; ++v)
            weights[v] = Vec::loadAligned(w + v * Vec::Size);
        N2D2_UNROLL
        for (int t = 0; t < Count; ++t) {
            const Ints inputs = Vec::word(x + t * Tile);
            N2D2_UNROLL
            for (int v = 0; v < Vectors; ++v) {
                places[t][v] = Vec::plus16(places[t][v], Vec::byteProducts(inputs, weights[v]));
                Vec::pin(places[t][v]);
            }
        }
    }

    // Words [from, to) of a position, added to the sums.
    static N2D2_INLINE void run(const std::uint8_t* x, const std::int8_t* w, int from, int to, const std::int32_t* first,
                                int step, std::int32_t* products) {
        Ints places[Count][Vectors];
        N2D2_UNROLL
        for (int t = 0; t < Count; ++t) {
            N2D2_UNROLL
            for (int v = 0; v < Vectors; ++v)
                places[t][v] = Vec::zero();
        }
        for (int q = from; q < to; ++q)
            word(x + 4 * q, w + q * Bytes, places);
        const Ints ones = Vec::spread16(1);
        N2D2_UNROLL
        for (int t = 0; t < Count; ++t) {
            N2D2_UNROLL
            for (int v = 0; v < Vectors; ++v) {
                const Ints sums = Vec::loadAligned(first + t * step + Vec::Lanes * v);
                Vec::storeAligned(Vec::addPairs(sums, places[t][v], ones), products + 16 * t + Vec::Lanes * v);
            }
        }
    }

    static N2D2_INLINE const std::int32_t* sums(const std::int8_t* w) {
        const void* const begin = w + Places * Words * Bytes;
        return static_cast<const std::int32_t*>(begin);
    }

    // Positions [Begin, End) of the tiles at x, with sums of 16 bits over Run words.
    template <int Begin, int End, int Run>
    static N2D2_INLINE void positions(const std::uint8_t* x, const std::int8_t* w, const std::int32_t* first,
                                      std::int32_t* products) {
        x += Begin * Depth;
        w += Begin * Words * Bytes;
        first += Begin * Outputs;
        products += Begin * 16 * Group;
        for (int position = Begin; position < End; ++position) {
            run(x, w, 0, least(int(Run), int(Words)), first, 0, products);
            for (int q = Run; q < Words; q += Run)
                run(x, w, q, least(q + Run, int(Words)), products, 16, products);
            x += Depth;
            w += Words * Bytes;
            first += Outputs;
            products += 16 * Group;
        }
    }
};

template <class Microkernel, int Tiles, int Run, int Count, int Group, int Depth, int Words, int Outputs, int Positions>
struct WinogradProducts<ByteWinograd<Microkernel, Tiles, Run>, Count, Group, Depth, Words, Outputs, Positions>
    : ByteWinogradProducts<Microkernel, Count, Group, Depth, Words, Outputs, 16> {
    typedef ByteWinogradProducts<Microkernel, Count, Group, Depth, Words, Outputs, 16> Base;
    static N2D2_NOINLINE void run(const std::uint8_t* x, const std::int8_t* w, std::int32_t* products) {
        Base::template positions<0, Positions, Run>(x, w, Base::sums(w), products);
    }
};

// A config whose scratch is on the stack: 16 tiles or more, lines of them where lines have an order.
template <class Cfg, int Places>
struct StackScratch : Cfg {
    enum : int {
        Edge = WinogradTileOf<Cfg>::Edge,
        Columns = (static_cast<int>(Cfg::Output::Width) + Edge - 1) / Edge,
        Tiles = Columns * ((static_cast<int>(Cfg::Output::Height) + Edge - 1) / Edge),
        Unit = Cfg::Serial ? int(Columns) : 6,
        C = Cfg::Input::Channels,
        ScratchBytes = (C + 63) / 64 * 64 + 6 * 64 * Places +
                       (least(16, int(Tiles)) + Unit - 1) / Unit * Unit * Places * ((C + 31) / 32 * 32),
        ScratchBase = 0
    };
    enum : long { ScratchAt = 0 };
};

// The weights would be transformed for a few tiles each time where the arena has little room for scratch.
template <class Cfg, class Bytes>
struct ByteScratch {
    typedef StackScratch<Cfg, Bytes::template PlacesOf<Cfg>::value> Own;
    typedef
        typename Choice<(int(ScratchOf<Cfg>::Base) != 0 && int(ScratchOf<Cfg>::Bytes) < int(Own::ScratchBytes)), Own, Cfg>::Type
            Type;
};

// The kernel of a layer: the form in bytes, or another one.
template <class Cfg, class Bytes, class Other, bool InBytes = (WinogradSumsOf<Cfg>::Words > 0)>
struct ByteConvolution : Other {};
template <class Cfg, class Bytes, class Other>
struct ByteConvolution<Cfg, Bytes, Other, true> : PanelWinograd<typename ByteScratch<Cfg, Bytes>::Type, Bytes> {};

}  // namespace n2d2

#endif  // N2D2_X86_BYTE_WINOGRAD_HPP
