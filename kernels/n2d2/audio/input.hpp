// Samples of a sound, in pieces of any size, to the frames of features that a network takes: `n2d2py/arithmetic/audio.py` defines each step.
//
// It keeps the samples of one frame. A frame that is complete moves the frames of the input by one place, the oldest one out, and becomes
// the last one.
//
// Config: type Value; enum Window, WindowLast, Hop, Size (of the Fourier transform), Mels, Coefficients (0: features are the bands),
// CosineShift, Frames, FrameMajor (the features of a frame are next to each other), RemovesMean, Emphasis, Floor, Adapts,
// CorrectionBits and SnrShift (adaptive.hpp); static functions of an
// index window, turn, offset, first, count, weight (of all bands, one after the other), cosine (of all coefficients); logarithm (between 1
// and 2), gain; static Value value(std::int32_t feature).
#ifndef N2D2_AUDIO_INPUT_HPP
#define N2D2_AUDIO_INPUT_HPP

#include "n2d2/audio/adaptive.hpp"

namespace n2d2 {

template <class Cfg>
class AudioInput {
public:
    typedef typename Cfg::Value Value;

    // Begin a sound: the input becomes frames of silence.
    void begin(Value* input) {
        filled_ = 0;
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
    enum : int { Features = Cfg::Coefficients > 0 ? Cfg::Coefficients : Cfg::Mels, HalfBits = audioLog2(Cfg::Size / 2) };

    std::int32_t words_[Cfg::Size + 2];                       // pairs of values, then powers: the low and the high word
    std::int32_t levels_[Cfg::Mels * (Cfg::Adapts ? 2 : 1)];  // and the estimates of noise
    std::int32_t filled_;                                     // negative: samples to skip
    std::int16_t samples_[Cfg::Window];

    // Bits of the magnitude, for the sum of those of many values; of a negative value one less than its magnitude.
    static std::uint32_t magnitude(std::int32_t value) { return static_cast<std::uint32_t>(value ^ (value >> 31)); }

    static std::int32_t level(std::int32_t logarithm) {
        const std::int32_t floor = Cfg::Floor;
        return ((logarithm < floor ? floor : logarithm) + 8) >> 4;
    }

    // The mean of the samples times `scale`, rounded down.
    std::int32_t mean(std::int32_t scale) const {
        const std::int64_t above = std::int64_t{1} << 44;
        std::int32_t sum = 0;
        for (int n = 0; n < Cfg::Window; ++n)
            sum += samples_[n];
        return static_cast<std::int32_t>((std::int64_t{sum} * scale + above * Cfg::Window) / Cfg::Window - above);
    }

    // Write the windowed samples in 16 bits, in the order of the transform, for a source that adapts. Return the scale, a power of two.
    int loadShort() {
        std::int32_t peak = 0;
        int shift = 15;
        std::memset(words_, 0, sizeof words_);
        for (int pass = 0; pass < 2; ++pass) {
            for (int n = 0, place = 0; n < Cfg::Window; ++n) {
                const std::int32_t value = (samples_[n] * Cfg::window(least(n, Cfg::WindowLast - n))) >> 12;
                peak = value > peak ? value : -value > peak ? -value : peak;
                words_[2 * place + (n & 1)] = value * (std::int32_t{1} << (pass == 0 ? 0 : shift));
                if (n & 1)
                    place = audioReversedNext(place, HalfBits);
            }
            while (shift > 0 && peak >> (15 - shift) != 0)
                --shift;
        }
        return shift;
    }

    // Samples of the frame from `at` on, one after the other: scaled, without their mean, with pre-emphasis.
    struct Scaled {
        const std::int16_t* at;
        std::int32_t scale, less, before;

        N2D2_INLINE std::int32_t next() {
            const std::int32_t x = *at++ * scale - less,
                               value = Cfg::Emphasis > 0 ? x - 2 * audioHigh(before, Cfg::Emphasis) : x;
            before = x;
            return value;
        }
    };

    // Write the scaled and windowed samples in the order of the transform. Return the scale, a power of two.
    int load() {
        if (Cfg::Adapts)
            return loadShort();
        std::uint32_t bits = 0;
        for (int n = 0; n < Cfg::Window; ++n)
            bits |= magnitude(samples_[n]);
        int shift = 28 - audioBits(bits), more = 2;
        Scaled scaled = {samples_, std::int32_t{1} << shift, 0, 0};
        if (Cfg::RemovesMean || Cfg::Emphasis > 0) {
            scaled.less = Cfg::RemovesMean ? mean(scaled.scale) : 0;
            scaled.before = samples_[0] * scaled.scale - scaled.less;
            Scaled first = scaled;
            bits = 0;
            for (int n = 0; n < Cfg::Window; ++n)
                bits |= magnitude(first.next());
            more = 30 - audioBits(bits);
            window(scaled, std::int32_t{1} << more);
        } else {
            scaled.scale *= 4;
            window(scaled, 1);
        }
        return shift + more;
    }

    // Write the samples times the window, which rises, then falls, and zeros after them.
    void window(Scaled scaled, std::int32_t factor) {
        const int middle = Cfg::WindowLast / 2 + 1, whole = Cfg::Window & ~1, last = Cfg::WindowLast;
        int n = 0, place = 0;
        for (; n < (middle & ~1); n += 2)
            place = pair(place, scaled, factor, n, n + 1);
        for (; n < least((middle + 1) & ~1, whole); n += 2)
            place = pair(place, scaled, factor, least(n, last - n), least(n + 1, last - n - 1));
        for (; n < whole; n += 2)
            place = pair(place, scaled, factor, last - n, last - n - 1);
        for (; n < Cfg::Size; n += 2) {
            words_[2 * place] = n < Cfg::Window ? audioHigh(scaled.next() * factor, Cfg::window(least(n, last - n))) : 0;
            words_[2 * place + 1] = 0;
            place = audioReversedNext(place, HalfBits);
        }
    }

    N2D2_INLINE int pair(int place, Scaled& scaled, std::int32_t factor, int first, int second) {
        words_[2 * place] = audioHigh(scaled.next() * factor, Cfg::window(first));
        words_[2 * place + 1] = audioHigh(scaled.next() * factor, Cfg::window(second));
        return audioReversedNext(place, HalfBits);
    }

    // The features of the samples: logarithms of the bands.
    N2D2_NOINLINE void frame() {
        const int shift = load();
        AudioTransforms<Cfg, Cfg::Size / 2>::run(words_);
        audioPowers<Cfg>(words_);
        int at = 0;
        for (int m = 0; m < Cfg::Mels; ++m) {
            std::uint64_t energy = 0;
            std::uint32_t above = 0;
            const std::int32_t* power = words_ + 2 * Cfg::first(m);
            for (int i = Cfg::count(m); i > 0; --i, power += 2) {
                const std::uint32_t weight = Cfg::weight(at++);
                energy += std::uint64_t{static_cast<std::uint32_t>(power[0])} * weight;
                above += static_cast<std::uint32_t>(power[1]) * weight;
            }
            energy += std::uint64_t{above} << 32;
            if (Cfg::Adapts) {
                std::uint32_t estimate = static_cast<std::uint32_t>(levels_[m + (Cfg::Adapts ? Cfg::Mels : 0)]);
                levels_[m] = audioAdapted<Cfg>(roundedRoot(energy) >> shift, (m & 1) != 0, estimate);
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
