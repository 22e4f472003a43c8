// Constants in other orders than those that the export holds: files that the build makes (dnn/derive.cpp).
#pragma once

#include "n2d2/binary.hpp"

#ifndef N2D2_DERIVED
// 1 if the build makes them.
#define N2D2_DERIVED 0
#endif
#ifndef N2D2_DERIVED_FOLDER
// The folder of these files, relative to where the compiler runs.
#define N2D2_DERIVED_FOLDER "build/parameters"
#endif

// Defines the constant array `symbol` as N2D2_BINARY (n2d2/binary.hpp) does.
#if N2D2_DERIVED
#define N2D2_DERIVED_BINARY(symbol, alignment, file) N2D2_BINARY_AT(symbol, alignment, N2D2_DERIVED_FOLDER, file)
#else
#define N2D2_DERIVED_BINARY(symbol, alignment, file) \
    static_assert(false, "the build makes the constants of portable kernels: DERIVE=1, or export with SIMD=none")
#endif
