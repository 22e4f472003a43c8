// AMX on any x86-64 machine, for the tests: stands before the next <immintrin.h>, that of the compiler or of `emulated`, and has tiles in
// memory, for each thread. What the processor would refuse ends the program: shapes that do not fit, tiles that are not configured; and so does
// a thread that configures tiles which it has not released.
//
// Use with -isystem of this folder and -DN2D2_EMULATED_AMX=1; with 0 the system does not give the tiles, and to configure them ends the program too.
#ifndef N2D2_TESTS_AMX_IMMINTRIN_H
#define N2D2_TESTS_AMX_IMMINTRIN_H

#include_next <immintrin.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace emulated {

struct Tile {
    int bytes, lines;
    unsigned char at[16][64];
};

inline Tile* tiles() {
    static thread_local Tile all[8];
    return all;
}

inline void need(bool holds) {
    if (!holds)
        std::abort();
}

inline Tile& tile(int number) {
    need(number >= 0 && number < 8 && tiles()[number].lines > 0);
    return tiles()[number];
}

inline void release() {
    for (int i = 0; i < 8; ++i)
        tiles()[i].bytes = tiles()[i].lines = 0;
}

inline void configure(const void* from) {
    unsigned char shapes[64];
    std::memcpy(shapes, from, sizeof(shapes));
    need(N2D2_EMULATED_AMX != 0 && shapes[0] == 1 && shapes[1] == 0);
    for (int i = 2; i < 16; ++i)
        need(shapes[i] == 0);
    for (int i = 0; i < 8; ++i) {
        Tile& one = tiles()[i];
        need(one.lines == 0);
        one.bytes = shapes[16 + 2 * i] + 256 * shapes[17 + 2 * i];
        one.lines = shapes[48 + i];
        need(one.bytes <= 64 && one.lines <= 16 && (one.bytes > 0) == (one.lines > 0));
        std::memset(one.at, 0, sizeof(one.at));
    }
}

inline void load(int to, const void* from, long pitch) {
    Tile& one = tile(to);
    std::memset(one.at, 0, sizeof(one.at));
    for (int i = 0; i < one.lines; ++i)
        std::memcpy(one.at[i], static_cast<const unsigned char*>(from) + i * pitch, static_cast<std::size_t>(one.bytes));
}

inline void store(int from, void* to, long pitch) {
    const Tile& one = tile(from);
    for (int i = 0; i < one.lines; ++i)
        std::memcpy(static_cast<unsigned char*>(to) + i * pitch, one.at[i], static_cast<std::size_t>(one.bytes));
}

// Unsigned bytes of x times signed bytes of w.
inline void dot(int sums, int x, int w) {
    Tile& to = tile(sums);
    const Tile &a = tile(x), &b = tile(w);
    need(sums != x && sums != w && x != w);
    need(to.lines == a.lines && to.bytes == b.bytes && a.bytes == 4 * b.lines && to.bytes % 4 == 0);
    for (int m = 0; m < to.lines; ++m)
        for (int n = 0; n < to.bytes / 4; ++n) {
            std::uint32_t sum;
            std::memcpy(&sum, to.at[m] + 4 * n, 4);
            for (int k = 0; k < a.bytes; ++k) {
                const int weight = b.at[k / 4][4 * n + k % 4];
                sum += static_cast<std::uint32_t>(a.at[m][k] * (weight < 128 ? weight : weight - 256));
            }
            std::memcpy(to.at[m] + 4 * n, &sum, 4);
        }
}

}  // namespace emulated

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbusd
#define _tile_loadconfig(from) emulated::configure(from)
#define _tile_release() emulated::release()
#define _tile_loadd(to, from, pitch) emulated::load(to, from, pitch)
#define _tile_stored(from, to, pitch) emulated::store(from, to, pitch)
#define _tile_dpbusd(sums, x, w) emulated::dot(sums, x, w)

#endif  // N2D2_TESTS_AMX_IMMINTRIN_H
