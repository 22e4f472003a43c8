// Samples of a sound, in pieces of any size, to the frames of features that a network takes: `n2d2py/arithmetic/audio.py` defines each step.
//
// It keeps the samples of one frame. A frame that is complete moves the frames of the input by one place, the oldest one out, and becomes
// the last one.
//
// Config: type Value; enum Window, WindowLast, Hop, Size (of the Fourier transform), Mels, Coefficients (0: features are the bands),
// CosineShift, Frames, FrameMajor (the features of a frame are next to each other), RemovesMean, Emphasis, Floor, Adapts,
// CorrectionBits and SnrShift (adaptive.hpp); static functions of an
// index window, turn, offset, first, pairs (of bins), cosine (of all coefficients), logarithm (between 1 and 2), gain,
// weight (a reference to 16 bits; of all bands, one after the other); static Value value(std::int32_t feature). A source that adapts has two samples in a word of window, and cosine
// and sine in one of turn.
#ifndef N2D2_AUDIO_INPUT_HPP
#define N2D2_AUDIO_INPUT_HPP

#include "n2d2/audio/adaptive.hpp"
#include "n2d2/audio/spectrum.hpp"

namespace n2d2 {

// The stored value of a feature: (feature * factor + bias) >> 32, or one more from its threshold on; Low has none.
template <class Value, int Low, int High>
N2D2_INLINE Value audioStored(std::int32_t feature, std::int64_t factor, std::int64_t bias, const std::int32_t* thresholds) {
    const std::int32_t line = static_cast<std::int32_t>((feature * factor + bias) >> 32);
    const std::int32_t value = line < Low ? Low : line > High - 1 ? High - 1 : line;
    return static_cast<Value>(value + (feature >= thresholds[value - Low]));
}

template <class Cfg>
class AudioInput {
public:
    typedef typename Cfg::Value Value;

    // Begin a sound: the input becomes frames of silence.
    void begin(Value* input) {
        filled_ = 0;
        samples_[(Cfg::Window - 1) | 1] = 0;
        std::memset(levels_, 0, sizeof levels_);
        for (int m = 0; m < Cfg::Mels && !Cfg::Adapts; ++m)
            levels_[m] = level(Cfg::Floor);
        for (int t = 0; t < Cfg::Frames; ++t)
            append(input);
    }

    // Take the next samples; write the frames that they complete. Return how many these are.
    int push(const std::int16_t* samples, int count, Value* input) {
        int made = 0;
        while (count > 0) {
            const int missing = filled_ < 0 ? -filled_ : Cfg::Window - filled_, part = count < missing ? count : missing;
            if (filled_ >= 0)
                std::memcpy(samples_ + filled_, samples, static_cast<std::size_t>(part) * sizeof *samples);
            filled_ += part;
            samples += part;
            count -= part;
            if (filled_ == Cfg::Window) {
                frame();
                append(input);
                ++made;
                filled_ = Cfg::Window - Cfg::Hop;
                if (filled_ > 0)
                    std::memmove(samples_, samples_ + Cfg::Hop, static_cast<std::size_t>(filled_) * sizeof *samples);
            }
        }
        return made;
    }

private:
    enum : int { Features = Cfg::Coefficients > 0 ? Cfg::Coefficients : Cfg::Mels };

    std::int32_t words_[Cfg::Size + 2];                       // pairs of values, then powers: the low and the high word
    std::int32_t levels_[Cfg::Mels * (Cfg::Adapts ? 2 : 1)];  // and the estimates of noise
    std::int32_t filled_;                                     // negative: samples to skip
    std::int16_t samples_[(Cfg::Window + 1) & ~1];

    static std::int32_t level(std::int32_t logarithm) {
        const std::int32_t floor = Cfg::Floor;
        return ((logarithm < floor ? floor : logarithm) + 8) >> 4;
    }

    // The features of the samples: logarithms of the bands.
    N2D2_NOINLINE void frame() {
        typedef AudioSpectrum<Cfg, Cfg::Adapts != 0> Spectrum;
        const int shift = Spectrum::powers(words_, samples_);
        const std::uint16_t* weights = &Cfg::weight(0);
        for (int m = 0; m < Cfg::Mels; ++m) {
            const int pairs = Cfg::pairs(m);
            const std::uint64_t energy = Spectrum::energy(words_, Cfg::first(m), weights, pairs);
            weights += 2 * pairs;
            if (Cfg::Adapts) {
                std::uint32_t estimate = static_cast<std::uint32_t>(levels_[m + (Cfg::Adapts ? Cfg::Mels : 0)]);
                levels_[m] = audioAdapted<Cfg>(audioRoot(energy) >> shift, (m & 1) != 0, estimate);
                levels_[m + (Cfg::Adapts ? Cfg::Mels : 0)] = static_cast<std::int32_t>(estimate);
                continue;
            }
            levels_[m] = level(energy == 0 ? static_cast<std::int32_t>(Cfg::Floor) :
                                             audioLogarithm<Cfg>(energy) - 2 * 65536 * shift + Cfg::offset(m));
        }
    }

    // Move the frames of the input by one; write the last one.
    N2D2_NOINLINE void append(Value* input) {
        const int count = Cfg::FrameMajor ? 1 : Features, stride = Cfg::FrameMajor ? Features : 1;
        const std::size_t moved = static_cast<std::size_t>((Cfg::Frames - 1) * stride) * sizeof(Value);
        for (int i = 0; i < count; ++i)
            std::memmove(input + i * Cfg::Frames, input + i * Cfg::Frames + stride, moved);
        Value* const last = input + (Cfg::Frames - 1) * stride;
        for (int i = 0; i < Features; ++i)
            last[Cfg::FrameMajor ? i : i * Cfg::Frames] = Cfg::value(feature(i));
    }

    std::int32_t feature(int index) const {
        if (Cfg::Coefficients == 0)
            return levels_[index];
        std::int64_t sum = std::int64_t{1} << (Cfg::CosineShift - 1);
        for (int m = 0; m < Cfg::Mels; ++m)
            sum += std::int64_t{levels_[m]} * Cfg::cosine(index * Cfg::Mels + m);
        return static_cast<std::int32_t>(sum >> Cfg::CosineShift);
    }
};

}  // namespace n2d2

#endif  // N2D2_AUDIO_INPUT_HPP
