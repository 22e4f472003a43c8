// Weights of 1, 2 and 4 bits, and of 8 bits beyond a byte: how they are stored, and unpacked into a buffer for the products.
//
// A byte holds 8 / WeightBits weights, the first one in the lowest bits. The bits r of a weight stand for
// WeightStep * (r ^ WeightFlip) + WeightBase: two's complement with WeightStep 1, WeightFlip half of the range and WeightBase minus that;
// odd numbers (quantizers without a zero, binary weights) with WeightStep 2 and WeightBase minus the range.
//
// A config without WeightBits has weights as they are multiplied. Portable order: each output's weights, filled up to whole bytes. Panels:
// one run of all of them, which begins at a byte for each panel of 16 outputs.
// Stack: the weights that are unpacked at a time, a byte each.
#pragma once

#include "n2d2/env.hpp"

namespace n2d2 {

template <class Cfg, class Found = void>
struct PackedWeights {
    typedef typename Cfg::Weight Weight;
    typedef Weight Stored;
    enum : int { Bits = 0 };
};

template <class Cfg>
struct PackedWeights<Cfg, typename Exists<Cfg::WeightBits>::Type> {
    typedef typename Cfg::Weight Weight;
    typedef std::uint8_t Stored;
    enum : int { Bits = Cfg::WeightBits, PerByte = 8 / Bits, Mask = (1 << Bits) - 1 };
    static_assert(int(Bits) == 1 || int(Bits) == 2 || int(Bits) == 4 || int(Bits) == 8, "whole weights in a byte");

    static_assert((Cfg::WeightFlip & (Cfg::WeightFlip - 1)) == 0, "one bit is flipped, or none");

    // The weight at a place of a byte. Compilers make vectors of it where they see that bytes, modulo 256, are enough; of r ^ WeightFlip clang
    // makes shifts of 32 bits.
    static N2D2_INLINE Weight weight(Stored byte, int place) {
        typedef typename Choice<sizeof(Weight) == 1, std::uint8_t, int>::Type Number;
        const Number raw = static_cast<Number>(byte >> (place * Bits) & Mask);
        const Number signedRaw = static_cast<Number>(raw - static_cast<Number>((raw & Cfg::WeightFlip) * 2));
        constexpr int base = Cfg::WeightBase + Cfg::WeightStep * Cfg::WeightFlip;
        return static_cast<Weight>(static_cast<Number>(Cfg::WeightStep * signedRaw + base));
    }
    static N2D2_INLINE Weight at(const Stored* from, int index) { return weight(from[index / PerByte], index % PerByte); }

    // Weights [first, first + count) of a run that begins at `from`.
    static N2D2_INLINE void unpack(const Stored* from, int first, int count, Weight* to) {
        for (; count > 0 && first % PerByte != 0; --count)
            *to++ = at(from, first++);
        const Stored* const bytes = from + first / PerByte;
        const int whole = count / PerByte;
        for (int i = 0; i < whole; ++i)
            N2D2_UNROLL_FOR(j, PerByte)
                to[i * PerByte + j] = weight(bytes[i], j);
        for (int i = whole * PerByte; i < count; ++i)
            to[i] = at(bytes, i);
    }
};

// The config of a layer whose weights were unpacked before its kernel runs.
template <class Cfg>
struct Unpacked : Cfg {
    typedef void WeightBits;  // no constant any more
    typedef void Prepacked;
};

// The weights of a layer that are unpacked or transformed once (n2d2/prepacked.hpp), and whether its config asks for that: Prepacked for whole panels of bytes,
// PrepackedWinograd for those of Winograd's form.
template <class Cfg, class Made>
struct Prepacked;
N2D2_OPTIONAL(bool, IsPrepacked, Prepacked, false);
N2D2_OPTIONAL(bool, IsPrepackedWinograd, PrepackedWinograd, false);

// Runs a Kernel with its weights as they are stored, or that of the same layer with bytes, Plain, with those that were unpacked once.
template <class Cfg, class Kernel, class Plain, bool Once = IsPrepacked<Cfg>::value>
struct WithWeights : Kernel {};
template <class Cfg, class Kernel, class Plain>
struct WithWeights<Cfg, Kernel, Plain, true> {
    template <class... Lines>
    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const std::uint8_t* weights,
                                const typename Cfg::Sum* bias, const Lines&... rows) {
        Plain::run(in, out, Prepacked<Cfg, typename Kernel::AllWeights>::of(weights).first, bias, rows...);
    }
};

// The weights of Count outputs from `output` on, of K each.
template <class Packing, int Count, int K, bool Packed = Packing::Bits != 0>
struct WeightRows {
    const typename Packing::Weight* const first;

    N2D2_INLINE WeightRows(const typename Packing::Stored* weights, int output)
        : first(weights + static_cast<long>(output) * K) {}
};

template <class Packing, int Count, int K>
struct WeightRows<Packing, Count, K, true> {
    typename Packing::Weight first[Count * K];

    N2D2_INLINE WeightRows(const typename Packing::Stored* weights, int output) {
        constexpr int bytes = (K * Packing::Bits + 7) / 8;
        for (int o = 0; o < Count; ++o)
            Packing::unpack(weights + static_cast<long>(output + o) * bytes, 0, K, first + o * K);
    }
};

// The panels of Outputs outputs (microkernel.hpp), which begin behind `before` weights: [Words][outputs of the panel][Each], of which K are used.
template <class Packing, int Outputs, int Words, int Each, int K, bool Packed = Packing::Bits != 0>
struct WeightPanels {
    const typename Packing::Weight* const first;

    N2D2_INLINE WeightPanels(const typename Packing::Stored* weights, long before) : first(weights + before) {}
};

template <class Packing, int Outputs, int Words, int Each, int K>
struct WeightPanels<Packing, Outputs, Words, Each, K, true> {
    alignas(64) typename Packing::Weight first[Outputs * Words * Each];

    N2D2_INLINE WeightPanels(const typename Packing::Stored* weights, long before) {
        constexpr int panels = (Outputs + 15) / 16;
        Packing::unpack(weights + before / Packing::PerByte, 0, Outputs * Words * Each, first);
        for (int p = 0; K % Each != 0 && p < panels; ++p) {  // odd numbers have no zero to fill up with
            const int outputs = least(16, Outputs - 16 * p);
            typename Packing::Weight* const last = first + (16 * p * Words + (Words - 1) * outputs) * Each;
            for (int o = 0; o < outputs; ++o)
                for (int e = K % Each; e < Each; ++e)
                    last[o * Each + e] = 0;
        }
    }
};

}  // namespace n2d2
