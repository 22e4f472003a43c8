// Convolution as a matrix product of windows and panels of weights, in tiles held in registers.
//
// The pixels of the output are one sequence of OH * OW, cut into tiles of nearly equal size, and these
// into blocks. The windows of a block are first gathered into a buffer on the stack, in the form that
// the instructions of the Machine multiply, padding included; then every group of panels
// is multiplied with every tile of the block. 1x1 windows that have it are read in place where they can.
//
// Threads: the tiles times the groups of panels are cut into one piece for each thread, of equal size to one tile with one group.
//
// Line order: all windows of a block are read before the first of its outputs is stored, and blocks come in
// order (with Reverse from the last), so that an output line is stored while the input lines that later lines need
// are intact. With Serial, threads share the work of one block: all windows are gathered before any of them stores; but where
// more tiles than those of a block cover nothing that is still read (LineOrder), they are shared like those of any layer. A layer
// that runs by lines (Streamed) has the pixels of one line as its sequence, and what a line stores covers nothing that it reads.
// Stack: BlockBytes + 64, for a serial layer on several threads twice.
//
// Machine: Windows<In, Words> says how inputs become windows, Tile computes a tile, tilePixels() and tilePanels() its
// size. Windows whose parts are no multiples of its Unit are gathered as they are and then arranged.
#ifndef N2D2_PANELS_PANEL_CONVOLUTION_HPP
#define N2D2_PANELS_PANEL_CONVOLUTION_HPP

#include <cstring>

#include "n2d2/line_order.hpp"
#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"
#include "n2d2/tuning.hpp"

namespace n2d2 {

template <class Cfg, class Machine>
struct PanelConvolution {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    typedef typename Cfg::Stage Stage;
    typedef typename Input::Type In;
    typedef typename Output::Type Out;
    typedef typename Cfg::Weight Weight;
    typedef typename Cfg::Sum Sum;
    static_assert(sizeof(Sum) == 4 && (sizeof(Weight) == 1 || !std::numeric_limits<In>::is_integer),
                  "8-bit weights and 32-bit sums, or float");

    enum : int {
        KH = Cfg::KernelHeight,
        KW = Cfg::KernelWidth,
        C = static_cast<int>(Input::Channels) / Cfg::Groups,
        O = static_cast<int>(Output::Channels) / Cfg::Groups,
        K = KH * KW * C,
        Each = 4 / static_cast<int>(sizeof(In)),  // inputs in a word
        Words = (K + Each - 1) / Each
    };
    typedef typename Machine::template Windows<In, Words> Windows;
    enum : int {
        Size = Windows::Size,  // by which the place of an input in a window grows
        Window = Windows::Bytes,
        Direct = C % Windows::Unit == 0 || KH * KW == 1,
        H = Input::Height,
        W = Input::Width,
        OH = Output::Height,
        OW = Output::Width,
        Streamed = Cfg::Streamed,
        Ordered = Cfg::Serial && !Cfg::Streamed,
        Pixels = (Streamed ? 1 : int(OH)) * OW,
        Panels = (O + 15) / 16,
        LastOutputs = O - 16 * (Panels - 1),
        Group = TileOf<Cfg>::Panels > 0 ? least(int(Panels), int(TileOf<Cfg>::Panels))
                                        : Machine::tilePanels(Panels),  // panels of a tile
        Groups = (Panels + Group - 1) / Group,
        LastGroup = Panels - (Groups - 1) * Group,
        TilePixels = TileOf<Cfg>::Pixels > 0 ? int(TileOf<Cfg>::Pixels) : Machine::tilePixels(Group),
        Tiles = (Pixels + TilePixels - 1) / TilePixels,
        Small = Pixels / Tiles,   // pixels of a tile
        Large = Pixels % Tiles,   // of the first tiles, which have one more
        Flat = int(Input::Lines) >= H,
        FlatOut = int(Output::Lines) >= OH,
        Unpadded = Cfg::PadTop == 0 && Cfg::PadLeft == 0 && OH == H && OW == W,
        InPlace = KH == 1 && KW == 1 && Unpadded && (Flat || Streamed) && bool(Windows::Plain) && C % Each == 0 &&
                  !Ordered,
        Run = static_cast<int>(PlaneTraits<Input>::Packed) && Cfg::DilationWidth == 1 && Cfg::Groups == 1,
        Extent = (KW - 1) * Cfg::DilationWidth + 1,
        Weights = O * K,
        // Bytes of windows that stay in a cache beside the weights; threads meet at the blocks of a serial layer.
        Budget = TileOf<Cfg>::WindowBytes > 0 ? int(TileOf<Cfg>::WindowBytes)
                 : Weights > 524288           ? 262144
                 : Ordered                    ? 65536
                                              : 24576,
        PerBlock = largest(1, Budget / (Window * (Small + 1))),  // tiles of a block
        Blocks = (Tiles + PerBlock - 1) / PerBlock,
        BlockBytes = InPlace ? 1 : Window * (Small + 1) * least(int(PerBlock), int(Tiles))
    };

