// Samples of a sound, in pieces of any size, to the frames of features that a network takes: `n2d2py/arithmetic/audio.py` defines each step.
//
// It keeps the samples of one frame. A frame that is complete moves the frames of the input by one place, the oldest one out, and becomes
// the last one.
//
// Config: type Value; enum Window, Hop, Size (of the Fourier transform), Mels, FirstBin, Coefficients (0: features are the bands), CosineShift, Frames,
// FrameMajor (the features of a frame are next to each other), RemovesMean, Emphasis, Floor, Adapts, CorrectionBits and SnrShift
// (of levels that adapt), Pcen and what it needs (pcen.hpp), Deltas (orders), DeltaWindow, Factor and Reach (of the resampling); static functions
// of an index window (two values in a word), turn (cosine and sine in a word), rotation (cosines of 32 bits), tap (of the resampling, from
// the middle on), offset, bins (of a slope, all from FirstBin on), cosine (of all coefficients), logarithm (between 1 and 2), gain, weight (of the bins, in 2^-15 or 2^-12); static Value value(std::int32_t feature).
#pragma once

#include "n2d2/audio/logarithm.hpp"
#include "n2d2/audio/pcen.hpp"
#include "n2d2/audio/spectrum.hpp"
#include "n2d2/quantize.hpp"

namespace n2d2 {

// Levels of bands to the features of TFLite Micro's audio front end: noise reduction, gain control, logarithm. Integers throughout;
// n2d2py/arithmetic/micro_frontend.py has the formulas.
//
// The gain for an estimate of noise: a parabola after each power of two.
template <class Cfg>
inline std::int32_t audioGain(std::uint32_t estimate) {
    if (estimate < 2)
        return Cfg::gain(static_cast<int>(estimate));
    const int bits = bitsOf(estimate);
    const std::int32_t rest = static_cast<std::int32_t>((bits < 11 ? estimate << (11 - bits) : estimate >> (bits - 11)) & 1023);
    const int at = 3 * bits - 4;
    const std::int32_t curve = (((Cfg::gain(at + 2) * rest) >> 5) + Cfg::gain(at + 1) * 32) * rest;
    return Cfg::gain(at) + ((curve + (1 << 14)) >> 15);
}

// The feature of a level; `estimate` is that of its noise.
template <class Cfg>
inline std::int32_t audioAdapted(std::uint32_t level, bool isOdd, std::uint32_t& estimate) {
    const std::uint32_t scaled = level << 10, smoothing = isOdd ? 983 : 409;
    estimate =
        static_cast<std::uint32_t>((std::uint64_t{scaled} * smoothing + std::uint64_t{estimate} * (16384 - smoothing)) >> 14);
    const std::uint32_t above = (scaled - (estimate < scaled ? estimate : scaled)) >> 10, least = (level * 819) >> 14;
    const std::uint64_t product =
        std::uint64_t{above > least ? above : least} * static_cast<std::uint32_t>(audioGain<Cfg>(estimate));
    const std::uint32_t x = static_cast<std::uint32_t>(product >> Cfg::SnrShift);
    const std::uint32_t shrunk = x < 8192 ? (x * x) >> 20 : (x >> 6) - 64;
    const std::uint32_t value =
        Cfg::CorrectionBits > 0 ? shrunk << (Cfg::CorrectionBits & 31) : shrunk >> (-Cfg::CorrectionBits & 31);
    if (value < 2)
        return 0;
    return static_cast<std::int32_t>((std::int64_t{audioLogarithm<Cfg>(value)} * 45426 + (std::int64_t{1} << 25)) >> 26);
}

// The stored value of a feature: (feature * factor + bias) >> 32, or one more from the threshold of the next one on.
template <class Value, int Low, int High>
N2D2_INLINE Value audioStored(std::int32_t feature, std::int64_t factor, std::int64_t bias, const std::int32_t* thresholds) {
    const std::int32_t line = static_cast<std::int32_t>((feature * factor + bias) >> 32);
    const std::int32_t value = line < Low ? Low : line > High ? High : line;
    return static_cast<Value>(value + (feature >= thresholds[value - Low]));
}

// The same of 16 bits, without thresholds; `bias` holds the zero point and the half that rounds. Near a tie the quotient in float32 decides.
template <class Value, int Low, int High>
N2D2_INLINE Value audioStored(std::int32_t feature, std::int64_t factor, std::int64_t bias, float step, float scale, int zero) {
    const std::int64_t line = feature * factor + bias, value = line >> 32;
    const std::uint32_t rest = static_cast<std::uint32_t>(line & 0xFFFFFFFF), near = 1u << 26;
    if (rest - near > ~(2 * near))
        return quantized<Value, Low, High>(static_cast<float>(feature) * step, scale, zero);
    return static_cast<Value>(value < Low ? Low : value > High ? High : value);
}

// Samples at Factor times the rate to those at the rate.
template <class Cfg, bool Resamples>
struct AudioResampler {
    void begin() {}
    bool push(std::int16_t, std::int16_t&) { return true; }
};

template <class Cfg>
struct AudioResampler<Cfg, true> {
    void begin() {
        std::memset(samples, 0, sizeof samples);
        place = 0;
        missing = Cfg::Reach + 1;
    }

