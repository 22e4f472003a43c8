// Kernels of the instruction set in use.
//
// The header of an operator declares the portable kernel and includes this file, which has no include guard, with N2D2_BIND_<OPERATOR>
// defined. The header of the instruction set specializes the operator for `Native`. Without a specialization, the portable kernel is
// used. docs/explanation/instruction_sets.md has the rules.
//
// Written by `python docs/site/generate.py` from the table in n2d2py/contracts/cpp/isa.py.
#if defined(N2D2_BINDING)
#error "n2d2: an operator includes the operators that its kernels use before it binds them"
#endif
#define N2D2_BINDING
#if N2D2_AMX
#include "n2d2/isa/amx.hpp"
#elif N2D2_AVX512VNNI
#include "n2d2/isa/avx512vnni.hpp"
#elif N2D2_AVXVNNI
#include "n2d2/isa/avxvnni.hpp"
#elif N2D2_AVX2
#include "n2d2/isa/avx2.hpp"
#elif N2D2_SSE41
#include "n2d2/isa/sse4.hpp"
#elif N2D2_NEON_I8MM
#include "n2d2/isa/neoni8mm.hpp"
#elif N2D2_NEON_DOT
#include "n2d2/isa/neondot.hpp"
#elif N2D2_NEON
#include "n2d2/isa/neon.hpp"
#elif N2D2_RVV64
#include "n2d2/isa/rvv64.hpp"
#elif N2D2_SIMD128
#include "n2d2/isa/simd128.hpp"
#elif N2D2_MSA
#include "n2d2/isa/msa.hpp"
#elif N2D2_MVE
#include "n2d2/isa/mve.hpp"
#elif N2D2_DSP
#include "n2d2/isa/dsp.hpp"
#elif N2D2_RVV
#include "n2d2/isa/rvv.hpp"
#elif N2D2_RVM
#include "n2d2/isa/rvm.hpp"
#endif
#undef N2D2_BINDING
