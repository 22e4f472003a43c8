// The epilogue with SVE vectors of 256 bits: eight sums at a time, rescaled to bytes or 16-bit integers.
//
// As in rescale.hpp: in floating point the product is rounded first, with a conversion that saturates, and then clamped as an integer:
// the limits are integers, so the result is the same. Products of 64 bits are made of four sums at a time. What is stored are the low
// bytes of each lane, by a store that narrows; lanes behind the last output are not active. Other epilogues are applied element by element.
#pragma once

#include <arm_sve.h>

#include "n2d2/output.hpp"

namespace n2d2 {
namespace sve {

// Vectors that can be elements of arrays.
typedef svint8_t Signed __attribute__((arm_sve_vector_bits(256)));
typedef svuint8_t Bytes __attribute__((arm_sve_vector_bits(256)));
typedef svint16_t Halves __attribute__((arm_sve_vector_bits(256)));
typedef svint32_t Ints __attribute__((arm_sve_vector_bits(256)));
typedef svint64_t Longs __attribute__((arm_sve_vector_bits(256)));
typedef svuint64_t Places __attribute__((arm_sve_vector_bits(256)));
typedef svfloat32_t Floats __attribute__((arm_sve_vector_bits(256)));

// The first Count of 8 lanes of 32 bits, of 4 lanes of 64 bits, of 16 lanes of 16 bits, of 32 bytes.
template <int Count>
N2D2_INLINE svbool_t lanes() {
    return Count >= 8 ? svptrue_b32() : svwhilelt_b32_s32(0, Count);
}
template <int Count>
N2D2_INLINE svbool_t longLanes() {
    return Count >= 4 ? svptrue_b64() : svwhilelt_b64_s32(0, Count);
}
template <int Count>
N2D2_INLINE svbool_t halfLanes() {
    return Count >= 16 ? svptrue_b16() : svwhilelt_b16_s32(0, Count);
}
template <int Count>
N2D2_INLINE svbool_t byteLanes() {
    return Count >= 32 ? svptrue_b8() : svwhilelt_b8_s32(0, Count);
}

// x is in a register here, and what is read from memory behind this is not read before.
N2D2_INLINE void pin(Ints& x) {
    svint32_t sums = x;
    __asm__ volatile("" : "+w"(sums) : : "memory");
    x = sums;
}
N2D2_INLINE void pin(Longs& x) {
    svint64_t sums = x;
    __asm__ volatile("" : "+w"(sums) : : "memory");
    x = sums;
}

N2D2_INLINE svint32_t loaded(svbool_t some, const std::int32_t* from) { return svld1_s32(some, from); }
N2D2_INLINE svfloat32_t loaded(svbool_t some, const float* from) { return svld1_f32(some, from); }
N2D2_INLINE svint32_t chosen(svbool_t some, svint32_t a, svint32_t b) { return svsel_s32(some, a, b); }
N2D2_INLINE svfloat32_t chosen(svbool_t some, svfloat32_t a, svfloat32_t b) { return svsel_f32(some, a, b); }

// The positions of the constants of outputs: of outputs 4 v to 4 v + 3 at operator()(v); Ordered: those of all outputs lie one after the other.
struct InOrder {
    enum : bool { Ordered = true };
    int first;
    N2D2_INLINE int operator()(int v) const { return first + 4 * v; }
};

// The constants of outputs 8 v to 8 v + Count - 1, and zeros up to eight.
template <int Count, class T, class At>
N2D2_INLINE auto eight(const T* from, const At& at, int v) -> decltype(loaded(svptrue_b32(), from)) {
    if (bool(At::Ordered) || Count <= 4)
        return loaded(lanes<Count>(), from + at(2 * v));
    const svbool_t upper = svbic_b_z(svptrue_b8(), lanes<Count>(), lanes<4>());
    return chosen(upper, loaded(upper, from + at(2 * v + 1) - 4), loaded(lanes<4>(), from + at(2 * v)));
}

// The low bytes of Count lanes, one or two of each.
template <int Count, class T>
N2D2_INLINE void storeLow(svint32_t x, T* out) {
    if (sizeof(T) == 1)
        svst1b_s32(lanes<Count>(), elementsOf<std::int8_t>(out), x);
    else
        svst1h_s32(lanes<Count>(), elementsOf<std::int16_t>(out), x);
}

// Products of four sums and their multipliers, shifted: FixedPointRescale, ShiftRescale, DoublingRescale.
template <class Rescale>
struct Shifted4 {
    enum : bool { Known = false };
};

// True for the epilogues that are computed in vectors.
template <class Epilogue>
struct InVectors {
    enum : bool { value = false };
};
template <class T, class Rescale, std::int64_t Low, std::int64_t High, int Zero>
struct InVectors<Requantized<T, Rescale, Low, High, Zero> > {
    enum : bool { value = sizeof(T) <= 2 && (InFloat<Rescale>::value || Shifted4<Rescale>::Known) };
};

// The constants of outputs 8 v to 8 v + Count - 1; store() rescales and stores their sums.
template <class Epilogue, int Count, bool Vectors = bool(InVectors<Epilogue>::value)>
struct Epilogue8 {
    int first, second;
    template <class At>
    N2D2_INLINE void load(const At& at, int v) {
        first = at(2 * v);
        second = at(2 * v + 1);
    }
    N2D2_INLINE void store(svint32_t sums, typename Epilogue::Type* out) const {
        alignas(32) std::int32_t values[8];
        svst1_s32(svptrue_b32(), values, sums);
        for (int i = 0; i < Count; ++i)
            out[i] = Epilogue::apply(values[i], i < 4 ? first + i : second + i - 4);
    }
};

// The addend of eight sums.
template <class Addend, int Count>
struct Addend8 {
    template <class At>
    N2D2_INLINE void load(const At&, int) {}
    N2D2_INLINE svfloat32_t apply(svfloat32_t sums) const { return sums; }
};
template <const float* Fractions, int FractionCount, int Count>
struct Addend8<Fraction<Fractions, FractionCount>, Count> {
    Floats fractions;
    template <class At>
    N2D2_INLINE void load(const At& at, int v) {
        fractions = FractionCount == 1 ? svdup_n_f32(Fractions[0]) : eight<Count>(Fractions, at, v);
    }
    N2D2_INLINE svfloat32_t apply(svfloat32_t sums) const { return svadd_f32_x(svptrue_b32(), sums, fractions); }
};

template <class T, const float* Factors, int FactorCount, bool Bounded, class Addend, std::int64_t Low, std::int64_t High,
          int Zero, int Count>
struct Epilogue8<Requantized<T, FloatRescale<Factors, FactorCount, Bounded, Addend>, Low, High, Zero>, Count, true> {
    Floats factors;
    Addend8<Addend, Count> addend;