    // Take a sample. Return whether there is a result.
    bool push(std::int16_t sample, std::int16_t& result) {
        samples[place] = samples[place + Length] = sample;
        place = place + 1 < Length ? place + 1 : 0;
        if (--missing != 0)
            return false;
        missing = Cfg::Factor;
        const std::int16_t* const middle = samples + place + Cfg::Reach;  // the oldest sample is at `place`
        std::int32_t sum = (1 << 14) + middle[0] * Cfg::tap(0);
        for (int n = 1; n <= Cfg::Reach; ++n)
            sum += (middle[n] + middle[-n]) * Cfg::tap(n);
        sum >>= 15;
        result = static_cast<std::int16_t>(sum < -32768 ? -32768 : sum > 32767 ? 32767 : sum);
        return true;
    }

    enum : int { Length = 2 * Cfg::Reach + 1 };

    std::int32_t place, missing;
    std::int16_t samples[2 * Length];  // twice, so that all are next to each other
};

// The features of the frames of the input, without deltas.
template <class Cfg, int Count, bool Kept>
struct AudioHistory {
    void begin() {}
    void move() {}
    std::int32_t* last() { return nullptr; }
    std::int32_t delta(int, int, int) const { return 0; }
};

template <class Cfg, int Count>
struct AudioHistory<Cfg, Count, true> {
    void begin() { std::memset(features, 0, sizeof features); }
    void move() { std::memmove(features, features + Count, sizeof features - Count * sizeof *features); }
    std::int32_t* last() { return features + (Cfg::Frames - 1) * Count; }

    // A feature of a frame, or its delta of an order above 0; frames beyond the ends are those at the ends.
    std::int32_t delta(int t, int index, int order) const {
        t = t < 0 ? 0 : t < Cfg::Frames ? t : int(Cfg::Frames) - 1;
        if (order == 0)
            return features[t * Count + index];
        std::int32_t sum = 0, divisor = 0;
        for (int n = 1; n <= Cfg::DeltaWindow; ++n) {
            sum += n * (delta(t + n, index, order - 1) - delta(t - n, index, order - 1));
            divisor += 2 * n * n;
        }
        sum += divisor / 2;
        return sum / divisor - (sum % divisor < 0);
    }

