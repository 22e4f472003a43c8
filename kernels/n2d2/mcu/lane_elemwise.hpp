// Sums of two tensors of bytes by the DSP extension, four elements at a time: an SMLAD makes a sum. Results as in lanes.hpp.
#pragma once

#include "n2d2/mcu/lanes.hpp"
#include "n2d2/mcu/two_bytes.hpp"

namespace n2d2 {
namespace lanes {

// The constants of a sum: both weights in a word, and as in Shape.
struct Added {
    std::uint32_t weights;
    std::int32_t offset, multiplier, zero;
    std::uint32_t low, room, mask;
};

// A byte of a result from the words of both inputs.
N2D2_INLINE std::uint32_t added(const Added& s, std::uint32_t pair) {
    std::int32_t sum;
    __asm__("smlad %0, %1, %2, %3" : "=r"(sum) : "r"(pair), "r"(s.weights), "r"(s.offset));
    __asm__("smmlar %0, %1, %2, %3" : "=r"(sum) : "r"(sum), "r"(s.multiplier), "r"(s.zero));
    __asm__("usat %0, #8, %1" : "=r"(sum) : "r"(sum));
    return static_cast<std::uint32_t>(sum);
}

template <bool Signed>
N2D2_INLINE std::uint32_t added(const Added& s, std::uint32_t a, std::uint32_t b) {
    std::uint32_t even, evenB, odd, oddB, pairs[4];
    halves<Signed>(a, even, odd);
    halves<Signed>(b, evenB, oddB);
    // By name: compilers use two instructions each.
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(pairs[0]) : "r"(even), "r"(evenB));
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(pairs[1]) : "r"(odd), "r"(oddB));
    __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(pairs[2]) : "r"(evenB), "r"(even));
    __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(pairs[3]) : "r"(oddB), "r"(odd));
    return added(s, pairs[0]) | added(s, pairs[1]) << 8 | (added(s, pairs[2]) | added(s, pairs[3]) << 8) << 16;
}

// Four at a time where all addresses are those of words.
template <bool Signed>
N2D2_MCU_FAST void sum(const Weighted& w, const unsigned char* a, const unsigned char* b, unsigned char* out, int count) {
    const std::int32_t high = w.results.low < 0 ? 128 : 0;
    const Added s = {(static_cast<std::uint32_t>(w.weight) & 0xffffu) | static_cast<std::uint32_t>(w.otherWeight) << 16,
                     w.offset,
                     w.multiplier,
                     w.results.zero + high,
                     0x01010101u * static_cast<std::uint32_t>(w.results.low + high),
                     0x01010101u * static_cast<std::uint32_t>(255 - w.results.high - high),
                     high ? 0x80808080u : 0u};
    const unsigned char* const end = a + count;
    const bool plain = (s.low | s.room | s.mask) == 0;
    if (((reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) | reinterpret_cast<std::uintptr_t>(out)) &
         3) == 0) {
        const unsigned char* const words = a + count / 4 * 4;
        for (; a != words; a += 4, b += 4, out += 4) {
            const std::uint32_t bytes = added<Signed>(s, alignedWord(a), alignedWord(b));
            storeWord(out, plain ? bytes : limited(s, bytes));
        }
    }
    for (; a != end; ++a, ++b, ++out)
        *out = static_cast<unsigned char>(limited(s, added(s, pairOf<Signed>(*a, *b))));
}

}  // namespace lanes

template <class Cfg, bool Two = lanes::TwoBytes<Cfg, typename Cfg::Operands>::Halves>
struct LaneElemwise : Elemwise<Cfg, Portable> {};

template <class Cfg>
struct LaneElemwise<Cfg, true> {
    static N2D2_INLINE void run(const unsigned char* const* in, unsigned char* out,
                                const Rows& rows = Rows::all<typename Cfg::Output>()) {
        typedef lanes::TwoBytes<Cfg, typename Cfg::Operands> Two;
        Two::run(in, out, rows, lanes::sum<std::numeric_limits<typename Two::Type>::is_signed>);
    }
};

}  // namespace n2d2
