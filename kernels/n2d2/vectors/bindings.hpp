// The kernels in vectors of the compiler, for the sets whose headers include this (n2d2/bindings.hpp).

#if defined(N2D2_BIND_DEPTHWISE)
#include "n2d2/panels/byte_columns.hpp"
#include "n2d2/vectors/channels.hpp"
N2D2_KERNEL(Depthwise, DepthwiseOfWidth<Cfg, ChannelColumns<Cfg, vectors::Channels, ByteColumns<Cfg, vectors::Channels> >,
                                        ChannelColumns<Cfg, vectors::Channels> >)

#elif defined(N2D2_BIND_FLOATS)
#include "n2d2/vectors/floats.hpp"
#endif
