// Heat maps to points, boxes and maps of classes, in integers: n2d2py/arithmetic/heat_maps.py has the definition.
//
// Config of PointDecoder and CenterDecoder: the type Value of the heat maps; enum Count, Columns, Rows, Width, Height, Logits; static
// functions score() that returns a FixedScale or a RealScale, and sigmoid(), 257 entries, null without logits.
#pragma once

#include "n2d2/fixed_scale.hpp"

namespace n2d2 {

// a / b, rounded down, for a positive b.
inline std::int64_t floorQuotient(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0); }

template <class Cfg>
struct HeatMaps {
    typedef typename Cfg::Value Value;
    enum : std::int32_t { Limit = 1 << 30, Line = Cfg::Columns * Cfg::Count };

    static std::int32_t fixed(Value stored) { return Cfg::score().fixed(Cfg::score().value(stored), -Limit, Limit); }
    static std::int32_t score(std::int32_t value) {
        const std::int32_t most = Cfg::Logits ? 32768 : 65536, least = Cfg::Logits ? -32768 : 0;
        const std::int32_t held = value < least ? least : value > most ? most : value;
        return Cfg::Logits ? logistic(Cfg::sigmoid(), held) : held;
    }
    // A position in 1 / steps cell, in 1/16 pixel.
    static std::int64_t pixels(std::int64_t position, std::int32_t size, std::int32_t cells, std::int32_t steps) {
        const std::int64_t count = static_cast<std::int64_t>(cells) * steps;
        return floorQuotient(position * 16 * size + count / 2, count);
    }
};

// Config, besides: type Point of std::int32_t score, x, y; enum Quarter, Quadratic, Centered.
template <class Cfg>
struct PointDecoder : HeatMaps<Cfg> {
    typedef HeatMaps<Cfg> Maps;

    // Write the point of each map.
    static void run(const typename Cfg::Value* maps, typename Cfg::Point* points) {
        for (std::int32_t i = 0; i < Cfg::Count; ++i) {
            std::int32_t best = 0, value = Maps::fixed(maps[i]);
            for (std::int32_t at = 1; at < Cfg::Columns * Cfg::Rows; ++at) {
                const std::int32_t other = Maps::fixed(maps[at * Cfg::Count + i]);
                if (other > value) {
                    value = other;
                    best = at;
                }
            }
            const std::int32_t column = best % Cfg::Columns, row = best / Cfg::Columns;
            const typename Cfg::Value* const peak = maps + best * Cfg::Count + i;
            points[i].score = Maps::score(value);
            points[i].x = place(peak, value, column, Cfg::Columns, Cfg::Count, Cfg::Width);
            points[i].y = place(peak, value, row, Cfg::Rows, Maps::Line, Cfg::Height);
        }
    }

private:
    static std::int32_t place(const typename Cfg::Value* peak, std::int32_t value, std::int32_t at, std::int32_t cells,
                              std::int32_t step, std::int32_t size) {
        std::int64_t moved = Cfg::Centered ? 128 : 0;
        if ((Cfg::Quarter || Cfg::Quadratic) && at > 0 && at < cells - 1) {
            const std::int64_t left = Maps::fixed(peak[-step]), right = Maps::fixed(peak[step]);
            const std::int64_t bend = 2 * static_cast<std::int64_t>(value) - left - right;
            if (Cfg::Quarter)
                moved += right > left ? 64 : right < left ? -64 : 0;
            else if (bend)
                moved += floorQuotient(128 * (right - left) + (bend >> 1), bend);
        }
        return static_cast<std::int32_t>(Maps::pixels(256 * static_cast<std::int64_t>(at) + moved, size, cells, 256));
    }
};

// Config, besides: types SizeValue, OffsetValue, and Detection as in detections.hpp; enum Threshold, Offsets; static functions size() and
// offset() as score().
template <class Cfg>
struct CenterDecoder : HeatMaps<Cfg> {
    typedef HeatMaps<Cfg> Maps;
    typedef typename Cfg::Value Value;
    typedef typename Cfg::Detection Detection;

