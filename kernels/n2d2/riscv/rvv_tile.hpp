// The matrix product of the panels with RISC-V vectors of any length: outputs along the vector, widening multiply-accumulate (vwmacc).
//
// An input of a pixel is a scalar that multiplies the 16-bit weights of all outputs of a vector. 32-bit sums take groups of four
// registers (LMUL 4): 16 outputs where vectors have 128 bits, one panel; two or four panels where they are longer. The words of those
// panels are put one after the other in a register group; shifts take the inputs of a word apart. Bytes are multiplied as unsigned ones,
// signed ones + 128.
// Stack: the sums of a tile, for epilogues that are no product in floating point.
#pragma once

#include <riscv_vector.h>

#include "n2d2/output.hpp"
#include "n2d2/panels/microkernel.hpp"
#include "n2d2/vectors/byte_window.hpp"

namespace n2d2 {
namespace rvv {

// The epilogue: a vector of sums rescaled in floating point to bytes or 16-bit integers. As in rescale.hpp, the product is clamped to the
// integer limits, then rounded to nearest, ties to even, the rounding mode that programs have unless they change it.
//
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

// The weights of a word for `Length` outputs, in 16 bits: those of input Index.
template <int Each, class Weight>
struct Word;
template <>
struct Word<4, std::int8_t> {
    typedef vint32m4_t All;
    static N2D2_INLINE All load(const std::int8_t* from, int outputs) {
        return __riscv_vreinterpret_v_i8m4_i32m4(__riscv_vle8_v_i8m4(from, static_cast<std::size_t>(4 * outputs)));
    }
    static N2D2_INLINE All joined(All first, All second, int begin, int length) {
        return __riscv_vslideup_vx_i32m4(first, second, static_cast<std::size_t>(begin), static_cast<std::size_t>(length));
    }
    template <int Index>
    static N2D2_INLINE vint16m2_t input(All all, std::size_t length) {
        const vint16m2_t pair = __riscv_vnsra_wx_i16m2(all, Index / 2 * 16, length);
        return __riscv_vsra_vx_i16m2(Index % 2 == 0 ? __riscv_vsll_vx_i16m2(pair, 8, length) : pair, 8, length);
    }
};
template <>
struct Word<2, std::int16_t> : Word<4, std::int8_t> {
    static N2D2_INLINE All load(const std::int16_t* from, int outputs) {
        return Word<4, std::int8_t>::load(reinterpret_cast<const std::int8_t*>(from), outputs);
    }
    template <int Index>
    static N2D2_INLINE vint16m2_t input(All all, std::size_t length) {
        return __riscv_vnsra_wx_i16m2(all, Index * 16, length);
    }
};
template <>
struct Word<2, std::int8_t> {
    typedef vint16m2_t All;
    static N2D2_INLINE All load(const std::int8_t* from, int outputs) {
        return __riscv_vreinterpret_v_i8m2_i16m2(__riscv_vle8_v_i8m2(from, static_cast<std::size_t>(2 * outputs)));
    }
    static N2D2_INLINE All joined(All first, All second, int begin, int length) {
        return __riscv_vslideup_vx_i16m2(first, second, static_cast<std::size_t>(begin), static_cast<std::size_t>(length));
    }
    template <int Index>
    static N2D2_INLINE vint16m2_t input(All all, std::size_t length) {
        return __riscv_vsra_vx_i16m2(Index == 0 ? __riscv_vsll_vx_i16m2(all, 8, length) : all, 8, length);
    }
};

template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue, class Weight = std::int8_t>
struct Tile {
    enum : int { Each = WordOf<In, Weight>::Each };
    enum : bool { Halves = sizeof(In) == 2 || sizeof(Weight) == 2 };  // inputs of a window
    enum : long { PanelWeights = 16L * Each * Words };
    typedef Word<Each, Weight> W;
    typedef typename Choice<bool(Halves), std::int16_t, std::uint8_t>::Type Value;

    enum : int { Together = least(Pixels, 5), Rest = Pixels - Together };  // five groups of four registers for the sums