    static N2D2_INLINE constexpr int firstPixel(int tile) { return tile * Small + least(tile, int(Large)); }

    // Pixel p of the sequence, which begins at line y.
    static N2D2_INLINE Out* pixel(unsigned char* out, int y, int p) {
        if (FlatOut || Streamed)
            return line<Output>(out, y) + static_cast<long>(p) * Output::Stride;
        return line<Output>(out, y + p / OW) + p % OW * Output::Stride;
    }

    // ---- windows ----------------------------------------------------------------------------
    // The windows of `count` pixels of a line. What is arranged later is gathered for some pixels before, so that no
    // vector is loaded from bytes that are still on their way to memory.
    static N2D2_INLINE void gatherWindows(const In* const* rows, int x, int count, int channel, std::uint8_t* to) {
        if (Direct) {
            for (int i = 0; i < count; ++i)
                gatherParts<Windows>(rows, x + i, channel, to + i * Window);
            return;
        }
        constexpr int some = 16, pitch = Words * 4;
        std::uint8_t raw[Direct ? 1 : some * pitch + 64];
        for (int begin = 0; begin < count; begin += some) {
            const int end = least(count, begin + some);
            for (int i = begin; i < end; ++i) {
                std::uint8_t* const window = raw + (Direct ? 0 : (i - begin) * pitch);
                std::memset(window + (Direct ? 0 : pitch - 4), 0, Direct ? 0 : 4);
                gatherParts<typename Windows::Raw>(rows, x + i, channel, window);
            }
            for (int i = begin; i < end; ++i)
                Windows::arrange(raw + (Direct ? 0 : (i - begin) * pitch), to + i * Window);
        }
    }

    template <class Form>
    static N2D2_INLINE void gatherParts(const In* const* rows, int x, int channel, std::uint8_t* to) {
        constexpr int width = W, extent = Extent, step = Cfg::DilationWidth;
        constexpr bool run = Run;
        const int left = x * Cfg::StrideWidth - Cfg::PadLeft;
        const bool inside = left >= 0 && left + extent <= width;
        for (int u = 0; u < KH; ++u, to += KW * C * Size) {
            if (!rows[u]) {
                Form::template fill<KW * C>(Cfg::InputZero, to);
            } else if (run && inside) {
                Form::template copy<KW * C>(rows[u] + left * Input::Stride, to);
            } else {
                for (int v = 0; v < KW; ++v) {
                    const int column = left + v * step;
                    if (column >= 0 && column < width)
                        Form::template copy<C>(rows[u] + column * Input::Stride + channel, to + v * C * Size);
                    else
                        Form::template fill<C>(Cfg::InputZero, to + v * C * Size);
                }
            }
        }
    }

    // The windows of pixels [begin, end) of the sequence from line y on, one after the other.
    static N2D2_INLINE void gather(const unsigned char* in, int y, int begin, int end, int channel, std::uint8_t* to) {
        const In* rows[KH];
        int x = begin % OW;
        y += begin / OW;
        while (begin < end) {
            for (int u = 0; u < KH; ++u) {
                const int from = y * Cfg::StrideHeight - Cfg::PadTop + u * Cfg::DilationHeight;
                rows[u] = from >= 0 && from < H ? line<Input>(in, from) : nullptr;
            }
            const int stop = least(int(OW), x + end - begin);
            begin += stop - x;
            gatherWindows(rows, x, stop - x, channel, to);
            to += static_cast<long>(stop - x) * Window;
            x = 0;
            ++y;
        }
    }

    // ---- products ---------------------------------------------------------------------------
    struct At {
        unsigned char* out;
        int y;
        int first;
        N2D2_INLINE Out* operator()(int p) const { return pixel(out, y, first + p); }
    };

    template <int Count, int Panels_, int Last>
    static N2D2_INLINE void tile(const std::uint8_t* x, int y, int first, int output, unsigned char* out,
                                 const Weight* weights, const Sum* bias) {
        constexpr long pitch = InPlace ? long(Input::Stride) * static_cast<int>(sizeof(In)) : long(Window);
        const At at = {out, y, first};
        typedef typename Machine::template Tile<In, Count, Panels_, Words, Last, Stage> Tile;
        Tile::template run<pitch>(x, weights, bias, output, at);
    }

