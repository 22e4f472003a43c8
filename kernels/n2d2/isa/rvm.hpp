// The kernels for RV32IM; layers without a form for them have the portable ones, shaped for its registers.
#if defined(N2D2_BIND_CONVOLUTION)
#undef N2D2_BIND_CONVOLUTION
#include "n2d2/mcu/pixel_convolution.hpp"
namespace n2d2 {
template <class Cfg>
struct Convolution<Cfg, Native> : PixelConvolution<Cfg> {};
}  // namespace n2d2
#endif

#if defined(N2D2_BIND_DEPTHWISE)
#undef N2D2_BIND_DEPTHWISE
#include "n2d2/mcu/column_depthwise.hpp"
namespace n2d2 {
template <class Cfg>
struct Depthwise<Cfg, Native> : ColumnDepthwise<Cfg> {};
}  // namespace n2d2
#endif
