// The matrix product of a convolution in the registers of AMX: 32 pixels times 32 outputs at a time, 64 inputs an instruction.
//
// The counterpart of PanelTiles (for microkernels) in PanelConvolution. Two registers hold 16 pixels each of 64 bytes of their windows, two others 16
// outputs each of as many weights, as the panels have them, four the sums, which begin as the bias. They are stored to a buffer, and
// the epilogue of AVX-512 takes them from there while the products of the next pixels are made.
//
// All products of a layer have one shape, as changing it takes as long as nine products: Rows pixels, up to 64 inputs. What windows have beyond
// their inputs meets weights of zero, from a copy of the last ones; outputs beyond the last meet zeros too. The pixels are
// cut into pairs of Rows, of which the last may have less: its windows are never read in place, others may be, as those of
// PanelTiles, where none of their lines of 64 bytes lies in two lines of the cache, which takes five times as long.
//
// Stack: the windows, up to 256 KB or those of a pair, the sums of two pairs, 8 KB, and the last panel, if it has not 16 outputs.
#pragma once

#include "n2d2/output.hpp"
#include "n2d2/packed.hpp"
#include "n2d2/panels/panel_convolution.hpp"
#include "n2d2/residual.hpp"
#include "n2d2/tuning.hpp"
#include "n2d2/x86/amx.hpp"
#include "n2d2/x86/avx512.hpp"
#include "n2d2/x86/avx512_tile.hpp"

namespace n2d2 {
namespace amx {

// The sums of the AMX registers, computed by AVX-512 where the system does not give them: one function for all layers of a source file,
// so that a layer is compiled once.
//
// Sums of Panels panels of 16 outputs for some pixels: bias + the products of their windows, `pitch` bytes apart, with `weights`, both of
// `words` words of four inputs. 16 * Panels sums to a pixel go to `to`.
template <int Panels>
struct Instead {
    const std::uint8_t* x;
    long pitch;
    const std::int8_t* weights[2];
    const std::int32_t* bias[2];
    int words;
    std::int32_t* to;

    template <int Pixels>
    N2D2_INLINE void some() {
        __m512i sums[Pixels][Panels];
        N2D2_UNROLL_FOR(i, Pixels * Panels)
            sums[i / Panels][i % Panels] = _mm512_loadu_si512(bias[i % Panels]);
        const std::uint8_t* four[(Pixels + 3) / 4];  // pixels have few pointers, so that all are in registers
        N2D2_UNROLL_FOR(i, (Pixels + 3) / 4)
            four[i] = x + 4 * i * pitch;
        for (int q = 0; q < words; ++q) {
            __m512i w[Panels];
            N2D2_UNROLL_FOR(n, Panels)
                w[n] = _mm512_loadu_si512(weights[n] + 64 * q);
            N2D2_UNROLL_FOR(p, Pixels) {
                std::int32_t word;
                std::memcpy(&word, four[p / 4] + p % 4 * pitch + 4 * q, 4);
                const __m512i xs = _mm512_set1_epi32(word);
                N2D2_UNROLL_FOR(n, Panels)
                    avx512::dot(sums[p][n], xs, w[n]);
            }
        }
        N2D2_UNROLL_FOR(i, Pixels * Panels)
            _mm512_storeu_si512(to + 16 * i, sums[i / Panels][i % Panels]);
        x += Pixels * pitch;
        to += Pixels * Panels * 16;
    }

    // Of an even number of pixels.
    N2D2_NOINLINE void run(int pixels) {
        for (; pixels >= 12; pixels -= 12)
            some<12>();
        for (; pixels >= 4; pixels -= 4)
            some<4>();
        for (; pixels > 0; pixels -= 2)
            some<2>();
    }
};

// Windows as those of AVX-512, which begin at lines of the cache.
struct Form {
    template <class In, int Words>
    struct Windows : avx512::Microkernel::Windows<In, Words> {
        enum : int { Bytes = (4 * Words + 63) / 64 * 64 };
    };
};

// The layer with its windows on the stack.
template <class Cfg>
struct OnStack : Cfg {
    enum : int { ScratchBytes = 0, ScratchBase = 0 };
    enum : long { ScratchAt = 0 };
};

template <class Cfg>
struct TileProduct {
    typedef PanelIm2col<Cfg, Form> Im2col;
    typedef typename Im2col::Windows Windows;
    N2D2_WINDOWS(Cfg);
    N2D2_WEIGHTS(Cfg);
    typedef PackedWeights<Cfg> Packing;
    typedef typename Packing::Stored Stored;

