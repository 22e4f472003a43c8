// Complex numbers of 16 bits in a word, the real part in its low half. Results wrap around.
#ifndef N2D2_AUDIO_PACKED_HPP
#define N2D2_AUDIO_PACKED_HPP

#include "n2d2/env.hpp"

namespace n2d2 {

N2D2_INLINE std::int32_t audioReal(std::uint32_t x) { return static_cast<std::int16_t>(x & 0xFFFF); }
N2D2_INLINE std::int32_t audioImaginary(std::uint32_t x) { return static_cast<std::int16_t>(x >> 16); }

N2D2_INLINE std::uint32_t audioComplex(std::int32_t real, std::int32_t imaginary) {
    return (static_cast<std::uint32_t>(real) & 0xFFFF) | static_cast<std::uint32_t>(imaginary) << 16;
}

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
N2D2_AUDIO_SUMS(audioImaginarySum, "smlatt")
N2D2_AUDIO_SUMS(audioDot, "smlad")
N2D2_AUDIO_SUMS(audioCross, "smlsdx")
N2D2_AUDIO_SUMS(audioSwapped, "smladx")
#undef N2D2_AUDIO_PAIRS
#undef N2D2_AUDIO_SUMS

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
// The product of the real or of the imaginary parts, and c.
N2D2_INLINE std::uint32_t audioRealSum(std::uint32_t a, std::uint32_t b, std::uint32_t c) { return audioRealProduct(a, b) + c; }
N2D2_INLINE std::uint32_t audioImaginarySum(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return audioImaginaryProduct(a, b) + c;
}
// Real part of a times the conjugate of b, or of ia times that of b, and c.
N2D2_INLINE std::uint32_t audioDot(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return audioRealProduct(a, b) + audioImaginaryProduct(a, b) + c;
}
N2D2_INLINE std::uint32_t audioCross(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return static_cast<std::uint32_t>(audioReal(a) * audioImaginary(b)) -
           static_cast<std::uint32_t>(audioImaginary(a) * audioReal(b)) + c;
}
// Imaginary part of a b, and c.
N2D2_INLINE std::uint32_t audioSwapped(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return static_cast<std::uint32_t>(audioReal(a) * audioImaginary(b)) +
           static_cast<std::uint32_t>(audioImaginary(a) * audioReal(b)) + c;
}
template <int Low>
N2D2_INLINE std::uint32_t audioUpper(std::uint32_t real, std::uint32_t imaginary) {
    return audioPacked(real >> Low, imaginary);
}
N2D2_INLINE void audioAddSquares(std::uint64_t& sum, std::uint32_t x) { sum += audioDot(x, x, 0); }
N2D2_INLINE std::int32_t audioHighSum(std::int32_t a, std::int32_t b, std::int32_t c) {
    return static_cast<std::int32_t>((std::int64_t{a} * b + (std::int64_t{1} << 31)) >> 32) + c;
}
N2D2_INLINE std::uint32_t audioMagnitudes(std::uint32_t x) {
    const std::int32_t real = audioReal(x), imaginary = audioImaginary(x);
    return audioComplex(real < 0 ? -real : real, imaginary < 0 ? -imaginary : imaginary);
}

#endif

}  // namespace n2d2

#endif  // N2D2_AUDIO_PACKED_HPP
