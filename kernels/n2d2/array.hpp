// Arrays of any rank in row-major order, and loops over them that are known when they are compiled.
//
// An array is a plane without gaps: its elements follow each other. Loops are types:
//
//   Axis<Size, A, B, C, Next>   for i < Size, the loop Next inside; one step moves the operands by A, B and C elements
//   AxisEnd                     the body: f(a, b, c, o) with the elements' positions, o counting the bodies
//   TakeAxis<Size, Table, Next> the operand moves to Table[i]; where that is negative, f.fill(o, n) gets n elements
#pragma once

#include <type_traits>

#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"
#if defined(__AVX512F__)
#include "n2d2/x86/intrinsics.hpp"
#endif

namespace n2d2 {

struct AxisEnd {
    enum : long { Count = 1 };
    template <class F>
    static N2D2_INLINE void run(F& f, long a, long b, long c, long o) {
        f(a, b, c, o);
    }
};

template <int Size, long A, long B, long C, class Next>
struct Axis {
    enum : long { Count = Size * static_cast<long>(Next::Count) };
    template <class F>
    static N2D2_INLINE void run(F& f, long a, long b, long c, long o) {
        for (long i = 0; i < Size; ++i)
            Next::run(f, a + i * A, b + i * B, c + i * C, o + i * static_cast<long>(Next::Count));
    }
};

template <int Size, const std::int32_t* Table, class Next>
struct TakeAxis {
    enum : long { Count = Size * static_cast<long>(Next::Count) };
    template <class F>
    static N2D2_INLINE void run(F& f, long a, long, long, long o) {
        for (long i = 0; i < Size; ++i) {
            const long at = o + i * static_cast<long>(Next::Count);
            if (Table[i] < 0)
                f.fill(at, static_cast<long>(Next::Count));
            else
                Next::run(f, a + Table[i], 0, 0, at);
        }
    }
};

// Elements of a plane that is one run.
template <class Plane>
N2D2_INLINE const typename Plane::Type* elements(const unsigned char* base) {
    static_assert(PlaneTraits<Plane>::Whole || (Plane::Height == 1 && Plane::Width == 1),
                  "the elements must follow each other");
    return line<Plane>(base, 0);
}

template <class Plane>
N2D2_INLINE typename Plane::Type* elements(unsigned char* base) {
    static_assert(PlaneTraits<Plane>::Whole || (Plane::Height == 1 && Plane::Width == 1),
                  "the elements must follow each other");
    return line<Plane>(base, 0);
}

// The sequences of a recurrent layer, which are independent.
template <class Cfg>
struct SequenceLoop : Loop<3L * Cfg::Sequences* int(Cfg::Steps) * int(Cfg::Hidden) * (int(Cfg::Size) + int(Cfg::Hidden)),
                           (int(Cfg::Sequences) > 1)> {};

// The type that sums of T are made in.
template <class T, bool Real = std::is_floating_point<T>::value>
struct WideType {
    typedef double Type;
};
template <class T>
struct WideType<T, false> {
    typedef std::int64_t Type;
};

// Sums and products of these: those of integers are taken modulo 2^64.
N2D2_INLINE double widePlus(double a, double b) { return a + b; }
N2D2_INLINE std::int64_t widePlus(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
N2D2_INLINE double wideTimes(double a, double b) { return a * b; }
N2D2_INLINE std::int64_t wideTimes(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

// Eight numbers in double.
#if defined(__GNUC__)
typedef double Eight __attribute__((vector_size(64)));
#else
struct Eight {
    double x[8];
    double& operator[](int k) { return x[k]; }
};
N2D2_INLINE Eight operator+(Eight a, const Eight& b) {
    for (int k = 0; k < 8; ++k)
        a.x[k] += b.x[k];
    return a;
}
N2D2_INLINE Eight operator*(Eight a, const Eight& b) {
    for (int k = 0; k < 8; ++k)
        a.x[k] *= b.x[k];
    return a;
}
#endif

// Not returned: without such registers, how would depend on the compiler.
N2D2_INLINE void loadEight(const double* x, Eight& wide) { std::memcpy(&wide, x, sizeof wide); }
N2D2_INLINE void loadEight(const float* x, Eight& wide) {
#if defined(__AVX512F__)
    wide = _mm512_cvtps_pd(_mm256_loadu_ps(x));
#elif defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 9)
    float narrow __attribute__((vector_size(32)));
    std::memcpy(&narrow, x, sizeof narrow);
    wide = __builtin_convertvector(narrow, Eight);
#else
    for (int k = 0; k < 8; ++k)
        wide[k] = static_cast<double>(x[k]);
#endif
}

// Element i counts where bit i % 8 of byte i / 8 is set.
struct MaskedElements {
    const std::uint8_t* const bits;
    N2D2_INLINE explicit MaskedElements(const std::uint8_t* row) : bits(row) {}
    N2D2_INLINE bool operator[](int i) const { return (bits[i >> 3] >> (i & 7)) & 1; }
};

}  // namespace n2d2
