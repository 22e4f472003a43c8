// The tile of a layer's matrix product: chosen by the kernel, unless the config says it.
//
//   TilePixels   pixels of a tile
//   TilePanels   panels of 16 outputs of a tile
//   WindowBytes  bytes of windows that are gathered before they are multiplied
//
// 0, or no such constant, leaves the choice to the kernel. No result depends on it.
//
// With -DN2D2_TUNE a layer is compiled with every tile of N2D2_TILES, and n2d2::tuneTile says which one runs (run_export -tune).
#pragma once

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
// N2D2_TILES (isa.hpp): the first one is the choice of the kernels; of a layer that has a Winograd form that form, and a last (0, 0, 0)
// the choice of the direct kernel.
extern int tuneTile;
#endif

}  // namespace n2d2
