// Fourier transform of real values in 16 bits, and powers of 32 bits: that of TFLite Micro's audio front end, whose results wrap around.
//
// A word is a complex number, the real part in its low half; n2d2py/arithmetic/micro_frontend.py has the formulas. Config: see input.hpp.
#ifndef N2D2_AUDIO_SHORT_FOURIER_HPP
#define N2D2_AUDIO_SHORT_FOURIER_HPP

#include "n2d2/audio/fourier.hpp"

namespace n2d2 {

N2D2_INLINE std::int32_t audioReal(std::uint32_t x) { return static_cast<std::int16_t>(x & 0xFFFF); }
N2D2_INLINE std::int32_t audioImaginary(std::uint32_t x) { return static_cast<std::int16_t>(x >> 16); }

#if N2D2_M_PROFILE && defined(__ARM_FEATURE_DSP)

#define N2D2_AUDIO_PAIRS(name, instruction)                               \
    N2D2_INLINE std::uint32_t name(std::uint32_t a, std::uint32_t b) {    \
        std::uint32_t made;                                               \
        __asm__(instruction " %0, %1, %2" : "=r"(made) : "r"(a), "r"(b)); \
        return made;                                                      \
    }
#define N2D2_AUDIO_SUMS(name, instruction)                                              \
    N2D2_INLINE std::uint32_t name(std::uint32_t a, std::uint32_t b, std::uint32_t c) { \
        std::uint32_t made;                                                             \
        __asm__(instruction " %0, %1, %2, %3" : "=r"(made) : "r"(a), "r"(b), "r"(c));   \
        return made;                                                                    \
    }
N2D2_AUDIO_PAIRS(audioAdd, "sadd16")
N2D2_AUDIO_PAIRS(audioSubtract, "ssub16")
N2D2_AUDIO_PAIRS(audioAddTurned, "sasx")
N2D2_AUDIO_PAIRS(audioSubtractTurned, "ssax")
N2D2_AUDIO_PAIRS(audioHalfSum, "shadd16")
N2D2_AUDIO_PAIRS(audioHalfDifference, "shsub16")
N2D2_AUDIO_PAIRS(audioPacked, "pkhbt")
N2D2_AUDIO_PAIRS(audioRealProduct, "smulbb")
N2D2_AUDIO_PAIRS(audioImaginaryProduct, "smultt")
N2D2_AUDIO_SUMS(audioRealSum, "smlabb")
N2D2_AUDIO_SUMS(audioImaginarySum, "smlatb")
N2D2_AUDIO_SUMS(audioDot, "smlad")
N2D2_AUDIO_SUMS(audioCross, "smlsdx")
#undef N2D2_AUDIO_PAIRS
#undef N2D2_AUDIO_SUMS

// Bits from Low on of `real`, upper half of `imaginary`.
template <int Low>
N2D2_INLINE std::uint32_t audioUpper(std::uint32_t real, std::uint32_t imaginary) {
    std::uint32_t made;
    __asm__("pkhtb %0, %1, %2, asr %3" : "=r"(made) : "r"(imaginary), "r"(real), "I"(Low));
    return made;
}

N2D2_INLINE std::uint32_t audioMagnitudes(std::uint32_t x) {
    std::uint32_t made;
    __asm__("ssub16 %0, %2, %1\n\tsel %0, %0, %1" : "=&r"(made) : "r"(x), "r"(0));
    return made;
}

#else

N2D2_INLINE std::uint32_t audioComplex(std::int32_t real, std::int32_t imaginary) {
    return (static_cast<std::uint32_t>(real) & 0xFFFF) | static_cast<std::uint32_t>(imaginary) << 16;
}
N2D2_INLINE std::uint32_t audioAdd(std::uint32_t a, std::uint32_t b) {
    return audioComplex(audioReal(a) + audioReal(b), audioImaginary(a) + audioImaginary(b));
}
N2D2_INLINE std::uint32_t audioSubtract(std::uint32_t a, std::uint32_t b) {
    return audioComplex(audioReal(a) - audioReal(b), audioImaginary(a) - audioImaginary(b));
}
// a + ib and a - ib.
N2D2_INLINE std::uint32_t audioAddTurned(std::uint32_t a, std::uint32_t b) {
    return audioComplex(audioReal(a) - audioImaginary(b), audioImaginary(a) + audioReal(b));
}
N2D2_INLINE std::uint32_t audioSubtractTurned(std::uint32_t a, std::uint32_t b) {
    return audioComplex(audioReal(a) + audioImaginary(b), audioImaginary(a) - audioReal(b));
}
N2D2_INLINE std::uint32_t audioHalfSum(std::uint32_t a, std::uint32_t b) {
    return audioComplex((audioReal(a) + audioReal(b)) >> 1, (audioImaginary(a) + audioImaginary(b)) >> 1);
}
N2D2_INLINE std::uint32_t audioHalfDifference(std::uint32_t a, std::uint32_t b) {
    return audioComplex((audioReal(a) - audioReal(b)) >> 1, (audioImaginary(a) - audioImaginary(b)) >> 1);
}
N2D2_INLINE std::uint32_t audioPacked(std::uint32_t real, std::uint32_t imaginary) {
    return (real & 0xFFFF) | (imaginary & 0xFFFF0000u);
}
N2D2_INLINE std::uint32_t audioRealProduct(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::uint32_t>(audioReal(a) * audioReal(b));
}
N2D2_INLINE std::uint32_t audioImaginaryProduct(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::uint32_t>(audioImaginary(a) * audioImaginary(b));
}
// The real or imaginary part of a times the real one of b, and c.
N2D2_INLINE std::uint32_t audioRealSum(std::uint32_t a, std::uint32_t b, std::uint32_t c) { return audioRealProduct(a, b) + c; }
N2D2_INLINE std::uint32_t audioImaginarySum(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return static_cast<std::uint32_t>(audioImaginary(a) * audioReal(b)) + c;
}
// Real part of a times the conjugate of b, or of ia times that of b, and c.
N2D2_INLINE std::uint32_t audioDot(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return audioRealProduct(a, b) + audioImaginaryProduct(a, b) + c;
}
N2D2_INLINE std::uint32_t audioCross(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return static_cast<std::uint32_t>(audioReal(a) * audioImaginary(b)) -
           static_cast<std::uint32_t>(audioImaginary(a) * audioReal(b)) + c;
}
template <int Low>
N2D2_INLINE std::uint32_t audioUpper(std::uint32_t real, std::uint32_t imaginary) {
    return audioPacked(real >> Low, imaginary);
}
N2D2_INLINE std::uint32_t audioMagnitudes(std::uint32_t x) {
    const std::int32_t real = audioReal(x), imaginary = audioImaginary(x);
    return audioComplex(real < 0 ? -real : real, imaginary < 0 ? -imaginary : imaginary);
}

#endif

// Samples times a window in 1/4096, rounded down.
N2D2_INLINE std::uint32_t audioWindowed(std::uint32_t samples, std::uint32_t window) {
    return audioUpper<12>(audioRealProduct(samples, window), audioImaginaryProduct(samples, window) << 4);
}

// r(32767 / parts) of a number before a stage, times 2^shift, where r(x) is (x + 2^14) >> 15.
template <int Parts>
N2D2_INLINE std::uint32_t audioShortScaled(std::uint32_t x, int shift = 0) {
    const std::uint32_t factor = 2 * (32767 / Parts), half = 0x8000u >> shift;
    return audioUpper<16>(audioRealSum(x, factor, half) << shift, audioImaginarySum(x, factor, half) << shift);
}

// r(x less the angle of `turn`).
N2D2_INLINE std::uint32_t audioShortTurned(std::uint32_t x, std::uint32_t turn) {
    return audioUpper<15>(audioDot(x, turn, 1 << 14), audioCross(turn, x, 1 << 14) << 1);
}

// Four numbers, Apart words from one to the next, in the order of a radix of 4 with bits reversed.
template <int Apart>
N2D2_INLINE void audioShortButterfly(std::uint32_t* to, std::uint32_t a, std::uint32_t c, std::uint32_t b, std::uint32_t d) {
    const std::uint32_t even = audioAdd(a, c), odd = audioAdd(b, d), across = audioSubtract(a, c), apart = audioSubtract(b, d);
    to[0] = audioAdd(even, odd);
    to[Apart] = audioSubtractTurned(across, apart);
    to[2 * Apart] = audioSubtract(even, odd);
    to[3 * Apart] = audioAddTurned(across, apart);
}

// Transforms of Count of all Size / 2 numbers each: four smaller ones become one. The first stage takes numbers in natural order, times
// 2^shift, from `from`.
template <class Cfg, int Count>
struct AudioShortTransforms {
    static void run(std::uint32_t* words, const std::uint32_t* from, int shift) {
        const int part = Count / 4, step = Cfg::Size / Count;
        AudioShortTransforms<Cfg, part>::run(words, from, shift);
        for (int j = 0; j < part; ++j) {
            const std::uint32_t first = Cfg::turn(j * step), second = Cfg::turn(2 * j * step), third = Cfg::turn(3 * j * step);
            std::uint32_t* at = words + j;
            for (int i = 0; i < step / 2; ++i, at += Count)
                audioShortButterfly<part>(at, audioShortScaled<4>(at[0]),
                                          audioShortTurned(audioShortScaled<4>(at[part]), second),
                                          audioShortTurned(audioShortScaled<4>(at[2 * part]), first),
                                          audioShortTurned(audioShortScaled<4>(at[3 * part]), third));
        }
    }
};

template <class Cfg>
struct AudioShortTransforms<Cfg, 4> {
    static void run(std::uint32_t* words, const std::uint32_t* from, int shift) {
        const int quarter = Cfg::Size / 8;
        for (int i = 0, place = 0; i < quarter; ++i, words += 4) {
            const std::uint32_t* const at = from + place;
            audioShortButterfly<1>(words, audioShortScaled<4>(at[0], shift), audioShortScaled<4>(at[2 * quarter], shift),
                                   audioShortScaled<4>(at[quarter], shift), audioShortScaled<4>(at[3 * quarter], shift));
            place = audioReversedNext<audioLog2(quarter)>(place);
        }
    }
};

template <class Cfg>
struct AudioShortTransforms<Cfg, 2> {
    static void run(std::uint32_t* words, const std::uint32_t* from, int shift) {
        const int half = Cfg::Size / 4;
        for (int i = 0, place = 0; i < half; ++i, words += 2) {
            const std::uint32_t a = audioShortScaled<2>(from[place], shift), b = audioShortScaled<2>(from[place + half], shift);
            words[0] = audioAdd(a, b);
            words[1] = audioSubtract(a, b);
            place = audioReversedNext<audioLog2(half)>(place);
        }
    }
};

// Sum of the squares of both parts.
N2D2_INLINE std::uint32_t audioShortPower(std::uint32_t x) { return audioDot(x, x, 0); }

// Powers of the real transform from that of the pairs: Size / 2 + 1 of a word.
template <class Cfg>
inline void audioShortPowers(std::uint32_t* words) {
    const int half = Cfg::Size / 2;
    const std::uint32_t both = audioShortScaled<2>(words[0]);
    const std::int32_t sum = audioReal(both) + audioImaginary(both), difference = audioReal(both) - audioImaginary(both);
    words[0] = static_cast<std::uint32_t>(sum * sum);
    words[half] = static_cast<std::uint32_t>(difference * difference);
    for (int k = 1; k <= half / 2; ++k) {
        const std::uint32_t a = audioShortScaled<2>(words[k]), b = audioShortScaled<2>(words[half - k]);
        const std::uint32_t sums = audioAdd(a, b), differences = audioSubtract(a, b), apart = audioPacked(differences, sums),
                            turn = Cfg::turn(half + k);
        const std::uint32_t whole = audioPacked(sums, differences),
                            turned = audioUpper<15>(audioCross(apart, turn, 1 << 14), audioDot(apart, turn, 1 << 14) << 1);
        words[k] = audioShortPower(audioHalfSum(whole, turned));
        const std::uint32_t less = audioHalfDifference(whole, turned), more = audioHalfDifference(turned, whole);
        words[half - k] = audioShortPower(audioPacked(less, more));
    }
}

}  // namespace n2d2

#endif  // N2D2_AUDIO_SHORT_FOURIER_HPP
