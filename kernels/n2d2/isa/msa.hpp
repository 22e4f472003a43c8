// The kernels of MIPS MSA, operator by operator (n2d2/bindings.hpp).

#if defined(N2D2_BIND_CONVOLUTION)
#include "n2d2/mips/msa_tile.hpp"
N2D2_KERNEL(Convolution, PanelConvolution<Cfg, msa::Microkernel<Cfg::FullWeights != 0> >)

#elif defined(N2D2_BIND_FULLYCONNECTED)
#include "n2d2/mips/msa_tile.hpp"
N2D2_KERNEL(FullyConnected, PanelFullyConnected<Cfg, msa::Microkernel<Cfg::FullWeights != 0> >)

#elif defined(N2D2_BIND_DEPTHWISE)
#include "n2d2/mips/msa_channels.hpp"
#include "n2d2/panels/byte_columns.hpp"
N2D2_KERNEL(Depthwise, DepthwiseOfWidth<Cfg, ChannelColumns<Cfg, msa::Channels, ByteColumns<Cfg, msa::Channels> >,
                                        ChannelColumns<Cfg, msa::Channels> >)

#elif defined(N2D2_BIND_FLOATS)
#include "n2d2/vectors/floats.hpp"
#endif
