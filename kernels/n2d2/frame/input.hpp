// A frame of any size, line by line, to the input of a network: pixels, resize, table of stored values.
//
//   across = (256 * sum(weight * byte) + S / 2) / S                 for each output column, S = sum(weight)
//   byte   = (sum(weight * across) + 128 * S) / (256 * S)           down the lines after that
//   input  = table[channel][byte]
//
// It keeps one line of sums for each output row that is under way: one, or two with an antialiased resize. Where the frame has fewer
// lines than the rows that it becomes, two lines make each row, and the line before is kept instead.
//
// Config: types Format (format.hpp), Weights (below), Value; enum Height, Width, Channels of the input; BlueFirst; ResizeWidth and
// ResizeHeight: 0 and 0 for the size of the input, N and 0 for the shorter side; CropWidth, CropHeight: the centre, 0 for all; Fill: the
// byte of the margins of a resize that keeps the aspect ratio, -1 without one, and FillDown: its size is rounded down; FlipColumns and
// FlipRows: the frame is mirrored; static Value value(int channel, std::uint32_t byte).
#pragma once

#include "n2d2/env.hpp"
#include "n2d2/frame/format.hpp"

namespace n2d2 {

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
struct FrameAxis {
    std::int32_t start, size, target, first;
};

// The source pixels [begin, end] of the output position that `place` was told; their weights are at(source).
struct FramePixels {
    enum : bool { Overlaps = false };
    std::int32_t begin, end;

    N2D2_INLINE explicit FramePixels(const FrameAxis& axis) : begin(0), end(0), axis_(axis), position_(0) {}

protected:
    FrameAxis axis_;
    std::int32_t position_;
};

struct FrameNearest : FramePixels {
    using FramePixels::FramePixels;
    N2D2_INLINE void place(int position) { begin = end = (2 * (axis_.first + position) + 1) * axis_.size / (2 * axis_.target); }
    N2D2_INLINE std::uint32_t at(int) const { return 1; }
};

struct FrameArea : FramePixels {
    using FramePixels::FramePixels;
    N2D2_INLINE void place(int position) {
        position_ = (axis_.first + position) * axis_.size;
        begin = position_ / axis_.target;
        end = (position_ + axis_.size - 1) / axis_.target;
    }
    N2D2_INLINE std::uint32_t at(int source) const {
        const std::int32_t low = source * axis_.target, high = low + axis_.target, stop = position_ + axis_.size;
        return static_cast<std::uint32_t>((high < stop ? high : stop) - (low > position_ ? low : position_));
    }
};

template <bool Antialias>
struct FrameTriangle : FramePixels {
    enum : bool { Overlaps = Antialias };