    enum : int {
        Faster = 3,
        C = Im2col::C,
        O = int(Output::Channels) / Cfg::Groups,
        Words = Im2col::Words,
        Window = Im2col::Window,
        Streamed = Cfg::Streamed,
        Pixels = (Streamed ? 1 : int(OH)) * OW,
        Panels = (O + 15) / 16,
        LastOutputs = O - 16 * (Panels - 1),
        Group = least(int(Panels), 2),
        Groups = (Panels + Group - 1) / Group,
        LastGroup = Panels - (Groups - 1) * Group,
        Ordered = Cfg::Serial && !Cfg::Streamed,
        StepWords = least(16, int(Words)),
        Steps = Words / StepWords,      // of whole words
        RestWords = Words % StepWords,  // of one more
        Rows = (Pixels + (Pixels + 31) / 32 * 2 - 1) / ((Pixels + 31) / 32 * 2),
        Pair = 2 * Rows,  // pixels of a tile
        Tiles = (Pixels + Pair - 1) / Pair,
        Weights = O * Im2col::K,
        Flat = PlaneTraits<Input>::Flat,
        Unpadded = Cfg::PadTop == 0 && Cfg::PadLeft == 0 && int(OH) == int(H) && int(OW) == int(W),
        Aligned = int(Input::Stride) % 64 == 0 || (int(Input::Stride) == C && 64 % C == 0),
        InPlace = KH == 1 && KW == 1 && Unpadded && (Flat || Streamed) && bool(Windows::Plain) && C % 4 == 0 && Aligned &&
                  (RestWords == 0) && !Ordered,
        Ragged = InPlace && Pixels % Pair != 0,
        // Bytes of windows that stay in the second-level cache.
        Budget = Ordered ? 65536 : 262144,
        PerBlock = InPlace ? int(Tiles) : largest(1, Budget / (Window * Pair)),
        Blocks = (Tiles + PerBlock - 1) / PerBlock,
        BlockBytes = Window * Pair * (InPlace ? 1 : least(int(PerBlock), int(Tiles)))
    };
    enum : bool { UnpacksOnce = false };
    enum : long { Pitch = InPlace ? long(Input::Stride) : long(Window) };
    enum : long { PanelBytes = 64L * Words };

    static N2D2_INLINE constexpr int firstPixel(int tile) { return least(tile * Pair, int(Pixels)); }

    static N2D2_INLINE void begin() {
        if (!granted())
            return;
        Shapes shapes = {};
        shapes.palette = 1;
        for (int i = 0; i < 8; ++i) {
            shapes.bytes[i] = i == 4 || i == 5 ? 4 * StepWords : 64;
            shapes.lines[i] = i < 6 ? Rows : StepWords;
        }
        configure(shapes);
    }
    static N2D2_INLINE void end() {
        if (granted())
            release();
    }

    template <int Count>
    static N2D2_INLINE void step(const std::uint8_t* x, long pitch, const std::int8_t* first, const std::int8_t* second) {
        load<4>(x, pitch);
        load<6>(first, 64);
        dot<0, 4, 6>();
        load<5>(x + Rows * pitch, pitch);
        dot<2, 5, 6>();
        if (Count > 1) {
            load<7>(second, 64);
            dot<1, 4, 7>();
            dot<3, 5, 7>();
        }
    }

    // A panel of Outputs outputs as the registers take it: its whole steps, the rest, filled up with zeros, and the bias.
    template <int Outputs, bool Part = (Outputs < 16)>
    struct Panel {
        const std::int8_t* const whole;
        const Sum* const bias;
        alignas(64) std::int8_t rest[RestWords > 0 ? 1024 : 64];

        N2D2_INLINE Panel(const std::int8_t* w, const Sum* from) : whole(w), bias(from) {
            if (RestWords > 0) {
                std::memcpy(rest, w + Steps * StepWords * 64, RestWords * 64);
                std::memset(rest + RestWords * 64, 0, sizeof(rest) - RestWords * 64);
            }
        }
    };
    template <int Outputs>
    struct Panel<Outputs, true> {
        enum : int { All = (Words + StepWords - 1) / StepWords * StepWords };
        alignas(64) std::int8_t whole[All * 64];
        alignas(64) Sum bias[16];
        const std::int8_t* const rest;

