// Instruction set of the kernels, derived from the compiler's target.
//
//   n2d2::Avx512Vnni  amx         x86-64 with AMX-INT8 and AVX-512 VNNI, Linux
//   n2d2::Avx512Vnni  avx512vnni  x86 with AVX-512 F, BW, DQ, VL and VNNI
//   n2d2::Avx2        avxvnni     x86-64 with AVX2 and AVX-VNNI
//   n2d2::Avx2        avx2        x86-64 with AVX2
//   n2d2::Sse41       sse4        x86-64 with SSE4.1
//   n2d2::NeonDot     neoni8mm    ARMv8.6 with 8-bit matrix instructions (I8MM)
//   n2d2::NeonDot     neondot     ARMv8.2 with the dot product instructions
//   n2d2::Neon        neon        ARM with NEON, little-endian
//   n2d2::Rvv64       rvv64       RV64 with the vector extension 1.0, of any length (SpacemiT K1, C908); clang 16, GCC 13 and later
//   n2d2::Simd128     simd128     WebAssembly with vectors of 128 bits: browsers since 2023, Node.js since 16.4; clang 16 and later
//   n2d2::Msa         msa         MIPS with vectors of 128 bits (MSA), little-endian: P5600, I6400, Loongson 3A4000
//   n2d2::Mve         mve         Cortex-M with the vector extension: M55, M85
//   n2d2::Dsp         dsp         Cortex-M with the DSP extension: M4, M7, M33
//   n2d2::Rvv         rvv         RV32 with vectors of 32-bit integers or more, of 128 bits or more
//   n2d2::Rvm         rvm         RV32 with multiplication, without vectors
//   n2d2::Portable    portable    everything else, and everything with -DN2D2_ISA_PORTABLE
//
// `Native` is the first instruction set that the compiler may use, of number N2D2_ISA. Its macro and that of the set which it extends are
// true. A layer whose config has Isa = Native has its constants in two orders: for the portable kernels, and as panels for the others.
// N2D2_PANELS selects the order to compile. All kernels compute the same integers.
//
//   N2D2_PANELS         kernels on panels of weights
//   N2D2_FLOAT_VECTORS  float32 vector kernels
//   N2D2_ISA_SPEED      speed-up of multiply-accumulates over portable code, to choose the number of threads
//   N2D2_TILES          tile sizes that -DN2D2_TUNE tries (tuning.hpp)
//   N2D2_ISA_ROW        these facts: FACT(name, type, speed, an X(...) for each tile size)
//
// Written by `python docs/site/generate.py` from the table in n2d2py/contracts/cpp/isa.py.
#pragma once

#if !defined(N2D2_ISA_PORTABLE) && defined(__GNUC__)
// N2D2_EMULATED_<set>: tests provide the intrinsics as functions.
#if (defined(__AMX_INT8__) || defined(__AMXINT8__) || defined(N2D2_EMULATED_AMX)) && defined(__x86_64__) && \
    defined(__linux__) && (defined(N2D2_EMULATED_AVX512VNNI) || \
     (defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__AVX512VNNI__)))
#define N2D2_ISA 1
#define N2D2_ISA_ROW(FACT, X) FACT("amx", Avx512Vnni, 16, X(0, 0, 0) X(6, 4, 8192) X(6, 4, 65536) X(8, 3, 24576) X(12, 2, 24576) X(12, 2, 65536) X(24, 1, 24576))
#elif (defined(N2D2_EMULATED_AVX512VNNI) || \
     (defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__AVX512VNNI__)))
