// Vectors of integers: the primitives over which a kernel is written once where instruction sets differ in the width of their vectors
// only.
//
// A set has a struct Vec of types and static functions (n2d2/x86/sse41.hpp, avx2.hpp, avx512.hpp), which such a kernel takes as a
// template parameter; it needs those that the kernels call which its header binds. float32 has its own (panels/float_vector.hpp).
//
//   Ints, Lanes, Size           a vector, its 32-bit integers, its bytes
//   load, store                 at any address; loadAligned, storeAligned at a multiple of Size
//   some<Count>(a, b)           Count integers: four from a on, the others from b on where a vector has more; the rest is 0
//   zero(), spread(x)           0, or x, in every place of 32 bits; spread16(x) of 16; word(from): four bytes of memory, of 32
//   plus, minus(a, b)           of 32-bit integers, modulo 2^32; left<Bits>, right<Bits>(a): shifted, with the sign; times(a, b): the lower 32 bits
//                               of the products
//   plus16, minus16(a, b)       of 16-bit integers; left16<Bits>, right16<Bits>(a): shifted, with the sign
//   widened<In, Count>(from)    Count bytes as 16-bit integers, signed ones + 128; flipped<In>(x): bytes, signed ones + 128
//   halfwords<In, Count>(from)  Count <= 2 Lanes integers of 8 or 16 bits as signed ones of 16; unsigned ones of 16 bits - 32768
//   dot(sums, x, w)             sums + four products of unsigned bytes x and signed ones w (AVX-512, AVX-VNNI); store<Count>(x, to): of Count integers
//   plus8, minus8(a, b)         of bytes; loadSome<Count>(from): the first Count bytes, the others 0 (AVX2, SSE4.1)
//   lowBytes, highBytes(x)      of each 16 bits, as 16-bit integers
//   bytePairs(a, b)             the first eight bytes of both in turns, as 16-bit integers (AVX2)
//   pairOf<Half>(x)             the first two of each four signed bytes, or (1) the other two, as 16-bit integers (AVX2, SSE4.1)
//   inEach(x)                   128 bits in each 128 bits (AVX2, SSE4.1)
//   lowPairs, highPairs(a, b)   16-bit integers of a and b in turns, of the lower and the upper half of each 128 bits
//   byteProducts(a, b)          the sums of the two products of unsigned bytes a and signed ones b in each place of 16 bits, saturated (AVX2, SSE4.1)
//   addPairs(sums, a, b)        sums + the two products of 16-bit integers in each place of 32 bits
//   pin(x)                      it is in a register here: the compiler does not put together what is added before and behind
//
//   largerBytes<T>, smallerBytes<T>(x, value)  of each byte of type T and a value, also for 128 bits
//
// The epilogues: Floats, toFloats, toInts, asFloats (the same bits), spreadFloat, product, sum, withSign (of a number of no sign), smaller,
//   larger (x86/epilogues.hpp);
// Epilogue<S, Count>(first, second), that of Count <= Lanes outputs, has apply<Saturated>(sums), clampBytes(bytes).
//
//   packed<T>(a, b, c, d)       four vectors to bytes of T in order, saturated
//   storeBytes<Count>(epilogue, sums, to)    Count <= Lanes sums through an epilogue; Masked: whether few take no longer than all
//   storeTwo<S, Count>(a, b, to)          rescaled sums as lowPairs and highPairs leave them, Count <= 2 Lanes outputs in order
//   sixteen<Count>(from)        the first Count of 16 bytes, the others 0
//   pairsOf<A, B>(a, b, to)     16 bytes of type A in turns with 16 of type B, as 16-bit integers, in 16 / Lanes vectors
//   storeSixteen<Count>(epilogue, sums, to)  the sums of such pairs through an epilogue, Count <= 16 of them
#pragma once

#include "n2d2/env.hpp"
#include "n2d2/output.hpp"

namespace n2d2 {

// True if an epilogue makes bytes that a vector of sums can be rescaled to.
template <class Epilogue>
struct BytesInVectors {
    enum : bool { value = false };
};
template <class T, class Rescale, std::int64_t Low, std::int64_t High, int Zero>
struct BytesInVectors<Requantized<T, Rescale, Low, High, Zero> > {
    enum : bool { value = sizeof(T) == 1 && (Zero == 0 || InFloat<Rescale>::value) };
};

}  // namespace n2d2