    // Write the boxes, the highest score first, `most` at most; return their number.
    static int run(const Value* maps, const typename Cfg::SizeValue* sizes, const typename Cfg::OffsetValue* offsets,
                   Detection* found, int most) {
        int count = 0;
        for (std::int32_t cell = 0; cell < Cfg::Columns * Cfg::Rows; ++cell)
            for (std::int32_t label = 0; label < Cfg::Count; ++label) {
                const Value* const at = maps + cell * Cfg::Count + label;
                Detection one = {label, Maps::score(Maps::fixed(*at)), 0, 0, 0, 0};
                if (one.score <= Cfg::Threshold || (count == most && (most < 1 || one.score <= found[most - 1].score)) ||
                    !peak(at, cell))
                    continue;
                const std::int32_t column = cell % Cfg::Columns, row = cell / Cfg::Columns;
                side(one.x0, one.x1, sizes[2 * cell], offsets[2 * cell], column, Cfg::Columns, Cfg::Width);
                side(one.y0, one.y1, sizes[2 * cell + 1], offsets[2 * cell + 1], row, Cfg::Rows, Cfg::Height);
                if (one.x0 >= one.x1 || one.y0 >= one.y1)
                    continue;
                int place = count < most ? count++ : most - 1;
                for (; place > 0 && one.score > found[place - 1].score; --place)
                    found[place] = found[place - 1];
                found[place] = one;
            }
        return count;
    }

private:
    // True for the largest of the 3x3 neighbors, of equal ones the first.
    static bool peak(const Value* at, std::int32_t cell) {
        const std::int32_t column = cell % Cfg::Columns, row = cell / Cfg::Columns, value = Maps::fixed(*at);
        for (std::int32_t y = row > 0 ? -1 : 0; y <= (row < Cfg::Rows - 1 ? 1 : 0); ++y)
            for (std::int32_t x = column > 0 ? -1 : 0; x <= (column < Cfg::Columns - 1 ? 1 : 0); ++x) {
                const std::int32_t other = Maps::fixed(at[y * Maps::Line + x * Cfg::Count]);
                if (other > value || (other == value && (y < 0 || (y == 0 && x < 0))))
                    return false;
            }
        return true;
    }

    static void side(std::int32_t& begin, std::int32_t& end, typename Cfg::SizeValue size, typename Cfg::OffsetValue offset,
                     std::int32_t cell, std::int32_t cells, std::int32_t pixels) {
        const std::int64_t half = Cfg::size().fixed(Cfg::size().value(size), -4194304, 4194304);  // in 1/8192 cell
        const std::int64_t moved = Cfg::Offsets ? Cfg::offset().fixed(Cfg::offset().value(offset), -131072, 131072) : 0;
        const std::int64_t center = 2 * (static_cast<std::int64_t>(cell) * 4096 + moved);
        begin = within(Maps::pixels(center - half, pixels, cells, 8192), 16 * pixels);
        end = within(Maps::pixels(center + half, pixels, cells, 8192), 16 * pixels);
    }

    static std::int32_t within(std::int64_t value, std::int32_t high) {
        return value < 0 ? 0 : value > high ? high : static_cast<std::int32_t>(value);
    }
};

// Config: type Value; enum Classes, Rows, Columns, Threshold; static function score() as above.
template <class Cfg>
struct ClassMap {
    static void run(const typename Cfg::Value* scores, std::uint8_t* classes) {
        for (std::int32_t at = 0; at < Cfg::Rows * Cfg::Columns; ++at, scores += Cfg::Classes) {
            std::int32_t best = 0;
            if (Cfg::Classes == 1)
                best = Cfg::score().fixed(Cfg::score().value(scores[0]), -(1 << 30), 1 << 30) > Cfg::Threshold;
            typename Cfg::Value most = scores[0];
            for (std::int32_t i = 1; i < Cfg::Classes; ++i)
                if (scores[i] > most || (!(most == most) && scores[i] == scores[i])) {
                    most = scores[i];
                    best = i;
                }
            classes[at] = static_cast<std::uint8_t>(best);
        }
    }
};

}  // namespace n2d2
