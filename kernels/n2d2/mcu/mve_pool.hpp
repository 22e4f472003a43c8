// Sums of average pools of bytes by MVE, four channels at a time.
#ifndef N2D2_MCU_MVE_POOL_HPP
#define N2D2_MCU_MVE_POOL_HPP

#include "n2d2/mcu/mve_run.hpp"

namespace n2d2 {
namespace mve {

// `load`: of four bytes to words.
#define N2D2_MVE_ADD_PIXELS(load)                                    \
    __asm__ volatile(                                                \
        "vldrw.32  q0, [%[sums]]\n\t"                                \
        "wls       lr, %[count], 2f\n"                               \
        "1:\n\t" load                                                \
        " q1, [%[from]]\n\t"                                         \
        "add       %[from], %[from], %[stride]\n\t"                  \
        "vadd.i32  q0, q0, q1\n\t"                                   \
        "le        lr, 1b\n"                                         \
        "2:\n\t"                                                     \
        "vstrw.32  q0, [%[sums]]"                                    \
        : [from] "+r"(from)                                          \
        : [stride] "r"(stride), [count] "r"(count), [sums] "r"(sums) \
        : "lr", "q0", "q1", "memory")

// Adds the four channels of `count` pixels, `stride` bytes apart, to `sums`.
template <bool Signed>
N2D2_MCU_FAST void addPixels(const unsigned char* from, int stride, int count, std::int32_t* sums) {
    if (Signed)
        N2D2_MVE_ADD_PIXELS("vldrb.s32");
    else
        N2D2_MVE_ADD_PIXELS("vldrb.u32");
}
#undef N2D2_MVE_ADD_PIXELS

}  // namespace mve

// Channels by four of bytes, sums in 32 bits; the others have the portable sums.
template <class Cfg, bool Bytes = sizeof(typename Cfg::Input::Type) == 1 &&
                                  std::is_same<typename Cfg::Sum, std::int32_t>::value && int(Cfg::Input::Channels) % 4 == 0>
struct MvePoolAverage : PoolAverage<Cfg, Portable> {};

template <class Cfg>
struct MvePoolAverage<Cfg, true> : PoolAverage<Cfg, Portable> {
    typedef PoolAverage<Cfg, Portable> Other;
    typedef typename Cfg::Input Input;
    typedef PlaneTraits<Input> Traits;

    template <int Count>
    static N2D2_INLINE void window(const unsigned char* in, Span rows, Span columns, int channel,
                                   typename Cfg::Output::Type* out) {
        std::int32_t sums[Count];
        Other::template start<Count>(sums);
        // Lines that are taken whole and follow each other are one.
        constexpr bool whole = Traits::Flat;
        const bool joined = whole && columns.count() == Input::Width;
        const int lines = joined ? (rows.count() > 0) : rows.count(), pixels = columns.count() * (joined ? rows.count() : 1);
        for (int v = rows.begin; v < rows.begin + lines; ++v) {
            const unsigned char* from =
                reinterpret_cast<const unsigned char*>(line<Input>(in, v) + columns.begin * Input::Stride) + channel;
            for (int i = 0; i < Count; i += 4)
                mve::addPixels<std::numeric_limits<typename Input::Type>::is_signed>(from + i, Input::Stride, pixels, sums + i);
        }
        Other::template finish<Count>(sums, rows.count() * columns.count(), channel, out);
    }
};

}  // namespace n2d2

#endif  // N2D2_MCU_MVE_POOL_HPP
