// The kernels of NEON with matrix instructions: convolutions of its own, all else is that of the dot product instructions.

#if defined(N2D2_BIND_CONVOLUTION)
#include "n2d2/arm/neon_i8mm_tile.hpp"
N2D2_KERNEL(Convolution, PanelConvolution<Cfg, neoni8mm::Microkernel>)

#else
#include "n2d2/isa/neondot.hpp"
#endif
