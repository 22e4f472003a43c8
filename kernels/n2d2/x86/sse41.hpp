// SSE4.1: its vectors (panels/vec.hpp), and what its kernels share.
#pragma once

#include "n2d2/panels/vec.hpp"
#include "n2d2/x86/bytes.hpp"
#include "n2d2/x86/epilogues.hpp"
#include "n2d2/x86/primitives.hpp"

namespace n2d2 {
namespace sse41 {

using bytes::four;
using bytes::loadBytes;
using bytes::storeBytes;

struct Vec {
    typedef __m128i Ints;
    typedef __m128 Floats;
    enum : int { Lanes = 4, Size = 16 };
    enum : bool { Masked = false };
    template <class S, int Count>
    using Epilogue = OutputsEpilogue<Vec, S, Count>;

    static N2D2_INLINE Ints inEach(__m128i x) { return x; }
    N2D2_X86_PRIMITIVES(_mm, si128)
    N2D2_X86_BYTE_PRIMITIVES(_mm, si128)
    N2D2_X86_BYTE_LIMITS(_mm, Ints)
    template <int Count>
    static N2D2_INLINE Ints some(const void* first, const void*) {
        return four<Count>(first);
    }
    template <int Count>
    static N2D2_INLINE Ints loadSome(const void* from) {
        return loadBytes<(Count < 16 ? Count : 16)>(from);
    }
    static N2D2_INLINE void pin(Ints&) {}  // GCC keeps the sums apart

    // The outputs [0, Count) of a panel from four vectors of rescaled sums.
    template <class S, int Count, class T>
    static N2D2_INLINE void storePanel(const __m128i* values, T* out) {
        if (sizeof(T) == 1) {
            const __m128i low = _mm_packs_epi32(values[0], values[Count > 4 ? 1 : 0]);
            const __m128i high = Count > 8 ? _mm_packs_epi32(values[Count > 8 ? 2 : 0], values[Count > 12 ? 3 : 0]) : low;
            sse41::storeBytes<Count>(Epilogue<S, 4>::clampBytes(packedBytes<T>(low, high)), out);
            return;
        }
        std::int32_t all[16];
        for (int v = 0; v < (Count + 3) / 4; ++v)
            store128(all + 4 * v, values[v]);
        for (int i = 0; i < Count; ++i)
            out[i] = static_cast<T>(all[i]);
    }
    template <class S, int Count, class T>
    static N2D2_INLINE void storeTwo(Ints a, Ints b, T* to) {
        const Ints values[2] = {a, b};
        if (sizeof(T) == 2)
            sse41::storeBytes<2 * Count>(std::numeric_limits<T>::is_signed ? _mm_packs_epi32(a, b) : _mm_packus_epi32(a, b),
                                         to);
        else
            storePanel<S, Count>(values, to);
    }
    template <class A, class B>
    static N2D2_INLINE void pairsOf(Ints a, Ints b, Ints (&to)[4]) {
        const Ints lowA = wide<A>(a), lowB = wide<B>(b), highA = wide<A>(_mm_srli_si128(a, 8)),
                   highB = wide<B>(_mm_srli_si128(b, 8));
        to[0] = _mm_unpacklo_epi16(lowA, lowB);
        to[1] = _mm_unpackhi_epi16(lowA, lowB);
        to[2] = _mm_unpacklo_epi16(highA, highB);
        to[3] = _mm_unpackhi_epi16(highA, highB);
    }
    template <int Count, class S>
    static N2D2_INLINE void storeSixteen(const Epilogue<S, 4>& epilogue, const Ints (&sums)[4], typename S::Type* to) {
        const Ints values[4] = {epilogue.template apply<true>(sums[0]), epilogue.template apply<true>(sums[1]),
                                epilogue.template apply<true>(sums[2]), epilogue.template apply<true>(sums[3])};
        storePanel<S, Count>(values, to);
    }
};

// Rescales the sums of a panel of Count outputs, those from `output` on, and stores them.
template <class Epilogue, int Count>
N2D2_INLINE void finish(const __m128i* sums, int output, typename Epilogue::Type* out) {
    constexpr bool saturated = sizeof(typename Epilogue::Type) == 1;
    constexpr int vectors = (Count + 3) / 4, last = Count - 4 * (vectors - 1);
    __m128i values[4];
    N2D2_UNROLL_FOR(v, vectors)
        values[v] = v == vectors - 1 ? Vec::Epilogue<Epilogue, last>(output + 4 * v).template apply<saturated>(sums[v]) :
                                       Vec::Epilogue<Epilogue, 4>(output + 4 * v).template apply<saturated>(sums[v]);
    Vec::storePanel<Epilogue, Count>(values, out);
}

}  // namespace sse41
}  // namespace n2d2
