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

#if defined(N2D2_BIND_RUNS)
#undef N2D2_BIND_RUNS
#include "n2d2/mcu/mve_run.hpp"
namespace n2d2 {
template <class Epilogue, bool Varying>
struct EpilogueRun<Epilogue, Varying, Native> : mve::Run<Epilogue, Varying> {};
}  // namespace n2d2
#endif

#if defined(N2D2_BIND_ELEMWISE)
#undef N2D2_BIND_ELEMWISE
#include "n2d2/mcu/mve_elemwise.hpp"
namespace n2d2 {
template <class Cfg>
struct Elemwise<Cfg, Native> : MveElemwise<Cfg> {};
}  // namespace n2d2
#endif

#if defined(N2D2_BIND_POOL)
#undef N2D2_BIND_POOL
#include "n2d2/mcu/mve_pool.hpp"
namespace n2d2 {
template <class Cfg>
struct PoolAverage<Cfg, Native> : MvePoolAverage<Cfg> {};
}  // namespace n2d2
#endif

#include "n2d2/isa/dsp.hpp"
