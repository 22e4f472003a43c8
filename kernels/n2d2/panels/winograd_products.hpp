// The matrix products of a Winograd convolution (panel_winograd.hpp): for each position of the transforms, tiles times a panel of weights.
//
// Microkernel: Vec, its primitives (panels/vec.hpp); Inputs and Sums, vectors of inputs and of sums;
//   StepWords, the words (of two channels) whose inputs are taken at once;
//   Row<Outputs>, the weights of a word: Vectors of sums, Bytes, and add<Index>(sums, inputs of one tile), which adds the products with
//   word Index of a step;
//   Step<Count>, the inputs of a step of tiles that lie some bytes apart: at<Index>(t), those of tile t that add<Index> takes.
#pragma once

#include "n2d2/env.hpp"

namespace n2d2 {

// Products of a tile with a weight: one of each of six by six transformed inputs.
enum : int { WinogradPositions = 36 };

// The addresses of the four pixels of a line of a tile.
template <class Out>
struct WinogradPixels {
    Out* pixels[4];
    N2D2_INLINE Out* operator()(int p) const { return pixels[p]; }
};

// Of a Microkernel: 16 bits for a transformed input, and weights that the exporter transformed, a panel of 16 outputs after the other.
// BlockInputs: bytes of the inputs of a block that are worth a place in the cache; LeastTiles: tiles of a block, where there are so many;
// PanelGap: bytes between the positions of a panel; OnStack: whether weights are transformed when they are needed; Parts<Cfg>: parts of the
// channels, each of which has a panel of its own.
struct TransformedWeights {
    typedef std::int8_t Stored;
    enum : int { BlockInputs = 65536, LeastTiles = 1, PanelGap = 0, OnStack = 0 };
    template <class Cfg>
    struct Parts {
        enum : int { value = 1 };
    };
    template <class Cfg, int Outputs>
    struct Panel {
        const std::int8_t* const first;
        N2D2_INLINE Panel(const Stored* weights, int output, int)
            : first(weights + output / 16 * (WinogradPositions * ((Cfg::Input::Channels + 1L) / 2) * 64)) {}
    };
};

// Count tiles with a panel of Outputs outputs, summed over Words words, and with Onto added to the products that are there; Group: tiles whose
// products lie side by side. A tile has Depth channels of 16 bits in each of its positions.
template <class Microkernel, int Count, int Group, int Depth, int Words, int Rest, int Outputs, bool Onto>
struct WinogradSums;
template <class Microkernel, int Count, int Group, int Depth, int Words, int Outputs, bool Onto = false>
struct WinogradProducts {
    enum : int { Rest = Words % Microkernel::StepWords };
    static N2D2_INLINE void run(const std::uint8_t* x, const std::int8_t* w, std::int32_t* products) {
        WinogradSums<Microkernel, Count, sharedSize(Group), sharedSize(Depth), sharedSize(Words), Rest, Outputs, Onto>::run(
            x, w, products, Group, Depth, Words);
    }
};

// Rest: words of the last step, 0 where all are whole.
template <class Microkernel, int Count, int Group, int Depth, int Words, int Rest, int Outputs, bool Onto>
struct WinogradSums {
    typedef typename Microkernel::Sums Sums;
    typedef typename Microkernel::template Row<Outputs> Row;
    enum : int { Vectors = Row::Vectors, Bytes = Row::Bytes, Step = Microkernel::StepWords };
    typedef typename Microkernel::template Step<Count> Inputs;

    template <int Index>
    static N2D2_INLINE void word(Sums (&sums)[Count][Vectors], const Inputs& inputs, const std::int8_t* w) {
        const Row row(w + Index * Bytes);
        N2D2_UNROLL_FOR(t, Count)
            row.template add<Index>(sums[t], inputs.template at<Index>(t));
    }
    template <int Some>
    static N2D2_INLINE void step(Sums (&sums)[Count][Vectors], const std::uint8_t* x, const std::int8_t* w, int tile) {
        static_assert(Step <= 4, "a step has at most four words");
        const Inputs inputs(x, tile);
        word<0>(sums, inputs, w);
        if (Some > 1)
            word<(Some > 1 ? 1 : 0)>(sums, inputs, w);
        if (Some > 2)
            word<(Some > 2 ? 2 : 0)>(sums, inputs, w);
        if (Some > 3)
            word<(Some > 3 ? 3 : 0)>(sums, inputs, w);
    }

    // A function of its own, which layers of the same depth share.
    static N2D2_NOINLINE void run(const std::uint8_t* x, const std::int8_t* w, std::int32_t* products, int group, int depth,
                                  int words) {
        const int whole = sizeOr<Words>(words) - Rest, place = 2 * sizeOr<Depth>(depth);
        const int tile = WinogradPositions * place;
        for (int position = 0; position < WinogradPositions; ++position) {
            Sums sums[Count][Vectors];
            N2D2_UNROLL_FOR(t, Count)
                N2D2_UNROLL_FOR(v, Vectors)
                    sums[t][v] = Onto ? Microkernel::Vec::loadAligned(products + 16 * t + Microkernel::SumLanes * v) :
                                        Microkernel::Vec::zero();
            for (int q = 0; q < whole; q += Step, w += Step * Bytes)
                step<Step>(sums, x + 4 * q, w, tile);
            if (Rest != 0)
                step<(Rest != 0 ? int(Rest) : 1)>(sums, x + 4 * whole, w, tile);
            N2D2_UNROLL_FOR(t, Count)
                N2D2_UNROLL_FOR(v, Vectors)
                    Microkernel::Vec::storeAligned(sums[t][v], products + 16 * t + Microkernel::SumLanes * v);
            x += place;
            w += Rest * Bytes + int(Microkernel::PanelGap);
            products += 16 * sizeOr<Group>(group);
        }
    }
};

// A group of `tiles` tiles, at most Most. Code for size multiplies Most of them or one.
template <class Microkernel, int Most, int Group, int Depth, int Words, int Outputs, bool Onto = false>
struct WinogradGroup {
    static N2D2_INLINE void run(int tiles, const std::uint8_t* x, const std::int8_t* w, std::int32_t* products) {
        if (tiles == Most)
            WinogradProducts<Microkernel, Most, Group, Depth, Words, Outputs, Onto>::run(x, w, products);
        else
            WinogradGroup<Microkernel, N2D2_SMALL_CODE ? 0 : Most - 1, Group, Depth, Words, Outputs, Onto>::run(tiles, x, w,
                                                                                                                products);
    }
};
template <class Microkernel, int Group, int Depth, int Words, int Outputs, bool Onto>
struct WinogradGroup<Microkernel, 0, Group, Depth, Words, Outputs, Onto> {
    static N2D2_INLINE void run(int tiles, const std::uint8_t* x, const std::int8_t* w, std::int32_t* products) {
        enum : int { Tile = WinogradPositions * Depth * 2 };
        for (; N2D2_SMALL_CODE && tiles > 0; --tiles, x += Tile, products += 16)
            WinogradProducts<Microkernel, 1, Group, Depth, Words, Outputs, Onto>::run(x, w, products);
    }
};

// Inputs of one word at a time, in every place of a vector.
template <class Microkernel>
struct WinogradWords {
    const std::uint8_t* const x;
    const int tile;
    N2D2_INLINE WinogradWords(const std::uint8_t* from, int tileBytes) : x(from), tile(tileBytes) {}
    template <int>
    N2D2_INLINE typename Microkernel::Inputs at(int t) const {
        return Microkernel::Vec::word(x + t * static_cast<long>(tile));
    }
};

}  // namespace n2d2
