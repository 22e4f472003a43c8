// Scores of classes to a decision in a stream, in integers: n2d2py/arithmetic/decisions.py has the definition.
//
// Config: types Value of the stored values, and State: std::int32_t label, score, top[Top] of label and score, wait, count, next, and
// history[Average * Classes]; enum Classes, Sigmoid, Softmax, Top, Average, Threshold, Release, Hold; static function score() that returns
// a FixedScale or a RealScale, and tables of 257 entries, null where they are not used: sigmoid() and powers().
#pragma once

#include "n2d2/fixed_scale.hpp"

namespace n2d2 {

template <class Cfg>
class Decider {
public:
    typedef typename Cfg::Value Value;
    typedef typename Cfg::State State;

    static void begin(State& state) {
        state.label = -1;
        state.score = state.wait = state.count = state.next = 0;
        for (int i = 0; i < Cfg::Top; ++i)
            state.top[i].label = state.top[i].score = 0;
    }

    // Take the outputs of a call. Return 1 if the decided class changed.
    static int run(State& state, const Value* given) {
        convert(given, state.history + static_cast<long>(state.next) * Cfg::Classes);
        state.next = state.next + 1 < Cfg::Average ? state.next + 1 : 0;
        state.count += state.count < Cfg::Average;
        list(state);
        const std::int32_t before = state.label;
        if (state.wait > 0)
            --state.wait;
        else if (state.top[0].score > Cfg::Threshold)
            state.label = state.top[0].label;
        else if (before < First || average(state, before - First) <= Cfg::Release)
            state.label = First - 1;
        if (state.label != before && state.label >= First)
            state.wait = Cfg::Hold;
        state.score = state.label < First ? state.top[0].score : average(state, state.label - First);
        return state.label != before;
    }

private:
    enum : std::int32_t { First = Cfg::Classes == 1, Limit = 1 << 30 };

    static std::int32_t fixed(Value stored, std::int32_t limit) {
        return Cfg::score().fixed(Cfg::score().value(stored), -limit, limit);
    }

    // Scores in 1/65536.
    static void convert(const Value* given, std::int32_t* scores) {
        if (Cfg::Sigmoid) {
            for (std::int32_t i = 0; i < Cfg::Classes; ++i)
                scores[i] = logistic(Cfg::sigmoid(), fixed(given[i], 32768));
            return;
        }
        std::int32_t most = -Limit;
        for (std::int32_t i = 0; i < Cfg::Classes; ++i) {
            scores[i] = fixed(given[i], Limit);
            most = scores[i] > most ? scores[i] : most;
        }
        if (!Cfg::Softmax)
            return;
        std::int64_t total = 0;
        for (std::int32_t i = 0; i < Cfg::Classes; ++i) {
            scores[i] = exponential(static_cast<std::int64_t>(scores[i]) - most);
            total += scores[i];
        }
        for (std::int32_t i = 0; i < Cfg::Classes; ++i)
            scores[i] = static_cast<std::int32_t>(((static_cast<std::int64_t>(scores[i]) << 16) + (total >> 1)) / total);
    }

    // 2^30 * exp(value / 65536) for a value of at most 0.
    static std::int32_t exponential(std::int64_t value) {
        const std::int64_t exponent = (value * 94548 + 32768) >> 16, octaves = -(exponent >> 16);
        const std::int32_t rest = static_cast<std::int32_t>(exponent & 255);
        const std::int32_t* const knots = Cfg::powers() + (exponent >> 8 & 255);
        const std::int32_t power = (knots[0] * (256 - rest) + knots[1] * rest + 128) >> 8;
        return octaves > 30 ? 0 : power << 14 >> octaves;
    }

    // The average of a class, rounded; a half is rounded up.
    static std::int32_t average(const State& state, std::int32_t index) {
        if (Cfg::Average == 1)
            return state.history[index];
        std::int64_t sum = state.count >> 1;
        for (std::int32_t call = 0; call < state.count; ++call)
            sum += state.history[call * Cfg::Classes + index];
        return static_cast<std::int32_t>(sum / state.count - (sum % state.count < 0));
    }

    // The best classes.
    static void list(State& state) {
        std::int32_t count = 0;
        for (std::int32_t i = 0; i < Cfg::Classes; ++i) {
            const std::int32_t score = average(state, i);
            if (count == Cfg::Top && score <= state.top[Cfg::Top - 1].score)
                continue;
            std::int32_t at = count < Cfg::Top ? count++ : Cfg::Top - 1;
            for (; at > 0 && score > state.top[at - 1].score; --at)
                state.top[at] = state.top[at - 1];
            state.top[at].label = i + First;
            state.top[at].score = score;
        }
    }
};

}  // namespace n2d2
