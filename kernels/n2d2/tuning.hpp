// The tile of a layer's matrix product: chosen by the kernel, unless the config says it.
//
//   TilePixels   pixels of a tile
//   TilePanels   panels of 16 outputs of a tile
//   WindowBytes  bytes of windows that are gathered before they are multiplied
//
// 0, or no such constant, leaves the choice to the kernel. No result depends on it.
//
// With -DN2D2_TUNE a layer is compiled with every tile of N2D2_TILES, and n2d2::tuneTile says which one runs (run_export -tune).
#ifndef N2D2_TUNING_HPP
#define N2D2_TUNING_HPP

#include "n2d2/env.hpp"

namespace n2d2 {

template <class Cfg, class Found = void>
struct TileOf {
    enum : int { Pixels = 0, Panels = 0, WindowBytes = 0 };
};
template <class Cfg>
struct TileOf<Cfg, typename Exists<Cfg::TilePixels>::Type> {
    enum : int { Pixels = Cfg::TilePixels, Panels = Cfg::TilePanels, WindowBytes = Cfg::WindowBytes };
};

template <class Cfg, int Pixels, int Panels, int Bytes>
struct Tiled : Cfg {
    enum : int { TilePixels = Pixels, TilePanels = Panels, WindowBytes = Bytes };
};

#if defined(N2D2_TUNE)
// What the registers hold, with few and with many windows. The last one is the choice of the kernel for layers that have a Winograd form,
// which is their first.
#if N2D2_AVX512VNNI
#define N2D2_TILES(X) X(0, 0, 0) X(6, 4, 8192) X(6, 4, 65536) X(8, 3, 24576) X(12, 2, 24576) X(12, 2, 65536) X(24, 1, 24576)
#elif N2D2_AVXVNNI
#define N2D2_TILES(X) X(0, 0, 0) X(6, 1, 8192) X(6, 1, 65536) X(5, 1, 24576) X(4, 1, 24576) X(3, 2, 24576) X(3, 2, 65536)
#elif N2D2_AVX2
#define N2D2_TILES(X) X(0, 0, 0) X(6, 1, 8192) X(6, 1, 65536) X(5, 1, 24576) X(4, 1, 24576) X(3, 2, 24576) X(3, 2, 65536) X(0, 0, 0)
#elif N2D2_SSE41
#define N2D2_TILES(X) X(0, 0, 0) X(2, 1, 8192) X(2, 1, 65536) X(3, 1, 24576) X(1, 2, 24576)
#elif N2D2_NEON_DOT
#define N2D2_TILES(X) X(0, 0, 0) X(4, 1, 8192) X(4, 1, 65536) X(6, 1, 24576) X(3, 2, 24576)
#else
#define N2D2_TILES(X) X(0, 0, 0) X(4, 1, 8192) X(4, 1, 65536) X(2, 1, 24576) X(3, 1, 24576)
#endif
extern int tuneTile;
#endif

}  // namespace n2d2

#endif  // N2D2_TUNING_HPP