    // Tiles [begin, end) with the panels of one group; x: the window of the first pixel, y: line of the sequence.
    template <int Panels_, int Last>
    static N2D2_INLINE void tiles(const std::uint8_t* x, int y, int begin, int end, int output, unsigned char* out,
                                  const Weight* weights, const Sum* bias) {
        constexpr long pitch = InPlace ? long(Input::Stride) * static_cast<int>(sizeof(In)) : long(Window);
        constexpr bool large = Large > 0;
        int first = firstPixel(begin);
        if (large)
            for (const int stop = least(end, int(Large)); begin < stop; ++begin) {
                tile<Small + 1, Panels_, Last>(x, y, first, output, out, weights, bias);
                x += (Small + 1) * pitch;
                first += Small + 1;
            }
        for (; begin < end; ++begin) {
            tile<Small, Panels_, Last>(x, y, first, output, out, weights, bias);
            x += Small * pitch;
            first += Small;
        }
    }

    // The panels of a group; `index` counts the groups of panels of all groups of channels.
    static N2D2_INLINE void panels(const std::uint8_t* x, int y, int begin, int end, int index, unsigned char* out,
                                   const Weight* weights, const Sum* bias) {
        const int group = index % Groups;
        const int output = index / Groups * O + group * Group * 16;
        const Weight* const w =
            weights + static_cast<long>(index / Groups * O + group * Group * 16) * Words * Each;
        if (group + 1 < Groups)
            tiles<Group, 16>(x, y, begin, end, output, out, w, bias);
        else
            tiles<LastGroup, LastOutputs>(x, y, begin, end, output, out, w, bias);
    }

    static N2D2_INLINE const std::uint8_t* place(const unsigned char* in, int y, int tile, int channel) {
        return reinterpret_cast<const std::uint8_t*>(line<Input>(in, y) +
                                                     static_cast<long>(firstPixel(tile)) * Input::Stride + channel);
    }

    // ---- blocks -----------------------------------------------------------------------------
    static N2D2_INLINE void block(const unsigned char* in, unsigned char* out, int y, int begin, int end, int channels,
                                  int from, int to, const Weight* weights, const Sum* bias) {
        alignas(64) std::uint8_t buffer[BlockBytes + 64];
        if (!InPlace)
            gather(in, y, firstPixel(begin), firstPixel(end), channels * C, buffer);
        const std::uint8_t* const x = InPlace ? place(in, y, begin, channels * C) : buffer;
        for (int group = from; group < to; ++group)
            panels(x, y, begin, end, channels * Groups + group, out, weights, bias);
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Weight* weights,
                                const Sum* bias, const Rows& rows = Rows::all<Output>()) {
        if (Ordered) {
            serial(in, out, weights, bias);
            return;
        }
        const int end = Streamed ? rows.end : rows.begin + 1;
        for (int y = rows.begin; y < end; ++y)
            blocks(in, out, y, weights, bias);
    }

    // Multiply-accumulates of a layer, or of a line of a streamed one.
    static constexpr long Work = static_cast<long>(Cfg::Groups) * K * O * Pixels / N2D2_SIMD_SPEED;

    // All blocks of the sequence from line y on, in any order.
    static N2D2_INLINE void blocks(const unsigned char* in, unsigned char* out, int y, const Weight* weights,
                                   const Sum* bias) {
        constexpr bool parallel = Work >= N2D2_PARALLEL_WORK && int(Cfg::Groups) * Tiles * Groups > 1;
        Team<parallel>::run([=](const Member& member) N2D2_INLINE_LAMBDA {
            shared(member, in, out, y, 0, Tiles, weights, bias);
        });
    }

    // The share of a thread in tiles [first, stop): of their units, a tile with a group of panels, in rows of which a thread gets some
    // whole ones and parts of two others. Rows are tiles, so that windows are gathered once; where the weights are many, groups.
    static N2D2_INLINE void shared(const Member& member, const unsigned char* in, unsigned char* out, int y, int first,
                                   int stop, const Weight* weights, const Sum* bias) {
        constexpr bool byTiles = Weights <= 524288;
        const int columns = byTiles ? int(Groups) : stop - first;
        const long units = static_cast<long>(Groups) * (stop - first), all = Cfg::Groups * units;
        long begin = member.begin(all, member.self);
        const long end = member.begin(all, member.self + 1);
        while (begin < end) {
            const int channels = static_cast<int>(begin / units), row = static_cast<int>(begin % units / columns);
            const int column = static_cast<int>(begin % units % columns);
            const long left = least(end, (channels + 1) * units) - begin;
            const bool part = column > 0 || left < columns;
            const int rows = part ? 1 : static_cast<int>(left / columns);
            const int to = part ? static_cast<int>(least(long(columns), column + left)) : columns;
            if (byTiles)
                rectangle(in, out, y, first + row, first + row + rows, channels, column, to, weights, bias);
            else
                rectangle(in, out, y, first + column, first + to, channels, row, row + rows, weights, bias);
            begin += part ? to - column : static_cast<long>(rows) * columns;
        }
    }