    // Panels [first, first + Count) of the tile, at w, whose outputs fill one vector.
    template <int Count, bool Last, long Pitch, class At>
    static N2D2_NOINLINE void vector(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output,
                                     const At& at) {
        enum : int { Tail = Last ? LastOutputs : 16, Outputs = 16 * (Count - 1) + Tail };
        constexpr std::size_t length = Outputs;
        const Value* in = reinterpret_cast<const Value*>(x);
        constexpr long pitch = Pitch / static_cast<int>(sizeof(Value));
        const vint32m4_t first = __riscv_vle32_v_i32m4(bias + output, length);
        vint32m4_t a = first, b = first, c = first, d = first, e = first;
        for (int q = 0; q < Words; ++q, in += int(Each)) {
            typename W::All all = W::load(w + q * (Count > 1 ? 16 : int(Tail)) * Each, Count > 1 ? 16 : int(Tail));
            N2D2_UNROLL
            for (int n = 1; n < Count; ++n) {
                const int outputs = n == Count - 1 ? int(Tail) : 16;
                all = W::joined(all, W::load(w + n * PanelWeights + q * outputs * Each, outputs), 16 * n, 16 * n + outputs);
            }
#define N2D2_RVV_PIXEL(sums, pixel)                                                                                         \
    if (pixel < Together)                                                                                                   \
        sums = __riscv_vwmacc_vx_i32m4(sums, static_cast<std::int16_t>(in[(pixel < Together ? pixel : 0) * pitch + input]), \
                                       weights, length);
#define N2D2_RVV_INPUT(index)                                             \
    if (index < Each) {                                                   \
        constexpr int input = index < Each ? index : 0;                   \
        const vint16m2_t weights = W::template input<input>(all, length); \
        N2D2_RVV_PIXEL(a, 0)                                              \
        N2D2_RVV_PIXEL(b, 1)                                              \
        N2D2_RVV_PIXEL(c, 2)                                              \
        N2D2_RVV_PIXEL(d, 3)                                              \
        N2D2_RVV_PIXEL(e, 4)                                              \
    }
            N2D2_RVV_INPUT(0)
            N2D2_RVV_INPUT(1)
            N2D2_RVV_INPUT(2)
            N2D2_RVV_INPUT(3)
#undef N2D2_RVV_INPUT
#undef N2D2_RVV_PIXEL
        }
        typedef Finish<Epilogue, Outputs> End;
        End::store(a, output, at(0) + output);
        if (Together > 1)
            End::store(b, output, at(least(1, int(Together) - 1)) + output);
        if (Together > 2)
            End::store(c, output, at(least(2, int(Together) - 1)) + output);
        if (Together > 3)
            End::store(d, output, at(least(3, int(Together) - 1)) + output);
        if (Together > 4)
            End::store(e, output, at(least(4, int(Together) - 1)) + output);
    }

    // All panels, Count at a time.
    template <int Count, long Pitch, class At>
    static N2D2_INLINE void vectors(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output,
                                    const At& at) {
        constexpr int whole = (Panels - 1) / Count, rest = Panels - whole * Count;
        for (int n = 0; n < whole; ++n)
            vector<Count, false, Pitch>(x, w + n * Count * PanelWeights, bias, output + 16 * Count * n, at);
        vector<rest, true, Pitch>(x, w + whole * Count * PanelWeights, bias, output + 16 * Count * whole, at);
    }

    // The pixels beyond those, of a tile that `-tune` tries.
    template <bool, long>
    struct Others {
        template <class At>
        static N2D2_INLINE void run(const std::uint8_t*, const Weight*, const std::int32_t*, int, const At&) {}
    };
    template <long Pitch>
    struct Others<true, Pitch> {
        template <class At>
        static N2D2_INLINE void run(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output,
                                    const At& at) {
            Tile<In, Rest, Panels, Words, LastOutputs, Epilogue, Weight>::template run<Pitch>(
                x + Together * Pitch, w, bias, output, [=](int p) N2D2_INLINE_LAMBDA { return at(Together + p); });
        }
    };

    template <long Pitch, class At>
    static N2D2_INLINE void run(const std::uint8_t* x, const Weight* w, const std::int32_t* bias, int output, const At& at) {
        const std::size_t most = __riscv_vsetvlmax_e32m4();
        if (Panels > 2 && most >= 64)
            vectors<(Panels > 2 ? 4 : 1), Pitch>(x, w, bias, output, at);
        else if (Panels > 1 && most >= 32)
            vectors<(Panels > 1 ? 2 : 1), Pitch>(x, w, bias, output, at);
        else
            vectors<1, Pitch>(x, w, bias, output, at);
        Others<(Rest > 0), Pitch>::run(x, w, bias, output, at);
    }
};

struct Microkernel {
    typedef WideWeights<Microkernel, rvv::Tile> Wide;
    template <class In, int Words>
    struct Windows : vectors::ByteWindow<In, Words> {};
    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Tile : rvv::Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue> {};

    static N2D2_INLINE constexpr int tilePixels(int) { return 5; }
    static N2D2_INLINE constexpr int tilePanels(int panels) { return least(panels, 4); }
    static N2D2_INLINE constexpr int singlePanels() { return 4; }
};

}  // namespace rvv
}  // namespace n2d2
