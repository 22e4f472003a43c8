// Two-dimensional convolution of 3 x 3 windows with stride 1 by Winograd's F(2 x 2, 3 x 3), in integers, exactly; where the config has
// WinogradTile = 4 by F(4 x 4, 3 x 3) (panels/winograd_fours.hpp).
//
// Two by two outputs are made of four by four inputs d and a window g with 16 products instead of 36:
//
//   Y = A' ((G g G') * (B' d B)) A        B' = 1  0 -1  0     2 G = 2  0  0     A' = 1  1  1  0
//                                              0  1  1  0           1  1  1          0  1 -1 -1
//                                              0 -1  1  0           1 -1  1
//                                              0  1  0 -1           0  0  2
//
// The exporter transforms the weights with 2 G instead of G: integers of at most 9 * 128, of which come sums 4 Y.
// Inputs, bytes from 0 to 255, become integers of at most 4 * 255. The products are summed over the channels in 32 bits, modulo
// 2^32: the exporter has proved from the weights that 4 Y fits, so that Y is 4 Y / 4 exactly. Signed bytes count as unsigned ones + 128
// (on ARM unsigned ones as signed ones - 128), for which the bias of the panels (`docs/reference/arithmetic.md`) makes up, as in the other kernels.
//
// The config is that of a convolution (convolution.hpp). The weights are 16-bit integers:
// [(O + 15) / 16][16 or 36 positions][(C + 1) / 2][outputs of the panel, of the last one rounded up to 8][2 inputs].
#ifndef N2D2_WINOGRAD_HPP
#define N2D2_WINOGRAD_HPP

#include "n2d2/env.hpp"

namespace n2d2 {

template <class Cfg, class Isa>
struct Winograd;

template <class Cfg, class... Lines>
N2D2_INLINE void winograd(const unsigned char* in, unsigned char* out, const std::int8_t* weights, const std::int32_t* bias,
                          const Lines&... rows) {
    Winograd<Cfg, Native>::run(in, out, weights, bias, rows...);
}

}  // namespace n2d2

#define N2D2_BIND_WINOGRAD
#include "n2d2/bindings.hpp"

#endif  // N2D2_WINOGRAD_HPP
