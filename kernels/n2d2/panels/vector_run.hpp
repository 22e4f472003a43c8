// The epilogue of a run of 32-bit sums to bytes, in vectors: four at a time, then one, then what is left.
#pragma once

#include "n2d2/panels/vec.hpp"

namespace n2d2 {

template <class Vec, class Epilogue, bool Varying>
struct ByteRun {
    typedef typename Epilogue::Type Out;
    typedef typename Vec::Ints Ints;
    typedef typename Vec::template Epilogue<Epilogue, Vec::Lanes> Whole;
    enum : int { Lanes = Vec::Lanes, Block = 4 * Lanes };

    static N2D2_INLINE Whole epilogue(int index) { return Whole(index, Varying ? index + 4 : index); }
    static N2D2_INLINE Ints saturated(const std::int32_t* sums, int index) {
        return epilogue(index).template apply<true>(Vec::load(sums));
    }

    template <int Count>
    static N2D2_INLINE void run(const std::int32_t* sums, int index, Out* out) {
        constexpr int step = Varying ? 1 : 0;
        constexpr int blocks = Count / Block * Block, whole = Count / Lanes * Lanes, rest = Count - whole;
        for (int i = 0; i < blocks; i += Block) {
            Ints parts[4];
            N2D2_UNROLL_FOR(j, 4)
                parts[j] = saturated(sums + i + j * Lanes, index + step * (i + j * Lanes));
            Vec::store(Whole::clampBytes(Vec::template packed<Out>(parts[0], parts[1], parts[2], parts[3])), out + i);
        }
        for (int i = blocks; i < whole; i += Lanes)
            Vec::template storeBytes<Lanes>(epilogue(index + step * i), Vec::load(sums + i), out + i);
        if (rest > 0)
            Rest<(rest > 0 ? rest : 1)>::run(sums + whole, index + step * whole, out + whole);
    }
    template <int Count, class Sum>
    static N2D2_INLINE void run(const Sum* sums, int index, Out* out) {
        PortableRun<Epilogue, Varying>::template run<Count>(sums, index, out);
    }

    template <int Count, bool Masked = Vec::Masked>
    struct Rest : PortableRun<Epilogue, Varying> {
        static N2D2_INLINE void run(const std::int32_t* sums, int index, Out* out) {
            PortableRun<Epilogue, Varying>::template run<Count>(sums, index, out);
        }
    };
    template <int Count>
    struct Rest<Count, true> {
        static N2D2_INLINE void run(const std::int32_t* sums, int index, Out* out) {
            const typename Vec::template Epilogue<Epilogue, Count> some(index, index);
            Vec::template storeBytes<Count>(some, Vec::template some<Count>(sums, sums), out);
        }
    };
};

template <class Vec, class Epilogue, bool Varying>
struct VectorRun
    : Choice<BytesInVectors<Epilogue>::value, ByteRun<Vec, Epilogue, Varying>, PortableRun<Epilogue, Varying> >::Type {};

}  // namespace n2d2
