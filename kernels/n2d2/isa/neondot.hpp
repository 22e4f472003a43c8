// The kernels of NEON with the dot product instructions: no Winograd, all that is not here is NEON's.

#if defined(N2D2_BIND_CONVOLUTION)
#include "n2d2/arm/neon_dot_tile.hpp"
N2D2_KERNEL(Convolution, PanelConvolution<Cfg, neondot::Microkernel>)

#elif defined(N2D2_BIND_FULLYCONNECTED)
#include "n2d2/arm/neon_dot_tile.hpp"
N2D2_KERNEL(FullyConnected, PanelFullyConnected<Cfg, neondot::Microkernel>)

#else
#include "n2d2/isa/neon.hpp"
#endif
