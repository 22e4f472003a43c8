// The kernels of AMX: convolutions of its own, all else is that of AVX-512.

#if defined(N2D2_BIND_CONVOLUTION)
#include "n2d2/x86/amx_tiles.hpp"
N2D2_KERNEL(Convolution, amx::Convolution<Cfg>)

#elif defined(N2D2_BIND_PEAK)
#include "n2d2/x86/amx_peak.hpp"
N2D2_PLAIN_KERNEL(MultiplyPeak, amx::Peak)

#else
#include "n2d2/isa/avx512vnni.hpp"
#endif