    N2D2_INLINE explicit FrameTriangle(const FrameAxis& axis)
        : FramePixels(axis), half_(2 * (Antialias && axis.size > axis.target ? axis.size : axis.target)), shift_(0) {
        std::uint32_t most = static_cast<std::uint32_t>(half_) * static_cast<std::uint32_t>(half_) /
                                 static_cast<std::uint32_t>(2 * axis.target) +
                             static_cast<std::uint32_t>(half_);
        for (; most > 65535; most >>= 1)
            ++shift_;
    }
    N2D2_INLINE void place(int position) {
        const std::int32_t pixel = 2 * axis_.target;
        position_ = (2 * (axis_.first + position) + 1) * axis_.size;
        const std::int32_t low = position_ - half_ - axis_.target, high = (position_ + half_ - axis_.target - 1) / pixel;
        begin = low < 0 ? 0 : low / pixel + 1;
        end = high < axis_.size ? high : axis_.size - 1;
    }
    N2D2_INLINE std::uint32_t at(int source) const {
        const std::int32_t distance = (2 * source + 1) * axis_.target - position_;
        return static_cast<std::uint32_t>(half_ - (distance < 0 ? -distance : distance)) >> shift_;
    }

private:
    std::int32_t half_;
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

// One side of an image that fills one of both sides of the input; `other`: the other side of both. Half a pixel is rounded to even.
template <class Cfg>
inline FrameAxis framePadded(int size, int other, int whole, int otherWhole) {
    if (whole * other <= otherWhole * size)
        return FrameAxis{0, size, whole, 0};
    const int scaled = size * otherWhole / other, rest = size * otherWhole % other;
    const int rounded = Cfg::FillDown ? scaled : scaled + (2 * rest + scaled % 2 > other), target = rounded > 0 ? rounded : 1;
    const int margin = Cfg::FillDown ? (whole * other - size * otherWhole) / (2 * other) : (whole - target) / 2;
    return FrameAxis{0, size, target, -margin};
}

// Set the axes for a frame; false where it is smaller than the crop, or a side exceeds 16384 pixels.
template <class Cfg>
inline bool frameAxes(int width, int height, FrameAxis& columns, FrameAxis& rows) {
    const int sizes[2] = {width, height}, inputs[2] = {Cfg::Width, Cfg::Height};
    const int crops[2] = {Cfg::CropWidth, Cfg::CropHeight}, fixed[2] = {Cfg::ResizeWidth, Cfg::ResizeHeight};
    FrameAxis* const axes[2] = {&columns, &rows};
    if (width < Cfg::Format::Least || height < Cfg::Format::Least || width > 16384 || height > 16384)
        return false;
    for (int i = 0; i < 2; ++i) {
        if (Cfg::Fill >= 0) {
            *axes[i] = framePadded<Cfg>(sizes[i], sizes[1 - i], inputs[i], inputs[1 - i]);
            continue;
        }
        const bool resized = Cfg::ResizeWidth > 0;
        const int shorter = sizes[i] <= sizes[1 - i] ? fixed[0] : fixed[0] * sizes[i] / sizes[1 - i];
        const int target = !resized ? inputs[i] : Cfg::ResizeHeight > 0 ? fixed[i] : shorter;
        const int whole = resized ? target : sizes[i], part = resized ? inputs[i] : crops[i] > 0 ? crops[i] : whole;
        const int margin = whole - part, centre = (margin >> 1) + ((margin & 3) == 3);
        if (margin < 0 || target > 16384)
            return false;
        *axes[i] = resized ? FrameAxis{0, sizes[i], target, centre} : FrameAxis{centre, part, target, 0};
    }
    return true;
}

// The position in a frame of one in the input, both in 1/16 pixel, within the frame.
inline std::int32_t framePosition(const FrameAxis& axis, std::int32_t position) {
    const std::int64_t from = static_cast<std::int64_t>(position + 16 * axis.first) * axis.size + axis.target / 2;
    const std::int64_t at = from < 0 ? 0 : from / axis.target, end = std::int64_t{16} * axis.size;
    return static_cast<std::int32_t>(16 * axis.start + (at < end ? at : end));
}

// Both ends of a box along an axis, from an input of `whole` pixels to the frame.
inline void frameEnds(const FrameAxis& axis, bool flips, int whole, std::int32_t& low, std::int32_t& high) {
    const std::int32_t from = flips ? 16 * whole - high : low, to = flips ? 16 * whole - low : high;
    low = framePosition(axis, from);
    high = framePosition(axis, to);
}

template <class Cfg>
class FrameInput {
public:
    typedef typename Cfg::Value Value;

    // Begin a frame; false where its size is not possible.
    bool begin(int width, int height) {
        line_ = row_ = 0;
        width_ = width;
        std::memset(sums_, 0, sizeof sums_);
        return frameAxes<Cfg>(width, height, columns_, rows_);
    }

    // Take the rows of memory of the next line from above; write the rows of the input that it completes. Return how many are complete.
    int push(const std::uint8_t* const* memory, Value* input) {
        const Line line(memory, line_, width_);
        const int source = line_++ - rows_.start;
        fill(input);
        if (row_ < Cfg::Height && source >= 0 && source < rows_.size) {
            if (rows_.size < rows_.target)
                interpolate(line, source, input);
            else
                accumulate(line, source, input);
        }
        fill(input);
        return row_;
    }

private:
    typedef typename Cfg::Weights Weights;
    typedef typename Cfg::Format::Line Line;
    enum : int { Channels = Cfg::Channels, Elements = Cfg::Width * Channels, Kept = Weights::Overlaps ? 2 : 1 };

    std::uint32_t sums_[Kept][Elements];
    FrameAxis columns_, rows_;
    std::int32_t line_, row_, width_;

    // True where a position is in the image, not in a margin.
    static N2D2_INLINE bool inside(const FrameAxis& axis, int position) {
        return Cfg::Fill < 0 || static_cast<std::uint32_t>(position + axis.first) < static_cast<std::uint32_t>(axis.target);
    }

