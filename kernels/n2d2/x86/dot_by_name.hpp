// Dot products of VNNI: sums[i] += the products of four unsigned bytes of x with four signed ones of w, or of pairs of 16-bit integers.
//
// An instruction by name: with the intrinsic GCC 12 keeps half of the sums of a tile on the stack (180 moves in a loop, none this way).
#ifndef N2D2_X86_DOT_BY_NAME_HPP
#define N2D2_X86_DOT_BY_NAME_HPP

#include "n2d2/env.hpp"
#include "n2d2/x86/intrinsics.hpp"

#define N2D2_DOT_BY_NAME(Name, Vector, Register, Instruction)                               \
    N2D2_INLINE void Name(Vector& sums, Vector x, Vector w) {                               \
        __asm__(Instruction " %2, %1, %0" : "+" Register(sums) : Register(x), Register(w)); \
    }
#define N2D2_DOT_BY_INTRINSIC(Name, Vector, Intrinsic) \
    N2D2_INLINE void Name(Vector& sums, Vector x, Vector w) { sums = Intrinsic(sums, x, w); }

#endif  // N2D2_X86_DOT_BY_NAME_HPP
