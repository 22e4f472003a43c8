// The sum with another tensor in the epilogue of a convolution: what the layer makes is added to the bytes that lie where it is stored.
//
//   out[i] = Last(weight() * First(sum) + oldWeight() * old + offset())      with old = the byte that out[i] takes the place of
//
// First is the epilogue of the convolution as it would be without the sum, Last that of the sum: the same integers as those of
// two layers one after the other, but the convolution's own output is never in memory, and the sum's lies exactly over its other operand.
// Every element is stored once, by the thread that read what was there.
//
// Operand: struct { typedef ... Old; static constexpr std::int32_t weight(), oldWeight(), offset(); } of the layer, zero points in the offset.
// Multipliers have 24 bits at most, and the largest sums of products 32.
#pragma once

#include "n2d2/isa.hpp"
#include "n2d2/output.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

template <class First, class Operand, class Last>
struct Added {
    typedef typename Last::Type Type;
    static_assert(sizeof(typename First::Type) == 1 && sizeof(typename Operand::Old) == 1 && sizeof(Type) == 1, "bytes");
};

// The epilogue of what a layer computes, and whether a sum follows.
template <class Epilogue>
struct OwnEpilogue {
    enum : bool { Adds = false };
    typedef Epilogue Type;
};
template <class First, class Operand, class Last>
struct OwnEpilogue<Added<First, Operand, Last> > {
    enum : bool { Adds = true };
    typedef First Type;
};

// Two 16-bit multipliers in a word, `first` in its lower half.
constexpr int pairOf(std::int32_t first, std::int32_t second) {
    return static_cast<int>(static_cast<std::uint32_t>(first & 0xffff) | static_cast<std::uint32_t>(second & 0xffff) << 16);
}

// The multipliers as pairs of 16-bit integers. Wide ones are high() * 2^15 + low(): their sum of products is, modulo 2^32, that by
// low() and 2^15 times that by high().
template <class Operand>
struct PairedWeights {
    static constexpr bool isWide(std::int32_t weight) { return weight < -32768 || weight > 32767; }
    enum : bool { Wide = isWide(Operand::weight()) || isWide(Operand::oldWeight()) };
    static constexpr int low() {
        return Wide ? pairOf(Operand::weight() & 32767, Operand::oldWeight() & 32767) :
                      pairOf(Operand::weight(), Operand::oldWeight());
    }
    static constexpr int high() { return pairOf(Operand::weight() >> 15, Operand::oldWeight() >> 15); }
};

// Adds Count elements of `own` to those at `out`.
template <class Epilogue>
struct PortableResidual;

template <class First, class Operand, class Last>
struct PortableResidual<Added<First, Operand, Last> > {
    template <int Count>
    static N2D2_INLINE void run(const typename First::Type* own, typename Last::Type* out) {
        const typename Operand::Old* const old = reinterpret_cast<const typename Operand::Old*>(out);
        std::int32_t sums[Count];
        for (int i = 0; i < Count; ++i)
            sums[i] = Operand::weight() * static_cast<std::int32_t>(own[i]) +
                      Operand::oldWeight() * static_cast<std::int32_t>(old[i]) + Operand::offset();
        PortableRun<Last, false>::template run<Count>(sums, 0, out);
    }
};

template <class First, class Operand, class Last, bool Varying>
struct PortableRun<Added<First, Operand, Last>, Varying> {
    template <int Count, class Sum>
    static N2D2_INLINE void run(const Sum* sums, int index, typename Last::Type* out) {
        typename First::Type own[Count];
        PortableRun<First, Varying>::template run<Count>(sums, index, own);
        PortableResidual<Added<First, Operand, Last> >::template run<Count>(own, out);
    }
};

// The same with the instructions of an instruction set: an object with the constants, which are loaded before anything is stored,
// has sixteen<Count>(own, out) for up to sixteen elements; sixteen are read at `own`.
template <class Epilogue, class Isa>
struct ResidualSum {
    N2D2_INLINE ResidualSum() {}
    template <int Count, class Own, class Out>
    N2D2_INLINE void sixteen(const Own* own, Out* out) const {
        PortableResidual<Epilogue>::template run<Count>(own, out);
    }
};

