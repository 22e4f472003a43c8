// The matrix product of a convolution: pixels in tiles and blocks, outputs in groups of panels.
//
// The pixels of the output are one sequence of OH * OW, cut into tiles of nearly equal size, and these
// into blocks. The windows of a block are first gathered into scratch (n2d2/scratch.hpp, PanelIm2col); then every group of panels
// is multiplied with every tile of the block. 1x1 windows that have it are read in place where they can; windows of several lines
// can be read from a copy of the input lines instead.
// A layer that runs by lines (Streamed) has the pixels of one line as its sequence.
#pragma once

#include "n2d2/output.hpp"
#include "n2d2/packed.hpp"
#include "n2d2/panels/panel_im2col.hpp"
#include "n2d2/residual.hpp"
#include "n2d2/scratch.hpp"
#include "n2d2/tuning.hpp"

namespace n2d2 {

// Windows that are read from padded copies of the input lines, where that is less work than gathering each.
//
// A gathered window has KH * KW * C inputs, so that each input is copied up to KH * KW times; a line of a block is copied once. A tile
// is then a part of one output line: its pixels lie StrideWidth * C inputs apart, and a window is KH pieces of KW * C inputs.
// The price are tiles that are not all of one size, and thus more loads of weights.
//
// A Microkernel that has LineVector, the bytes of its vectors, can multiply such tiles: Tile::run<Pitch, Lines, Jump>.
template <bool ByLines, long Pitch, int Lines, long Jump>
struct TileOfLines {
    template <class Tile, class In, class Weight, class Sum, class At>
    static N2D2_INLINE void run(const In* x, const Weight* weights, const Sum* bias, int output, const At& at) {
        Tile::template run<Pitch>(x, weights, bias, output, at);
    }
};
template <long Pitch, int Lines, long Jump>
struct TileOfLines<true, Pitch, Lines, Jump> {
    template <class Tile, class In, class Weight, class Sum, class At>
    static N2D2_INLINE void run(const In* x, const Weight* weights, const Sum* bias, int output, const At& at) {
        Tile::template run<Pitch, Lines, Jump>(x, weights, bias, output, at);
    }
};

// Instructions of both ways, about: a vector is loaded and stored, each run of them takes some more; a tile loads all weights.
// Savings of less than a fiftieth of the products are not worth the larger code.
template <class Im2col, int Vector, int Lines, int Outputs, int Group, int TilePixels>
struct LinesPay {
    enum : int {
        V = Vector > 0 ? Vector : 1,
        Pixels = Lines * Im2col::OW,
        LineTiles = (Im2col::OW + TilePixels - 1) / TilePixels,
        WindowTiles = (Pixels + TilePixels - 1) / TilePixels,
        Bytes = Im2col::K / Im2col::KH * static_cast<int>(sizeof(typename Im2col::In)),
        Sums = Im2col::OW / LineTiles * Group *
               (64 / V)  // of the smaller tiles: an instruction for each, which wait for each other
    };
    enum : long {
        ByWindows = long(Pixels) * Im2col::KH * (2 * ((Bytes + V - 1) / V) + 6),
        ByLines = long(Lines) * Im2col::inputLines(2) * (2 * ((Im2col::LineBytes + V - 1) / V) + 16) / 2 +
                  long(Im2col::Words) * ((Outputs * 4 + V - 1) / V) * (Lines * LineTiles - WindowTiles),
        Products = long(Pixels) * Im2col::Words * ((Outputs * 4 + V - 1) / V)
    };
    enum : bool {
        value = Vector > 0 && bool(Im2col::ByLines) && long(ByLines) + Products / 50 < long(ByWindows) &&
                (int(Sums) >= 10 || int(LineTiles) * Lines == int(WindowTiles)) &&
                Im2col::inputLines(2) * Im2col::LineBytes <= 262144
    };
};

// At least `count` tiles for the pixels of a run. Code for size has tiles of one size, where at most twice as many give that.
N2D2_INLINE constexpr int tilesOfRun(int run, int count, int more = 0) {
    return !N2D2_SMALL_CODE || (run % (count + more) != 0 && more >= count) ? count :
           run % (count + more) == 0                                        ? count + more :
                                                                              tilesOfRun(run, count, more + 1);
}

template <class Cfg, class Microkernel>
struct PanelTiles {
    typedef PanelIm2col<Cfg, Microkernel> Im2col;
    typedef typename Im2col::Windows Windows;
    N2D2_WINDOWS(Cfg);
    N2D2_WEIGHTS(Cfg);
    typedef PackedWeights<Cfg> Packing;
    typedef typename Packing::Stored Stored;
    static_assert(sizeof(Sum) == 4 && (sizeof(Weight) <= 2 || !std::numeric_limits<In>::is_integer),
                  "weights of 8 or 16 bits and 32-bit sums, or float");

