// Weights of the source pixels of a resize, along one axis.
//
// `size` source pixels from `start` on become `target`, of which the network takes those from `first` on. For the output position o:
//
//   Nearest     the source pixel (2 o + 1) size / (2 target)
//   Area        overlap of source pixel and output pixel: min((s + 1) target, (o + 1) size) - max(s target, o size)
//   Triangle    half - |(2 s + 1) target - (2 o + 1) size|, where it is above 0; half = 2 target, and 2 size for an antialiased resize
//               to fewer pixels. A shift keeps sums below 2^16.
//
// A whole number each; what they are used for divides by their sum. Sides have at most 16384 pixels, so all fits 32 bits.
#pragma once

#include "n2d2/env.hpp"

namespace n2d2 {

struct FrameAxis {
    std::int32_t start, size, target, first;
};

// The source pixels [begin, end] of the output position that `place` was told, and their weights.
struct FrameNearest {
    enum : bool { Overlaps = false };
    std::int32_t begin, end;

    N2D2_INLINE explicit FrameNearest(const FrameAxis& axis) : begin(0), end(0), axis_(axis) {}
    N2D2_INLINE void place(int position) { begin = end = (2 * (axis_.first + position) + 1) * axis_.size / (2 * axis_.target); }
    N2D2_INLINE std::uint32_t at(int) const { return 1; }

private:
    FrameAxis axis_;
};

struct FrameArea {
    enum : bool { Overlaps = false };
    std::int32_t begin, end;

    N2D2_INLINE explicit FrameArea(const FrameAxis& axis) : begin(0), end(0), axis_(axis), low_(0) {}
    N2D2_INLINE void place(int position) {
        low_ = (axis_.first + position) * axis_.size;
        begin = low_ / axis_.target;
        end = (low_ + axis_.size - 1) / axis_.target;
    }
    N2D2_INLINE std::uint32_t at(int source) const {
        const std::int32_t low = source * axis_.target, high = low + axis_.target, stop = low_ + axis_.size;
        return static_cast<std::uint32_t>((high < stop ? high : stop) - (low > low_ ? low : low_));
    }

private:
    FrameAxis axis_;
    std::int32_t low_;
};

template <bool Antialias>
struct FrameTriangle {
    enum : bool { Overlaps = Antialias };
    std::int32_t begin, end;

    N2D2_INLINE explicit FrameTriangle(const FrameAxis& axis)
        : begin(0),
          end(0),
          axis_(axis),
          centre_(0),
          half_(2 * (Antialias && axis.size > axis.target ? axis.size : axis.target)),
          shift_(0) {
        std::uint32_t most = static_cast<std::uint32_t>(half_) * static_cast<std::uint32_t>(half_) /
                                 static_cast<std::uint32_t>(2 * axis.target) +
                             static_cast<std::uint32_t>(half_);
        for (; most > 65535; most >>= 1)
            ++shift_;
    }
    N2D2_INLINE void place(int position) {
        const std::int32_t pixel = 2 * axis_.target;
        centre_ = (2 * (axis_.first + position) + 1) * axis_.size;
        const std::int32_t low = centre_ - half_ - axis_.target, high = (centre_ + half_ - axis_.target - 1) / pixel;
        begin = low < 0 ? 0 : low / pixel + 1;
        end = high < axis_.size ? high : axis_.size - 1;
    }
    N2D2_INLINE std::uint32_t at(int source) const {
        const std::int32_t distance = (2 * source + 1) * axis_.target - centre_;
        return static_cast<std::uint32_t>(half_ - (distance < 0 ? -distance : distance)) >> shift_;
    }

private:
    FrameAxis axis_;
    std::int32_t centre_, half_;
    int shift_;
};

typedef FrameTriangle<false> FrameBilinear;
typedef FrameTriangle<true> FrameAntialias;

// The sum of the weights at a position.
template <class Weights>
N2D2_INLINE std::uint32_t frameTotal(const Weights& weights) {
    std::uint32_t total = 0;
    for (int source = weights.begin; source <= weights.end; ++source)
        total += weights.at(source);
    return total;
}

}  // namespace n2d2
