// The multiply instruction of AMX: four registers of sums, as in the tiles; that of AVX-512 where the system does not give them.
#pragma once

#include "n2d2/x86/amx.hpp"
#include "n2d2/x86/multiply_peak.hpp"

namespace n2d2 {
namespace amx {

struct Peak {
    enum : int { Products = 4 * 16 * 16 * 64 };
    static N2D2_INLINE void run(int loops) {
        if (!granted()) {
            Dot512Peak::run(loops * (int(Products) / int(Dot512Peak::Products)));
            return;
        }
        Shapes shapes = {};
        shapes.palette = 1;
        for (int i = 0; i < 8; ++i) {
            shapes.bytes[i] = 64;
            shapes.lines[i] = 16;
        }
        configure(shapes);
        for (int i = 0; i < loops; ++i) {
            dot<0, 4, 6>();
            dot<1, 4, 7>();
            dot<2, 5, 6>();
            dot<3, 5, 7>();
        }
        release();
    }
};

}  // namespace amx
}  // namespace n2d2