    enum : int {
        Faster = 1,  // than N2D2_SIMD_SPEED
        C = Im2col::C,
        O = int(Output::Channels) / Cfg::Groups,
        Each = Im2col::Each,
        Words = Im2col::Words,
        Window = Im2col::Window,
        Streamed = Cfg::Streamed,
        Pixels = (Streamed ? 1 : int(OH)) * OW,
        Panels = (O + 15) / 16,
        LastOutputs = O - 16 * (Panels - 1),
        Group = TileOf<Cfg>::Panels > 0 ? least(int(Panels), int(TileOf<Cfg>::Panels)) :
                                          Microkernel::tilePanels(Panels),  // panels of a tile
        Groups = (Panels + Group - 1) / Group,
        LastGroup = Panels - (Groups - 1) * Group,
        Ordered = Cfg::Serial && !Cfg::Streamed,
        Flat = PlaneTraits<Input>::Flat,
        FlatOut = PlaneTraits<Output>::Flat,
        Unpadded = Cfg::PadTop == 0 && Cfg::PadLeft == 0 && OH == H && OW == W,
        InPlace = KH == 1 && KW == 1 && Unpadded && (Flat || Streamed) && bool(Windows::Plain) && C % Each == 0 && !Ordered,
        // Bytes of windows of a group of channels; 0: no limit. Tiles become smaller where a tile of windows would not fit.
        Given = ScratchOf<Cfg>::Bytes <= 0 ? 0 : largest(1, (ScratchOf<Cfg>::Bytes - 64) / (Ordered ? int(Cfg::Groups) : 1)),
        Preferred = TileOf<Cfg>::Pixels > 0 ? int(TileOf<Cfg>::Pixels) : Microkernel::tilePixels(Group),
        TilePixels = Given == 0 || InPlace ? int(Preferred) : least(int(Preferred), largest(2, Given / Window - 1)),
        // A line of its own for tiles where that is less work (LinesPay).
        ByLines = !Ordered && LinesPay<Im2col, LineVectorOf<Microkernel>::value, Pixels / OW, O, Group, TilePixels>::value &&
                  (Given == 0 || Im2col::inputLines(least(2, Pixels / OW)) * Im2col::LineBytes <= Given),
        Run = ByLines ? int(OW) : int(Pixels),  // pixels that are cut into tiles
        RunTiles = tilesOfRun(Run, (Run + TilePixels - 1) / TilePixels),
        Tiles = Pixels / Run * RunTiles,
        Small = Run / RunTiles,  // pixels of a tile
        Large = Run % RunTiles,  // of the first tiles of a run, which have one more
        Weights = O * Im2col::K,
        // Bytes of windows that stay in a cache beside the weights; threads meet at the blocks of a serial layer.
        Wanted = TileOf<Cfg>::WindowBytes > 0 ? int(TileOf<Cfg>::WindowBytes) :
                 Weights > 524288             ? 262144 :
                 Ordered                      ? 65536 :
                                                24576,
        Budget = Given > 0 ? least(int(Given), int(Wanted)) : int(Wanted),
        LineBudget = TileOf<Cfg>::WindowBytes > 0 ? int(Wanted) : 32768,
        // Output lines of a block; one more where a share of a thread begins within a line.
        BlockLines =
            largest(1, largest(0, (Given > 0 ? least(int(Given), int(LineBudget)) : int(LineBudget)) / Im2col::LineBytes -
                                      Im2col::inputLines(2)) /
                           Cfg::StrideHeight),
        PerBlock = ByLines ? BlockLines * RunTiles : largest(1, Budget / (Window * (Small + 1))),  // tiles of a block
        Blocks = (Tiles + PerBlock - 1) / PerBlock,
        BlockBytes = InPlace ? 1 :
                     ByLines ? Im2col::inputLines(least(BlockLines + 1, Pixels / OW)) * Im2col::LineBytes :
                               Window * (Small + 1) * least(int(PerBlock), int(Tiles))
    };
    // Packed weights that each block would unpack again are unpacked once, on the stack, where they are few.
    enum : bool {
        UnpacksOnce = Packing::Bits != 0 && Blocks > 1 && !Streamed &&
                      long(Cfg::Groups) * O * Words * Each * static_cast<int>(sizeof(Weight)) <= 32768
    };
    enum : long {
        Pitch = (InPlace ? long(Input::Stride) * static_cast<int>(sizeof(In)) :
                 ByLines ? long(Im2col::PixelBytes) :
                           long(Window)),
        Jump = long(Cfg::DilationHeight) * Im2col::LineBytes
    };

    // The work of a thread before its first tile and after its last one.
    static N2D2_INLINE void begin() {}
    static N2D2_INLINE void end() {}

    static N2D2_INLINE constexpr int firstPixel(int tile) {
        return ByLines ? tile / RunTiles * Run + tile % RunTiles * Small + least(tile % RunTiles, int(Large)) :
                         tile * Small + least(tile, int(Large));
    }

