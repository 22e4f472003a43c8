// Zeros around an image, or a crop where PadTop or PadLeft is negative.
//
//   out[y][x][c] = Epilogue(in[y - PadTop][x - PadLeft][c]), or Epilogue(InputZero) outside the input
//
// Config: planes Input, Output; types Epilogue, Isa; enum PadTop, PadLeft, InputZero, Serial, Reverse.
// Line order: out line y is stored while in lines >= y - PadTop (with Reverse: <= y - PadTop) are intact.
#pragma once

#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

template <class Cfg, class Isa = typename Cfg::Isa>
struct Padding {
    N2D2_PLANES(Cfg);
    enum : int { C = Output::Channels, W = Output::Width, InputWidth = Input::Width, InputHeight = Input::Height };
    static_assert(int(Input::Channels) == int(Output::Channels), "padding keeps the number of channels");

    static N2D2_INLINE void fill(Out* out) {
        for (int c = 0; c < C; ++c)
            out[c] = Cfg::Epilogue::apply(static_cast<In>(Cfg::InputZero), c);
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Rows& rows = Rows::all<Output>()) {
        LayerTasks<Cfg, 1, static_cast<long>(C) * W>::run(rows, [=](int y, int) N2D2_INLINE_LAMBDA {
            const int row = y - Cfg::PadTop;
            const In* const from = row >= 0 && row < InputHeight ? line<Input>(in, row) : nullptr;
            Out* const to = line<Output>(out, y);
            for (int x = 0; x < W; ++x) {
                const int column = x - Cfg::PadLeft;
                if (from && column >= 0 && column < InputWidth)
                    for (int c = 0; c < C; ++c)
                        to[x * Output::Stride + c] = Cfg::Epilogue::apply(from[column * Input::Stride + c], c);
                else
                    fill(to + x * Output::Stride);
            }
        });
    }
};

N2D2_LAYER(padding, Padding<Cfg>)

}  // namespace n2d2
