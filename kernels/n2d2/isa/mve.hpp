// The kernels for MVE, the vector extension of Arm's M profile (Cortex-M55, M85); layers without a form for it have those of DSP.
#if defined(N2D2_BIND_CONVOLUTION)
#undef N2D2_BIND_CONVOLUTION
#include "n2d2/mcu/mve_convolution.hpp"
namespace n2d2 {
template <class Cfg>
struct Convolution<Cfg, Native> : MveConvolution<Cfg> {};
}  // namespace n2d2
#endif

#if defined(N2D2_BIND_DEPTHWISE)
#undef N2D2_BIND_DEPTHWISE
#include "n2d2/mcu/mve_depthwise.hpp"
namespace n2d2 {
template <class Cfg>
struct Depthwise<Cfg, Native> : MveDepthwise<Cfg> {};
}  // namespace n2d2
#endif

#if defined(N2D2_BIND_FULLYCONNECTED)
#undef N2D2_BIND_FULLYCONNECTED
#include "n2d2/mcu/mve_fullyconnected.hpp"
namespace n2d2 {
template <class Cfg>
struct FullyConnected<Cfg, Native> : MveFullyConnected<Cfg> {};
}  // namespace n2d2
#endif

#include "n2d2/isa/dsp.hpp"
