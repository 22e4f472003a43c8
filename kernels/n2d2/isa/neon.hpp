// The kernels of NEON, operator by operator (n2d2/bindings.hpp).

#if defined(N2D2_BIND_CONVOLUTION)
#include "n2d2/arm/neon_bytes_tile.hpp"
N2D2_KERNEL(Convolution, PanelConvolution<Cfg, neonbytes::Microkernel<Cfg::FullWeights != 0> >)

#elif defined(N2D2_BIND_FULLYCONNECTED)
#include "n2d2/arm/neon_bytes_tile.hpp"
N2D2_KERNEL(FullyConnected, PanelFullyConnected<Cfg, neonbytes::Microkernel<Cfg::FullWeights != 0> >)

#elif defined(N2D2_BIND_WINOGRAD)
#include "n2d2/arm/neon_winograd.hpp"
#include "n2d2/panels/winograd_stack_panel.hpp"
N2D2_KERNEL(Winograd, WinogradOfWeights<Cfg, neon::WinogradMicrokernel, neon::WinogradVec>)

#elif defined(N2D2_BIND_DEPTHWISE)
#include "n2d2/arm/neon_channels.hpp"
#include "n2d2/panels/byte_columns.hpp"
N2D2_KERNEL(Depthwise, DepthwiseOfWidth<Cfg, ChannelColumns<Cfg, neon::Channels, ByteColumns<Cfg, neon::Channels> >,
                                        ChannelColumns<Cfg, neon::Channels> >)

#elif defined(N2D2_BIND_RESIDUAL)
#include "n2d2/arm/neon_residual.hpp"
N2D2_KERNEL(ResidualSum, neon::ResidualSum<Cfg>)

#elif defined(N2D2_BIND_FLOATS)
#include "n2d2/arm/neon_float.hpp"
#endif
