// Levels of bands to the features of TFLite Micro's audio front end: noise reduction, gain control, logarithm. Integers throughout;
// n2d2py/arithmetic/micro_frontend.py has the formulas.
#pragma once

#include "n2d2/audio/logarithm.hpp"

namespace n2d2 {

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

}  // namespace n2d2
