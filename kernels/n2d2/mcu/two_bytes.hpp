// Sums of two tensors of bytes with multipliers of 32 bits behind the point, for the kernels of instruction sets.
#pragma once

#include "n2d2/mcu/lane_shape.hpp"
#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"

namespace n2d2 {

template <class Sum, class Function, class First, class... Rest>
struct Terms;
struct SumTerms;

namespace lanes {

// True if an epilogue stores bytes, (sum * m + 2^31) >> 32 clamped, and its constants.
template <class Epilogue>
struct Words {
    enum : bool { value = false };
};
template <class T, const std::int32_t* Multipliers, int Count, std::int64_t Low, std::int64_t High, int Zero>
struct Words<Requantized<T, FixedPointRescale<Multipliers, Count, 32>, Low, High, Zero> > {
    enum : bool { value = sizeof(T) == 1 };
    enum : int { Each = Count };
    static N2D2_INLINE constexpr Results results() {
        return Results{Zero, static_cast<std::int32_t>(Low), static_cast<std::int32_t>(High)};
    }
    static N2D2_INLINE const std::int32_t* multipliers(int index) { return Multipliers + (Count == 1 ? 0 : index); }
};

// weight * a + otherWeight * b + offset, rescaled by `multiplier`.
struct Weighted {
    std::int32_t weight, otherWeight, offset, multiplier;
    Results results;
};

// True if a layer is such a sum: operands of the shape and kind of bytes of the output, in pixels that follow each other. Halves: its
// weights have 16 bits, too.
template <class Cfg, class Operands, bool Rescaled = Words<typename Cfg::Epilogue>::value>
struct TwoBytes {
    enum : bool { value = false, Halves = false };
};
template <class Cfg, class A, class B>
struct TwoBytes<Cfg, Terms<std::int32_t, SumTerms, A, B>, true> {
    typedef typename Cfg::Output Output;
    typedef typename A::Plane First;
    typedef typename B::Plane Second;
    typedef typename First::Type Type;

    template <class Plane>
    static constexpr bool fits() {
        return int(Plane::Height) == int(Output::Height) && int(Plane::Width) == int(Output::Width) &&
               int(Plane::Channels) == int(Output::Channels) && int(PlaneTraits<Plane>::Packed) &&
               sizeof(typename Plane::Type) == 1 &&
               std::numeric_limits<typename Plane::Type>::is_signed == std::numeric_limits<Type>::is_signed;
    }
    static constexpr bool isHalf(std::int32_t weight) { return weight >= -32768 && weight <= 32767; }
    enum : int {
        value = fits<First>() && fits<Second>() && int(PlaneTraits<Output>::Packed) && Cfg::Reverse == 0,
        Halves = int(value) && isHalf(A::weight()) && isHalf(B::weight())
    };

    // `sum` makes a line.
    template <class Sum>
    static N2D2_INLINE void run(const unsigned char* const* in, unsigned char* out, const Rows& rows, Sum sum) {
        constexpr int length = int(Output::Width) * int(Output::Channels);
        const Weighted w = {A::weight(), B::weight(),
                            A::shift() + B::shift() - A::weight() * A::zero() - B::weight() * B::zero(),
                            *Words<typename Cfg::Epilogue>::multipliers(0), Words<typename Cfg::Epilogue>::results()};
        for (int y = rows.begin; y < rows.end; ++y)
            sum(w, reinterpret_cast<const unsigned char*>(line<First>(in[0], y)),
                reinterpret_cast<const unsigned char*>(line<Second>(in[1], y)),
                reinterpret_cast<unsigned char*>(line<Output>(out, y)), length);
    }
};

}  // namespace lanes
}  // namespace n2d2
