// The kernels for the DSP extension of Arm's M profile (Cortex-M4, M7, M33).
#if defined(N2D2_BIND_CONVOLUTION)
#include "n2d2/mcu/tile_convolution.hpp"
N2D2_KERNEL(Convolution, TileConvolution<Cfg>)

#elif defined(N2D2_BIND_DEPTHWISE)
#include "n2d2/mcu/row_pair_depthwise.hpp"
N2D2_KERNEL(Depthwise, RowPairDepthwise<Cfg>)

#elif defined(N2D2_BIND_FULLYCONNECTED)
#include "n2d2/mcu/lane_fullyconnected.hpp"
N2D2_KERNEL(FullyConnected, LaneFullyConnected<Cfg>)

#elif defined(N2D2_BIND_ELEMWISE)
#include "n2d2/mcu/lane_elemwise.hpp"
N2D2_KERNEL(Elemwise, LaneElemwise<Cfg>)

#elif defined(N2D2_BIND_POOL)
#include "n2d2/mcu/quad_pool.hpp"
N2D2_KERNEL(PoolAverage, QuadPoolAverage<Cfg>)

#elif defined(N2D2_BIND_ROW_DOTS)
#include "n2d2/mcu/row_dots.hpp"
N2D2_PLAIN_KERNEL(RowDots, LaneRowDots)
#endif
