// Blocks of Block x Block pixels from groups of channels, and back.
//
//   depthToSpace  out[y][x][c] = Epilogue(in[y / Block][x / Block][depth(y % Block, x % Block, c)])
//   spaceToDepth  out[y][x][depth(i, j, c)] = Epilogue(in[y * Block + i][x * Block + j][c])
//
// with depth(i, j, c) = (i * Block + j) * C + c, or with ChannelsFirst c * Block * Block + i * Block + j, C being the
// channels of the side with more pixels. Input and output are disjoint.
// Config: planes Input, Output; types Epilogue, Isa; enum Block, ChannelsFirst.
#pragma once

#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

template <class Cfg, int C>
N2D2_INLINE int blockDepth(int i, int j, int c) {
    constexpr int block = Cfg::Block;
    return Cfg::ChannelsFirst != 0 ? (c * block + i) * block + j : (i * block + j) * C + c;
}

template <class Cfg>
N2D2_INLINE void depthToSpace(const unsigned char* in, unsigned char* out) {
    N2D2_PLANES(Cfg);
    constexpr int block = Cfg::Block, channels = Output::Channels, width = Output::Width;
    static_assert(int(Input::Channels) == channels * block * block, "a pixel of the input holds a block of the output");
    Tasks<false, Output::Height, 1, static_cast<long>(channels) * width>::run([=](int y, int) N2D2_INLINE_LAMBDA {
        const In* const from = line<Input>(in, y / block);
        Out* const to = line<Output>(out, y);
        for (int x = 0; x < width; ++x)
            for (int c = 0; c < channels; ++c)
                to[x * Output::Stride + c] = Cfg::Epilogue::apply(
                    from[x / block * Input::Stride + blockDepth<Cfg, channels>(y % block, x % block, c)], c);
    });
}

template <class Cfg>
N2D2_INLINE void spaceToDepth(const unsigned char* in, unsigned char* out) {
    N2D2_PLANES(Cfg);
    constexpr int block = Cfg::Block, channels = Input::Channels, width = Output::Width;
    static_assert(int(Output::Channels) == channels * block * block, "a pixel of the output holds a block of the input");
    Tasks<false, Output::Height, 1, static_cast<long>(Output::Channels) * width>::run([=](int y, int) N2D2_INLINE_LAMBDA {
        Out* const to = line<Output>(out, y);
        for (int i = 0; i < block; ++i) {
            const In* const from = line<Input>(in, y * block + i);
            for (int x = 0; x < width; ++x)
                for (int j = 0; j < block; ++j)
                    for (int c = 0; c < channels; ++c) {
                        const int depth = blockDepth<Cfg, channels>(i, j, c);
                        to[x * Output::Stride + depth] = Cfg::Epilogue::apply(from[(x * block + j) * Input::Stride + c], depth);
                    }
        }
    });
}

}  // namespace n2d2
