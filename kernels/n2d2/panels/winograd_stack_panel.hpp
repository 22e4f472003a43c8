// Weights of a Winograd convolution that are transformed when they are needed, on the stack, a panel of outputs at a time:
// S G g (S G)' (winograd.hpp) of the weights of the direct form, packed ones or bytes.
//
// That is as much work as multiplying two or three tiles with them, and a block has many. The exporter would store 8 bytes for each weight,
// which a cache has no room for beyond some 64 x 64 weights of a place.
// Many channels are transformed in parts, whose panels stay in the cache, and whose products are added up. Few positions of a panel are written at a
// time, and between two positions there is a gap: they lie so far apart that a cache has few places for all of them.
#pragma once

#include <new>

#include "n2d2/packed.hpp"
#include "n2d2/panels/panel_winograd.hpp"

namespace n2d2 {

// S G of three weights.
template <class Ints, class Sum>
N2D2_INLINE void winogradColumn(Ints a, Ints b, Ints c, Ints (&to)[6], const Sum&) {
    const Ints twoA = Sum::plus(a, a), twoB = Sum::plus(b, b), twoC = Sum::plus(c, c), fourC = Sum::plus(twoC, twoC);
    const Ints ends = Sum::plus(a, c), wide = Sum::plus(a, fourC);
    to[0] = Sum::plus(twoA, Sum::plus(twoA, twoA));
    to[1] = Sum::plus(ends, b);
    to[2] = Sum::minus(ends, b);
    to[3] = Sum::plus(wide, twoB);
    to[4] = Sum::minus(wide, twoB);
    to[5] = Sum::plus(fourC, twoC);
}

// The lines of a column, [6], of a vector of weights [outputs][4 channels]: those of 4 bits and fewer in bytes, of at most 7 * 15, bytes as pairs
// of 16-bit integers, which have half of the channels each.
template <class Vec, bool Small>
struct WinogradLinesOfWeights {
    typedef typename Vec::Ints Ints;
    struct Bytes {
        static N2D2_INLINE Ints plus(Ints a, Ints b) { return Vec::plus8(a, b); }
        static N2D2_INLINE Ints minus(Ints a, Ints b) { return Vec::minus8(a, b); }
    };
    Ints lines[6];
    N2D2_INLINE void set(Ints a, Ints b, Ints c) { winogradColumn(a, b, c, lines, Bytes()); }
    template <int Half>
    N2D2_INLINE Ints at(int u) const {
        return Vec::template pairOf<Half>(lines[u]);
    }
};
template <class Vec>
struct PairSums {
    typedef typename Vec::Ints Ints;
    static N2D2_INLINE Ints plus(Ints a, Ints b) { return Vec::plus16(a, b); }
    static N2D2_INLINE Ints minus(Ints a, Ints b) { return Vec::minus16(a, b); }
};
template <class Vec>
struct WinogradLinesOfWeights<Vec, false> {
    typedef typename Vec::Ints Ints;
    Ints lines[2][6];
    N2D2_INLINE void set(Ints a, Ints b, Ints c) {
        half<0>(a, b, c);
        half<1>(a, b, c);
    }
    template <int Half>
    N2D2_INLINE void half(Ints a, Ints b, Ints c) {
        winogradColumn(Vec::template pairOf<Half>(a), Vec::template pairOf<Half>(b), Vec::template pairOf<Half>(c), lines[Half],
                       PairSums<Vec>());
    }
    template <int Half>
    N2D2_INLINE Ints at(int u) const {
        return lines[Half][u];
    }
};

// The weights of a word of channels at the 9 places, `pitch` words apart: in memory, or unpacked.
template <class Packing, int Bytes, bool Packed = Packing::Bits != 0>
struct WinogradWordOfWeights {
    const std::int8_t* const first;
    const int pitch;
    N2D2_INLINE WinogradWordOfWeights(const std::int8_t* weights, int words) : first(weights), pitch(words * Bytes) {}
};
template <class Packing, int Bytes>
struct WinogradWordOfWeights<Packing, Bytes, true> {
    enum : int { pitch = Bytes };
    alignas(64) std::int8_t first[9 * Bytes];
    N2D2_INLINE WinogradWordOfWeights(const std::uint8_t* weights, int words) {
        for (int place = 0; place < 9; ++place)
            Packing::unpack(weights + static_cast<long>(place) * words * Bytes / Packing::PerByte, 0, Bytes,
                            first + place * Bytes);
    }
};

// The type of stored weights: layers whose weights are bytes have one type.
struct ByteWeights {
    typedef std::int8_t Stored;
    enum : int { Bits = 0 };
};

// [36 positions][pairs of channels][outputs][2] of Own words of weights [9 places][Quads][outputs][4 channels].
template <class Packing, class Vec, int Outputs, int Quads, int Own, int Gap>
struct WinogradPanelWeights {
    typedef typename Packing::Stored Stored;
    typedef typename Vec::Ints Ints;
    typedef WinogradLinesOfWeights<Vec, (Packing::Bits != 0)> Lines;
    enum : int {
        Bytes = 4 * Outputs,
        PerByte = Packing::Bits == 0 ? 1 : 8 / (Packing::Bits == 0 ? 8 : int(Packing::Bits)),
        Vectors = Bytes / int(Vec::Size)
    };
    template <int Half>
    static N2D2_INLINE void line(const Lines (&columns)[3], int u, std::int8_t* to, int position) {
        Ints made[6];
        winogradColumn(columns[0].template at<Half>(u), columns[1].template at<Half>(u), columns[2].template at<Half>(u), made,
                       PairSums<Vec>());
        N2D2_UNROLL_FOR(v, 6)
            Vec::storeAligned(made[v], to + v * position);
    }

