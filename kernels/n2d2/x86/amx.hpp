// AMX: registers of 16 lines of 64 bytes, tmm0 to tmm7, and their products of bytes.
//
// The instructions are written by name: the intrinsics of GCC 12 do not tell the compiler that memory is read. They have memory in
// their clobbers, so what is stored before them in the source is stored.
#pragma once

#include "n2d2/env.hpp"
#include "n2d2/x86/amx_permission.hpp"
#include "n2d2/x86/intrinsics.hpp"

namespace n2d2 {
namespace amx {

// Shapes of the eight registers, as LDTILECFG reads them: bytes of a line, lines.
struct alignas(64) Shapes {
    std::uint8_t palette, start, reserved[14];
    std::uint16_t bytes[16];
    std::uint8_t lines[16];
};
static_assert(sizeof(Shapes) == 64, "as the instruction reads it");

#if defined(N2D2_EMULATED_AMX)
N2D2_INLINE void configure(const Shapes& shapes) { _tile_loadconfig(&shapes); }
N2D2_INLINE void release() { _tile_release(); }
template <int To>
N2D2_INLINE void load(const void* from, long pitch) {
    _tile_loadd(To, from, pitch);
}
template <int From>
N2D2_INLINE void store(void* to, long pitch) {
    _tile_stored(From, to, pitch);
}
// Register Sums += the products of unsigned bytes of X with signed ones of W: [M][K] times [K / 4][N][4].
template <int Sums, int X, int W>
N2D2_INLINE void dot() {
    _tile_dpbusd(Sums, X, W);
}
#else
N2D2_INLINE void configure(const Shapes& shapes) { __asm__ volatile("ldtilecfg %0" : : "m"(shapes) : "memory"); }
N2D2_INLINE void release() { __asm__ volatile("tilerelease" : : : "memory"); }
template <int To>
N2D2_INLINE void load(const void* from, long pitch) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(pitch), "i"(To) : "memory");
}
template <int From>
N2D2_INLINE void store(void* to, long pitch) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(pitch), "i"(From) : "memory");
}
template <int Sums, int X, int W>
N2D2_INLINE void dot() {
    __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sums), "i"(X), "i"(W));
}
#endif

}  // namespace amx
}  // namespace n2d2
