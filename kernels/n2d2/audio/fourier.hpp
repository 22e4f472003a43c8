// Fourier transform of real values in 16 bits, and powers of 32 bits: n2d2py/arithmetic/power_spectrum.py and, for a source that adapts,
// micro_frontend.py have the formulas. Config: see input.hpp.
#pragma once

#include "n2d2/env.hpp"

namespace n2d2 {

// Complex numbers of 16 bits, in memory the real part in the low half of a word: a word with DSP instructions, else two integers.
N2D2_INLINE std::uint32_t audioComplex(std::int32_t real, std::int32_t imaginary) {
    return (static_cast<std::uint32_t>(real) & 0xFFFF) | static_cast<std::uint32_t>(imaginary) << 16;
}

#if N2D2_M_PROFILE && defined(__ARM_FEATURE_DSP)

typedef std::uint32_t AudioNumber;
enum : int { AudioWidth = 2 };  // numbers that are loaded at a time

N2D2_INLINE AudioNumber audioNumber(std::uint32_t word) { return word; }
N2D2_INLINE std::uint32_t audioWord(AudioNumber x) { return x; }

#define N2D2_AUDIO_PAIRS(name, instruction)                               \
    N2D2_INLINE std::uint32_t name(std::uint32_t a, std::uint32_t b) {    \
        std::uint32_t made;                                               \
        __asm__(instruction " %0, %1, %2" : "=r"(made) : "r"(a), "r"(b)); \
        return made;                                                      \
    }
#define N2D2_AUDIO_SUMS(Word, name, instruction)                                      \
    N2D2_INLINE Word name(Word a, Word b, Word c) {                                   \
        Word made;                                                                    \
        __asm__(instruction " %0, %1, %2, %3" : "=r"(made) : "r"(a), "r"(b), "r"(c)); \
        return made;                                                                  \
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
N2D2_AUDIO_SUMS(std::uint32_t, audioRealSum, "smlabb")
N2D2_AUDIO_SUMS(std::uint32_t, audioImaginarySum, "smlatt")
N2D2_AUDIO_SUMS(std::uint32_t, audioDot, "smlad")
N2D2_AUDIO_SUMS(std::uint32_t, audioCross, "smlsdx")
N2D2_AUDIO_SUMS(std::uint32_t, audioSwapped, "smladx")
N2D2_AUDIO_SUMS(std::int32_t, audioAddProduct, "smlawb")
N2D2_AUDIO_SUMS(std::int32_t, audioHighSum, "smmlar")
#undef N2D2_AUDIO_PAIRS
#undef N2D2_AUDIO_SUMS

// Words Offset and Offset + 1 of an array. Uv is an address with an offset that LDRD has too.
typedef std::uint64_t __attribute__((may_alias, aligned(4))) AudioPair;

template <int Offset, class Word>
N2D2_INLINE void audioLoadPair(const Word* from, Word& first, Word& second) {
    __asm__("ldrd %0, %1, %2" : "=r"(first), "=r"(second) : "Uv"(*reinterpret_cast<const AudioPair*>(from + Offset)));
}
N2D2_INLINE void audioNextPair(const std::uint32_t*& from, std::uint32_t& first, std::uint32_t& second) {
    __asm__("ldrd %0, %1, [%2], #8" : "=&r"(first), "=&r"(second), "+r"(from) : : "memory");
}
template <int Offset>
N2D2_INLINE void audioStorePair(std::uint32_t* to, std::uint32_t first, std::uint32_t second) {
    __asm__("strd %1, %2, %0" : "=Uv"(*reinterpret_cast<AudioPair*>(to + Offset)) : "r"(first), "r"(second));
}
template <int Offset>
N2D2_INLINE void audioLoad(const std::uint32_t* from, AudioNumber (&x)[AudioWidth]) {
    audioLoadPair<Offset>(from, x[0], x[1]);
}
template <int Offset>
N2D2_INLINE void audioStore(std::uint32_t* to, const AudioNumber (&x)[AudioWidth]) {
    audioStorePair<Offset>(to, x[0], x[1]);
}

// Bits from Low on of `real`, upper half of `imaginary`.
template <int Low>
N2D2_INLINE std::uint32_t audioUpper(std::uint32_t real, std::uint32_t imaginary) {
    std::uint32_t made;
    __asm__("pkhtb %0, %1, %2, asr %3" : "=r"(made) : "r"(imaginary), "r"(real), "I"(Low));
    return made;
}

N2D2_INLINE void audioAddSquares(std::uint64_t& sum, std::uint32_t x) {
    __asm__("smlald %Q0, %R0, %1, %1" : "+r"(sum) : "r"(x));
}

N2D2_INLINE std::uint32_t audioMagnitudes(std::uint32_t x) {
    std::uint32_t made;
    __asm__("ssub16 %0, %2, %1\n\tsel %0, %0, %1" : "=&r"(made) : "r"(x), "r"(0));
    return made;
}

#else

struct AudioNumber {
    std::int32_t real, imaginary;
};
enum : int { AudioWidth = 1 };

N2D2_INLINE AudioNumber audioNumber(std::uint32_t word) {
    return {static_cast<std::int16_t>(word & 0xFFFF), static_cast<std::int32_t>(word) >> 16};
}
N2D2_INLINE std::uint32_t audioWord(AudioNumber x) { return audioComplex(x.real, x.imaginary); }
N2D2_INLINE AudioNumber audioAdd(AudioNumber a, AudioNumber b) { return {a.real + b.real, a.imaginary + b.imaginary}; }
N2D2_INLINE AudioNumber audioSubtract(AudioNumber a, AudioNumber b) { return {a.real - b.real, a.imaginary - b.imaginary}; }
// a + ib and a - ib.
N2D2_INLINE AudioNumber audioAddTurned(AudioNumber a, AudioNumber b) { return {a.real - b.imaginary, a.imaginary + b.real}; }
N2D2_INLINE AudioNumber audioSubtractTurned(AudioNumber a, AudioNumber b) {
    return {a.real + b.imaginary, a.imaginary - b.real};
}
N2D2_INLINE AudioNumber audioHalfSum(AudioNumber a, AudioNumber b) {
    return {(a.real + b.real) >> 1, (a.imaginary + b.imaginary) >> 1};
}
N2D2_INLINE AudioNumber audioHalfDifference(AudioNumber a, AudioNumber b) {
    return {(a.real - b.real) >> 1, (a.imaginary - b.imaginary) >> 1};
}
N2D2_INLINE AudioNumber audioPacked(AudioNumber real, AudioNumber imaginary) { return {real.real, imaginary.imaginary}; }
N2D2_INLINE std::uint32_t audioRealProduct(AudioNumber a, AudioNumber b) { return static_cast<std::uint32_t>(a.real * b.real); }
N2D2_INLINE std::uint32_t audioImaginaryProduct(AudioNumber a, AudioNumber b) {
    return static_cast<std::uint32_t>(a.imaginary * b.imaginary);
}
// The product of the real or of the imaginary parts, and c.
N2D2_INLINE std::uint32_t audioRealSum(AudioNumber a, AudioNumber b, std::uint32_t c) { return audioRealProduct(a, b) + c; }
N2D2_INLINE std::uint32_t audioImaginarySum(AudioNumber a, AudioNumber b, std::uint32_t c) {
    return audioImaginaryProduct(a, b) + c;
}
// Real part of a times the conjugate of b, or of ia times that of b, and c.
N2D2_INLINE std::uint32_t audioDot(AudioNumber a, AudioNumber b, std::uint32_t c) {
    return audioRealProduct(a, b) + audioImaginaryProduct(a, b) + c;
}
N2D2_INLINE std::uint32_t audioCross(AudioNumber a, AudioNumber b, std::uint32_t c) {
    return static_cast<std::uint32_t>(a.real * b.imaginary) - static_cast<std::uint32_t>(a.imaginary * b.real) + c;
}
// Imaginary part of a b, and c.
N2D2_INLINE std::uint32_t audioSwapped(AudioNumber a, AudioNumber b, std::uint32_t c) {
    return static_cast<std::uint32_t>(a.real * b.imaginary) + static_cast<std::uint32_t>(a.imaginary * b.real) + c;
}
template <int Offset, class Word>
N2D2_INLINE void audioLoadPair(const Word* from, Word& first, Word& second) {
    first = from[Offset];
    second = from[Offset + 1];
}
N2D2_INLINE void audioNextPair(const std::uint32_t*& from, std::uint32_t& first, std::uint32_t& second) {
    first = *from++;
    second = *from++;
}
template <int Offset>
N2D2_INLINE void audioStorePair(std::uint32_t* to, std::uint32_t first, std::uint32_t second) {
    to[Offset] = first;
    to[Offset + 1] = second;
}
template <int Offset>
N2D2_INLINE void audioLoad(const std::uint32_t* from, AudioNumber (&x)[AudioWidth]) {
    x[0] = audioNumber(from[Offset]);
}
template <int Offset>
N2D2_INLINE void audioStore(std::uint32_t* to, const AudioNumber (&x)[AudioWidth]) {
    to[Offset] = audioWord(x[0]);
}
template <int Low>
N2D2_INLINE AudioNumber audioUpper(std::uint32_t real, std::uint32_t imaginary) {
    return {static_cast<std::int32_t>(real << (16 - Low)) >> 16, static_cast<std::int32_t>(imaginary) >> 16};
}
N2D2_INLINE void audioAddSquares(std::uint64_t& sum, AudioNumber x) { sum += audioDot(x, x, 0); }
// a b / 2^16, rounded down, and c; b has 16 bits.
N2D2_INLINE std::int32_t audioAddProduct(std::int32_t a, std::int32_t b, std::int32_t c) {
    return static_cast<std::int32_t>((std::int64_t{a} * b) >> 16) + c;
}
// a b / 2^32, rounded to nearest, and c.
N2D2_INLINE std::int32_t audioHighSum(std::int32_t a, std::int32_t b, std::int32_t c) {
    return static_cast<std::int32_t>((std::int64_t{a} * b + (std::int64_t{1} << 31)) >> 32) + c;
}
N2D2_INLINE std::uint32_t audioMagnitudes(AudioNumber x) {
    return audioComplex(x.real < 0 ? -x.real : x.real, x.imaginary < 0 ? -x.imaginary : x.imaginary);
}

#endif

constexpr int audioLog2(int power) { return power > 1 ? 1 + audioLog2(power / 2) : 0; }

// Bits of a number; 0 for 0.
N2D2_INLINE int audioBits(std::uint32_t value) { return value == 0 ? 0 : bitsOf(value); }

// The number that follows below 2^bits, with the bits in reverse order.
template <int Bits>
N2D2_INLINE int audioReversedNext(int place) {
#if N2D2_M_PROFILE && defined(__ARM_FEATURE_DSP)
    __asm__("rbit %0, %0\n\tadd %0, %0, %1\n\trbit %0, %0" : "+&r"(place) : "I"(1u << (32 - Bits)));
    return place;
#else
    const int ones = 32 - audioBits(~static_cast<std::uint32_t>(place) << (32 - Bits) | 1);  // that the carry passes
    return place ^ static_cast<int>(~(0x7FFFFFFFu >> ones) >> (32 - Bits));
#endif
}

// r(32767 / parts) of a number before a stage, times 2^shift, where r(x) is (x + 2^14) >> 15.
template <int Parts>
N2D2_INLINE AudioNumber audioScaled(AudioNumber x, int shift = 0) {
    const AudioNumber factor = audioNumber(0x10001u * (2 * (32767 / Parts)));
    const std::uint32_t half = 0x8000u >> shift;
    return audioUpper<16>(audioRealSum(x, factor, half) << shift, audioImaginarySum(x, factor, half) << shift);
}

// Numbers before a stage and, but for the first of four, less the angle of `turn`: as TFLite Micro rounds them.
struct AudioRounded {
    enum : bool { Halves = false };
    static N2D2_INLINE AudioNumber first(AudioNumber x) { return audioScaled<4>(x); }
    static N2D2_INLINE AudioNumber turned(AudioNumber x, AudioNumber turn) {
        x = audioScaled<4>(x);
        return audioUpper<15>(audioDot(x, turn, 1 << 14), audioCross(turn, x, 1 << 14) << 1);
    }
};

// The same, halved.
template <bool HalvesSums>
struct AudioHalved {
    enum : bool { Halves = HalvesSums };
    static N2D2_INLINE AudioNumber first(AudioNumber x) { return audioHalfSum(x, audioNumber(0x10001u)); }
    static N2D2_INLINE AudioNumber turned(AudioNumber x, AudioNumber turn) {
        return audioUpper<16>(audioDot(x, turn, 1 << 15), audioCross(turn, x, 1 << 15));
    }
};

// The sum and the difference of two numbers, in their places.
template <bool Halves>
N2D2_INLINE void audioSumAndDifference(AudioNumber& a, AudioNumber& b) {
    const AudioNumber difference = Halves ? audioHalfDifference(a, b) : audioSubtract(a, b);
    a = Halves ? audioHalfSum(a, b) : audioAdd(a, b);
    b = difference;
}

// Transforms of four numbers that are Apart words from one to the next, AudioWidth of them next to each other, with the twiddles of three.
template <int Apart, class Form>
N2D2_INLINE void audioTransformFour(std::uint32_t* at, const std::uint32_t* turns) {
    AudioNumber a[AudioWidth], b[AudioWidth], c[AudioWidth], d[AudioWidth], turn[AudioWidth];
    audioLoad<0>(at, a);
    audioLoad<Apart>(at, c);
    audioLoad<0>(turns, turn);
    N2D2_UNROLL_FOR(i, AudioWidth) {
        a[i] = Form::first(a[i]);
        c[i] = Form::turned(c[i], turn[i]);
        audioSumAndDifference<Form::Halves>(a[i], c[i]);
    }
    audioLoad<2 * Apart>(at, b);
    audioLoad<2>(turns, turn);
    N2D2_UNROLL_FOR(i, AudioWidth)
        b[i] = Form::turned(b[i], turn[i]);
    audioLoad<3 * Apart>(at, d);
    audioLoad<4>(turns, turn);
    N2D2_UNROLL_FOR(i, AudioWidth) {
        d[i] = Form::turned(d[i], turn[i]);
        audioSumAndDifference<Form::Halves>(b[i], d[i]);
        audioSumAndDifference<false>(a[i], b[i]);
        const AudioNumber turned = audioSubtractTurned(c[i], d[i]);
        d[i] = audioAddTurned(c[i], d[i]);
        c[i] = turned;
    }
    audioStore<0>(at, a);
    audioStore<Apart>(at, c);
    audioStore<2 * Apart>(at, b);
    audioStore<3 * Apart>(at, d);
}

// Transforms of Count of all Size / 2 numbers each, from four smaller ones; turns come in pairs.
template <class Cfg, int Count, class Form>
N2D2_NOINLINE void audioStage(std::uint32_t* words) {
    const int part = Count / 4, first = audioLog2(part) % 2 == 0 ? 4 : 2;
    for (std::uint32_t *at = words, *const end = words + Cfg::Size / 2; at != end; at += Count - part) {
        const std::uint32_t* turns = &Cfg::turn(part - first);
        for (std::uint32_t* const stop = at + part; at != stop; at += 2, turns += 6)
            for (int i = 0; i < 2; i += AudioWidth)
                audioTransformFour<part, Form>(at + i, turns + i);
    }
}

// The first stage takes its numbers, in natural order, from `frame`, which knows how others round.
template <class Cfg, int Count>
struct AudioTransforms {
    template <class Frame>
    static void run(std::uint32_t* words, Frame& frame) {
        AudioTransforms<Cfg, Count / 4>::run(words, frame);
        frame.template stage<Count>(words);
    }
};

// That of four or of two numbers.
template <class Cfg, int Count>
struct AudioFirstTransforms {
    template <class Frame>
    static N2D2_NOINLINE void run(std::uint32_t* words, Frame& frame) {
        const int part = Cfg::Size / 2 / Count;
        typename Frame::Numbers numbers = frame.begin();
        std::uint32_t* const end = words + Cfg::Size / 2;
        for (int place = 0; words != end; words += Count, place = audioReversedNext<audioLog2(part)>(place)) {
            numbers.begin(place);
            AudioNumber a = numbers.template at<0, Count>(), c = numbers.template at<Count / 2 * part, Count>(),
                        b = Count == 4 ? numbers.template at<part, Count>() : a,
                        d = Count == 4 ? numbers.template at<3 * part, Count>() : c;
            audioSumAndDifference<false>(a, c);
            if (Count == 2) {
                audioStorePair<0>(words, audioWord(a), audioWord(c));
                continue;
            }
            audioSumAndDifference<false>(b, d);
            audioStorePair<0>(words, audioWord(audioAdd(a, b)), audioWord(audioSubtractTurned(c, d)));
            audioStorePair<2>(words, audioWord(audioSubtract(a, b)), audioWord(audioAddTurned(c, d)));
        }
        frame.end(numbers);
    }
};
template <class Cfg>
struct AudioTransforms<Cfg, 4> : AudioFirstTransforms<Cfg, 4> {};
template <class Cfg>
struct AudioTransforms<Cfg, 2> : AudioFirstTransforms<Cfg, 2> {};

// Powers of the real transform, in the place of that of the pairs; that of bin 0 is left out.
template <class Cfg, bool Adapts>
struct AudioPowers {
    static N2D2_NOINLINE void run(std::uint32_t* words) {
        const std::int32_t* rotations = &Cfg::rotation(0);
        std::uint32_t* other = words + Cfg::Size / 2;
        for (std::uint32_t* const end = words + Cfg::Size / 4; words != end; rotations += 4) {
            std::uint32_t a, b, c, d;
            words += 2;
            other -= 2;
            audioLoadPair<-1>(words, a, c);
            audioLoadPair<0>(other, d, b);
            both<0>(rotations, a, b);
            both<2>(rotations, c, d);
            audioStorePair<-1>(words, a, c);
            audioStorePair<0>(other, d, b);
        }
    }

private:
    // Numbers to their powers.
    template <int Offset>
    static N2D2_INLINE void both(const std::int32_t* rotations, std::uint32_t& a, std::uint32_t& b) {
        const AudioNumber x = audioNumber(a), y = audioNumber(b);
        const std::int32_t first = static_cast<std::int32_t>(audioDot(x, x, 0)),
                           second = static_cast<std::int32_t>(audioDot(y, y, 0)),
                           mixed = static_cast<std::int32_t>(audioSwapped(x, y, 0));
        std::int32_t sine, cosine;
        audioLoadPair<Offset>(rotations, sine, cosine);
        const std::int32_t more = 2 * audioHighSum(second - first, sine, audioHighSum(2 * mixed, cosine, 0));
        b = static_cast<std::uint32_t>(first + second - more);
        a = static_cast<std::uint32_t>(first + second + more);
    }
};

template <class Cfg>
struct AudioPowers<Cfg, true> {
    static void run(std::uint32_t* words) {
        const int half = Cfg::Size / 2;
        for (int k = 1; k <= half / 2; ++k) {
            const AudioNumber a = audioScaled<2>(audioNumber(words[k])), b = audioScaled<2>(audioNumber(words[half - k]));
            const AudioNumber sums = audioAdd(a, b), differences = audioSubtract(a, b), apart = audioPacked(differences, sums),
                              turn = audioNumber(Cfg::rotation(k));
            const AudioNumber whole = audioPacked(sums, differences),
                              turned = audioUpper<15>(audioCross(apart, turn, 1 << 14), audioDot(apart, turn, 1 << 14) << 1);
            words[k] = power(audioHalfSum(whole, turned));
            const AudioNumber less = audioHalfDifference(whole, turned), more = audioHalfDifference(turned, whole);
            words[half - k] = power(audioPacked(less, more));
        }
    }

private:
    static N2D2_INLINE std::uint32_t power(AudioNumber x) { return audioDot(x, x, 0); }
};

}  // namespace n2d2
