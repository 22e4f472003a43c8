// The kernels of 128-bit SIMD of WebAssembly, operator by operator (n2d2/bindings.hpp).

#if defined(N2D2_BIND_CONVOLUTION)
#include "n2d2/wasm/simd128_tile.hpp"
N2D2_KERNEL(Convolution, PanelConvolution<Cfg, simd128::Microkernel>)

#elif defined(N2D2_BIND_FULLYCONNECTED)
#include "n2d2/wasm/simd128_tile.hpp"
N2D2_KERNEL(FullyConnected, PanelFullyConnected<Cfg, simd128::Microkernel>)

#else
#include "n2d2/vectors/bindings.hpp"
#endif
