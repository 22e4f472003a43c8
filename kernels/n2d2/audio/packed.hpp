// Complex numbers of 16 bits, in memory the real part in the low half of a word: a word with DSP instructions, else two integers.
#pragma once

#include "n2d2/env.hpp"

namespace n2d2 {

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
N2D2_AUDIO_SUMS(audioImaginarySum, "smlatt")
N2D2_AUDIO_SUMS(audioDot, "smlad")
N2D2_AUDIO_SUMS(audioCross, "smlsdx")
N2D2_AUDIO_SUMS(audioSwapped, "smladx")
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

// a b / 2^16, rounded down, and c; b has 16 bits.
N2D2_INLINE std::int32_t audioAddProduct(std::int32_t a, std::int32_t b, std::int32_t c) {
    std::int32_t made;
    __asm__("smlawb %0, %1, %2, %3" : "=r"(made) : "r"(a), "r"(b), "r"(c));
    return made;
}

// a b / 2^32, rounded to nearest, and c.
N2D2_INLINE std::int32_t audioHighSum(std::int32_t a, std::int32_t b, std::int32_t c) {
    std::int32_t made;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(made) : "r"(a), "r"(b), "r"(c));
    return made;
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
N2D2_INLINE std::int32_t audioAddProduct(std::int32_t a, std::int32_t b, std::int32_t c) {
    return static_cast<std::int32_t>((std::int64_t{a} * b) >> 16) + c;
}
N2D2_INLINE std::int32_t audioHighSum(std::int32_t a, std::int32_t b, std::int32_t c) {
    return static_cast<std::int32_t>((std::int64_t{a} * b + (std::int64_t{1} << 31)) >> 32) + c;
}
N2D2_INLINE std::uint32_t audioMagnitudes(AudioNumber x) {
    return audioComplex(x.real < 0 ? -x.real : x.real, x.imaginary < 0 ? -x.imaginary : x.imaginary);
}

#endif

}  // namespace n2d2