    // Tiles [begin, end) with the groups of panels [from, to).
    static N2D2_NOINLINE void rectangle(const unsigned char* in, unsigned char* out, int y, int begin, int end, int channels,
                                        int from, int to, const Weight* weights, const Sum* bias) {
        for (; begin < end; begin += PerBlock)
            block(in, out, y, begin, least(end, begin + PerBlock), channels, from, to, weights, bias);
    }

    static N2D2_INLINE void serial(const unsigned char* in, unsigned char* out, const Weight* weights,
                                   const Sum* bias) {
        // The tiles of a block are cut into parts, so that few groups of panels too are work for some threads.
        constexpr int all = Cfg::Groups * Groups, tilesOfBlock = least(int(PerBlock), int(Tiles));
        constexpr int parts = all >= 8 ? 1 : least(tilesOfBlock, 8 / all);
        constexpr bool parallel = Work >= N2D2_PARALLEL_WORK && Work / Blocks >= N2D2_PARALLEL_WORK / 4;
        alignas(64) std::uint8_t buffer[Cfg::Groups * BlockBytes + 64];
        std::uint8_t* const windows = buffer;
        Team<parallel>::run([=](const Member& member) N2D2_INLINE_LAMBDA {
            for (int step = 0; step < Tiles;) {
                const int free = member.alone() ? 0 : together(step);
                const int count = free > PerBlock ? free : least(int(PerBlock), Tiles - step);
                const int begin = Cfg::Reverse ? Tiles - step - count : step;
                step += count;
                if (free > PerBlock) {
                    shared(member, in, out, 0, begin, begin + count, weights, bias);
                    member.wait();
                    continue;
                }
                member.share(Cfg::Groups * parts, [=](int index) N2D2_INLINE_LAMBDA {
                    part(in, begin, count, index / parts, index % parts, parts, windows);
                });
                member.wait();
                member.share(all * parts, [=](int index) N2D2_INLINE_LAMBDA {
                    const int group = index / parts, first = begin + index % parts * count / parts;
                    const int offset = (firstPixel(first) - firstPixel(begin)) * Window;
                    panels(windows + group / Groups * BlockBytes + offset, 0, first,
                           begin + (index % parts + 1) * count / parts, group, out, weights, bias);
                });
                member.wait();
            }
        });
    }

    // How many tiles from step `step` on, counted in the order in which they are made, cover nothing that is still read.
    static N2D2_INLINE int together(int step) {
        typedef WindowOrder<Cfg> Order;
        if (!Order::Known)
            return 0;
        int tile = step;
        if (Cfg::Reverse) {
            const int stop = Tiles - step;
            const long limit = Order::behind((firstPixel(stop) - 1) / OW, Order::Pixel);
            for (tile = stop; tile > 0 && firstPixel(tile - 1) >= limit; --tile) {}
            return stop - tile;
        }
        const long limit = Order::before(firstPixel(step) / OW, Order::Pixel);
        while (tile < Tiles && firstPixel(tile + 1) <= limit)
            ++tile;
        return tile - step;
    }

    // The windows of one of `parts` parts of a block. What copying writes behind them belongs to the next part, so the
    // last window goes through a buffer of its own.
    static N2D2_INLINE void part(const unsigned char* in, int begin, int count, int channels, int index, int parts,
                                 std::uint8_t* windows) {
        const int first = firstPixel(begin + index * count / parts);
        const int last = firstPixel(begin + (index + 1) * count / parts) - 1;
        std::uint8_t* const to = windows + channels * BlockBytes + (first - firstPixel(begin)) * Window;
        if (last < first)
            return;
        gather(in, 0, first, last, channels * C, to);
        alignas(64) std::uint8_t window[Window + 64];
        gather(in, 0, last, last + 1, channels * C, window);
        std::memcpy(to + (last - first) * Window, window, Window);
    }
};

}  // namespace n2d2

#endif  // N2D2_PANELS_PANEL_CONVOLUTION_HPP
