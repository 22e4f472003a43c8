// The kernels of AVX2 with AVX-VNNI: tiles of their own, all else is AVX2's.

#if defined(N2D2_BIND_CONVOLUTION)
#include "n2d2/x86/avxvnni_tile.hpp"
N2D2_KERNEL(Convolution, PanelConvolution<Cfg, avxvnni::Microkernel>)

#elif defined(N2D2_BIND_FULLYCONNECTED)
#include "n2d2/x86/avxvnni_tile.hpp"
N2D2_KERNEL(FullyConnected, PanelFullyConnected<Cfg, avxvnni::Microkernel>)

#elif defined(N2D2_BIND_WINOGRAD)
#include "n2d2/panels/winograd_stack_panel.hpp"
#include "n2d2/x86/avxvnni_tile.hpp"
#include "n2d2/x86/pair_winograd.hpp"
N2D2_KERNEL(Winograd, WinogradOfWeights<Cfg, PairWinograd<avxvnni::WinogradMicrokernel, 6>, avx2::Vec>)

#elif defined(N2D2_BIND_ROW_DOTS)
#include "n2d2/x86/avxvnni_tile.hpp"
#include "n2d2/x86/row_panels.hpp"
N2D2_ROW_PANELS(avxvnni::Vec, 32)
#include "n2d2/isa/avx2.hpp"  // for rows without panels

#elif defined(N2D2_BIND_PEAK)
#include "n2d2/x86/multiply_peak.hpp"
N2D2_PLAIN_KERNEL(MultiplyPeak, Dot256Peak)

#else
#include "n2d2/isa/avx2.hpp"
#endif