    template <class At>
    N2D2_INLINE void load(const At& at, int v) {
        factors = FactorCount == 1 ? svdup_n_f32(Factors[0]) : eight<Count>(Factors, at, v);
        addend.load(at, v);
    }
    N2D2_INLINE void store(svint32_t sums, T* out) const {
        const svbool_t all = svptrue_b32();
        const svfloat32_t x = svmul_f32_x(all, addend.apply(svcvt_f32_s32_x(all, sums)), factors);
        svint32_t rounded = svcvt_s32_f32_x(all, svrintn_f32_x(all, x));
        rounded = svmin_n_s32_x(all, svmax_n_s32_x(all, rounded, static_cast<std::int32_t>(Low - Zero)),
                                static_cast<std::int32_t>(High - Zero));
        storeLow<Count>(Zero == 0 ? rounded : svadd_n_s32_x(all, rounded, Zero), out);
    }
};

template <const std::int32_t* Multipliers, int FactorCount, int Shift>
struct Shifted4<FixedPointRescale<Multipliers, FactorCount, Shift> > {
    enum : bool { Known = true };
    Longs multipliers;
    template <int Count>
    N2D2_INLINE void load(int index) {
        multipliers = FactorCount == 1 ? svdup_n_s64(Multipliers[0]) : svld1sw_s64(longLanes<Count>(), Multipliers + index);
    }
    N2D2_INLINE svint64_t apply(svint64_t sums) const {
        const svbool_t all = svptrue_b64();
        const svint64_t x = svmul_s64_x(all, sums, multipliers);
        const svint64_t rounded = svadd_n_s64_x(all, x, (std::int64_t(1) << Shift) >> 1);
        return Shift > 0 ? svasr_n_s64_x(all, rounded, Shift > 0 ? Shift : 1) : x;
    }
};
template <const std::int64_t* Multipliers, const std::uint8_t* Shifts, int FactorCount>
struct Shifted4<ShiftRescale<Multipliers, Shifts, FactorCount> > {
    enum : bool { Known = true };
    Longs multipliers, halves;
    Places shifts;
    template <int Count>
    N2D2_INLINE void load(int index) {
        const svbool_t all = svptrue_b64(), some = longLanes<Count>();
        multipliers = FactorCount == 1 ? svdup_n_s64(Multipliers[0]) : svld1_s64(some, Multipliers + index);
        shifts = FactorCount == 1 ? svdup_n_u64(Shifts[0]) : svld1ub_u64(some, Shifts + index);
        halves = svasr_n_s64_x(all, svlsl_s64_x(all, svdup_n_s64(1), shifts), 1);
    }
    N2D2_INLINE svint64_t apply(svint64_t sums) const {
        const svbool_t all = svptrue_b64();
        return svasr_s64_x(all, svadd_s64_x(all, svmul_s64_x(all, sums, multipliers), halves), shifts);
    }
};

template <const std::int32_t* Multipliers, const std::int32_t* Shifts, int FactorCount, bool Twice>
struct Shifted4<DoublingRescale<Multipliers, Shifts, FactorCount, Twice, true> > {
    enum : bool { Known = true };
    Longs multipliers, halves;
    Places shifts;
    template <int Count>
    N2D2_INLINE void load(int index) {
        const svbool_t all = svptrue_b64(), some = longLanes<Count>();
        multipliers = FactorCount == 1 ? svdup_n_s64(Multipliers[0]) : svld1sw_s64(some, Multipliers + index);
        shifts = svreinterpret_u64_s64(FactorCount == 1 ? svdup_n_s64(Shifts[0]) : svld1sw_s64(some, Shifts + index));
        halves = svasr_n_s64_x(all, svlsl_s64_x(all, svdup_n_s64(1), shifts), 1);
    }
    N2D2_INLINE svint64_t apply(svint64_t sums) const {
        const svbool_t all = svptrue_b64();
        svint64_t x = svmul_s64_x(all, sums, multipliers);
        x = svasr_n_s64_x(all, Twice ? svadd_n_s64_x(all, x, 1 << 30) : x, 31);
        x = Twice ? svadd_s64_x(all, x, svasr_n_s64_x(all, x, 63)) : x;
        return svasr_s64_x(all, svadd_s64_x(all, x, halves), shifts);
    }
};

template <class T, class Rescale, std::int64_t Low, std::int64_t High, int Zero, int Count>
struct Epilogue8<Requantized<T, Rescale, Low, High, Zero>, Count, true> {
    enum : int { Upper = Count > 4 ? Count - 4 : 1 };
    Shifted4<Rescale> low, high;

