// Samples of a frame to powers, and these to the energies of bands. Config: see input.hpp.
#pragma once

#include "n2d2/audio/fourier.hpp"
#include "n2d2/square_root.hpp"

namespace n2d2 {

// Two samples, the first one in the low half.
N2D2_INLINE std::uint32_t audioSamples(const std::int16_t* samples) {
    std::uint32_t pair;
#if defined(__GNUC__)
    samples = static_cast<const std::int16_t*>(__builtin_assume_aligned(samples, 4));
#endif
    std::memcpy(&pair, samples, sizeof pair);
    return pair;
}

N2D2_INLINE void audioAccumulate(std::uint64_t& sum, std::uint32_t a, std::uint32_t b) {
#if N2D2_M_PROFILE && defined(__ARM_FEATURE_DSP)
    __asm__("umlal %Q0, %R0, %1, %2" : "+r"(sum) : "r"(a), "r"(b));
#else
    sum += std::uint64_t{a} * b;
#endif
}

// Powers times weights, and powers, of the bins of a slope.
template <bool Adapts>
struct AudioSlope {
    typedef std::int32_t Sum;
    explicit AudioSlope(int count) : rising(0), all(-2 * count) {}

    N2D2_INLINE void add(std::uint32_t power, int weight) {
        rising = audioAddProduct(static_cast<std::int32_t>(power), weight, rising);
        all += static_cast<std::int32_t>(power);
    }
    Sum falling() const { return (all >> 1) - rising; }
    static std::int32_t level(Sum energy, int) { return energy > 1 ? energy : 1; }

    Sum rising, all;
};

template <>
struct AudioSlope<true> {
    typedef std::uint64_t Sum;
    explicit AudioSlope(int) : rising(0), falling_(0) {}

    N2D2_INLINE void add(std::uint32_t power, std::uint32_t weight) {
        audioAccumulate(rising, power, weight);
        audioAccumulate(falling_, power, 4096 - weight);
    }
    Sum falling() const { return falling_; }
    static std::int32_t level(Sum energy, int shift) { return static_cast<std::int32_t>(roundedRoot(energy) >> shift); }

    Sum rising, falling_;
};

// Energies of the bands, at least 1; of a source that adapts their roots, times 2^-shift. A slope rises in one band and falls in the one before.
template <class Cfg, bool Adapts>
N2D2_NOINLINE void audioBands(const std::uint32_t* power, std::int32_t* levels, int shift) {
    const std::uint16_t* weight = &Cfg::weight(0);
    typename AudioSlope<Adapts>::Sum rising = 0;
    power += Cfg::FirstBin;
    for (int slope = 0; slope <= Cfg::Mels; ++slope) {
        const int count = Cfg::bins(slope);
        const std::uint16_t* const end = weight + count;
        AudioSlope<Adapts> sums(count);
        if (count % 2 != 0)
            sums.add(*power++, *weight++);
        while (weight != end) {
            std::uint32_t first, second;
            audioNextPair(power, first, second);
            sums.add(first, *weight++);
            sums.add(second, *weight++);
        }
        if (slope > 0)
            *levels++ = sums.level(rising + sums.falling(), shift);
        rising = sums.rising;
    }
}

// A frame of Size samples, the last ones zeros, with one exponent. The transform is scaled by 2^shift.
template <class Cfg, bool Adapts>
struct AudioFrame {
    AudioFrame(std::uint32_t* words, const std::int16_t* frame) : samples(frame), energy(0), shift(0) {
        if (Cfg::RemovesMean || Cfg::Emphasis > 0)
            emphasize(words);
        scale = headroom();
        shift += scale;
    }

    // Pairs of samples times the window, and their energy.
    struct Numbers {
        N2D2_INLINE void begin(int place) {
            pairs = samples + 2 * place;
            factors = window + place;
        }

        template <int Place, int Parts>
        N2D2_INLINE AudioNumber at() {
            const AudioNumber pair = audioNumber(audioSamples(pairs + 2 * Place)), factor = audioNumber(factors[Place]);
            const AudioNumber made =
                audioUpper<16>(audioRealSum(pair, factor, half) << shift, audioImaginarySum(pair, factor, half) << shift);
            audioAddSquares(energy, made);
            return made;
        }

        const std::int16_t* samples;
        const std::uint32_t* window;
        std::uint32_t half;
        int shift;
        std::uint64_t energy;
        const std::int16_t* pairs;
        const std::uint32_t* factors;
    };

    Numbers begin() const { return {samples, &Cfg::window(0), 0x8000u >> scale, scale, 0, samples, &Cfg::window(0)}; }
    void end(const Numbers& numbers) { energy = numbers.energy; }

    bool isSilent() const { return energy == 0; }

