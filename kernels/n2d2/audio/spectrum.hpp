// Samples of a frame to powers, and these to the energies of bands: in 32 bits, or in 16 where the source adapts. Config: see input.hpp.
#ifndef N2D2_AUDIO_SPECTRUM_HPP
#define N2D2_AUDIO_SPECTRUM_HPP

#include "n2d2/audio/short_fourier.hpp"

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

// Words of Size + 2. `powers` returns the scale of the values, a power of two; `energy` is that of a band: of
// pairs of bins from `bin` on.
template <class Cfg, bool Short>
class AudioSpectrum {
public:
    static int powers(std::int32_t* words, const std::int16_t* samples) {
        const int shift = load(words, samples);
        AudioTransforms<Cfg, Cfg::Size / 2>::run(words);
        audioPowers<Cfg>(words);
        return shift;
    }

    N2D2_NOINLINE static std::uint64_t energy(const std::int32_t* words, int bin, const std::uint16_t* weights, int pairs) {
        std::uint64_t sum = 0;
        std::uint32_t above = 0;
        for (words += 2 * bin; pairs > 0; --pairs, words += 4, weights += 2) {
            audioAccumulate(sum, static_cast<std::uint32_t>(words[0]), weights[0]);
            above += static_cast<std::uint32_t>(words[1]) * weights[0];
            audioAccumulate(sum, static_cast<std::uint32_t>(words[2]), weights[1]);
            above += static_cast<std::uint32_t>(words[3]) * weights[1];
        }
        return sum + (std::uint64_t{above} << 32);
    }

private:
    enum : int { HalfBits = audioLog2(Cfg::Size / 2) };

    // Bits of the largest magnitude of the samples; of a negative one, of its magnitude less 1.
    static int bits(const std::int16_t* samples) {
        std::uint32_t changes = 0;  // of a bit and the one below it
        for (int n = 0; n + 1 < Cfg::Window; n += 2) {
            const std::uint32_t pair = audioSamples(samples + n);
            changes |= pair ^ pair << 1;
        }
        const std::uint32_t last = static_cast<std::uint16_t>(samples[Cfg::Window - 1]);
        changes |= (changes >> 16) | (last ^ last << 1);
        return audioBits(changes >> 1 & 0x7FFF);
    }

    // The mean of the samples times `scale`, rounded down.
    static std::int32_t mean(const std::int16_t* samples, std::int32_t scale) {
        const std::int64_t above = std::int64_t{1} << 44;
        std::int32_t sum = 0;
        for (int n = 0; n < Cfg::Window; ++n)
            sum += samples[n];
        return static_cast<std::int32_t>((std::int64_t{sum} * scale + above * Cfg::Window) / Cfg::Window - above);
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
    static int load(std::int32_t* words, const std::int16_t* samples) {
        int shift = 28 - bits(samples), more = 2;
        Scaled scaled = {samples, std::int32_t{1} << shift, 0, 0};
        if (Cfg::RemovesMean || Cfg::Emphasis > 0) {
            scaled.less = Cfg::RemovesMean ? mean(samples, scaled.scale) : 0;
            scaled.before = samples[0] * scaled.scale - scaled.less;
            Scaled first = scaled;
            std::uint32_t magnitudes = 0;
            for (int n = 0; n < Cfg::Window; ++n) {
                const std::int32_t value = first.next();
                magnitudes |= static_cast<std::uint32_t>(value ^ (value >> 31));
            }
            more = 30 - audioBits(magnitudes);
            window(words, scaled, std::int32_t{1} << more);
        } else {
            scaled.scale *= 4;
            window(words, scaled, 1);
        }
        return shift + more;
    }

    // Write the samples times the window, which rises, then falls, and zeros after them.
    static void window(std::int32_t* words, Scaled scaled, std::int32_t factor) {
        const int middle = Cfg::WindowLast / 2 + 1, whole = Cfg::Window & ~1, last = Cfg::WindowLast;
        int n = 0, place = 0;
        for (; n < (middle & ~1); n += 2)
            place = pair(words, place, scaled, factor, n, n + 1);
        for (; n < least((middle + 1) & ~1, whole); n += 2)
            place = pair(words, place, scaled, factor, least(n, last - n), least(n + 1, last - n - 1));
        for (; n < whole; n += 2)
            place = pair(words, place, scaled, factor, last - n, last - n - 1);
        for (; n < Cfg::Size; n += 2) {
            words[2 * place] = n < Cfg::Window ? audioHigh(scaled.next() * factor,
                                                           static_cast<std::int32_t>(Cfg::window(least(n, last - n)))) :
                                                 0;
            words[2 * place + 1] = 0;
            place = audioReversedNext<HalfBits>(place);
        }
    }

    N2D2_INLINE static int pair(std::int32_t* words, int place, Scaled& scaled, std::int32_t factor, int first, int second) {
        words[2 * place] = audioHigh(scaled.next() * factor, Cfg::window(first));
        words[2 * place + 1] = audioHigh(scaled.next() * factor, Cfg::window(second));
        return audioReversedNext<HalfBits>(place);
    }
};

template <class Cfg>
class AudioSpectrum<Cfg, true> {
public:
    static int powers(std::int32_t* words, const std::int16_t* samples) {
        std::uint32_t *const made = reinterpret_cast<std::uint32_t*>(words), *const values = made + Cfg::Size / 2;
        const int shift = load(values, samples);
        AudioShortTransforms<Cfg, Cfg::Size / 2>::run(made, values, shift);
        audioShortPowers<Cfg>(made);
        return shift;
    }

    N2D2_NOINLINE static std::uint64_t energy(const std::int32_t* words, int bin, const std::uint16_t* weights, int pairs) {
        std::uint64_t sum = 0;
        for (words += bin; pairs > 0; --pairs, words += 2, weights += 2) {
            audioAccumulate(sum, static_cast<std::uint32_t>(words[0]), weights[0]);
            audioAccumulate(sum, static_cast<std::uint32_t>(words[1]), weights[1]);
        }
        return sum;
    }

private:
    // Write the windowed samples. Return their scale.
    static int load(std::uint32_t* values, const std::int16_t* samples) {
        const int pairs = (Cfg::Window + 1) / 2;
        std::uint32_t magnitudes = 0;
        for (int n = 0; n < pairs; ++n) {
            values[n] = audioWindowed(audioSamples(samples + 2 * n), Cfg::window(n));
            magnitudes |= audioMagnitudes(values[n]);
        }
        std::memset(values + pairs, 0, static_cast<std::size_t>(Cfg::Size / 2 - pairs) * sizeof *values);
        const int bits = audioBits((magnitudes | magnitudes >> 16) & 0xFFFF);
        return bits < 15 ? 15 - bits : 0;
    }
};

}  // namespace n2d2

#endif  // N2D2_AUDIO_SPECTRUM_HPP
