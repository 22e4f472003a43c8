// Stores that pass the caches, for results that nobody reads soon: a line of the cache is then not fetched to be overwritten.
//
//   streamed<Bytes>(to)        whether `to` can be stored to in this way: 16 bytes at a time, aligned
//   stream<Bytes>(from, to)    Bytes bytes
//   streamEnd()                behind the last of them, before another thread reads
//
// Without SSE2, and with -DN2D2_ISA_PORTABLE, streamed() is false.
#pragma once

#include "n2d2/env.hpp"

#if !defined(N2D2_ISA_PORTABLE) && defined(__GNUC__) && defined(__SSE2__)
#define N2D2_STREAM 1
#include <emmintrin.h>
#else
#define N2D2_STREAM 0
#endif

namespace n2d2 {

template <int Bytes>
N2D2_INLINE bool streamed(const void* to) {
#if N2D2_STREAM
    return Bytes % 16 == 0 && reinterpret_cast<std::uintptr_t>(to) % 16 == 0;
#else
    static_cast<void>(to);
    return false;
#endif
}

template <int Bytes>
N2D2_INLINE void stream(const void* from, void* to) {
#if N2D2_STREAM
    for (int i = 0; i < Bytes / 16; ++i)
        _mm_stream_si128(static_cast<__m128i*>(to) + i, _mm_loadu_si128(static_cast<const __m128i*>(from) + i));
#else
    static_cast<void>(from);
    static_cast<void>(to);
#endif
}

N2D2_INLINE void streamEnd() {
#if N2D2_STREAM
    _mm_sfence();
#endif
}

}  // namespace n2d2
