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
template <int Bits>
N2D2_INLINE int audioReversedNext(int place) {
#if N2D2_M_PROFILE && defined(__ARM_FEATURE_DSP)
    __asm__("rbit %0, %0\n\tadd %0, %0, %1\n\trbit %0, %0" : "+&r"(place) : "r"(1u << (32 - Bits)));
    return place;
#else
    const int ones = 32 - audioBits(~static_cast<std::uint32_t>(place) << (32 - Bits) | 1);  // that the carry passes
    return place ^ static_cast<int>(~(0x7FFFFFFFu >> ones) >> (32 - Bits));
#endif
}

struct AudioComplex {
    std::int32_t real, imaginary;
};

// Half of x less the angle of `turn`; each product is rounded down.
N2D2_INLINE AudioComplex audioTurned(AudioComplex x, AudioComplex turn) {
#if N2D2_M_PROFILE && defined(__ARM_FEATURE_DSP)
    std::int32_t real, imaginary;
    __asm__("smmul %0, %1, %2" : "=r"(real) : "r"(x.real), "r"(turn.real));
    __asm__("smmul %0, %1, %2" : "=r"(imaginary) : "r"(x.imaginary), "r"(turn.real));
    __asm__("smmla %0, %1, %2, %0" : "+r"(real) : "r"(x.imaginary), "r"(turn.imaginary));
    __asm__("smmls %0, %1, %2, %0" : "+r"(imaginary) : "r"(x.real), "r"(turn.imaginary));
    return {real, imaginary};
#else
    return {audioHigh(x.real, turn.real) + audioHigh(x.imaginary, turn.imaginary),
            audioHigh(x.imaginary, turn.real) + audioHigh(-x.real, turn.imaginary)};
#endif
}

// Cosine and sine of 2 pi at / Size.
template <class Cfg>
N2D2_INLINE AudioComplex audioTurn(int at) {
    return {Cfg::turn(at + Cfg::Size / 4), Cfg::turn(at)};
}

// Four numbers, Apart words from one to the next; turns are those of the last three.
template <int Apart, bool Turns>
N2D2_INLINE void audioButterfly(std::int32_t* at, const AudioComplex* turns) {
    const int scale = Turns ? 2 : 1;
    std::int32_t *const p = at + Apart, *const q = p + Apart, *const r = q + Apart;
    AudioComplex b = {q[0], q[1]}, d = {r[0], r[1]}, c = {p[0], p[1]};
    if (Turns) {
        b = audioTurned(b, turns[0]);
        d = audioTurned(d, turns[2]);
        c = audioTurned(c, turns[1]);
    }
    const AudioComplex odd = {b.real + d.real, b.imaginary + d.imaginary},
                       turned = {b.imaginary - d.imaginary, d.real - b.real};
    const AudioComplex even = {at[0] + scale * c.real, at[1] + scale * c.imaginary},
                       across = {at[0] - scale * c.real, at[1] - scale * c.imaginary};
    at[0] = even.real + scale * odd.real;
    at[1] = even.imaginary + scale * odd.imaginary;
    p[0] = across.real + scale * turned.real;
    p[1] = across.imaginary + scale * turned.imaginary;
    q[0] = even.real - scale * odd.real;
    q[1] = even.imaginary - scale * odd.imaginary;
    r[0] = across.real - scale * turned.real;
    r[1] = across.imaginary - scale * turned.imaginary;
}

// Transforms of Count complex numbers each, in reverse order of bits, of all Size / 2: four smaller ones become one.
template <class Cfg, int Count>
struct AudioTransforms {
    static void run(std::int32_t* words) {
        const int part = Count / 4, step = Cfg::Size / Count;
        AudioTransforms<Cfg, part>::run(words);
        for (int i = 0; i < step / 2; ++i)
            audioButterfly<2 * part, false>(words + 2 * Count * i, nullptr);
        for (int j = 1; j < part; ++j) {
            const AudioComplex turns[] = {audioTurn<Cfg>(j * step), audioTurn<Cfg>(2 * j * step), audioTurn<Cfg>(3 * j * step)};
            for (int i = 0; i < step / 2; ++i)
                audioButterfly<2 * part, true>(words + 2 * Count * i + 2 * j, turns);
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
                const std::int32_t first = at[i], second = at[i + 2];
                at[i] = first + second;
                at[i + 2] = first - second;
            }
    }
};

N2D2_INLINE void audioPower(std::int32_t* words, std::int32_t real, std::int32_t imaginary) {
    const std::uint64_t power =
        static_cast<std::uint64_t>(std::int64_t{real} * real + std::int64_t{imaginary} * imaginary) >> 8;
    words[0] = static_cast<std::int32_t>(power & 0xFFFFFFFFu);
    words[1] = static_cast<std::int32_t>(power >> 32);
}

// Powers of the real transform, times 4, from that of the pairs: Size / 2 + 1 of two words.
template <class Cfg>
inline void audioPowers(std::int32_t* words) {
    const int half = Cfg::Size / 2;
    const std::int32_t sum = words[0] + words[1], difference = words[0] - words[1];
    audioPower(words, 2 * sum, 0);
    audioPower(words + 2 * half, 2 * difference, 0);
    for (int k = 1; k <= half / 2; ++k) {
        std::int32_t *const low = words + 2 * k, *const high = words + 2 * (half - k);
        const AudioComplex a = {low[0], low[1]}, b = {high[0], high[1]};
        const std::int32_t real = a.real + b.real, imaginary = a.imaginary - b.imaginary;
        const AudioComplex turned = audioTurned({a.real - b.real, a.imaginary + b.imaginary}, audioTurn<Cfg>(k));
        audioPower(high, real - 2 * turned.imaginary, imaginary + 2 * turned.real);
        audioPower(low, real + 2 * turned.imaginary, imaginary - 2 * turned.real);
    }
}

// log2 of a positive number in 1/65536.
template <class Cfg>
N2D2_INLINE std::int32_t audioLogarithm(std::uint32_t normalized, int bits) {
    const std::uint32_t rest = normalized >> 15 & 2047;
    const int entry = static_cast<int>(normalized >> 26 & 31);
    const std::uint32_t low = Cfg::logarithm(entry), next = Cfg::logarithm(entry + 1);
    return (bits - 1) * 65536 + static_cast<std::int32_t>(low + (((next - low) * rest + 1024) >> 11));
}

template <class Cfg>
inline std::int32_t audioLogarithm(std::uint64_t value) {
    const int bits = bitsOf(value);
    return audioLogarithm<Cfg>(static_cast<std::uint32_t>(value << (64 - bits) >> 32), bits);
}

}  // namespace n2d2

#endif  // N2D2_AUDIO_FOURIER_HPP
