// The kernels for RISC-V vectors of 32-bit elements (Zve32x); layers without a form for them have the portable ones.
#if defined(N2D2_BIND_CONVOLUTION)
#include "n2d2/mcu/output_convolution.hpp"
N2D2_KERNEL(Convolution, OutputConvolution<Cfg>)

#elif defined(N2D2_BIND_DEPTHWISE)
#include "n2d2/mcu/output_depthwise.hpp"
N2D2_KERNEL(Depthwise, OutputDepthwise<Cfg>)

#elif defined(N2D2_BIND_FULLYCONNECTED)
#include "n2d2/mcu/output_fullyconnected.hpp"
N2D2_KERNEL(FullyConnected, OutputFullyConnected<Cfg>)
#endif
