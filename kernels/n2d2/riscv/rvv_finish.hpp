// The epilogue with RISC-V vectors: a vector of sums rescaled in floating point to bytes or 16-bit integers; other epilogues as in output.hpp.
//
// As in rescale.hpp: the product is clamped to the integer limits, then rounded to nearest, ties to even, the rounding mode that programs
// have unless they change it.
#pragma once

#include <riscv_vector.h>

#include "n2d2/output.hpp"

namespace n2d2 {
namespace rvv {

// Stores Count <= 64 sums of outputs from one on. The compiler makes vectors of the portable epilogue.
template <class Epilogue, int Count, bool Narrow = (sizeof(typename Epilogue::Type) <= 2)>
struct Finish {
    static N2D2_INLINE void store(vint32m4_t sums, int output, typename Epilogue::Type* out) {
        std::int32_t values[Count];
        __riscv_vse32_v_i32m4(values, sums, Count);
        n2d2::store<Epilogue, Count>(values, output, out);
    }
};

// The low bytes of `length` elements, one or two of each.
template <class T>
N2D2_INLINE void storeLow(vint32m4_t x, std::size_t length, T* out) {
    const vint16m2_t halves = __riscv_vncvt_x_x_w_i16m2(x, length);
    if (sizeof(T) == 1)
        __riscv_vse8_v_i8m1(elementsOf<std::int8_t>(out), __riscv_vncvt_x_x_w_i8m1(halves, length), length);
    else
        __riscv_vse16_v_i16m2(elementsOf<std::int16_t>(out), halves, length);
}

// The addend of the sums.
template <class Addend, int Count>
struct VectorAddend {
    static N2D2_INLINE vfloat32m4_t apply(vfloat32m4_t sums, int) { return sums; }
};
template <const float* Fractions, int FractionCount, int Count>
struct VectorAddend<Fraction<Fractions, FractionCount>, Count> {
    static N2D2_INLINE vfloat32m4_t apply(vfloat32m4_t sums, int output) {
        return FractionCount == 1 ? __riscv_vfadd_vf_f32m4(sums, Fractions[0], Count) :
                                    __riscv_vfadd_vv_f32m4(sums, __riscv_vle32_v_f32m4(Fractions + output, Count), Count);
    }
};

template <class T, const float* Factors, int FactorCount, bool Bounded, class Addend, std::int64_t Low, std::int64_t High,
          int Zero, int Count>
struct Finish<Requantized<T, FloatRescale<Factors, FactorCount, Bounded, Addend>, Low, High, Zero>, Count, true> {
    static N2D2_INLINE void store(vint32m4_t sums, int output, T* out) {
        vfloat32m4_t x = VectorAddend<Addend, Count>::apply(__riscv_vfcvt_f_x_v_f32m4(sums, Count), output);
        x = FactorCount == 1 ? __riscv_vfmul_vf_f32m4(x, Factors[0], Count) :
                               __riscv_vfmul_vv_f32m4(x, __riscv_vle32_v_f32m4(Factors + output, Count), Count);
        x = __riscv_vfmin_vf_f32m4(x, static_cast<float>(High - Zero), Count);
        x = __riscv_vfmax_vf_f32m4(x, static_cast<float>(Low - Zero), Count);
        const vint32m4_t rounded = __riscv_vfcvt_x_f_v_i32m4(x, Count);
        storeLow(Zero == 0 ? rounded : __riscv_vadd_vx_i32m4(rounded, Zero, Count), Count, out);
    }
};

}  // namespace rvv
}  // namespace n2d2