    static N2D2_INLINE Value* at(Value* input, int row, int x) {
        const int y = Cfg::FlipRows ? Cfg::Height - 1 - row : row;
        return input + y * Elements + (Cfg::FlipColumns ? Cfg::Width - 1 - x : x) * Channels;
    }

    // Write the rows that follow as far as they are margins.
    void fill(Value* input) {
        for (; row_ < Cfg::Height && !inside(rows_, row_); ++row_)
            for (int x = 0; x < Cfg::Width; ++x)
                for (int c = 0; c < Channels; ++c)
                    at(input, row_, x)[c] = Cfg::value(c, static_cast<std::uint32_t>(Cfg::Fill));
    }

    // The values of one output column, times 256.
    N2D2_INLINE void across(Weights& weights, const Line& line, int x, std::uint32_t* values) const {
        std::uint32_t pixel[Channels], total = 0;
        const bool isImage = inside(columns_, x);
        N2D2_UNROLL_FOR(c, Channels)
            values[c] = isImage ? 0 : 256u * static_cast<std::uint32_t>(Cfg::Fill);
        if (!isImage)
            return;
        weights.place(x);
        for (int source = weights.begin; source <= weights.end; ++source) {
            const std::uint32_t weight = weights.at(source);
            frameChannels<typename Cfg::Format, Channels, Cfg::BlueFirst>(line, columns_.start + source, pixel);
            total += weight;
            N2D2_UNROLL_FOR(c, Channels)
                values[c] += weight * pixel[c];
        }
        N2D2_UNROLL_FOR(c, Channels)
            values[c] = (256 * values[c] + total / 2) / total;
    }

    static N2D2_INLINE Value stored(int c, std::uint32_t sum, std::uint32_t total) {
        return Cfg::value(c, (sum + 128 * total) / (256 * total));
    }

    // Add the line to the row under way, and to the next one where both have it.
    N2D2_NOINLINE void accumulate(const Line& line, int source, Value* input) {
        Weights columns(columns_), rows(rows_);
        rows.place(row_);
        if (source < rows.begin)
            return;
        const bool complete = source == rows.end;
        const std::uint32_t weight = rows.at(source), total = complete ? frameTotal(rows) : 1;
        std::uint32_t next = 0;
        if (row_ + 1 < Cfg::Height) {
            rows.place(row_ + 1);
            next = source >= rows.begin ? rows.at(source) : 0;
        }
        for (int x = 0; x < Cfg::Width; ++x) {
            std::uint32_t values[Channels];
            across(columns, line, x, values);
            Value* const out = at(input, row_, x);
            N2D2_UNROLL_FOR(c, Channels) {
                const int i = x * Channels + c;
                const std::uint32_t sum = sums_[0][i] + weight * values[c];
                const std::uint32_t after = next * values[c] + (Kept == 2 ? sums_[Kept - 1][i] : 0);
                if (complete)
                    out[c] = stored(c, sum, total);
                sums_[0][i] = complete ? after : sum;
                if (Kept == 2)
                    sums_[Kept - 1][i] = complete ? 0 : after;
            }
        }
        row_ += complete;
    }

    // Compute the rows between the line before and this one; keep this one.
    N2D2_NOINLINE void interpolate(const Line& line, int source, Value* input) {
        Weights columns(columns_), rows(rows_);
        for (bool more = true; more;) {
            std::uint32_t before = 0, weight = 0;
            more = row_ < Cfg::Height && inside(rows_, row_);
            if (more) {
                rows.place(row_);
                more = rows.end <= source;
                weight = more ? rows.at(rows.end) : 0;
                before = more && rows.begin < rows.end ? rows.at(rows.begin) : 0;
            }
            for (int x = 0; x < Cfg::Width; ++x) {
                std::uint32_t values[Channels];
                across(columns, line, x, values);
                Value* const out = at(input, more ? row_ : 0, x);
                N2D2_UNROLL_FOR(c, Channels) {
                    std::uint32_t& kept = sums_[0][x * Channels + c];
                    if (more)
                        out[c] = stored(c, before * kept + weight * values[c], before + weight);
                    else
                        kept = values[c];
                }
            }
            row_ += more;
        }
    }
};

}  // namespace n2d2