#define N2D2_ISA 2
#define N2D2_ISA_ROW(FACT, X) FACT("avx512vnni", Avx512Vnni, 16, X(0, 0, 0) X(6, 4, 8192) X(6, 4, 65536) X(8, 3, 24576) X(12, 2, 24576) X(12, 2, 65536) X(24, 1, 24576))
#elif defined(__AVX2__) && defined(__x86_64__) && (defined(__AVXVNNI__) || defined(N2D2_EMULATED_AVXVNNI))
#define N2D2_ISA 3
#define N2D2_ISA_ROW(FACT, X) FACT("avxvnni", Avx2, 16, X(0, 0, 0) X(6, 1, 8192) X(6, 1, 65536) X(5, 1, 24576) X(4, 1, 24576) X(3, 2, 24576) X(3, 2, 65536) X(0, 0, 0))
#elif defined(__AVX2__) && defined(__x86_64__)
#define N2D2_ISA 4
#define N2D2_ISA_ROW(FACT, X) FACT("avx2", Avx2, 8, X(0, 0, 0) X(6, 1, 8192) X(6, 1, 65536) X(5, 1, 24576) X(4, 1, 24576) X(3, 2, 24576) X(3, 2, 65536) X(0, 0, 0))
#elif defined(__SSE4_1__) && defined(__x86_64__)
#define N2D2_ISA 5
#define N2D2_ISA_ROW(FACT, X) FACT("sse4", Sse41, 4, X(0, 0, 0) X(2, 1, 8192) X(2, 1, 65536) X(3, 1, 24576) X(1, 2, 24576))
#elif defined(__ARM_NEON) && !defined(__ARM_BIG_ENDIAN) && defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD) && \
    defined(__ARM_FEATURE_MATMUL_INT8)
#define N2D2_ISA 6
#define N2D2_ISA_ROW(FACT, X) FACT("neoni8mm", NeonDot, 8, X(0, 0, 0) X(6, 1, 8192) X(6, 1, 65536) X(4, 1, 24576) X(2, 1, 24576))
#elif defined(__ARM_NEON) && !defined(__ARM_BIG_ENDIAN) && defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)
#define N2D2_ISA 7
#define N2D2_ISA_ROW(FACT, X) FACT("neondot", NeonDot, 8, X(0, 0, 0) X(4, 1, 8192) X(4, 1, 65536) X(6, 1, 24576) X(3, 2, 24576))
#elif defined(__ARM_NEON) && !defined(__ARM_BIG_ENDIAN)
#define N2D2_ISA 8
#define N2D2_ISA_ROW(FACT, X) FACT("neon", Neon, 8, X(0, 0, 0) X(4, 1, 8192) X(4, 1, 65536) X(2, 1, 24576) X(3, 1, 24576))
#elif defined(__riscv_v) && __riscv_xlen == 64 && defined(__riscv_v_intrinsic) && __riscv_v_intrinsic >= 11000
#define N2D2_ISA 9
#define N2D2_ISA_ROW(FACT, X) FACT("rvv64", Rvv64, 8, X(0, 0, 0) X(5, 4, 8192) X(5, 4, 65536) X(4, 2, 24576) X(5, 1, 24576))
#elif defined(__wasm_simd128__)
#define N2D2_ISA 10
#define N2D2_ISA_ROW(FACT, X) FACT("simd128", Simd128, 4, X(0, 0, 0) X(4, 1, 8192) X(4, 1, 65536) X(2, 1, 24576) X(3, 1, 24576))
#elif defined(__mips_msa) && defined(__MIPSEL__)
#define N2D2_ISA 11
#define N2D2_ISA_ROW(FACT, X) FACT("msa", Msa, 4, X(0, 0, 0) X(4, 1, 8192) X(4, 1, 65536) X(5, 1, 65536) X(2, 1, 24576))
#elif defined(__ARM_FEATURE_MVE) && defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)
#define N2D2_ISA 12
#define N2D2_ISA_ROW(FACT, X) FACT("mve", Mve, 4, X(0, 0, 0))
#elif defined(__ARM_FEATURE_DSP) && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M' && !defined(__ARM_BIG_ENDIAN)
#define N2D2_ISA 13
#define N2D2_ISA_ROW(FACT, X) FACT("dsp", Dsp, 2, X(0, 0, 0))
#elif defined(__riscv_vector) && __riscv_xlen == 32
#define N2D2_ISA 14
#define N2D2_ISA_ROW(FACT, X) FACT("rvv", Rvv, 4, X(0, 0, 0))
#elif defined(__riscv_mul) && __riscv_xlen == 32 && !defined(__riscv_vector)
#define N2D2_ISA 15
#define N2D2_ISA_ROW(FACT, X) FACT("rvm", Rvm, 1, X(0, 0, 0))
#endif
#endif
#if !defined(N2D2_ISA)
#define N2D2_ISA 0
#define N2D2_ISA_ROW(FACT, X) FACT("portable", Portable, 8, X(0, 0, 0) X(4, 1, 8192) X(4, 1, 65536) X(2, 1, 24576) X(3, 1, 24576))
#endif

