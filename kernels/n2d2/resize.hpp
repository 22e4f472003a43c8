// Resampling of images: nearest neighbour and bilinear.
//
//   resizeNearest   out[y][x][c] = Epilogue(in[floor(y * H / OH)][floor(x * W / OW)][c])
//   resizeBilinear  out[y][x][c] = Epilogue(wy0 * h(y0) + wy1 * h(y1)),  h(r) = wx0 * (in[r][x0][c] - Zero) + wx1 * (in[r][x1][c] - Zero)
//
// The positions and weights of a bilinear axis are tables of the layer: integer weights of a position add up to one number for
// the axis, and dividing by that of both axes is part of the rescale; in floating point they add up to 1, and Zero is 0.
// H, W and OH, OW are the sizes of Input and Output.
//
// Config: planes Input, Output; types Epilogue, Isa; enum Serial, Reverse; resizeBilinear: types Sum, Weight, enum Zero.
// Line order: out line y is stored while in lines >= floor(y * H / OH), or y0 of line y (with Reverse: <=, or <= y1), are intact.
#pragma once

#include "n2d2/pointwise.hpp"

namespace n2d2 {

template <class Cfg, class Isa = typename Cfg::Isa>
struct ResizeNearest {
    N2D2_PLANES(Cfg);
    enum : int { C = Output::Channels, H = Output::Height, W = Output::Width };
    static_assert(int(Input::Channels) == int(Output::Channels), "resampling keeps the number of channels");

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Rows& rows = Rows::all<Output>()) {
        constexpr int height = Input::Height, width = Input::Width;
        LayerTasks<Cfg, 1, static_cast<long>(C) * W>::run(rows, [=](int y, int) N2D2_INLINE_LAMBDA {
            const typename Input::Type* const from = line<Input>(in, y * height / H);
            typename Output::Type* const to = line<Output>(out, y);
            for (int x = 0; x < W; ++x)
                for (int c = 0; c < C; ++c)
                    to[x * Output::Stride + c] = Cfg::Epilogue::apply(from[x * width / W * Input::Stride + c], c);
        });
    }
};

// The two input positions and weights of each output position of an axis.
template <class Weight>
struct ResizeAxis {
    const std::uint16_t* first;
    const std::uint16_t* second;
    const Weight* weights;  // those of first, then those of second
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct ResizeBilinear {
    N2D2_PLANES(Cfg);
    typedef typename Cfg::Sum Sum;
    typedef ResizeAxis<typename Cfg::Weight> Axis;
    enum : int {
        C = Output::Channels,
        H = Output::Height,
        W = Output::Width,
        Tile = C < 64 ? int(C) : 64,
        Rest = C % Tile,
        Piece = C >= 64 ? 1 : least(int(W), 64 / int(Tile)),
        LastPixels = W % Piece
    };
    static_assert(int(Input::Channels) == int(Output::Channels), "resampling keeps the number of channels");

    static N2D2_INLINE Sum across(const In* row, int first, int second, Sum w0, Sum w1) {
        return unfused(times<Sum>(w0, row[first])) + unfused(times<Sum>(w1, row[second]));
    }

    // Pixels [x, x + Count) of a line, Tile channels at a time; pixels of few channels share the vectors of the epilogue. All sums of a
    // tile are made before the first of its elements is stored.
    template <int Count>
    static N2D2_INLINE void pixels(const In* upper, const In* lower, Sum v0, Sum v1, const Axis& columns, int x, Out* to) {
        constexpr int tile = Tile, rest = Rest, channels = C;
        for (int c = 0; c + tile <= channels; c += tile)
            part<Count, tile>(upper + c, lower + c, v0, v1, columns, x, to + c);
        if (rest > 0)
            part<Count, (rest > 0 ? rest : 1)>(upper + channels - rest, lower + channels - rest, v0, v1, columns, x,
                                               to + channels - rest);
    }

    template <int Count, int Channels>
    static N2D2_INLINE void part(const In* upper, const In* lower, Sum v0, Sum v1, const Axis& columns, int x, Out* to) {
        alignas(64) Sum sums[Count * Channels];
        Out results[Count * Channels];
        constexpr int zero = Cfg::Zero;
        for (int p = 0; p < Count; ++p) {
            const int first = columns.first[x + p] * Input::Stride, second = columns.second[x + p] * Input::Stride;
            const Sum w0 = static_cast<Sum>(columns.weights[x + p]), w1 = static_cast<Sum>(columns.weights[W + x + p]);
            const Sum moved = zero != 0 ? static_cast<Sum>(zero) * (v0 + v1) * (w0 + w1) : Sum(0);
            for (int c = 0; c < Channels; ++c)
                sums[p * Channels + c] = unfused(times<Sum>(v0, across(upper + c, first, second, w0, w1))) +
                                         unfused(times<Sum>(v1, across(lower + c, first, second, w0, w1))) - moved;
        }
        EpilogueRun<typename Cfg::Epilogue, false, Isa>::template run<Count * Channels>(sums, 0, results);
        for (int p = 0; p < Count; ++p)
            copyBytes(to + (x + p) * Output::Stride, results + p * Channels, Channels * sizeof(Out));
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Axis& lines, const Axis& columns,
                                const Rows& rows = Rows::all<Output>()) {
        LayerTasks<Cfg, 1, 6L * C * W>::run(rows, [=](int y, int) N2D2_INLINE_LAMBDA {
            const In* const upper = line<Input>(in, lines.first[y]);
            const In* const lower = line<Input>(in, lines.second[y]);
            const Sum v0 = static_cast<Sum>(lines.weights[y]), v1 = static_cast<Sum>(lines.weights[H + y]);
            typename Output::Type* const to = line<Output>(out, y);
            constexpr int piece = Piece, last = LastPixels;
            int x = 0;
            for (; x + piece <= W; x += piece)
                pixels<piece>(upper, lower, v0, v1, columns, x, to);
            if (last > 0)
                pixels<(last > 0 ? last : 1)>(upper, lower, v0, v1, columns, x, to);
        });
    }
};

N2D2_LAYER(resizeNearest, ResizeNearest<Cfg>)
N2D2_LAYER(resizeBilinear, ResizeBilinear<Cfg>)

}  // namespace n2d2
