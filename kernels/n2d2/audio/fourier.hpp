// Fourier transform of real values in 32 bits, powers, and logarithms of these: every value fits without scaling between stages.
//
// Pairs of values are complex numbers, in words: real, imaginary. Config: see input.hpp.
#ifndef N2D2_AUDIO_FOURIER_HPP
#define N2D2_AUDIO_FOURIER_HPP

#include "n2d2/env.hpp"

namespace n2d2 {

N2D2_INLINE std::int32_t audioHigh(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>((std::int64_t{a} * b) >> 32);
}

constexpr int audioLog2(int power) { return power > 1 ? 1 + audioLog2(power / 2) : 0; }

// Bits of a number; 0 for 0.
N2D2_INLINE int audioBits(std::uint32_t value) { return value == 0 ? 0 : bitsOf(value); }

// The number that follows below 2^bits, with the bits in reverse order.
N2D2_INLINE int audioReversedNext(int place, int bits) {
    const int ones = 32 - audioBits(~static_cast<std::uint32_t>(place) << (32 - bits) | 1);  // that the carry passes
    return place ^ static_cast<int>(~(0x7FFFFFFFu >> ones) >> (32 - bits));
}

struct AudioComplex {
    std::int32_t real, imaginary;
};

// (x + 2^14) >> 15
N2D2_INLINE std::int32_t audioRounded(std::int32_t x) { return (x + (1 << 14)) >> 15; }

// x less the angle of `turn`: in 16 bits where the source adapts, else each product is rounded down.
template <class Cfg>
N2D2_INLINE AudioComplex audioTurned(AudioComplex x, AudioComplex turn) {
    if (Cfg::Adapts)
        return {audioRounded(x.real * turn.real + x.imaginary * turn.imaginary),
                audioRounded(x.imaginary * turn.real - x.real * turn.imaginary)};
#if N2D2_M_PROFILE && defined(__ARM_FEATURE_DSP)
    std::int32_t real, imaginary;
    __asm__("smmul %0, %1, %2" : "=r"(real) : "r"(x.real), "r"(turn.real));
    __asm__("smmul %0, %1, %2" : "=r"(imaginary) : "r"(x.imaginary), "r"(turn.real));
    __asm__("smmla %0, %1, %2, %0" : "+r"(real) : "r"(x.imaginary), "r"(turn.imaginary));
    __asm__("smmls %0, %1, %2, %0" : "+r"(imaginary) : "r"(x.real), "r"(turn.imaginary));
    return {2 * real, 2 * imaginary};
#else
    return {2 * (audioHigh(x.real, turn.real) + audioHigh(x.imaginary, turn.imaginary)),
            2 * (audioHigh(x.imaginary, turn.real) + audioHigh(-x.real, turn.imaginary))};
#endif
}

// A value before a stage that adds so many of them.
template <class Cfg, int Parts>
N2D2_INLINE std::int32_t audioScaled(std::int32_t x) {
    return Cfg::Adapts ? audioRounded(x * (32767 / Parts)) : x;
}

// Cosine and sine of 2 pi at / Size.
template <class Cfg>
N2D2_INLINE AudioComplex audioTurn(int at) {
    return {Cfg::turn(at + Cfg::Size / 4), Cfg::turn(at)};
}

// The butterflies of four numbers each, Apart words from one to the next, from `at` to `end`; turns are those of the last three.
template <class Cfg, int Apart, bool Turns>
N2D2_INLINE void audioButterflies(std::int32_t* at, const std::int32_t* end, const AudioComplex* turns) {
    for (; at < end; at += 4 * Apart) {
        std::int32_t *const p = at + Apart, *const q = p + Apart, *const r = q + Apart;
        const AudioComplex a = {audioScaled<Cfg, 4>(at[0]), audioScaled<Cfg, 4>(at[1])};
        AudioComplex c = {audioScaled<Cfg, 4>(p[0]), audioScaled<Cfg, 4>(p[1])};
        AudioComplex b = {audioScaled<Cfg, 4>(q[0]), audioScaled<Cfg, 4>(q[1])};
        AudioComplex d = {audioScaled<Cfg, 4>(r[0]), audioScaled<Cfg, 4>(r[1])};
        if (Turns) {
            c = audioTurned<Cfg>(c, turns[1]);
            b = audioTurned<Cfg>(b, turns[0]);
            d = audioTurned<Cfg>(d, turns[2]);
        }
        const AudioComplex even = {a.real + c.real, a.imaginary + c.imaginary},
                           odd = {b.real + d.real, b.imaginary + d.imaginary};
        const AudioComplex across = {a.real - c.real, a.imaginary - c.imaginary},
                           turned = {b.imaginary - d.imaginary, d.real - b.real};
        at[0] = even.real + odd.real;
        at[1] = even.imaginary + odd.imaginary;
        p[0] = across.real + turned.real;
        p[1] = across.imaginary + turned.imaginary;
        q[0] = even.real - odd.real;
        q[1] = even.imaginary - odd.imaginary;
        r[0] = across.real - turned.real;
        r[1] = across.imaginary - turned.imaginary;
    }
}

// Transforms of Count complex numbers each, in reverse order of bits, of all Size / 2: four smaller ones become one.
template <class Cfg, int Count>
struct AudioTransforms {
    static void run(std::int32_t* words) {
        const int part = Count / 4, step = Cfg::Size / Count;
        AudioTransforms<Cfg, part>::run(words);
        const AudioComplex whole[] = {audioTurn<Cfg>(0), audioTurn<Cfg>(0), audioTurn<Cfg>(0)};
        audioButterflies<Cfg, 2 * part, (Cfg::Adapts && part > 1)>(words, words + Cfg::Size,
                                                                   whole);  // the cosine of 0 is below 1 in 16 bits
        for (int j = 1; j < part; ++j) {
            const AudioComplex turns[] = {audioTurn<Cfg>(j * step), audioTurn<Cfg>(2 * j * step), audioTurn<Cfg>(3 * j * step)};
            audioButterflies<Cfg, 2 * part, true>(words + 2 * j, words + Cfg::Size, turns);
        }
    }
};

template <class Cfg>
struct AudioTransforms<Cfg, 1> {
    static void run(std::int32_t*) {}
};

template <class Cfg>
struct AudioTransforms<Cfg, 2> {
    static void run(std::int32_t* words) {
        for (std::int32_t* at = words; at < words + Cfg::Size; at += 4)
            for (int i = 0; i < 2; ++i) {
                const std::int32_t first = audioScaled<Cfg, 2>(at[i]), second = audioScaled<Cfg, 2>(at[i + 2]);
                at[i] = first + second;
                at[i + 2] = first - second;
            }
    }
};

template <class Cfg>
N2D2_INLINE void audioPower(std::int32_t* words, std::int32_t real, std::int32_t imaginary) {
    const std::uint64_t power =
        static_cast<std::uint64_t>(std::int64_t{real} * real + std::int64_t{imaginary} * imaginary) >> (Cfg::Adapts ? 0 : 8);
    words[0] = static_cast<std::int32_t>(power & 0xFFFFFFFFu);
    words[1] = static_cast<std::int32_t>(power >> 32);
}

// Powers of the real transform, times 4 unless the source adapts, from that of the pairs: Size / 2 + 1 of two words.
template <class Cfg>
inline void audioPowers(std::int32_t* words) {
    const int half = Cfg::Size / 2;
    for (int i = 0; i < Cfg::Size; ++i)
        words[i] = audioScaled<Cfg, 2>(words[i]);
    const std::int32_t sum = words[0] + words[1], difference = words[0] - words[1];
    audioPower<Cfg>(words, Cfg::Adapts ? sum : 2 * sum, 0);
    audioPower<Cfg>(words + 2 * half, Cfg::Adapts ? difference : 2 * difference, 0);
    for (int k = 1; k <= half / 2; ++k) {
        std::int32_t *const low = words + 2 * k, *const high = words + 2 * (half - k);
        const AudioComplex a = {low[0], low[1]}, b = {high[0], high[1]};
        const AudioComplex apart = {a.real - b.real, a.imaginary + b.imaginary}, turn = audioTurn<Cfg>(k);
        const std::int32_t real = a.real + b.real, imaginary = a.imaginary - b.imaginary;
        if (Cfg::Adapts) {
            const AudioComplex turned = audioTurned<Cfg>(apart, AudioComplex{-turn.imaginary, turn.real});
            audioPower<Cfg>(low, (real + turned.real) >> 1, (imaginary + turned.imaginary) >> 1);
            audioPower<Cfg>(high, (real - turned.real) >> 1, (turned.imaginary - imaginary) >> 1);
        } else {
            const AudioComplex turned = audioTurned<Cfg>(apart, turn);
            audioPower<Cfg>(high, real - turned.imaginary, imaginary + turned.real);
            audioPower<Cfg>(low, real + turned.imaginary, imaginary - turned.real);
        }
    }
}

// log2 of a positive number in 1/65536.
template <class Cfg>
inline std::int32_t audioLogarithm(std::uint64_t value) {
    const int bits = bitsOf(value);
    const std::uint32_t x = static_cast<std::uint32_t>(value << (64 - bits) >> 32);
    const std::uint32_t rest = x >> 15 & 2047;
    const int entry = static_cast<int>(x >> 26 & 31);
    const std::uint32_t low = Cfg::logarithm(entry), next = Cfg::logarithm(entry + 1);
    return (bits - 1) * 65536 + static_cast<std::int32_t>(low + (((next - low) * rest + 1024) >> 11));
}

}  // namespace n2d2

#endif  // N2D2_AUDIO_FOURIER_HPP