    // Halve the sums of a stage too as long as the energy is not below 10^9.
    template <int Count>
    void stage(std::uint32_t* words) {
        if (energy < 1000000000 / (audioLog2(Cfg::Size) % 2 != 0 ? 4 : 2))
            return audioStage<Cfg, Count, AudioHalved<false>>(words);
        energy >>= 2;
        --shift;
        audioStage<Cfg, Count, AudioHalved<true>>(words);
    }

    const std::int16_t* samples;
    std::uint64_t energy;  // of the numbers before the first stage, which adds four or two
    int scale, shift;

private:
    // Left shift of the samples before the window, which leaves room in each block of 32.
    int headroom() const {
        std::uint32_t every = 0, windowed = 0;  // bits of all magnitudes, and of those that the window leaves, times 2^15
        const std::int16_t* at = samples;
        for (int block = 0; 32 * block < Cfg::Window; ++block) {
            std::uint32_t changes = 0;  // of a bit and the one below it
            for (const std::int16_t* const end = at + 32; at != end; at += 16)
                changes |= changed<0>(at) | changed<2>(at) | changed<4>(at) | changed<6>(at);
            changes = (changes | changes >> 16) >> 1 & 0x7FFF;
            every |= changes;
            windowed |= changes << Cfg::room(block);
        }
        const int most = audioBits(every), left = audioBits(windowed) - 14;
        return 15 - (most < left ? most : left < 0 ? 0 : left);
    }

    // Of four samples.
    template <int Pair>
    static N2D2_INLINE std::uint32_t changed(const std::int16_t* samples) {
        std::uint32_t first, second;
        audioLoadPair<Pair>(reinterpret_cast<const std::uint32_t*>(samples), first, second);
        return (first ^ first << 1) | (second ^ second << 1);
    }

    // Write the samples without their mean, with pre-emphasis, in 16 bits to the second half of Size words.
    void emphasize(std::uint32_t* words) {
        const std::int64_t above = std::int64_t{1} << 44;
        std::int32_t sum = 0;
        for (int n = 0; n < Cfg::Window && Cfg::RemovesMean; ++n)
            sum += samples[n];
        const std::int32_t mean =
            static_cast<std::int32_t>((std::int64_t{sum} * 16384 + above * Cfg::Window) / Cfg::Window - above);
        std::int32_t before = samples[0] * 16384 - mean;
        std::uint32_t magnitudes = 0;
        for (int n = 0; n < Cfg::Window; ++n) {
            const std::int32_t x = samples[n] * 16384 - mean,
                               value = x - 2 * static_cast<std::int32_t>((std::int64_t{before} * Cfg::Emphasis) >> 32);
            magnitudes |= static_cast<std::uint32_t>(value ^ (value >> 31));
            words[n] = static_cast<std::uint32_t>(value);
            before = x;
        }
        std::memset(words + Cfg::Window, 0, (Cfg::Size - Cfg::Window) * sizeof *words);
        const int less = audioBits(magnitudes) < 14 ? 0 : audioBits(magnitudes) - 14;
        const std::uint32_t half = (1u << less) >> 1;
        for (int n = Cfg::Size / 2 - 1; n >= 0; --n)
            words[Cfg::Size / 2 + n] = audioComplex(static_cast<std::int32_t>(words[2 * n] + half) >> less,
                                                    static_cast<std::int32_t>(words[2 * n + 1] + half) >> less);
        samples = reinterpret_cast<const std::int16_t*>(words + Cfg::Size / 2);
        shift = 14 - less;
    }
};

template <class Cfg>
struct AudioFrame<Cfg, true> {
    // Write the windowed samples to the second half of Size words.
    AudioFrame(std::uint32_t* words, const std::int16_t* frame) : values(words + Cfg::Size / 2) {
        std::uint32_t magnitudes = 0;
        for (int n = 0; n < Cfg::Size / 2; ++n) {
            const AudioNumber pair = audioNumber(audioSamples(frame + 2 * n)), window = audioNumber(Cfg::window(n));
            const AudioNumber value = audioUpper<12>(audioRealProduct(pair, window), audioImaginaryProduct(pair, window) << 4);
            words[Cfg::Size / 2 + n] = audioWord(value);
            magnitudes |= audioMagnitudes(value);
        }
        const int bits = audioBits((magnitudes | magnitudes >> 16) & 0xFFFF);
        shift = bits < 15 ? 15 - bits : 0;
    }

    struct Numbers {
        N2D2_INLINE void begin(int place) { from = values + place; }

        template <int Place, int Parts>
        N2D2_INLINE AudioNumber at() const {
            return audioScaled<Parts>(audioNumber(from[Place]), shift);
        }

        const std::uint32_t* values;
        int shift;
        const std::uint32_t* from;
    };

    Numbers begin() const { return {values, shift, values}; }
    void end(const Numbers&) {}
    bool isSilent() const { return false; }

    template <int Count>
    void stage(std::uint32_t* words) const {
        audioStage<Cfg, Count, AudioRounded>(words);
    }

    const std::uint32_t* values;
    int shift;
};

}  // namespace n2d2
