// Eight channels with MIPS MSA, as panels/channel_columns.hpp wants them: 32-bit multiply-accumulate (maddv.w), and their epilogue.
#pragma once

#include <msa.h>

#include "n2d2/halfwords.hpp"
#include "n2d2/output.hpp"

namespace n2d2 {
namespace msa {

// A value at any address, by two loads; the compiler copies byte by byte.
template <class T>
struct __attribute__((packed, may_alias)) Unaligned {
    T value;
    static N2D2_INLINE T load(const void* from) { return static_cast<const Unaligned*>(from)->value; }
};

// Count <= 16 bytes, the others 0.
template <int Count>
N2D2_INLINE v16i8 some(const void* from) {
    v16i8 x = {};
    if (Count == 8)
        return reinterpret_cast<v16i8>(__msa_insert_d(reinterpret_cast<v2i64>(x), 0, Unaligned<std::int64_t>::load(from)));
    std::memcpy(&x, from, Count);
    return x;
}

// Eight integers, or numbers of floating point.
template <class T>
struct Eight {
    typedef T Four __attribute__((vector_size(16)));
    Four low, high;
};

// Count <= 8 constants, of outputs from `first` on, and from `second` on behind four; one for all where Size is 1.
template <int Count, int Size, class T>
N2D2_INLINE Eight<T> constants(const T* from, int first, int second) {
    typedef typename Eight<T>::Four Four;
    if (Size == 1)
        return Eight<T>{Four{} + from[0], Four{} + from[0]};
    return Eight<T>{reinterpret_cast<Four>(some<4 * least(Count, 4)>(from + first)),
                    reinterpret_cast<Four>(some<4 * largest(0, Count - 4)>(from + second))};
}

// The epilogue of Count <= 8 sums: element by element, or one product in floating point (rescale.hpp).
template <class Epilogue, int Count, bool Narrow = sizeof(typename Epilogue::Type) <= 2>
struct Finish {
    int first, second;
    N2D2_INLINE Finish(int a, int b) : first(a), second(b) {}
    N2D2_INLINE void store(const Eight<std::int32_t>& sums, typename Epilogue::Type* out) const {
        std::int32_t values[8];
        std::memcpy(values, &sums, sizeof values);
        for (int i = 0; i < Count; ++i)
            out[i] = Epilogue::apply(values[i], i < 4 ? first + i : second + i - 4);
    }
};

// Fractions that are added to the sums.
template <class Addend, int>
struct Addends {
    enum : bool { Any = false };
    static N2D2_INLINE Eight<float> load(int, int) { return Eight<float>(); }
};
template <const float* Fractions, int Size, int Count>
struct Addends<Fraction<Fractions, Size>, Count> {
    enum : bool { Any = true };
    static N2D2_INLINE Eight<float> load(int first, int second) { return constants<Count, Size>(Fractions, first, second); }
};

template <class T, const float* Factors, int Size, bool Bounded, class Addend, std::int64_t Low, std::int64_t High, int Zero,
          int Count>
struct Finish<Requantized<T, FloatRescale<Factors, Size, Bounded, Addend>, Low, High, Zero>, Count, true> {
    Eight<float> factors, addends;

    N2D2_INLINE Finish(int first, int second)
        : factors(constants<Count, Size>(Factors, first, second)), addends(Addends<Addend, Count>::load(first, second)) {}
    static N2D2_INLINE v8i16 rounded(v4i32 sums, v4f32 factor, v4f32 addend) {
        const v4f32 x = __msa_ffint_s_w(sums), product = (Addends<Addend, Count>::Any ? x + addend : x) * factor;
        const v4f32 low = v4f32{} + static_cast<float>(Low - Zero), high = v4f32{} + static_cast<float>(High - Zero);
        return reinterpret_cast<v8i16>(__msa_ftint_s_w(__msa_fmax_w(__msa_fmin_w(product, high), low)) + Zero);
    }
    N2D2_INLINE void store(const Eight<std::int32_t>& sums, T* out) const {
        const v16i8 halves = reinterpret_cast<v16i8>(
            __msa_pckev_h(rounded(sums.high, factors.high, addends.high), rounded(sums.low, factors.low, addends.low)));
        const v16i8 all = sizeof(T) == 1 ? __msa_pckev_b(halves, halves) : halves;
        std::memcpy(out, &all, Count * sizeof(T));
    }
};

struct Channels {
    typedef Eight<std::int32_t> Sums;
    typedef Sums Inputs;
    typedef Sums Weights;
    static constexpr int most(int) { return 5; }

    template <class In, int Count>
    static N2D2_INLINE Inputs inputs(const In* from) {
        const v16i8 zero = {}, x = some<Count* static_cast<int>(sizeof(In))>(from);
        v8i16 halves = reinterpret_cast<v8i16>(x);
        if (sizeof(In) == 1)
            halves = std::numeric_limits<In>::is_signed ? __msa_srai_h(reinterpret_cast<v8i16>(__msa_ilvr_b(x, x)), 8) :
                                                          reinterpret_cast<v8i16>(__msa_ilvr_b(zero, x));
        else if (!std::numeric_limits<In>::is_signed)
            halves ^= std::numeric_limits<std::int16_t>::min();
        return Inputs{reinterpret_cast<v4i32>(__msa_ilvr_h(halves, halves)) >> 16,
                      reinterpret_cast<v4i32>(__msa_ilvl_h(halves, halves)) >> 16};
    }
    static N2D2_INLINE void weights(const unsigned char* a, const unsigned char* b, Weights& first, Weights& second) {
        const v4i32 low = reinterpret_cast<v4i32>(some<16>(a)), high = reinterpret_cast<v4i32>(some<16>(b));
        first = Weights{low << 16 >> 16, high << 16 >> 16};
        second = Weights{low >> 16, high >> 16};
    }
    // Four lines of a column of bytes, [channel][line].
    static N2D2_INLINE void lines(const std::int8_t* from, Weights (&to)[4]) {
        const v4i32 low = reinterpret_cast<v4i32>(some<16>(from)), high = reinterpret_cast<v4i32>(some<16>(from + 16));
        for (int u = 0; u < 4; ++u)
            to[u] = Weights{low << (24 - 8 * u) >> 24, high << (24 - 8 * u) >> 24};
    }
    static N2D2_INLINE Inputs spread(std::int16_t x) { return Inputs{__msa_fill_w(x), __msa_fill_w(x)}; }
    template <int Count>
    static N2D2_INLINE Sums bias(const std::int32_t* from, int first, int second) {
        return constants<Count, 0>(from, first, second);
    }
    static N2D2_INLINE void add(Sums& sums, const Inputs& x, const Weights& w) {
        sums.low += x.low * w.low;
        sums.high += x.high * w.high;
    }
    template <class S, int Count>
    using Epilogue = Finish<S, Count>;
};

}  // namespace msa
}  // namespace n2d2
