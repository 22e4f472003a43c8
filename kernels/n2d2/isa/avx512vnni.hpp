// The kernels of AVX-512 with VNNI, operator by operator (n2d2/bindings.hpp).

#if defined(N2D2_BIND_CONVOLUTION)
#include "n2d2/x86/avx512_tile.hpp"
N2D2_KERNEL(Convolution, PanelConvolution<Cfg, avx512::Microkernel>)

#elif defined(N2D2_BIND_FULLYCONNECTED)
#include "n2d2/x86/avx512_tile.hpp"
N2D2_KERNEL(FullyConnected, PanelFullyConnected<Cfg, avx512::Microkernel>)

#elif defined(N2D2_BIND_DEPTHWISE)
#include "n2d2/panels/channel_depthwise.hpp"
#include "n2d2/x86/avx512_depthwise.hpp"
N2D2_KERNEL(Depthwise, DepthwiseOfWidth<Cfg, avx512::Depthwise<Cfg>, ChannelDepthwise<Cfg, avx512::Vec, 6> >)

#elif defined(N2D2_BIND_RESIDUAL)
#include "n2d2/x86/avx512_residual.hpp"
N2D2_KERNEL(ResidualSum, avx512::Residual<Cfg>)

#elif defined(N2D2_BIND_RUNS)
#include "n2d2/panels/vector_run.hpp"
#include "n2d2/x86/avx512.hpp"
N2D2_RUN_KERNEL(VectorRun<avx512::Vec, Epilogue, Varying>)

#elif defined(N2D2_BIND_ROW_DOTS)
#include "n2d2/x86/avx512.hpp"
#include "n2d2/x86/row_panels.hpp"
N2D2_ROW_PANELS(avx512::Vec, 128)

#elif defined(N2D2_BIND_LOOKUP)
#include "n2d2/x86/byte_lookup.hpp"
N2D2_KERNEL(Lookup, ByteLookup<Cfg, Table512>)

#elif defined(N2D2_BIND_FLOATS)
#include "n2d2/x86/floats.hpp"

#elif defined(N2D2_BIND_PEAK)
#include "n2d2/x86/multiply_peak.hpp"
N2D2_PLAIN_KERNEL(MultiplyPeak, Dot512Peak)

#elif defined(N2D2_BIND_PRODUCT)
#include "n2d2/panels/panel_product.hpp"
#include "n2d2/x86/avx512.hpp"
N2D2_KERNEL(Product, PanelProduct<Cfg, avx512::Vec, 12>)
#endif
