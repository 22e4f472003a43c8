// Eight channels with SVE vectors of 256 bits, as panels/channel_columns.hpp wants them: inputs are widened to 32 bits by their loads.
#pragma once

#include "n2d2/arm/sve_finish.hpp"

namespace n2d2 {
namespace sve {

struct Channels {
    typedef Ints Sums;
    typedef Ints Inputs;
    typedef Ints Weights;
    static constexpr int most(int) { return 8; }

    struct At {
        enum : bool { Ordered = false };
        int first, second;
        N2D2_INLINE int operator()(int v) const { return v == 0 ? first : second; }
    };

    static N2D2_INLINE svint32_t widened(svbool_t some, const std::int8_t* from) { return svld1sb_s32(some, from); }
    static N2D2_INLINE svint32_t widened(svbool_t some, const std::uint8_t* from) { return svld1ub_s32(some, from); }
    static N2D2_INLINE svint32_t widened(svbool_t some, const std::int16_t* from) { return svld1sh_s32(some, from); }
    static N2D2_INLINE svint32_t widened(svbool_t some, const std::uint16_t* from) {
        return svsub_n_s32_x(svptrue_b32(), svld1uh_s32(some, from), 32768);
    }
    template <class In, int Count>
    static N2D2_INLINE Inputs inputs(const In* from) {
        return widened(lanes<Count>(), from);
    }
    static N2D2_INLINE void weights(const unsigned char* a, const unsigned char* b, Weights& first, Weights& second) {
        const svint32_t low = svld1_s32(lanes<4>(), elementsOf<std::int32_t>(a)),
                        high = svld1_s32(lanes<4>(), elementsOf<std::int32_t>(b));
        const svint32_t both = svsplice_s32(lanes<4>(), low, high);
        first = svexth_s32_x(svptrue_b32(), both);
        second = svasr_n_s32_x(svptrue_b32(), both, 16);
    }
    template <int Count>
    static N2D2_INLINE Sums bias(const std::int32_t* from, int first, int second) {
        const At at = {first, second};
        return eight<Count>(from, at, 0);
    }
    static N2D2_INLINE void add(Sums& sums, Inputs x, Weights w) { sums = svmla_s32_x(svptrue_b32(), sums, x, w); }

    template <class S, int Count>
    struct Epilogue {
        Epilogue8<S, Count> constants;
        N2D2_INLINE Epilogue(int first, int second) {
            const At at = {first, second};
            constants.load(at, 0);
        }
        N2D2_INLINE void store(Sums sums, typename S::Type* to) const { constants.store(sums, to); }
    };
};

}  // namespace sve
}  // namespace n2d2
