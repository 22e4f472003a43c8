// The kernels for RV32IM; layers without a form for them have the portable ones.
#if defined(N2D2_BIND_CONVOLUTION)
#include "n2d2/mcu/pixel_convolution.hpp"
N2D2_KERNEL(Convolution, PixelConvolution<Cfg>)

#elif defined(N2D2_BIND_DEPTHWISE)
#include "n2d2/mcu/column_depthwise.hpp"
N2D2_KERNEL(Depthwise, ColumnDepthwise<Cfg>)
#endif