    // Pixel p of the sequence, which begins at line y.
    static N2D2_INLINE Out* pixel(unsigned char* out, int y, int p) {
        if (FlatOut || Streamed)
            return line<Output>(out, y) + static_cast<long>(p) * Output::Stride;
        return line<Output>(out, y + p / OW) + p % OW * Output::Stride;
    }

    // Step: the distance of two pixels, 0 where it is not always the same.
    struct At {
        enum : long { Step = FlatOut || Streamed ? long(Output::Stride) : 0L };
        unsigned char* out;
        int y;
        int first;
        N2D2_INLINE Out* operator()(int p) const { return pixel(out, y, first + p); }
    };

    template <int Count, int Panels_, int Last>
    static N2D2_INLINE void tile(const std::uint8_t* x, int y, int first, int output, unsigned char* out, const Weight* weights,
                                 const Sum* bias) {
        const At at = {out, y, first};
        typedef TileEnd<Epilogue, Count, 16 * (Panels_ - 1) + Last> End;
        typedef typename Microkernel::template Tile<In, Count, Panels_, Words, Last, typename End::Own> Tile;
        End::template run<Tile, TileOfLines<bool(ByLines), Pitch, KH, Jump> >(x, weights, bias, output, at);
    }

    // Tiles [begin, end) with the panels of one group; x: the window of the first pixel, by lines that of the first of its line; y: line
    // of the sequence.
    template <int Panels_, int Last>
    static N2D2_INLINE void tiles(const std::uint8_t* x, int y, int begin, int end, int output, unsigned char* out,
                                  const Weight* weights, const Sum* bias) {
        constexpr bool large = Large > 0, lines = ByLines;
        int first = firstPixel(begin);
        if (lines) {
            constexpr long step = long(Cfg::StrideHeight) * Im2col::LineBytes;
            for (int line = begin / RunTiles, i = begin % RunTiles; begin < end; ++begin) {
                const std::uint8_t* const from = x + (first / OW - line) * step + first % OW * Pitch;
                if (large && i < Large) {
                    tile<Small + 1, Panels_, Last>(from, y, first, output, out, weights, bias);
                    ++first;
                } else {
                    tile<Small, Panels_, Last>(from, y, first, output, out, weights, bias);
                }
                first += Small;
                i = i + 1 < RunTiles ? i + 1 : 0;
            }
            return;
        }
        if (large)
            for (const int stop = least(end, int(Large)); begin < stop; ++begin) {
                tile<Small + 1, Panels_, Last>(x, y, first, output, out, weights, bias);
                x += (Small + 1) * Pitch;
                first += Small + 1;
            }
        for (; begin < end; ++begin) {
            tile<Small, Panels_, Last>(x, y, first, output, out, weights, bias);
            x += Small * Pitch;
            first += Small;
        }
    }

    // The panels of a group; `index` counts the groups of panels of all groups of channels.
    static N2D2_INLINE void panels(const std::uint8_t* x, int y, int begin, int end, int index, unsigned char* out,
                                   const Stored* weights, const Sum* bias) {
        const int group = index % Groups;
        const int output = index / Groups * O + group * Group * 16;
        const long before = static_cast<long>(output) * Words * Each;
        if (group + 1 < Groups) {
            const WeightPanels<Packing, 16 * Group, Words, Each, Im2col::K> w(weights, before);
            tiles<Group, 16>(x, y, begin, end, output, out, w.first, bias);
        } else {
            const WeightPanels<Packing, 16 * (LastGroup - 1) + LastOutputs, Words, Each, Im2col::K> w(weights, before);
            tiles<LastGroup, LastOutputs>(x, y, begin, end, output, out, w.first, bias);
        }
    }

    static N2D2_INLINE const std::uint8_t* place(const unsigned char* in, int y, int tile, int channel) {
        return reinterpret_cast<const std::uint8_t*>(line<Input>(in, y) + static_cast<long>(firstPixel(tile)) * Input::Stride +
                                                     channel);
    }

    // Tiles [begin, end) of a block with the groups of panels [from, to); their windows go to `buffer`, BlockBytes + 64 bytes.
    static N2D2_INLINE void block(const unsigned char* in, unsigned char* out, int y, int begin, int end, int channels,
                                  int from, int to, const Stored* weights, const Sum* bias, std::uint8_t* buffer) {
        if (ByLines)
            Im2col::im2colLines(in, y + firstPixel(begin) / OW, y + firstPixel(end - 1) / OW + 1, buffer);
        else if (!InPlace)
            Im2col::im2col(in, y, firstPixel(begin), firstPixel(end), channels * C, buffer);
        const std::uint8_t* const x = InPlace ? place(in, y, begin, channels * C) : buffer;
        for (int group = from; group < to; ++group)
            panels(x, y, begin, end, channels * Groups + group, out, weights, bias);
    }
};

}  // namespace n2d2
