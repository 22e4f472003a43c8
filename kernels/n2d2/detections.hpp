// Boxes and scores of a detector to detections, in integers: n2d2py/arithmetic/detections.py has the definition.
//
// Nothing is kept but the detections and a batch of candidates: of the boxes that come after those of the last batch, the best ones.
//
// Config: types BoxValue, ScoreValue of the stored values, and Detection: std::int32_t label, score in 1/65536, x0, y0, x1, y1 in 1/16
// pixel; enum Count, Classes, Width, Height, BoxNext, BoxStep, ScoreNext, ScoreStep (elements from a box to the next, and from a value
// of a box to the next), BoxFirst, ScoreFirst (elements before the first), Centered, RowsFirst, Anchors, Logits, Objectness, Labelled, Threshold, Overlap; static functions x(), y(),
// growth(), score(), label() that return a FixedScale or a RealScale, and tables, null where they are not used: anchors(), four values of
// each box; powers() and sigmoid(), 257 entries.
#pragma once

#include "n2d2/fixed_scale.hpp"

namespace n2d2 {

template <class Cfg>
class Detector {
public:
    typedef typename Cfg::BoxValue BoxValue;
    typedef typename Cfg::ScoreValue ScoreValue;
    typedef typename Cfg::Detection Detection;

    // Write the detections, the highest score first, `most` at most; return their number. `boxes` and `scores`: the outputs that hold them.
    static int run(const BoxValue* boxes, const ScoreValue* scores, Detection* found, int most) {
        boxes += Cfg::BoxFirst;
        scores += Cfg::ScoreFirst;
        Candidate next[Batch], last = {2 * One, -1};
        int kept = 0;
        for (int count = Batch; count == Batch && kept < most;) {
            count = gather(boxes, scores, last, next);
            for (int i = 0; i < count && kept < most; ++i) {
                last = next[i];
                Detection one = box(boxes + static_cast<long>(last.index) * Cfg::BoxNext, last.index);
                one.score = best(scores + static_cast<long>(last.index) * Cfg::ScoreNext, one.label);
                bool free = true;
                for (int k = 0; k < kept && free; ++k)
                    free = found[k].label != one.label || !overlap(found[k], one);
                if (free)
                    found[kept++] = one;
            }
        }
        for (int k = 0; k < kept; ++k)
            cut(found[k]);
        return kept;
    }

private:
    enum : std::int32_t { One = 65536, Reach = 1 << 20, Batch = 32 };

    struct Candidate {
        std::int32_t score, index;
        bool before(const Candidate& other) const {
            return score > other.score || (score == other.score && index < other.index);
        }
    };

    // The best candidates after `last`, in order; return how many there are.
    static int gather(const BoxValue* boxes, const ScoreValue* scores, const Candidate& last, Candidate* next) {
        int count = 0;
        for (std::int32_t i = 0; i < Cfg::Count; ++i, boxes += Cfg::BoxNext, scores += Cfg::ScoreNext) {
            std::int32_t label;
            const Candidate one = {best(scores, label), i};
            if (one.score <= Cfg::Threshold || !last.before(one) || (count == Batch && !one.before(next[Batch - 1])))
                continue;
            Detection inside = box(boxes, i);
            cut(inside);
            if (inside.x0 >= inside.x1 || inside.y0 >= inside.y1)
                continue;
            int at = count < Batch ? count++ : Batch - 1;
            for (; at > 0 && one.before(next[at - 1]); --at)
                next[at] = next[at - 1];
            next[at] = one;
        }
        return count;
    }

    static Detection box(const BoxValue* given, std::int32_t index) {
        enum : std::int32_t { X = Cfg::RowsFirst * Cfg::BoxStep, Y = Cfg::BoxStep - X, Far = 2 * Cfg::BoxStep };
        const auto a = Cfg::x().value(given[X]), b = Cfg::y().value(given[Y]);
        const auto c = Cfg::x().value(given[X + Far]), d = Cfg::y().value(given[Y + Far]);
        if (Cfg::Anchors) {
            const std::int16_t* const anchor = Cfg::anchors() + 4 * static_cast<long>(index);
            const std::int64_t x = moved(anchor[0], anchor[2], Cfg::x().fixed(a, -131072, 131072));
            const std::int64_t y = moved(anchor[1], anchor[3], Cfg::y().fixed(b, -131072, 131072));
            const std::int64_t w = halfGrown(anchor[2], Cfg::growth().fixed(c, -24576, 24576));
            const std::int64_t h = halfGrown(anchor[3], Cfg::growth().fixed(d, -24576, 24576));
            const Detection made = {0, 0, reach(x - w), reach(y - h), reach(x + w), reach(y + h)};
            return made;
        }
        const Detection made = {0,
                                0,
                                Cfg::x().fixed(Cfg::Centered ? 2 * a - c : a, -Reach, Reach),
                                Cfg::y().fixed(Cfg::Centered ? 2 * b - d : b, -Reach, Reach),
                                Cfg::x().fixed(Cfg::Centered ? 2 * a + c : c, -Reach, Reach),
                                Cfg::y().fixed(Cfg::Centered ? 2 * b + d : d, -Reach, Reach)};
        return made;
    }

