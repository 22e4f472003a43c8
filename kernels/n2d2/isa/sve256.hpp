// The kernels of SVE with vectors of 256 bits and matrix instructions; all that is not here is that of NEON with matrix instructions.

#if defined(N2D2_BIND_CONVOLUTION)
#undef N2D2_BIND_CONVOLUTION
#include "n2d2/arm/sve_tile.hpp"
N2D2_KERNEL(Convolution, PanelConvolution<Cfg, sve::Microkernel>)
#endif

#if defined(N2D2_BIND_FULLYCONNECTED)
#undef N2D2_BIND_FULLYCONNECTED
#include "n2d2/arm/sve_tile.hpp"
N2D2_KERNEL(FullyConnected, PanelFullyConnected<Cfg, sve::Microkernel>)
#endif

#if defined(N2D2_BIND_DEPTHWISE)
#undef N2D2_BIND_DEPTHWISE
#include "n2d2/arm/sve_channels.hpp"
#include "n2d2/arm/sve_depthwise.hpp"
#include "n2d2/panels/channel_columns.hpp"
N2D2_KERNEL(Depthwise, DepthwiseOfWidth<Cfg, sve::Depthwise<Cfg>, ChannelColumns<Cfg, sve::Channels> >)
#endif

#if defined(N2D2_BIND_FLOATS)
#undef N2D2_BIND_FLOATS
#include "n2d2/arm/sve_float.hpp"
#endif

#include "n2d2/isa/neoni8mm.hpp"
