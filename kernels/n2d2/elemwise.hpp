// Element-wise combination of several tensors. An operand has the shape of the output, or is repeated along the axes
// where its length is 1.
//
//   SumTerms        t_0 + t_1 + ...               with t_i = weight_i * (x_i - zero_i) + shift_i
//   AbsSumTerms     |...| + |...| + ...           with weight_i * |x_i - zero_i|
//   MaxTerms        the largest t_i
//   MinTerms        the smallest t_i
//   ProdTerms       t_0 * t_1 * ...
//   EuclideanTerms  sqrt(t_0^2 + t_1^2 + ...), of real numbers
//
// then Epilogue. With integers the weights are multipliers that bring the inputs to one scale, and an offset of
// the sum is the shift of operand 0. Terms are combined from left to right.
//
// An operand is a struct { typedef ... Plane, Extent (the plane of the output); static constexpr Sum zero(), weight(), shift(); } of the
// layer, an element-wise layer has `typedef Terms<Sum, SumTerms, operand0, operand1, ...> Operands`.
// Config: plane Output; types Operands, Epilogue, Isa; enum PerChannel, Serial, Reverse. May be in place (pointwise.hpp).
#pragma once

#include <cmath>

#include "n2d2/pointwise.hpp"

namespace n2d2 {

template <class Operand, class Sum>
N2D2_INLINE Sum centred(typename Operand::Plane::Type x) {
    return static_cast<Sum>(static_cast<Sum>(x) - static_cast<Sum>(Operand::zero()));
}

struct SumTerms {
    template <class Operand, class Sum>
    static N2D2_INLINE Sum term(Sum x) {
        return static_cast<Sum>(unfused(times<Sum>(Operand::weight(), x)) + Operand::shift());
    }
    template <class Sum>
    static N2D2_INLINE Sum combine(Sum a, Sum b) {
        return a + b;
    }
    template <class Sum>
    static N2D2_INLINE Sum finish(Sum a) {
        return a;
    }
};

struct AbsSumTerms : SumTerms {
    template <class Operand, class Sum>
    static N2D2_INLINE Sum term(Sum x) {
        return unfused(times<Sum>(Operand::weight(), x < Sum(0) ? -x : x));
    }
};

#define N2D2_TERMS(NAME, EXPRESSION)                   \
    struct NAME : SumTerms {                           \
        template <class Sum>                           \
        static N2D2_INLINE Sum combine(Sum a, Sum b) { \
            return EXPRESSION;                         \
        }                                              \
    };
N2D2_TERMS(MaxTerms, higher(a, b))
N2D2_TERMS(MinTerms, lower(a, b))
N2D2_TERMS(ProdTerms, times<Sum>(a, b))
#undef N2D2_TERMS

struct EuclideanTerms : SumTerms {
    template <class Operand, class Sum>
    static N2D2_INLINE Sum term(Sum x) {
        const Sum t = SumTerms::term<Operand>(x);
        return unfused(t * t);
    }
    template <class Sum>
    static N2D2_INLINE Sum finish(Sum a) {
        return std::sqrt(a);
    }
};

// The operands after some first ones; without any, the end of the fold.
template <class Sum, class Function, class... Operands>
struct TermsTail {
    enum : int { Packed = 1 };
    N2D2_INLINE TermsTail(const unsigned char* const*, int) {}
    N2D2_INLINE void move(int) {}
    N2D2_INLINE Sum fold(Sum sum, int) const { return sum; }
};

template <class Sum, class Function, class First, class... Rest>
struct TermsTail<Sum, Function, First, Rest...> {
    typedef typename First::Plane Plane;
    typedef TermsTail<Sum, Function, Rest...> Tail;
    typedef typename First::Extent Extent;
    enum : int {
        OneLine = int(Plane::Height) != int(Extent::Height),
        OneColumn = int(Plane::Width) != int(Extent::Width),
        OneChannel = int(Plane::Channels) != int(Extent::Channels),
        Packed = int(PlaneTraits<Plane>::Packed) && int(Tail::Packed) && !int(OneColumn) && !int(OneChannel)
    };
    static_assert((!int(OneLine) || int(Plane::Height) == 1) && (!int(OneColumn) || int(Plane::Width) == 1) &&
                      (!int(OneChannel) || int(Plane::Channels) == 1),
                  "an operand has the shape of the output but for axes of length 1");

    const typename Plane::Type* from;
    Tail tail;

    N2D2_INLINE TermsTail(const unsigned char* const* in, int y) : from(line<Plane>(in[0], OneLine ? 0 : y)), tail(in + 1, y) {}
    N2D2_INLINE void move(int x) {
        from += OneColumn ? 0 : x * Plane::Stride;
        tail.move(x);
    }
    N2D2_INLINE Sum term(int i) const { return Function::template term<First>(centred<First, Sum>(from[OneChannel ? 0 : i])); }
    N2D2_INLINE Sum fold(Sum sum, int i) const { return tail.fold(Function::combine(sum, term(i)), i); }
};

template <class Sum, class Function, class First, class... Rest>
struct Terms {
    enum : int { Count = 1 + static_cast<int>(sizeof...(Rest)) };
    typedef TermsTail<Sum, Function, First, Rest...> Operands;
    enum : int { Packed = Operands::Packed };

    Operands operands;

    N2D2_INLINE Terms(const unsigned char* const* in, int y) : operands(in, y) {}
    N2D2_INLINE Terms pixel(int x) const {
        Terms moved(*this);
        moved.operands.move(x);
        return moved;
    }
    N2D2_INLINE Sum at(int i, int) const { return Function::finish(operands.tail.fold(operands.term(i), i)); }
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct Elemwise {
    static N2D2_INLINE void run(const unsigned char* const* in, unsigned char* out,
                                const Rows& rows = Rows::all<typename Cfg::Output>()) {
        pointwise<Cfg, typename Cfg::Operands, (Cfg::PerChannel != 0)>(in, out, rows);
    }
};

// in: the bases of the operands, in order.
N2D2_LAYER(elemwise, Elemwise<Cfg>)

}  // namespace n2d2

#define N2D2_BIND_ELEMWISE
#include "n2d2/bindings.hpp"
#undef N2D2_BIND_ELEMWISE
