// The kernels of RISC-V vectors of any length for application processors, operator by operator (n2d2/bindings.hpp).

#if defined(N2D2_BIND_CONVOLUTION)
#include "n2d2/riscv/rvv_tile.hpp"
N2D2_KERNEL(Convolution, PanelConvolution<Cfg, rvv::Microkernel>)

#elif defined(N2D2_BIND_FULLYCONNECTED)
#include "n2d2/riscv/rvv_tile.hpp"
N2D2_KERNEL(FullyConnected, PanelFullyConnected<Cfg, rvv::Microkernel>)

#else
#include "n2d2/vectors/bindings.hpp"
#endif