// An instruction set that takes 64 elements at a time has SixtyFour in its ResidualSum, and sixtyFour(own, out).
template <class Sum, class Found = void>
struct ManyResiduals {
    enum : int { Step = 0 };
    template <class Own, class Out>
    static N2D2_INLINE void run(const Sum&, const Own*, Out*) {}
};
template <class Sum>
struct ManyResiduals<Sum, typename Exists<Sum::SixtyFour>::Type> {
    enum : int { Step = 64 };
    template <class Own, class Out>
    static N2D2_INLINE void run(const Sum& sum, const Own* own, Out* out) {
        sum.sixtyFour(own, out);
    }
};

template <int Count, class Sum, class Own, class Out>
N2D2_INLINE void addResidual(const Sum& sum, const Own* own, Out* out) {
    constexpr int step = ManyResiduals<Sum>::Step, many = step > 0 ? Count / (step > 0 ? step : 1) * step : 0;
    constexpr int whole = Count / 16 * 16, rest = Count - whole;
    for (int i = 0; i < many; i += 64)
        ManyResiduals<Sum>::run(sum, own + i, out + i);
    N2D2_UNROLL
    for (int i = many; i < whole; i += 16)
        sum.template sixteen<16>(own + i, out + i);
    if (rest > 0)
        sum.template sixteen<(rest > 0 ? rest : 16)>(own + whole, out + whole);
}

// What is at `place` was stored by addresses that may lie before it, which the compiler need not see as the same bytes.
N2D2_INLINE void storedAt(const void* place) {
#if defined(__GNUC__)
    __asm__ volatile("" : : "r"(place) : "memory");
#else
    static_cast<void>(place);
#endif
}

// The path of the outputs of a tile of Pixels pixels of Count outputs: nothing, or a buffer of what the layer makes of its own sums, which
// is added to what lies at the place of each pixel. run() lets Runner compute the tile, store() has its sums; `once` says which pixels are
// none that another one repeats.
template <class Epilogue, int Pixels, int Count, bool Adds = OwnEpilogue<Epilogue>::Adds>
struct TileEnd {
    typedef Epilogue Own;
    template <class Tile, class Runner, class In, class Weight, class Sum, class At>
    static N2D2_INLINE void run(const In* x, const Weight* weights, const Sum* bias, int output, const At& at) {
        Runner::template run<Tile>(x, weights, bias, output, at);
    }
    template <class Finish, class Sums, class At>
    static N2D2_INLINE void store(const Sums& sums, int output, const At& at, const bool (&)[4]) {
        Finish::store(sums, output, at);
    }
};

template <class Epilogue, int Pixels, int Count>
struct TileEnd<Epilogue, Pixels, Count, true> {
    typedef typename OwnEpilogue<Epilogue>::Type Own;
    typedef typename Own::Type Out;
    enum : int { Step = (Count + 15) / 16 * 16 };

    // Where a machine stores output `output` of a pixel: it adds that number, so places are addresses, which may lie before the buffer.
    struct Beside {
        enum : long { Step = TileEnd::Step };
        Out* made;
        int output;
        N2D2_INLINE Out* operator()(int p) const {
            return reinterpret_cast<Out*>(reinterpret_cast<std::uintptr_t>(made + p * Step) -
                                          sizeof(Out) * static_cast<std::uintptr_t>(output));
        }
    };
    template <class Tile, class Runner, class In, class Weight, class Sum, class At>
    static N2D2_INLINE void run(const In* x, const Weight* weights, const Sum* bias, int output, const At& at) {
        alignas(64) Out made[Pixels * Step];
        const Beside beside = {made, output};
        Runner::template run<Tile>(x, weights, bias, output, beside);
        storedAt(made);
        const ResidualSum<Epilogue, Native> sum;
        if (StepOf<At>::value == Count && int(Step) == Count) {  // the pixels follow each other
            addResidual<Pixels * Count>(sum, made, at(0) + output);
            return;
        }
        for (int p = 0; p < Pixels; ++p)
            addResidual<Count>(sum, made + p * Step, at(p) + output);
    }
    template <class Finish, class Sums, class At>
    static N2D2_INLINE void store(const Sums& sums, int output, const At& at, const bool (&once)[4]) {
        alignas(64) Out made[Pixels * Step];
        const Beside beside = {made, output};
        Finish::store(sums, output, beside);
        storedAt(made);
        const ResidualSum<Epilogue, Native> sum;
        for (int p = 0; p < Pixels; ++p)
            if (once[p])
                addResidual<Count>(sum, made + p * Step, at(p) + output);
    }
};

}  // namespace n2d2

#define N2D2_BIND_RESIDUAL
#include "n2d2/bindings.hpp"
#undef N2D2_BIND_RESIDUAL