    static N2D2_NOINLINE void run(const Stored* weights, std::int8_t* first, int quads, int own) {
        const int position = 2 * sizeOr<Own>(own) * Bytes + Gap;
        for (int q = 0; q < sizeOr<Own>(own); ++q) {
            const WinogradWordOfWeights<Packing, Bytes> word(weights + static_cast<long>(q) * Bytes / PerByte,
                                                             sizeOr<Quads>(quads));
            Lines columns[Vectors][3];
            for (int i = 0; i < Vectors; ++i)
                for (int v = 0; v < 3; ++v) {
                    const std::int8_t* const from = word.first + v * static_cast<long>(word.pitch) + i * Vec::Size;
                    columns[i][v].set(Vec::load(from), Vec::load(from + 3L * word.pitch), Vec::load(from + 6L * word.pitch));
                }
            std::int8_t* to = first + 2 * q * Bytes;
            for (int u = 0; u < 6; ++u, to += 6 * position)
                for (int i = 0; i < Vectors; ++i) {
                    line<0>(columns[i], u, to + i * Vec::Size, position);
                    line<1>(columns[i], u, to + Bytes + i * Vec::Size, position);
                }
        }
    }
};

// Panel `part` of Outputs outputs.
template <class Cfg, class Vec, int Outputs, int Parts, int Gap>
struct WinogradStackPanel {
    typedef PackedWeights<Cfg> Packing;
    typedef typename Packing::Stored Stored;
    enum : int {
        C = Cfg::Input::Channels,
        Quads = C / 4,
        Bytes = 4 * Outputs,
        Own = Quads / Parts,  // words of this part
        Position = 2 * Own * Bytes + Gap
    };
    typedef WinogradPanelWeights<typename Choice<Packing::Bits == 0, ByteWeights, Packing>::Type, Vec, Outputs,
                                 sharedSize(Quads), sharedSize(Own), Gap>
        Weights;
    static_assert(int(Packing::Bits) <= 4 && C % (4 * Parts) == 0 && Bytes % int(Vec::Size) == 0, "whole vectors of weights");

    alignas(64) std::int8_t first[WinogradPositions * Position];

