// Depthwise convolution with AVX2: windows of 3 x 3 column by column, others by pairs of lines.
#ifndef N2D2_X86_AVX2_DEPTHWISE_HPP
#define N2D2_X86_AVX2_DEPTHWISE_HPP

#include "n2d2/x86/avx2.hpp"
#include "n2d2/x86/avx2_depthwise3x3.hpp"
#include "n2d2/x86/pair_depthwise.hpp"

namespace n2d2 {
namespace avx2 {

template <class Cfg,
          bool Three = (Cfg::KernelHeight == 3 && Cfg::KernelWidth == 3 && Cfg::DilationWidth == 1 && Cfg::StrideWidth <= 2)>
struct Depthwise : PairDepthwise<Cfg, Vec> {};

template <class Cfg>
struct Depthwise<Cfg, true> {
    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const std::int8_t* w, const std::int32_t* bias,
                                const Rows& rows = Rows::all<typename Cfg::Output>()) {
        Lines3x3<Cfg, PairDepthwise<Cfg, Vec>, (Cfg::Serial || Cfg::Streamed)>::run(in, out, w, bias, rows);
    }
};

}  // namespace avx2
}  // namespace n2d2

#endif  // N2D2_X86_AVX2_DEPTHWISE_HPP
