// Samples of a frame to powers, and these to the energies of bands. Config: see input.hpp.
#ifndef N2D2_AUDIO_SPECTRUM_HPP
#define N2D2_AUDIO_SPECTRUM_HPP

#include "n2d2/audio/fourier.hpp"

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

// Energies of the bands, one after the other: slopes rise in one band and fall in the one before.
template <class Cfg>
class AudioBands {
public:
    // After the first slope.
    explicit AudioBands(const std::uint32_t* powers) : powers_(powers + Cfg::FirstBin), weights_(&Cfg::weight(0)), rising_(0) {
        next(0);
    }

    // The energy of a band.
    std::uint64_t next(int slope) {
        std::uint64_t falling = rising_, rising = 0;
        for (int n = Cfg::bins(slope); n > 0; --n) {
            const std::uint32_t power = *powers_++, weight = *weights_++;
            audioAccumulate(rising, power, weight);
            audioAccumulate(falling, power, Cfg::One - weight);
        }
        rising_ = rising;
        return falling;
    }

private:
    const std::uint32_t* powers_;
    const std::uint16_t* weights_;
    std::uint64_t rising_;
};

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
        template <int Parts>
        N2D2_INLINE std::uint32_t at(int place) {
            const std::uint32_t pair = audioSamples(samples + 2 * place), factors = window[place];
            const std::uint32_t made =
                audioUpper<16>(audioRealSum(pair, factors, half) << shift, audioImaginarySum(pair, factors, half) << shift);
            audioAddSquares(energy, made);
            return made;
        }

        void advance() {
            samples += 2;
            ++window;
        }

        const std::int16_t* samples;
        const std::uint32_t* window;
        std::uint32_t half;
        int shift;
        std::uint64_t energy;
    };

    Numbers begin() const { return {samples, &Cfg::window(0), 0x8000u >> scale, scale, 0}; }
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
    // Left shift of the samples before the window, which spares bits in each block of 32.
    int headroom() const {
        int most = 0, spared = -1;  // bits of a magnitude, and more than those that its window spares
        for (int block = 0; 32 * block < Cfg::Window; ++block) {
            std::uint32_t changes = 0;  // of a bit and the one below it
            for (int n = 32 * block; n < 32 * block + 32; n += 8)
                changes |= changed(n) | changed(n + 2) | changed(n + 4) | changed(n + 6);
            const int bits = audioBits((changes | changes >> 16) >> 1 & 0x7FFF), less = bits - Cfg::spare(block);
            most = bits > most ? bits : most;
            spared = less > spared ? less : spared;
        }
        return 15 - (most < spared + 1 ? most : spared + 1);
    }

    N2D2_INLINE std::uint32_t changed(int n) const {
        const std::uint32_t pair = audioSamples(samples + n);
        return pair ^ pair << 1;
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
            const std::uint32_t pair = audioSamples(frame + 2 * n), window = Cfg::window(n);
            const std::uint32_t value =
                audioUpper<12>(audioRealProduct(pair, window), audioImaginaryProduct(pair, window) << 4);
            words[Cfg::Size / 2 + n] = value;
            magnitudes |= audioMagnitudes(value);
        }
        const int bits = audioBits((magnitudes | magnitudes >> 16) & 0xFFFF);
        shift = bits < 15 ? 15 - bits : 0;
    }

    struct Numbers {
        template <int Parts>
        N2D2_INLINE std::uint32_t at(int place) const {
            return audioScaled<Parts>(values[place], shift);
        }

        void advance() { ++values; }

        const std::uint32_t* values;
        int shift;
    };

    Numbers begin() const { return {values, shift}; }
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

#endif  // N2D2_AUDIO_SPECTRUM_HPP
