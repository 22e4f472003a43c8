// Chosen positions of each axis.
//
//   out[y][x][c] = Epilogue(in[Lines::at(y)][Columns::at(x)][Taken::at(c)])
//
// Input and output are disjoint. Config: planes Input, Output; types Lines, Columns, Taken, Epilogue, Isa.
#pragma once

#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

// Positions First, First + Step, First + 2 Step, ...
template <int First, int Step>
struct TakeRange {
    static N2D2_INLINE int at(int i) { return First + i * Step; }
};

// Positions in a table.
template <const std::int32_t* Table>
struct TakeTable {
    static N2D2_INLINE int at(int i) { return Table[i]; }
};

// Groups of positions taken in turn, Step apart, each from the group's first one on: First, First + Step, ..., First + 1, ...
template <int First, int Groups, int Step>
struct TakeTurns {
    static N2D2_INLINE int at(int i) { return First + i % Groups * Step + i / Groups; }
};

// Channels [First, First + Count) of a pixel, in a local array first: the compiler need not prove that the buffers are apart.
template <class Taken>
struct TakeChannels {
    template <class Epilogue, int Count, class In>
    static N2D2_INLINE void run(const In* from, int first, typename Epilogue::Type* to) {
        typename Epilogue::Type values[Count];
        for (int c = 0; c < Count; ++c)
            values[c] = Epilogue::apply(from[Taken::at(first + c)], first + c);
        copyBytes(to + first, values, sizeof(values));
    }
};

// `first` is a multiple of Groups, so that the turns are loops without a division.
template <int First, int Groups, int Step>
struct TakeChannels<TakeTurns<First, Groups, Step> > {
    template <class Epilogue, int Count, class In>
    static N2D2_INLINE void run(const In* from, int first, typename Epilogue::Type* to) {
        constexpr int whole = Count / Groups;
        const In* const turn = from + First + first / Groups;
        typename Epilogue::Type values[Count];
        for (int i = 0; i < whole; ++i)
            for (int g = 0; g < Groups; ++g)
                values[i * Groups + g] = Epilogue::apply(turn[g * Step + i], first + i * Groups + g);
        for (int c = whole * Groups; c < Count; ++c)
            values[c] = Epilogue::apply(turn[c % Groups * Step + whole], first + c);
        copyBytes(to + first, values, sizeof(values));
    }
};

// The number of positions that make a whole number of turns.
template <class Taken>
struct TurnsOf {
    enum : int { value = 1 };
};
template <int First, int Groups, int Step>
struct TurnsOf<TakeTurns<First, Groups, Step> > {
    enum : int { value = Groups };
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct IndexSelect {
    N2D2_PLANES(Cfg);
    typedef TakeChannels<typename Cfg::Taken> Chosen;
    typedef typename Cfg::Epilogue Epilogue;
    enum : int {
        C = Output::Channels,
        W = Output::Width,
        Turn = TurnsOf<typename Cfg::Taken>::value,
        Tile = Turn < 256 ? 256 / Turn * Turn : int(Turn),
        Rest = C % Tile
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out) {
        constexpr int rest = Rest;
        Tasks<false, Output::Height, 1, static_cast<long>(C) * W>::run([=](int y, int) N2D2_INLINE_LAMBDA {
            const typename Input::Type* const from = line<Input>(in, Cfg::Lines::at(y));
            typename Output::Type* const to = line<Output>(out, y);
            for (int x = 0; x < W; ++x) {
                const typename Input::Type* const pixel = from + Cfg::Columns::at(x) * Input::Stride;
                for (int c = 0; c + Tile <= C; c += Tile)
                    Chosen::template run<Epilogue, Tile>(pixel, c, to + x * Output::Stride);
                if (rest > 0)
                    Chosen::template run<Epilogue, (Rest > 0 ? int(Rest) : 1)>(pixel, C - rest, to + x * Output::Stride);
            }
        });
    }
};

N2D2_LAYER(indexSelect, IndexSelect<Cfg>)

}  // namespace n2d2