        N2D2_INLINE Panel(const std::int8_t* w, const Sum* from) : rest(whole + (All - StepWords) * 64) {
            const __mmask16 some = avx512::first16(Outputs);
            for (int q = 0; q < Words; ++q)
                _mm512_store_si512(whole + q * 64, _mm512_maskz_loadu_epi32(some, w + q * Outputs * 4));
            for (int q = Words; q < All; ++q)
                _mm512_store_si512(whole + q * 64, _mm512_setzero_si512());
            _mm512_store_si512(bias, _mm512_maskz_loadu_epi32(some, from));
        }
    };
    // No second panel.
    struct None {
        const std::int8_t *const whole, *const rest;
        const Sum* const bias;
        N2D2_INLINE None(const std::int8_t* w, const Sum* from) : whole(w), rest(w), bias(from) {}
    };

    typedef typename PanelTiles<Cfg, avx512::Microkernel>::At At;

    // Sums that wait for their epilogue: those of pixels [done, end) of the sequence, 16 * Count to a pixel.
    template <int Count, int Last>
    struct Waiting {
        enum : int { Some = Count == 1 ? 4 : 2 };  // pixels, four vectors of outputs
        const std::int32_t* sums;
        int done, end, output;

        template <int Several>
        struct Finish {
            typedef avx512::Tile<In, Several, Count, Words, Last, typename OwnEpilogue<Epilogue>::Type> Tile;
            template <class Place>
            static N2D2_INLINE void store(const __m512i (&all)[Several][Count], int output, const Place& at) {
                Tile::store(all, output, at);
            }
        };
        template <int Several>
        N2D2_INLINE void pixels(unsigned char* out, int y) {
            __m512i all[Several][Count];
            N2D2_UNROLL_FOR(i, Several * Count)
                all[i / Count][i % Count] = _mm512_load_si512(sums + 16 * i);
            const At at = {out, y, done};
            const bool once[4] = {true, true, true, true};
            typedef TileEnd<Epilogue, Several, 16 * (Count - 1) + Last> End;
            End::template store<Finish<Several> >(all, output, at, once);
            done += Several;
            sums += Several * Count * 16;
        }
        N2D2_INLINE void some(unsigned char* out, int y) {
            if (end - done >= Some) {
                pixels<Some>(out, y);
                return;
            }
            while (done < end)
                pixels<1>(out, y);
        }
        // Of few pixels: a function of its own, which is compiled once.
        N2D2_NOINLINE void all(unsigned char* out, int y) {
            while (done < end)
                some(out, y);
        }
    };

    // Tiles [begin, end) with Count panels of which the last has Last outputs; x: the windows of the first; last: those of the last tile of all.
    template <int Count, int Last>
    static N2D2_NOINLINE void tiles(const std::uint8_t* x, const std::uint8_t* last, int y, int begin, int end, int output,
                                    unsigned char* out, const Weight* weights, const Sum* bias) {
        constexpr bool two = Count > 1, rest = RestWords > 0;
        const Panel<two ? 16 : Last> first(weights, bias + output);
        const typename Choice<two, Panel<Last>, None>::Type second(weights + (two ? long(PanelBytes) : 0),
                                                                   bias + output + (two ? 16 : 0));
        alignas(64) std::int32_t sums[2][Pair * Count * 16];
        typedef Waiting<Count, Last> Sums;
        Sums waiting = {sums[0], 0, 0, output};
        constexpr int steps = Steps + (RestWords > 0), chunks = (Pair + Sums::Some - 1) / Sums::Some;
        constexpr int each = (chunks + steps - 1) / steps;  // beside a step
        long pitch = Pitch;
        const bool registers = granted();
        for (int tile = begin; tile < end; ++tile, x += Pair * Pitch) {
            if (Ragged && tile == Tiles - 1) {
                x = last;
                pitch = Window;
            }
            std::int32_t* const to = sums[tile & 1];
            if (registers) {
                load<0>(first.bias, 0);
                load<2>(first.bias, 0);
                if (two) {
                    load<1>(second.bias, 0);
                    load<3>(second.bias, 0);
                }
                for (int s = 0; s < Steps; ++s) {
                    step<Count>(x + s * StepWords * 4, pitch, first.whole + s * StepWords * 64,
                                second.whole + s * StepWords * 64);
                    for (int i = 0; i < each; ++i)
                        waiting.some(out, y);
                }
                if (rest)
                    step<Count>(x + Steps * StepWords * 4, pitch, first.rest, second.rest);
            } else {
                Instead<Count> instead = {x, pitch, {first.whole, second.whole}, {first.bias, second.bias}, Words, to};
                instead.run(Pair);
            }
            waiting.all(out, y);
            if (registers) {
                amx::store<0>(to, 64 * Count);
                amx::store<2>(to + Rows * Count * 16, 64 * Count);
                if (two) {
                    amx::store<1>(to + 16, 64 * Count);
                    amx::store<3>(to + 16 + Rows * Count * 16, 64 * Count);
                }
            }
            waiting.sums = to;
            waiting.done = tile * Pair;
            waiting.end = firstPixel(tile + 1);
        }
        waiting.all(out, y);
    }

