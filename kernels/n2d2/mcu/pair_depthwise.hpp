// Depthwise convolution for the DSP extension of Arm's M profile: four channels of a pixel at a time, two taps in a word. One function for
// all layers reads their shapes from constants.
//
// Four bytes a of one tap and b of the next are put together as (a0 a1 b0 b1) (a2 a3 b2 b3), which UXTB16 turns into pairs of 16 bits
// of each channel; one SMLAD adds both products. Where the taps of a pixel lie is a table of pointers, so that padding is a
// pointer to zero points. All constants of four channels are one stream of words:
//
//   biases; weights of two taps, four channels, for all pairs of taps; multipliers, or both words of doubled sums
//
// Results as in lanes.hpp.
#pragma once

#include "n2d2/mcu/lanes.hpp"
#include "n2d2/parallel.hpp"

namespace n2d2 {
namespace pairs {

// The arguments of the assembly, which knows the offsets.
struct Work {
    const unsigned char* const* taps;  // 0
    const unsigned char* const* end;   // 4: of the taps, whose number is even
    const std::uint32_t* stream;       // 8
    std::int32_t channels;             // 12: a multiple of four
    unsigned char* out;                // 16
    std::int32_t zero;                 // 20
    std::uint32_t low;                 // 24: the least result in each byte
    std::uint32_t room;                // 28: 255 less the largest one
    std::uint32_t mask;                // 32
};

// clang-format off
#define N2D2_PAIRS_STEP(extend)             \
    "ldrd   r2, r3, [r0], #8\n\t"           \
    "ldr    r2, [r2, r8]\n\t"               \
    "ldr    r3, [r3, r8]\n\t"               \
    "ldm    r1!, {r10, r11, r12, lr}\n\t"   \
    "pkhbt  r9, r2, r3, lsl #16\n\t"        \
    "pkhtb  r2, r3, r2, asr #16\n\t"        \
    extend " r3, r9\n\t"                    \
    "smlad  r4, r3, r10, r4\n\t"            \
    extend " r3, r9, ror #8\n\t"            \
    "smlad  r5, r3, r11, r5\n\t"            \
    extend " r3, r2\n\t"                    \
    "smlad  r6, r3, r12, r6\n\t"            \
    extend " r3, r2, ror #8\n\t"            \
    "smlad  r7, r3, lr, r7\n\t"

#define N2D2_PAIRS_STEP_OF(scaled)          \
    "ldm    r1!, {r10, r11, r12, lr}\n\t"   \
    scaled("r4", "r10", "r9")               \
    scaled("r5", "r11", "r9")               \
    scaled("r6", "r12", "r9")               \
    scaled("r7", "lr", "r9")
#define N2D2_PAIRS_SCALED N2D2_PAIRS_STEP_OF(N2D2_SCALED)
#define N2D2_PAIRS_DOUBLED(doubled, away)       \
    "ldm    r1!, {r10, r11, r12, lr}\n\t"       \
    doubled("r4", "r10") doubled("r5", "r11")   \
    doubled("r6", "r12") doubled("r7", "lr")    \
    away("r4") away("r5") away("r6") away("r7") \
    N2D2_PAIRS_STEP_OF(N2D2_SHIFTED)

// All channels of a pixel.
#define N2D2_PAIRS_PIXEL(name, extend, scaled)                  \
    N2D2_ASM_FUNCTION(72, static void name(Work*), "r4-r11",    \
            "sub    sp, sp, #36\n\t"                            \
            "ldm    r0, {r2-r8, r10, r12}\n\t"                  \
            "mov    r1, r4\n\t"                                 \
            "str    r2, [sp, #0]\n\t"                           \
            "str    r3, [sp, #4]\n\t"                           \
            "strd   r5, r6, [sp, #8]\n\t"                       \
            "strd   r7, r8, [sp, #16]\n\t"                      \
            "strd   r10, r12, [sp, #24]\n\t"                    \
            "mov    r8, #0\n"                                   \
        "1:\n\t"                                                \
            "ldm    r1!, {r4-r7}\n\t"                           \
            "ldr    r0, [sp, #0]\n"                             \
        "2:\n\t"                                                \
            N2D2_PAIRS_STEP(extend)                             \
            "ldr    r9, [sp, #4]\n\t"                           \
            "cmp    r0, r9\n\t"                                 \
            "bne    2b\n\t"                                     \
            "ldrd   r3, r9, [sp, #12]\n\t"                      \
            scaled                                              \
            "ldrd   r10, r11, [sp, #20]\n\t"                    \
            N2D2_ASM_EACH("r4,r5,r6,r7", "usat \\x, #8, \\x")   \
            "orr    r4, r4, r5, lsl #8\n\t"                     \
            "orr    r6, r6, r7, lsl #8\n\t"                     \
            "orr    r4, r4, r6, lsl #16\n\t"                    \
            "ldr    r12, [sp, #28]\n\t"                         \
            "orrs   r5, r10, r11\n\t"                           \
            "beq    3f\n\t"                                     \
            N2D2_LIMITED("r4", "r10", "r11")                    \
        "3:\n\t"                                                \
            "eor    r4, r4, r12\n\t"                            \
            "str    r4, [r3, r8]\n\t"                           \
            "ldr    r2, [sp, #8]\n\t"                           \
            "add    r8, r8, #4\n\t"                             \
            "cmp    r8, r2\n\t"                                 \
            "bne    1b\n\t"                                     \
            "add    sp, sp, #36\n\t")

template <int Rounding>
struct Kernels;
#define N2D2_PAIRS_KERNELS(rounding, scaled)            \
    template <>                                         \
    struct Kernels<rounding> {                          \
        N2D2_PAIRS_PIXEL(ofUnsigned, "uxtb16", scaled)  \
        N2D2_PAIRS_PIXEL(ofSigned, "sxtb16", scaled)    \
    };
N2D2_PAIRS_KERNELS(lanes::HighWord, N2D2_PAIRS_SCALED)
N2D2_PAIRS_KERNELS(lanes::Twice, N2D2_PAIRS_DOUBLED(N2D2_DOUBLED, N2D2_AS_IT_IS))
N2D2_PAIRS_KERNELS(lanes::TwiceSigned, N2D2_PAIRS_DOUBLED(N2D2_DOUBLED, N2D2_AWAY))
N2D2_PAIRS_KERNELS(lanes::Once, N2D2_PAIRS_DOUBLED(N2D2_DOUBLED_DOWN, N2D2_AS_IT_IS))
// clang-format on

// `rows`: kernelHeight pointers. `taps`: an even number of them, at least one for each position of the kernel. `padded`: room for
// the channels.
template <bool Signed, int Rounding>
N2D2_MCU_FAST void depthwise(const lanes::Shape& s, const unsigned char* in, unsigned char* out, const std::uint32_t* stream,
                             const unsigned char** rows, const unsigned char** taps, unsigned char* padded, int begin,
                             int end) {
    const int extent = (s.kernelWidth - 1) * s.dilationWidth, count = s.kernelHeight * s.kernelWidth, pixels = s.out.width;
    const int step = s.strideWidth * s.in.stride;
    std::memset(padded, s.padding, static_cast<std::size_t>(s.channels));
    taps[count] = padded;  // beside the last one, if that is alone
    Work work;
    work.taps = taps;
    work.end = taps + (count + 1) / 2 * 2;
    work.stream = stream;
    work.channels = s.channels;
    lanes::limit(work, s);
    for (int turn = begin; turn < end; ++turn) {
        const int y = s.reverse ? s.out.height - 1 - turn : turn;
        int from = y * s.strideHeight - s.padTop;
        for (int u = 0; u < s.kernelHeight; ++u, from += s.dilationHeight)
            rows[u] = from < 0 || from >= s.in.height ? nullptr : in + lanes::offsetOf(s.in, from);
        unsigned char* to = out + lanes::offsetOf(s.out, y);
        bool inner = false;
        for (int x = 0; x < pixels; ++x, to += s.out.stride) {
            const int left = x * s.strideWidth - s.padLeft;
            const bool inside = left >= 0 && left + extent < s.in.width;
            if (inside && inner) {
                const unsigned char** tap = taps;
                for (int u = 0; u < s.kernelHeight; ++u) {
                    const int by = rows[u] ? step : 0;
                    for (int v = 0; v < s.kernelWidth; ++v)
                        *tap++ += by;
                }
            } else {
                lanes::placeTaps(s, rows, x, padded, taps);
            }
            inner = inside;
            work.out = to;
            Signed ? Kernels<Rounding>::template ofSigned<>(&work) : Kernels<Rounding>::template ofUnsigned<>(&work);
        }
    }
}

}  // namespace pairs

N2D2_STREAM_KERNEL(PairDepthwise, Lanes, Depthwise<Cfg, Portable>) {
    N2D2_PLANES(Cfg);
    enum : int { Taps = Cfg::KernelHeight * Cfg::KernelWidth };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*, const Rows& rows = Rows::all<Output>()) {
        static constexpr lanes::Shape shape = lanes::shapeOf<Cfg>(Input::Channels);
        const unsigned char* lines[Cfg::KernelHeight];
        const unsigned char* taps[(Taps + 2) / 2 * 2];
        unsigned char padded[(int(Input::Channels) + 3) / 4 * 4];
        pairs::depthwise<std::numeric_limits<typename Input::Type>::is_signed, Cfg::Rounding>(
            shape, in, out, elementsOf<std::uint32_t>(weights), lines, taps, padded, rows.begin, rows.end);
    }
};

}  // namespace n2d2
