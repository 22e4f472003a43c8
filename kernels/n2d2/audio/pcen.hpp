// Per-channel energy normalization of the energies of bands, as librosa.pcen: n2d2py/arithmetic/pcen.py has the formulas.
//
// Config, next to that of input.hpp: enum Pcen (whether there is any), EnergyBits, Smoothing, Epsilon, Gain, Bias, Power, Least;
// exponential(i), 2^(i / 32) in 2^-24.
#pragma once

#include "n2d2/audio/logarithm.hpp"

namespace n2d2 {

// 2^x of x in 1/65536, rounded down; below 2^62.
template <class Cfg>
inline std::int64_t audioPowerOfTwo(std::int32_t x) {
    const std::int32_t top = (62 << 16) - 1;
    x = x < top ? x : top;
    const std::int32_t low = Cfg::exponential(x >> 11 & 31), next = Cfg::exponential((x >> 11 & 31) + 1), whole = x >> 16;
    const std::int32_t value = low + (((next - low) * (x & 2047)) >> 11);
    return whole >= 24 ? std::int64_t{value} << (whole - 24) : whole < -1 ? 0 : value >> (24 - whole);
}

// Of a number in 2^-16 its power, with the bias.
template <class Cfg>
inline std::int64_t audioCompressed(std::int64_t x) {
    x += Cfg::Bias;
    if (x == 0)
        return 0;
    const std::int64_t logarithm = audioLogarithm<Cfg>(static_cast<std::uint64_t>(x)) - (16 << 16);
    return audioPowerOfTwo<Cfg>(static_cast<std::int32_t>((logarithm * Cfg::Power + (1 << 15)) >> 16) + (16 << 16));
}

// Smoothed energies of the bands, two words each: the state needs no alignment to 8 bytes.
template <class Cfg, bool Used>
struct AudioNormalization {
    void begin() {}
    std::int32_t normalized(int, std::int32_t) { return 0; }
};

template <class Cfg>
struct AudioNormalization<Cfg, true> {
    void begin() {
        for (int m = 0; m < Cfg::Mels; ++m)
            store(m, std::int64_t{1} << Cfg::EnergyBits);
    }

    // The feature of a band, from log2 of its energy in 1/65536.
    std::int32_t normalized(int m, std::int32_t logarithm) {
        const std::int32_t above = Cfg::EnergyBits * 65536;
        std::int64_t smooth =
            static_cast<std::int64_t>(std::uint64_t{words[2 * m]} | static_cast<std::uint64_t>(words[2 * m + 1]) << 32);
        const std::int64_t less = audioPowerOfTwo<Cfg>(logarithm) - smooth;
        smooth += (less >> 24) * Cfg::Smoothing + (((less & ((1 << 24) - 1)) * Cfg::Smoothing) >> 24);
        store(m, smooth);
        const std::int64_t level = audioLogarithm<Cfg>(static_cast<std::uint64_t>(smooth + Cfg::Epsilon)) - above;
        const std::int32_t gain = static_cast<std::int32_t>((level * Cfg::Gain + (1 << 15)) >> 16);
        const std::int64_t x = audioPowerOfTwo<Cfg>(logarithm - above - gain + (16 << 16)),
                           value = audioCompressed<Cfg>(x) - Cfg::Least, top = (1 << 28) - 16;
        return static_cast<std::int32_t>(((value < top ? value : top) + 8) >> 4);
    }

    void store(int m, std::int64_t smooth) {
        words[2 * m] = static_cast<std::uint32_t>(smooth & 0xFFFFFFFF);
        words[2 * m + 1] = static_cast<std::uint32_t>(smooth >> 32);
    }

    std::uint32_t words[2 * Cfg::Mels];
};

}  // namespace n2d2