    // The panels of a group; `index` counts the groups of panels of all groups of channels.
    static N2D2_INLINE void panels(const std::uint8_t* x, int y, int begin, int end, int index, unsigned char* out,
                                   const Stored* weights, const Sum* bias) {
        panels(x, x, y, begin, end, index, out, weights, bias);
    }
    static N2D2_INLINE void panels(const std::uint8_t* x, const std::uint8_t* last, int y, int begin, int end, int index,
                                   unsigned char* out, const Stored* weights, const Sum* bias) {
        const int group = index % Groups;
        const int output = index / Groups * O + group * Group * 16;
        const long before = static_cast<long>(output) * Words * 4;
        if (group + 1 < Groups) {
            const WeightPanels<Packing, 16 * Group, Words, 4, Im2col::K> w(weights, before);
            tiles<Group, 16>(x, last, y, begin, end, output, out, w.first, bias);
        } else {
            const WeightPanels<Packing, 16 * (LastGroup - 1) + LastOutputs, Words, 4, Im2col::K> w(weights, before);
            tiles<LastGroup, LastOutputs>(x, last, y, begin, end, output, out, w.first, bias);
        }
    }

    // Tiles [begin, end) of a block with the groups of panels [from, to); their windows go to `buffer`, BlockBytes + 64 bytes.
    static N2D2_INLINE void block(const unsigned char* in, unsigned char* out, int y, int begin, int end, int channels,
                                  int from, int to, const Stored* weights, const Sum* bias, std::uint8_t* buffer) {
        const std::uint8_t* x = buffer;
        if (!InPlace) {
            Im2col::im2col(in, y, firstPixel(begin), firstPixel(end), channels * C, buffer);
        } else {
            x = reinterpret_cast<const std::uint8_t*>(line<Input>(in, y) +
                                                      static_cast<long>(firstPixel(begin)) * Input::Stride + channels * C);
            if (Ragged && end == Tiles)
                Im2col::im2col(in, y, firstPixel(end - 1), Pixels, channels * C, buffer);
        }
        for (int group = from; group < to; ++group)
            panels(x, buffer, y, begin, end, channels * Groups + group, out, weights, bias);
    }
};

// The layers that take the registers: by words of four inputs, panels of 16 outputs, and pixels. What a panel of a pixel gains grows with its
// words from the seventh on, because its sums are stored and loaded once more; a layer must make up for its begin and end, with 1,800
// of these. Fitted to the times of the layers of MobileNetV2, ResNet-8, and the keyword and person networks of MLPerf Tiny, with and without. One panel of windows
// that AVX-512 reads from lines gains less than their gathering costs.
template <class Cfg, bool Bytes = sizeof(typename Cfg::Input::Type) == 1 && sizeof(typename Cfg::Weight) == 1>
struct Pays {
    enum : bool { value = false };
};
template <class Cfg>
struct Pays<Cfg, true> {
    typedef TileProduct<OnStack<Cfg> > Product;
    typedef PanelTiles<Cfg, avx512::Microkernel> Vectors;
    enum : int { Words = Product::Words, Panels = Product::Panels, Pixels = Product::Pixels };
    enum : bool {
#if defined(N2D2_AMX_ALWAYS)  // for tests
        Faster = true,
#else
        Faster = Pixels >= 16 && Words >= 8 && long(Pixels) * Panels * (Words - 6) >= 1800 && (Panels > 1 || !Vectors::ByLines),
#endif
        // A last panel of few outputs is copied to the stack.
        Fits = int(Product::LastOutputs) == 16 || Words <= 512,
        value = int(TileOf<Cfg>::Pixels) == 0 && Faster && Fits
    };
};

template <class Cfg, bool = bool(Pays<Cfg>::value)>
struct Convolution : PanelConvolution<Cfg, avx512::Microkernel> {};

template <class Cfg>
struct Convolution<Cfg, true> : PanelConvolution<OnStack<Cfg>, Form, TileProduct<OnStack<Cfg> > > {};

}  // namespace amx
}  // namespace n2d2
