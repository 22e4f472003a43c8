// The kernels for RISC-V vectors of 32-bit elements (Zve32x); layers without a form for them have the portable ones.
#if defined(N2D2_BIND_CONVOLUTION)
#undef N2D2_BIND_CONVOLUTION
#include "n2d2/mcu/output_convolution.hpp"
namespace n2d2 {
template <class Cfg>
struct Convolution<Cfg, Native> : OutputConvolution<Cfg> {};
}  // namespace n2d2
#endif

#if defined(N2D2_BIND_DEPTHWISE)
#undef N2D2_BIND_DEPTHWISE
#include "n2d2/mcu/output_depthwise.hpp"
namespace n2d2 {
template <class Cfg>
struct Depthwise<Cfg, Native> : OutputDepthwise<Cfg> {};
}  // namespace n2d2
#endif

#if defined(N2D2_BIND_FULLYCONNECTED)
#undef N2D2_BIND_FULLYCONNECTED
#include "n2d2/mcu/output_fullyconnected.hpp"
namespace n2d2 {
template <class Cfg>
struct FullyConnected<Cfg, Native> : OutputFullyConnected<Cfg> {};
}  // namespace n2d2
#endif