    N2D2_INLINE WinogradStackPanel(const Stored* weights, int output, int part) {
        Weights::run(weights + (static_cast<long>(output) * 9 * C + static_cast<long>(part) * Own * Bytes) / Weights::PerByte,
                     first, Quads, Own);
    }
};

// Parts of the same number of whole words, of at most 128 channels.
N2D2_INLINE constexpr int winogradParts(int channels, int parts = 1) {
    return channels % (4 * parts) == 0 && channels <= 128 * parts ? parts : winogradParts(channels, parts + 1);
}

// A Microkernel (panel_winograd.hpp) whose panels are transformed so, of weights that are stored as StoredWeights.
template <class Microkernel, class Vec, class StoredWeights = std::int8_t>
struct StackPanels : Microkernel {
    typedef StoredWeights Stored;
    enum : int { BlockInputs = 393216, LeastTiles = 16, PanelGap = 128, OnStack = 1 };
    template <class Cfg>
    struct Parts {
        enum : int { value = winogradParts(Cfg::Input::Channels) };
    };
    template <class Cfg, int Outputs>
    using Panel = WinogradStackPanel<Cfg, Vec, Outputs, Parts<Cfg>::value, PanelGap>;
};

// All panels of a layer, unpacked and transformed once, by the first inference, into static memory (n2d2/prepacked.hpp).
template <class Cfg, class Vec, int Gap, int Parts>
struct WinogradKeptPanels {
    enum : int {
        O = Cfg::Output::Channels,
        WholePanels = O / 16,
        LastOutputs = O % 16 == 0 ? 16 : O % 16,
        Count = WholePanels * Parts,
        LastCount = O % 16 == 0 ? 0 : int(Parts)
    };
    typedef WinogradStackPanel<Cfg, Vec, (O < 16 ? int(O) : 16), Parts, Gap> Whole;
    typedef WinogradStackPanel<Cfg, Vec, LastOutputs, Parts, Gap> Last;
    enum : long { LastAt = long(Count) * static_cast<long>(sizeof(Whole)) };

    alignas(64) unsigned char place[LastAt + long(LastCount) * static_cast<long>(sizeof(Last))];

    N2D2_INLINE WinogradKeptPanels(const std::uint8_t* weights, int) {
        for (int i = 0; i < Count; ++i)
            new (static_cast<void*>(place + i * static_cast<long>(sizeof(Whole)))) Whole(weights, i / Parts * 16, i % Parts);
        for (int i = 0; i < LastCount; ++i)
            new (static_cast<void*>(place + LastAt + i * static_cast<long>(sizeof(Last)))) Last(weights, WholePanels * 16, i);
    }

    N2D2_INLINE const std::int8_t* panel(int output, int part) const {
        const int i = output / 16;
        return reinterpret_cast<const std::int8_t*>(place) + (i < WholePanels ?
                                                                  (i * Parts + part) * static_cast<long>(sizeof(Whole)) :
                                                                  LastAt + part * static_cast<long>(sizeof(Last)));
    }
};

// StackPanels whose panels are kept so.
template <class Microkernel, class Vec>
struct KeptPanels : StackPanels<Microkernel, Vec, std::uint8_t> {
    typedef StackPanels<Microkernel, Vec, std::uint8_t> Base;
    template <class Cfg, int Outputs>
    struct Panel {
        typedef WinogradKeptPanels<Cfg, Vec, Base::PanelGap, Base::template Parts<Cfg>::value> All;
        const std::int8_t* const first;
        N2D2_INLINE Panel(const std::uint8_t* weights, int output, int part)
            : first(Prepacked<Cfg, All>::of(weights).panel(output, part)) {}
    };
};

// The Winograd convolution of a layer. WinogradOnStack of its config says that its weights are those of the direct form.
N2D2_OPTIONAL(bool, IsWinogradOnStack, WinogradOnStack, false);
template <class Cfg, class Microkernel, class Vec>
struct WinogradOfWeights
    : TiledWinograd< Cfg, typename Choice<bool(IsPrepackedWinograd<Cfg>::value), KeptPanels<Microkernel, Vec>,
                                          typename Choice<bool(IsWinogradOnStack<Cfg>::value),
                                                          StackPanels<Microkernel, Vec, typename PackedWeights<Cfg>::Stored>,
                                                          Microkernel>::Type>::Type> {};

}  // namespace n2d2
