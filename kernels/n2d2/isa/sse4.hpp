// The kernels of SSE4.1, operator by operator (n2d2/bindings.hpp).

#if defined(N2D2_BIND_CONVOLUTION)
#include "n2d2/x86/sse41_tile.hpp"
N2D2_KERNEL(Convolution, PanelConvolution<Cfg, ByteMicrokernel<sse41::Microkernel, sse41::ByteProducts, Cfg::ByteSums> >)

#elif defined(N2D2_BIND_FULLYCONNECTED)
#include "n2d2/x86/sse41_tile.hpp"
N2D2_KERNEL(FullyConnected, PanelFullyConnected<Cfg, ByteMicrokernel<sse41::Microkernel, sse41::ByteProducts, Cfg::ByteSums> >)

#elif defined(N2D2_BIND_WINOGRAD)
#include "n2d2/panels/winograd_stack_panel.hpp"
#include "n2d2/x86/sse41_tile.hpp"
#include "n2d2/x86/pair_winograd.hpp"
// In registers: 8 sums, four weight vectors, a word, a product.
N2D2_KERNEL(Winograd, WinogradOfWeights<Cfg, PairWinograd<sse41::Microkernel, 2>, sse41::Vec>)

#elif defined(N2D2_BIND_DEPTHWISE)
#include "n2d2/panels/channel_depthwise.hpp"
#include "n2d2/x86/sse41.hpp"
N2D2_KERNEL(Depthwise, DepthwiseOfWidth<Cfg, ChannelDepthwise<Cfg, sse41::Vec, 4, BytePairs<Cfg, sse41::Vec, 4> >,
                                        ChannelDepthwise<Cfg, sse41::Vec, 4> >)

#elif defined(N2D2_BIND_RESIDUAL)
#include "n2d2/x86/sse41.hpp"
#include "n2d2/x86/vector_residual.hpp"
N2D2_KERNEL(ResidualSum, VectorResidual<sse41::Vec, Cfg>)

#elif defined(N2D2_BIND_FLOATS)
#include "n2d2/x86/floats.hpp"

#elif defined(N2D2_BIND_PRODUCT)
#include "n2d2/panels/panel_product.hpp"
#include "n2d2/x86/sse41.hpp"
N2D2_KERNEL(Product, PanelProduct<Cfg, sse41::Vec, 3>)
#endif
