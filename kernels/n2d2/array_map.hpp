// Element by element with broadcasting: out[o] = Function(a, b, c), the loops as types (array.hpp).
//
// Config: type Axes, Function; plane Output. Operands are elements of planes, or constant arrays. Input and output are
// disjoint.
#pragma once

#include "n2d2/array.hpp"
#include "n2d2/functions.hpp"

namespace n2d2 {
namespace maps {

// Reals to integers towards zero, held within the range; everything else as the language converts it.
template <class R, class A, bool Cut = std::is_floating_point<A>::value && !std::is_floating_point<R>::value>
struct Converted {
    static N2D2_INLINE R from(A a) { return static_cast<R>(a); }
};
template <class R, class A>
struct Converted<R, A, true> {
    static N2D2_INLINE R from(A a) {
        if (a != a)
            return R(0);
        if (!(static_cast<double>(a) < static_cast<double>(std::numeric_limits<R>::max())))
            return std::numeric_limits<R>::max();
        if (!(static_cast<double>(a) > static_cast<double>(std::numeric_limits<R>::min())))
            return std::numeric_limits<R>::min();
        return static_cast<R>(a);
    }
};

// Sums, differences and products of integers are taken modulo 2^64.
template <class R, bool Real = std::is_floating_point<R>::value>
struct Arithmetic {
    static N2D2_INLINE R add(R a, R b) { return a + b; }
    static N2D2_INLINE R sub(R a, R b) { return a - b; }
    static N2D2_INLINE R mul(R a, R b) { return a * b; }
    static N2D2_INLINE R div(R a, R b) { return a / b; }
    static N2D2_INLINE R mod(R a, R b) {
        const R rest = std::fmod(a, b);
        return rest != R(0) && (rest < R(0)) != (b < R(0)) ? rest + b : rest;
    }
    static N2D2_INLINE R fmod(R a, R b) { return std::fmod(a, b); }
    static N2D2_INLINE R abs(R a) { return std::fabs(a); }
    static N2D2_INLINE R neg(R a) { return -a; }
    static N2D2_INLINE R pow(R a, double b) { return static_cast<R>(exact::power(static_cast<double>(a), b)); }
};

template <class R>
struct Arithmetic<R, false> {
    typedef std::uint64_t U;
    static N2D2_INLINE U u(R a) { return static_cast<U>(a); }
    static N2D2_INLINE R add(R a, R b) { return static_cast<R>(u(a) + u(b)); }
    static N2D2_INLINE R sub(R a, R b) { return static_cast<R>(u(a) - u(b)); }
    static N2D2_INLINE R mul(R a, R b) { return static_cast<R>(u(a) * u(b)); }
    static N2D2_INLINE R neg(R a) { return static_cast<R>(U(0) - u(a)); }
    static N2D2_INLINE R abs(R a) { return a < R(0) ? neg(a) : a; }
    static N2D2_INLINE bool minusOne(R b) { return std::is_signed<R>::value && b == static_cast<R>(-1); }
    static N2D2_INLINE R div(R a, R b) { return b == R(0) ? R(0) : minusOne(b) ? neg(a) : static_cast<R>(a / b); }
    static N2D2_INLINE R fmod(R a, R b) { return b == R(0) || minusOne(b) ? R(0) : static_cast<R>(a % b); }
    static N2D2_INLINE R mod(R a, R b) {
        const R rest = fmod(a, b);
        return rest != R(0) && (rest < R(0)) != (b < R(0)) ? static_cast<R>(rest + b) : rest;
    }
    static N2D2_INLINE R pow(R a, double b) { return Converted<R, double>::from(exact::power(static_cast<double>(a), b)); }
};

#define N2D2_MAP_TWO(NAME, EXPRESSION)         \
    struct NAME {                              \
        template <class R, class A, class B>   \
        static N2D2_INLINE R apply(A a, B b) { \
            return EXPRESSION;                 \
        }                                      \
    };
#define N2D2_MAP_ONE(NAME, EXPRESSION)    \
    struct NAME {                         \
        template <class R, class A>       \
        static N2D2_INLINE R apply(A a) { \
            return EXPRESSION;            \
        }                                 \
    };

N2D2_MAP_TWO(Add, Arithmetic<R>::add(a, b))
N2D2_MAP_TWO(Sub, Arithmetic<R>::sub(a, b))
N2D2_MAP_TWO(Mul, Arithmetic<R>::mul(a, b))
N2D2_MAP_TWO(Div, Arithmetic<R>::div(a, b))
N2D2_MAP_TWO(Mod, Arithmetic<R>::mod(a, b))
N2D2_MAP_TWO(Fmod, Arithmetic<R>::fmod(a, b))
N2D2_MAP_TWO(Pow, Arithmetic<R>::pow(a, static_cast<double>(b)))
N2D2_MAP_TWO(Max, static_cast<R>(a != a || b < a ? a : b))
N2D2_MAP_TWO(Min, static_cast<R>(a != a || a < b ? a : b))
N2D2_MAP_TWO(Equal, static_cast<R>(a == b))
N2D2_MAP_TWO(Less, static_cast<R>(a < b))
N2D2_MAP_TWO(Greater, static_cast<R>(a > b))
N2D2_MAP_TWO(LessOrEqual, static_cast<R>(a <= b))
N2D2_MAP_TWO(GreaterOrEqual, static_cast<R>(a >= b))
N2D2_MAP_TWO(And, static_cast<R>((a != A(0)) & (b != B(0))))
N2D2_MAP_TWO(Or, static_cast<R>((a != A(0)) | (b != B(0))))
N2D2_MAP_TWO(Xor, static_cast<R>((a != A(0)) != (b != B(0))))
N2D2_MAP_TWO(Right, (static_cast<void>(a), static_cast<R>(b)))
N2D2_MAP_TWO(PRelu, a < A(0) ? Arithmetic<R>::mul(b, a) : a)
N2D2_MAP_TWO(BitAnd, static_cast<R>(a& b))
N2D2_MAP_TWO(BitOr, static_cast<R>(a | b))
N2D2_MAP_TWO(BitXor, static_cast<R>(a ^ b))

// Shifts by the width or more, or by less than 0, leave nothing but the sign.
template <class A, class B>
N2D2_INLINE bool shiftsAll(B b) {
    return b < B(0) || static_cast<std::uint64_t>(b) >= 8 * sizeof(A);
}
N2D2_MAP_TWO(ShiftLeft, shiftsAll<A>(b) ? R(0) : static_cast<R>(static_cast<std::uint64_t>(a) << b))
N2D2_MAP_TWO(ShiftRight, shiftsAll<A>(b) ? static_cast<R>(a < A(0) ? -1 : 0) : static_cast<R>(a >> b))

N2D2_MAP_ONE(Neg, Arithmetic<R>::neg(a))
N2D2_MAP_ONE(Abs, Arithmetic<R>::abs(a))
N2D2_MAP_ONE(Not, static_cast<R>(a == A(0)))
N2D2_MAP_ONE(BitNot, static_cast<R>(~a))
N2D2_MAP_ONE(Sign, static_cast<R>(a != a ? a : static_cast<A>((a > A(0)) - (a < A(0)))))
N2D2_MAP_ONE(Floor, static_cast<R>(std::floor(a)))
N2D2_MAP_ONE(Ceil, static_cast<R>(std::ceil(a)))
N2D2_MAP_ONE(Round, static_cast<R>(std::rint(a)))
N2D2_MAP_ONE(Sqrt, static_cast<R>(std::sqrt(a)))
N2D2_MAP_ONE(Reciprocal, Arithmetic<R>::div(R(1), a))
N2D2_MAP_ONE(IsNaN, static_cast<R>(a != a))
N2D2_MAP_ONE(IsPosInf, static_cast<R>(a > std::numeric_limits<A>::max()))
N2D2_MAP_ONE(IsNegInf, static_cast<R>(a < std::numeric_limits<A>::lowest()))
N2D2_MAP_ONE(CastBool, static_cast<R>(a != A(0)))
#define N2D2_EXACT(NAME, FUNCTION) N2D2_MAP_ONE(NAME, static_cast<R>(exact::FUNCTION(static_cast<double>(a))))
N2D2_EXACT(Exp, exp)
N2D2_EXACT(Log, log)
N2D2_EXACT(Erf, erf)
N2D2_EXACT(Sigmoid, sigmoid)
N2D2_EXACT(Tanh, tanh)
N2D2_EXACT(Softplus, softplus)
N2D2_EXACT(Expm1, expm1)
N2D2_EXACT(Sin, sin)
N2D2_EXACT(Cos, cos)
N2D2_EXACT(Tan, tan)
N2D2_EXACT(Asin, asin)
N2D2_EXACT(Acos, acos)
N2D2_EXACT(Atan, atan)
N2D2_EXACT(Sinh, sinh)
N2D2_EXACT(Cosh, cosh)
N2D2_EXACT(Asinh, asinh)
N2D2_EXACT(Acosh, acosh)
N2D2_EXACT(Atanh, atanh)
#undef N2D2_EXACT
#undef N2D2_MAP_TWO
#undef N2D2_MAP_ONE

struct Cast {
    template <class R, class A>
    static N2D2_INLINE R apply(A a) {
        return Converted<R, A>::from(a);
    }
};

struct Where {
    template <class R, class A, class B, class C>
    static N2D2_INLINE R apply(A condition, B a, C b) {
        return condition != A(0) ? static_cast<R>(a) : static_cast<R>(b);
    }
};

}  // namespace maps

template <class Cfg, class A>
N2D2_INLINE void arrayMap(const A* a, unsigned char* out) {
    typedef typename Cfg::Output::Type R;
    R* const to = elements<typename Cfg::Output>(out);
    const auto body = [=](long i, long, long, long o) N2D2_INLINE_LAMBDA { to[o] = Cfg::Function::template apply<R>(a[i]); };
    Cfg::Axes::run(body, 0, 0, 0, 0);
}

template <class Cfg, class A, class B>
N2D2_INLINE void arrayMap(const A* a, const B* b, unsigned char* out) {
    typedef typename Cfg::Output::Type R;
    R* const to = elements<typename Cfg::Output>(out);
    const auto body = [=](long i, long j, long, long o)
                          N2D2_INLINE_LAMBDA { to[o] = Cfg::Function::template apply<R>(a[i], b[j]); };
    Cfg::Axes::run(body, 0, 0, 0, 0);
}

template <class Cfg, class A, class B, class C>
N2D2_INLINE void arrayMap(const A* a, const B* b, const C* c, unsigned char* out) {
    typedef typename Cfg::Output::Type R;
    R* const to = elements<typename Cfg::Output>(out);
    const auto body = [=](long i, long j, long k, long o)
                          N2D2_INLINE_LAMBDA { to[o] = Cfg::Function::template apply<R>(a[i], b[j], c[k]); };
    Cfg::Axes::run(body, 0, 0, 0, 0);
}

}  // namespace n2d2