    static std::int32_t reach(std::int64_t value) {
        return static_cast<std::int32_t>(value < -Reach ? -Reach : value > Reach ? std::int64_t(Reach) : value);
    }

    static std::int64_t moved(std::int32_t center, std::int32_t size, std::int32_t step) {
        return center + ((static_cast<std::int64_t>(step) * size + 2048) >> 12);
    }

    // Half of size * exp(growth / 4096).
    static std::int64_t halfGrown(std::int32_t size, std::int32_t growth) {
        const std::int32_t exponent = static_cast<std::int32_t>((static_cast<std::int64_t>(growth) * 23637 + 8192) >> 14);
        const std::int32_t octaves = exponent >> 12, rest = exponent & 15;
        const std::int32_t* const knots = Cfg::powers() + (exponent >> 4 & 255);
        const std::int64_t power = (knots[0] * (16 - rest) + knots[1] * rest + 8) >> 4;
        return (size * power + (std::int64_t(1) << (16 - octaves))) >> (17 - octaves);
    }

    // The score of a box, and its class.
    static std::int32_t best(const ScoreValue* given, std::int32_t& label) {
        const std::int32_t whole = Cfg::Objectness ? probability(given[0]) : static_cast<std::int32_t>(One);
        label = 0;
        if (whole <= Cfg::Threshold)
            return 0;
        given += Cfg::Objectness * Cfg::ScoreStep;
        ScoreValue most = given[0];
        for (std::int32_t i = 1; i < Cfg::Classes; ++i) {
            const ScoreValue other = given[i * Cfg::ScoreStep];
            if (other > most || !(most == most)) {
                most = other;
                label = i;
            }
        }
        if (Cfg::Labelled)
            label = Cfg::label().fixed(Cfg::label().value(given[Cfg::ScoreStep]), 0, Reach);
        const std::int64_t score = probability(most);
        return static_cast<std::int32_t>(Cfg::Objectness ? (score * whole + One / 2) >> 16 : score);
    }

    static std::int32_t probability(ScoreValue stored) {
        const auto value = Cfg::score().value(stored);
        if (!Cfg::Logits)
            return Cfg::score().fixed(value, 0, One);
        return logistic(Cfg::sigmoid(), Cfg::score().fixed(value, -32768, 32767));
    }

    static std::int32_t within(std::int32_t value, std::int32_t high) { return value < 0 ? 0 : value > high ? high : value; }

    // Cut a box to the image.
    static void cut(Detection& one) {
        one.x0 = within(one.x0, 16 * Cfg::Width);
        one.y0 = within(one.y0, 16 * Cfg::Height);
        one.x1 = within(one.x1, 16 * Cfg::Width);
        one.y1 = within(one.y1, 16 * Cfg::Height);
    }

    static std::int64_t area(std::int32_t width, std::int32_t height) { return static_cast<std::int64_t>(width) * height; }

    static std::int32_t shared(std::int32_t begin, std::int32_t otherBegin, std::int32_t end, std::int32_t otherEnd) {
        const std::int32_t length = (end < otherEnd ? end : otherEnd) - (begin < otherBegin ? otherBegin : begin);
        return length < 0 ? 0 : length;
    }

    // True if intersection / union is above the limit.
    static bool overlap(const Detection& a, const Detection& b) {
        const std::int64_t both = area(shared(a.x0, b.x0, a.x1, b.x1), shared(a.y0, b.y0, a.y1, b.y1));
        const std::int64_t all = area(a.x1 - a.x0, a.y1 - a.y0) + area(b.x1 - b.x0, b.y1 - b.y0) - both;
        return both * One > Cfg::Overlap * all;
    }
};

}  // namespace n2d2
