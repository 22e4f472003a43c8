// Samples of a sensor with several axes to the window that a network takes, the latest samples: n2d2py/arithmetic/sensor.py has the
// definition.
//
// Config: type Value; enum Axes, Frames, FrameMajor (the axes of a sample are next to each other); static Value value(int axis,
// std::int16_t sample).
#pragma once

#include "n2d2/env.hpp"

namespace n2d2 {

template <class Cfg>
struct SensorInput {
    typedef typename Cfg::Value Value;

    // Begin a recording: the window becomes samples of zeros.
    static void begin(Value* input) {
        for (int t = 0; t < Cfg::Frames; ++t)
            for (int axis = 0; axis < Cfg::Axes; ++axis)
                input[place(t, axis)] = Cfg::value(axis, 0);
    }

    // Take the next `count` samples, of which the window keeps the latest.
    static void push(const std::int16_t* samples, int count, Value* input) {
        const int taken = count < Cfg::Frames ? count : int(Cfg::Frames), left = Cfg::Frames - taken;
        const int rows = Cfg::FrameMajor ? 1 : Cfg::Axes, size = Cfg::FrameMajor ? Cfg::Axes : 1;
        for (int row = 0; row < rows; ++row) {
            Value* const first = input + row * Cfg::Frames;
            std::memmove(first, first + taken * size, static_cast<std::size_t>(left * size) * sizeof(Value));
        }
        samples += static_cast<std::ptrdiff_t>(count - taken) * Cfg::Axes;
        for (int t = left; t < Cfg::Frames; ++t)
            for (int axis = 0; axis < Cfg::Axes; ++axis)
                input[place(t, axis)] = Cfg::value(axis, *samples++);
    }

private:
    static int place(int t, int axis) { return Cfg::FrameMajor ? t * Cfg::Axes + axis : axis * Cfg::Frames + t; }
};

}  // namespace n2d2