#define N2D2_FACT_NAME(name, tag, speed, ...) name
#define N2D2_FACT_TAG(name, tag, speed, ...) tag
#define N2D2_FACT_SPEED(name, tag, speed, ...) speed
#define N2D2_FACT_TILES(name, tag, speed, ...) __VA_ARGS__
#define N2D2_ISA_NAME N2D2_ISA_ROW(N2D2_FACT_NAME, )
#define N2D2_ISA_SPEED N2D2_ISA_ROW(N2D2_FACT_SPEED, )
#define N2D2_TILES(X) N2D2_ISA_ROW(N2D2_FACT_TILES, X)

#define N2D2_AMX (N2D2_ISA == 1)
#define N2D2_AVX512VNNI (N2D2_ISA >= 1 && N2D2_ISA < 3)
#define N2D2_AVXVNNI (N2D2_ISA == 3)
#define N2D2_AVX2 (N2D2_ISA >= 3 && N2D2_ISA < 5)
#define N2D2_SSE41 (N2D2_ISA == 5)
#define N2D2_NEON_I8MM (N2D2_ISA == 6)
#define N2D2_NEON_DOT (N2D2_ISA >= 6 && N2D2_ISA < 8)
#define N2D2_NEON (N2D2_ISA >= 6 && N2D2_ISA < 9)
#define N2D2_RVV64 (N2D2_ISA == 9)
#define N2D2_SIMD128 (N2D2_ISA == 10)
#define N2D2_MSA (N2D2_ISA == 11)
#define N2D2_MVE (N2D2_ISA == 12)
#define N2D2_DSP (N2D2_ISA >= 12 && N2D2_ISA < 14)
#define N2D2_RVV (N2D2_ISA == 14)
#define N2D2_RVM (N2D2_ISA == 15)
#define N2D2_PANELS (N2D2_ISA >= 1 && N2D2_ISA < 12)
#define N2D2_FLOAT_VECTORS (N2D2_ISA >= 1 && N2D2_ISA < 12)

namespace n2d2 {

struct Portable {};
struct Avx512Vnni {};
struct Avx2 {};
struct Sse41 {};
struct NeonDot {};
struct Neon {};
struct Rvv64 {};
struct Simd128 {};
struct Msa {};
struct Mve {};
struct Dsp {};
struct Rvv {};
struct Rvm {};
struct RealVectors {};

typedef N2D2_ISA_ROW(N2D2_FACT_TAG, ) Native;

// Instruction set of float32 layers, whose kernels work with vectors of any width.
#if N2D2_FLOAT_VECTORS
typedef RealVectors RealNative;
#else
typedef Portable RealNative;
#endif

// Special if the code is compiled for the instruction set Wanted, otherwise Otherwise.
template <class Wanted, class Special, class Otherwise, class Compiled = Native>
struct Choose {
    typedef Otherwise Isa;
};
template <class Wanted, class Special, class Otherwise>
struct Choose<Wanted, Special, Otherwise, Wanted> {
    typedef Special Isa;
};

}  // namespace n2d2

// The kernel Name of the instruction set in use, derived from the given class: a template of the Cfg of a layer, or of its epilogue;
// N2D2_PLAIN_KERNEL: of neither; N2D2_RUN_KERNEL: of runs of sums (pointwise.hpp), a template of Epilogue and Varying.
#define N2D2_KERNEL(Name, ...)                    \
    namespace n2d2 {                              \
    template <class Cfg>                          \
    struct Name<Cfg, Native> : __VA_ARGS__ {};    \
    }
#define N2D2_PLAIN_KERNEL(Name, ...)              \
    namespace n2d2 {                              \
    template <>                                   \
    struct Name<Native> : __VA_ARGS__ {};         \
    }
#define N2D2_RUN_KERNEL(...)                                        \
    namespace n2d2 {                                                \
    template <class Epilogue, bool Varying>                         \
    struct EpilogueRun<Epilogue, Varying, Native> : __VA_ARGS__ {}; \
    }
