// The kernels for MVE, the vector extension of Arm's M profile (Cortex-M55, M85); layers without a form for it have those of DSP.
#if defined(N2D2_BIND_CONVOLUTION)
#include "n2d2/mcu/mve_convolution.hpp"
N2D2_KERNEL(Convolution, MveConvolution<Cfg>)

#elif defined(N2D2_BIND_DEPTHWISE)
#include "n2d2/mcu/mve_depthwise.hpp"
N2D2_KERNEL(Depthwise, MveDepthwise<Cfg>)

#elif defined(N2D2_BIND_FULLYCONNECTED)
#include "n2d2/mcu/mve_fullyconnected.hpp"
N2D2_KERNEL(FullyConnected, MveFullyConnected<Cfg>)

#elif defined(N2D2_BIND_RUNS)
#include "n2d2/mcu/mve_run.hpp"
N2D2_RUN_KERNEL(mve::Run<Epilogue, Varying>)

#elif defined(N2D2_BIND_ELEMWISE)
#include "n2d2/mcu/mve_elemwise.hpp"
N2D2_KERNEL(Elemwise, MveElemwise<Cfg>)

#elif defined(N2D2_BIND_POOL)
#include "n2d2/mcu/mve_pool.hpp"
N2D2_KERNEL(PoolAverage, QuadPoolAverage<Cfg, mve::AddPixels>)

#else
#include "n2d2/isa/dsp.hpp"
#endif