    std::int32_t features[Cfg::Frames * Count];
};

// Of its bases, those that a source does not need take no memory.
template <class Cfg>
class AudioInput : AudioResampler<Cfg, (Cfg::Factor > 1)>,
                   AudioHistory<Cfg, (Cfg::Coefficients > 0 ? Cfg::Coefficients : Cfg::Mels), (Cfg::Deltas > 0)>,
                   AudioNormalization<Cfg, Cfg::Pcen != 0> {
public:
    typedef typename Cfg::Value Value;

    // Begin a sound: the input becomes frames of silence.
    void begin(Value* input) {
        filled_ = 0;
        Resampler::begin();
        History::begin();
        Normalization::begin();
        std::memset(samples_, 0, sizeof samples_);
        std::memset(levels_, 0, sizeof levels_);
        for (int m = 0; m < Cfg::Mels && !Cfg::Adapts && !Cfg::Pcen; ++m)
            levels_[m] = (Cfg::Floor + 8) >> 4;
        for (int t = 0; t < Cfg::Frames; ++t)
            append(input);
    }

    // Take the next samples; write the frames that they complete. Return how many these are.
    int push(const std::int16_t* samples, int count, Value* input) {
        if (Cfg::Factor == 1)
            return take(samples, count, input);
        int made = 0;
        std::int16_t sample = 0;
        for (int i = 0; i < count; ++i)
            if (Resampler::push(samples[i], sample))
                made += take(&sample, 1, input);
        return made;
    }

private:
    enum : int { Static = Cfg::Coefficients > 0 ? Cfg::Coefficients : Cfg::Mels, Features = Static * (1 + Cfg::Deltas) };
    typedef AudioResampler<Cfg, (Cfg::Factor > 1)> Resampler;
    typedef AudioHistory<Cfg, Static, (Cfg::Deltas > 0)> History;
    typedef AudioNormalization<Cfg, Cfg::Pcen != 0> Normalization;

    std::uint32_t
        words_[Cfg::Size / 2 * (Cfg::Adapts || Cfg::RemovesMean || Cfg::Emphasis > 0 ? 2 : 1)];  // the transform; scratch
    std::int32_t levels_[Cfg::Mels * (Cfg::Adapts ? 2 : 1)];                                     // and the estimates of noise
    std::int32_t filled_;                                                                        // negative: samples to skip
    std::int16_t samples_[Cfg::Size];                                                            // zeros after the window

    // `push` of samples at the rate.
    int take(const std::int16_t* samples, int count, Value* input) {
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

    // The features of the samples: logarithms of the bands.
    N2D2_NOINLINE void frame() {
        AudioFrame<Cfg, Cfg::Adapts != 0> frame(words_, samples_);
        AudioTransforms<Cfg, Cfg::Size / 2>::run(words_, frame);
        if (!frame.isSilent())
            AudioPowers<Cfg, Cfg::Adapts != 0>::run(words_);
        const std::int32_t scale = frame.isSilent() ? -(1 << 28) : -2 * 65536 * frame.shift;
        audioBands<Cfg, Cfg::Adapts != 0>(words_, levels_, frame.shift);
        for (int m = 0; m < Cfg::Mels; ++m) {
            const std::uint32_t energy = static_cast<std::uint32_t>(levels_[m]);
            if (Cfg::Adapts) {
                std::int32_t& noise = levels_[m + (Cfg::Adapts ? Cfg::Mels : 0)];
                std::uint32_t estimate = static_cast<std::uint32_t>(noise);
                levels_[m] = audioAdapted<Cfg>(energy, (m & 1) != 0, estimate);
                noise = static_cast<std::int32_t>(estimate);
                continue;
            }
            const std::int32_t logarithm = audioLogarithm<Cfg>(energy) + scale + Cfg::offset(m), floor = Cfg::Floor,
                               audible = logarithm < floor ? floor : logarithm;
            levels_[m] = Cfg::Pcen ? Normalization::normalized(m, audible) : (audible + 8) >> 4;
        }
    }

    // Move the frames of the input by one; write the last one, and those near the ends whose deltas change.
    N2D2_NOINLINE void append(Value* input) {
        const int count = Cfg::FrameMajor ? 1 : Features, stride = Cfg::FrameMajor ? Features : 1;
        const std::size_t moved = static_cast<std::size_t>((Cfg::Frames - 1) * stride) * sizeof(Value);
        for (int i = 0; i < count; ++i)
            std::memmove(input + i * Cfg::Frames, input + i * Cfg::Frames + stride, moved);
        History::move();
        for (int i = 0; i < Static; ++i) {
            const std::int32_t value = feature(i);
            if (Cfg::Deltas > 0)
                History::last()[i] = value;
            else
                write(input, Cfg::Frames - 1, i, value);
        }
        const int changed = Cfg::Deltas * Cfg::DeltaWindow;
        for (int t = 0; t < Cfg::Frames && Cfg::Deltas > 0; ++t)
            for (int i = 0; i < Features && (t < changed || t + changed + 1 >= Cfg::Frames); ++i)
                write(input, t, i, History::delta(t, i % Static, i / Static));
    }

    static void write(Value* input, int t, int index, std::int32_t feature) {
        input[Cfg::FrameMajor ? t * Features + index : index * Cfg::Frames + t] = Cfg::value(feature);
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
