// The kernels of AVX2, operator by operator (n2d2/bindings.hpp).

#if defined(N2D2_BIND_CONVOLUTION)
#include "n2d2/x86/avx2_tile.hpp"
N2D2_KERNEL(Convolution, PanelConvolution<Cfg, ByteMicrokernel<avx2::Microkernel, avx2::ByteProducts, Cfg::ByteSums> >)

#elif defined(N2D2_BIND_FULLYCONNECTED)
#include "n2d2/x86/avx2_tile.hpp"
N2D2_KERNEL(FullyConnected, PanelFullyConnected<Cfg, ByteMicrokernel<avx2::Microkernel, avx2::ByteProducts, Cfg::ByteSums> >)

#elif defined(N2D2_BIND_WINOGRAD)
#include "n2d2/panels/winograd_stack_panel.hpp"
#include "n2d2/x86/avx2_tile.hpp"
#include "n2d2/x86/pair_winograd.hpp"
// In registers: 12 sums, two weight vectors, a word, a product.
N2D2_KERNEL(Winograd, WinogradOfWeights<Cfg, PairWinograd<avx2::Microkernel, 6>, avx2::Vec>)

#elif defined(N2D2_BIND_DEPTHWISE)
#include "n2d2/panels/channel_depthwise.hpp"
#include "n2d2/x86/avx2.hpp"
N2D2_KERNEL(Depthwise, DepthwiseOfWidth<Cfg, ChannelDepthwise<Cfg, avx2::Vec, 4, BytePairs<Cfg, avx2::Vec, 4> >,
                                        ChannelDepthwise<Cfg, avx2::Vec, 5> >)

#elif defined(N2D2_BIND_RESIDUAL)
#include "n2d2/x86/avx2.hpp"
#include "n2d2/x86/vector_residual.hpp"
N2D2_KERNEL(ResidualSum, VectorResidual<avx2::Vec, Cfg>)

#elif defined(N2D2_BIND_RUNS)
#include "n2d2/panels/vector_run.hpp"
#include "n2d2/x86/avx2.hpp"
N2D2_RUN_KERNEL(VectorRun<avx2::Vec, Epilogue, Varying>)

#elif defined(N2D2_BIND_LOOKUP)
#include "n2d2/x86/byte_lookup.hpp"
N2D2_KERNEL(Lookup, ByteLookup<Cfg, ShuffledTable<Bytes256> >)

#elif defined(N2D2_BIND_ROW_DOTS)
#include "n2d2/x86/row_dots.hpp"
N2D2_PLAIN_KERNEL(RowDots, avx2::RowDots)

#elif defined(N2D2_BIND_FLOATS)
#include "n2d2/x86/floats.hpp"

#elif defined(N2D2_BIND_PEAK)
#include "n2d2/x86/multiply_peak.hpp"
N2D2_PLAIN_KERNEL(MultiplyPeak, Pairs256Peak)

#elif defined(N2D2_BIND_PRODUCT)
#include "n2d2/panels/panel_product.hpp"
#include "n2d2/x86/avx2.hpp"
N2D2_KERNEL(Product, PanelProduct<Cfg, avx2::Vec, 6>)
#endif