    template <class At>
    N2D2_INLINE void load(const At& at, int v) {
        low.template load<(Count < 4 ? Count : 4)>(at(2 * v));
        if (Count > 4)
            high.template load<Upper>(at(2 * v + 1));
    }
    static N2D2_INLINE svint32_t clamped(svint64_t x) {
        const svbool_t all = svptrue_b64();
        const svint64_t inside = svmin_n_s64_x(all, svmax_n_s64_x(all, x, Low - Zero), High - Zero);
        return svreinterpret_s32_s64(Zero == 0 ? inside : svadd_n_s64_x(all, inside, Zero));
    }
    N2D2_INLINE void store(svint32_t sums, T* out) const {
        const svint32_t first = clamped(low.apply(svunpklo_s64(sums)));
        const svint32_t second = Count > 4 ? svint32_t(clamped(high.apply(svunpkhi_s64(sums)))) : first;
        storeLow<Count>(svuzp1_s32(first, second), out);
    }
};

// The epilogue of a panel of Outputs outputs: its constants, loaded before anything is stored, which might be they.
template <class Epilogue, int Outputs>
struct PanelEpilogue {
    enum : int { Vectors = (Outputs + 7) / 8, Last = Outputs - 8 * (Vectors - 1) };
    Epilogue8<Epilogue, 8> whole;
    Epilogue8<Epilogue, Last> last;

    template <class At>
    N2D2_INLINE explicit PanelEpilogue(const At& at) {
        if (Vectors > 1)
            whole.load(at, 0);
        last.load(at, Vectors - 1);
    }
    // The sums have their bias.
    N2D2_INLINE void store(const Ints* sums, typename Epilogue::Type* out) const {
        if (Vectors > 1)
            whole.store(sums[0], out);
        last.store(sums[Vectors - 1], out + 8 * (Vectors - 1));
    }
};

// The bias of the outputs of a panel.
template <int Outputs, class At>
N2D2_INLINE void panelOf(const std::int32_t* from, const At& at, Ints* to) {
    constexpr int vectors = (Outputs + 7) / 8, last = Outputs - 8 * (vectors - 1);
    if (vectors > 1)
        to[0] = eight<8>(from, at, 0);
    to[vectors - 1] = eight<last>(from, at, vectors - 1);
}

}  // namespace sve
}  // namespace n2d2
