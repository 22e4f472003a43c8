// Two-dimensional convolution of 3 x 3 windows with stride 1 by Winograd's F(4 x 4, 3 x 3), in integers, exactly.
//
// Four by four outputs are made of six by six inputs d and a window g with 36 products instead of 144, Y = A' ((G g G') * (B' d B)) A:
//
//   B' = 4  0 -5  0  1  0     S G = 6  0  0     T A' = 1  -4  -4  1   1  0     T = 24
//        0 -4 -4  1  1  0           1  1  1            0  -2   2  1  -1  0         12
//        0  4 -4 -1  1  0           1 -1  1            0  -1  -1  1   1  0          6
//        0 -2 -1  2  1  0           1  2  4            0  -1   1  2  -2  1          6
//        0  2 -1 -2  1  0           1 -2  4
//        0  4  0 -5  0  1           0  0  6
//
// S, with which the exporter transforms the weights, makes all integers: of at most 49 * 128. Inputs, bytes from 0 to 255, become integers of
// at most 68 * 255, in 16 bits too. Signed bytes count as unsigned ones + 128 (on ARM unsigned ones as signed ones - 128), for which the bias
// of the panels (`docs/reference/arithmetic.md`) makes up, as in the other kernels.
// The products are summed over the channels modulo 2^32. Output (u, v) of T m T' is the sum of the convolution times
// T[u] T[v] = 9 * 2^k, k of at most 6: times the inverse of 9 modulo 2^32 it is 2^k times the sum, which a shift gives where 64 times the
// sum fits into 32 bits; the exporter has proved that from the weights.
//
// The config is that of a convolution (convolution.hpp). The weights are 16-bit integers,
// [(O + 15) / 16][36 positions][(C + 1) / 2][outputs of the panel, of the last one rounded up to 8][2 inputs], or with WinogradOnStack those
// of the direct form.
#pragma once

#include "n2d2/residual.hpp"

namespace n2d2 {

template <class Cfg, class Isa = Native>
struct Winograd;

N2D2_LAYER(winograd, Winograd<Cfg>)

}  // namespace n2d2

#define N2D2_BIND_WINOGRAD
#include "n2d2/bindings.hpp"
#undef N2D2_BIND_WINOGRAD
