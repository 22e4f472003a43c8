// Convolution with AMX: which layers take its registers (amx_tiles.hpp), and those of AVX-512 for all others. Both compute the same
// integers.
#ifndef N2D2_X86_AMX_CONVOLUTION_HPP
#define N2D2_X86_AMX_CONVOLUTION_HPP

#include "n2d2/panels/panel_convolution.hpp"
#include "n2d2/x86/amx_tiles.hpp"

namespace n2d2 {
namespace amx {

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

#endif  // N2D2_X86_AMX_CONVOLUTION_HPP
