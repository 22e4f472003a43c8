// The instruction set that the kernels are compiled for, from what the compiler may use.
//
//   n2d2::Avx512Vnni  x86 with AVX-512 F, BW, DQ, VL and VNNI
//   n2d2::Avx2        x86-64 with AVX2; N2D2_AVXVNNI says that it has AVX-VNNI too, which convolutions and fully connected layers use
//   n2d2::Sse41       x86-64 with SSE4.1
//   n2d2::NeonDot     ARMv8.2 with the dot product instructions
//   n2d2::Neon        ARM with NEON
//   n2d2::Portable    everything else, and everything with -DN2D2_ISA_PORTABLE
//
// `Native` names it. A layer whose config has Isa = Native comes with its constants in two orders: that of
// the portable kernels, and panels for the others; N2D2_PANELS says which of them are compiled. Results do
// not depend on it: every kernel computes the same integers.
#ifndef N2D2_ISA_HPP
#define N2D2_ISA_HPP

// With -DN2D2_EMULATED_AVX512VNNI the intrinsics are functions of the tests (tests/kernels/emulated).
#if defined(N2D2_EMULATED_AVX512VNNI) ||                                                                    \
    (!defined(N2D2_ISA_PORTABLE) && defined(__GNUC__) && defined(__AVX512F__) && defined(__AVX512BW__) && \
     defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__AVX512VNNI__))
#define N2D2_AVX512VNNI 1
#define N2D2_AVX2 0
#elif !defined(N2D2_ISA_PORTABLE) && defined(__GNUC__) && defined(__AVX2__) && defined(__x86_64__)
#define N2D2_AVX512VNNI 0
#define N2D2_AVX2 1
#else
#define N2D2_AVX512VNNI 0
#define N2D2_AVX2 0
#endif
// Compilers before GCC 11 and clang 12 do not know these instructions. N2D2_EMULATED_AVXVNNI is for the tests again.
#if N2D2_AVX2 && (defined(__AVXVNNI__) || defined(N2D2_EMULATED_AVXVNNI))
#define N2D2_AVXVNNI 1
#else
#define N2D2_AVXVNNI 0
#endif
#if !N2D2_AVX512VNNI && !N2D2_AVX2 && !defined(N2D2_ISA_PORTABLE) && defined(__GNUC__) && defined(__SSE4_1__) && defined(__x86_64__)
#define N2D2_SSE41 1
#else
#define N2D2_SSE41 0
#endif

// ARM: NEON of little-endian machines.
#if !defined(N2D2_ISA_PORTABLE) && defined(__GNUC__) && defined(__ARM_NEON) && !defined(__ARM_BIG_ENDIAN)
#define N2D2_NEON 1
#else
#define N2D2_NEON 0
#endif
#if N2D2_NEON && defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)
#define N2D2_NEON_DOT 1
#else
#define N2D2_NEON_DOT 0
#endif

#if N2D2_AVX512VNNI
#define N2D2_ISA_NAME "avx512vnni"
#elif N2D2_AVXVNNI
#define N2D2_ISA_NAME "avxvnni"
#elif N2D2_AVX2
#define N2D2_ISA_NAME "avx2"
#elif N2D2_SSE41
#define N2D2_ISA_NAME "sse4"
#elif N2D2_NEON_DOT
#define N2D2_ISA_NAME "neondot"
#elif N2D2_NEON
#define N2D2_ISA_NAME "neon"
#else
#define N2D2_ISA_NAME "portable"
#endif

#define N2D2_PANELS (N2D2_AVX512VNNI || N2D2_AVX2 || N2D2_SSE41 || N2D2_NEON)

namespace n2d2 {

struct Portable {};
struct Sse41 {};
struct Avx2 {};
struct Avx512Vnni {};
struct Neon {};
struct NeonDot {};
struct RealVectors {};

#if N2D2_AVX512VNNI
typedef Avx512Vnni Native;
#elif N2D2_AVX2
typedef Avx2 Native;
#elif N2D2_SSE41
typedef Sse41 Native;
#elif N2D2_NEON_DOT
typedef NeonDot Native;
#elif N2D2_NEON
typedef Neon Native;
#else
typedef Portable Native;
#endif

// The same for layers in float32, whose kernels are written for vectors of any width.
#if N2D2_PANELS
typedef RealVectors RealNative;
#else
typedef Portable RealNative;
#endif

// Special where the code is compiled for the instruction set Wanted, else Otherwise.
template <class Wanted, class Special, class Otherwise, class Machine = Native>
struct Choose {
    typedef Otherwise Isa;
};
template <class Wanted, class Special, class Otherwise>
struct Choose<Wanted, Special, Otherwise, Wanted> {
    typedef Special Isa;
};

}  // namespace n2d2

#endif  // N2D2_ISA_HPP
