// Panels of rows (n2d2/x86/row_panels.hpp) for AVX-VNNI.
#ifndef N2D2_X86_ROW_DOTS_AVXVNNI_HPP
#define N2D2_X86_ROW_DOTS_AVXVNNI_HPP

#include "n2d2/x86/avxvnni_tile.hpp"
#include "n2d2/x86/row_panels.hpp"

namespace n2d2 {

struct PanelRowsVnni : avx2::Vec {
    enum : int { Most = 32 };

    template <int Count>
    static N2D2_INLINE Ints load(const std::int8_t* from) {
        return Count < 8 ? avx2::eight<Count>(from, from + 16) : load256(from);
    }
    template <int Count>
    static N2D2_INLINE void store(Ints x, std::int32_t* to) {
        avx2::store8<Count>(x, to);
    }
    static N2D2_INLINE void dot(Ints& sums, Ints x, Ints w) { avxvnni::dot(sums, x, w); }
    static N2D2_INLINE Ints joined(Ints low, Ints high) { return _mm256_add_epi32(low, _mm256_slli_epi32(high, 8)); }
};

}  // namespace n2d2

#endif  // N2D2_X86_ROW_DOTS_AVXVNNI_HPP
