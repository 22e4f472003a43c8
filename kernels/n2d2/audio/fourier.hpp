// Fourier transform of real values in 16 bits, and powers of 32 bits: n2d2py/arithmetic/power_spectrum.py and, for a source that adapts,
// micro_frontend.py have the formulas. Config: see input.hpp.
#ifndef N2D2_AUDIO_FOURIER_HPP
#define N2D2_AUDIO_FOURIER_HPP

#include "n2d2/audio/packed.hpp"

namespace n2d2 {

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

// r(32767 / parts) of a number before a stage, times 2^shift, where r(x) is (x + 2^14) >> 15.
template <int Parts>
N2D2_INLINE std::uint32_t audioScaled(std::uint32_t x, int shift = 0) {
    const std::uint32_t factor = 0x10001u * (2 * (32767 / Parts)), half = 0x8000u >> shift;
    return audioUpper<16>(audioRealSum(x, factor, half) << shift, audioImaginarySum(x, factor, half) << shift);
}

// Numbers before a stage and, but for the first of four, less the angle of `turn`: as TFLite Micro rounds them.
struct AudioRounded {
    enum : bool { Halves = false };
    static N2D2_INLINE std::uint32_t first(std::uint32_t x) { return audioScaled<4>(x); }
    static N2D2_INLINE std::uint32_t turned(std::uint32_t x, std::uint32_t turn) {
        x = audioScaled<4>(x);
        return audioUpper<15>(audioDot(x, turn, 1 << 14), audioCross(turn, x, 1 << 14) << 1);
    }
};

// The same, halved.
template <bool HalvesSums>
struct AudioHalved {
    enum : bool { Halves = HalvesSums };
    static N2D2_INLINE std::uint32_t first(std::uint32_t x) { return audioHalfSum(x, 0x10001u); }
    static N2D2_INLINE std::uint32_t turned(std::uint32_t x, std::uint32_t turn) {
        return audioUpper<16>(audioDot(x, turn, 1 << 15), audioCross(turn, x, 1 << 15));
    }
};

// Four numbers, Apart words from one to the next, in the order of a radix of 4 with bits reversed.
template <int Apart, bool Halves>
N2D2_INLINE void audioButterfly(std::uint32_t* to, std::uint32_t a, std::uint32_t c, std::uint32_t b, std::uint32_t d) {
    const std::uint32_t even = Halves ? audioHalfSum(a, c) : audioAdd(a, c), odd = Halves ? audioHalfSum(b, d) : audioAdd(b, d),
                        across = Halves ? audioHalfDifference(a, c) : audioSubtract(a, c),
                        apart = Halves ? audioHalfDifference(b, d) : audioSubtract(b, d);
    to[0] = audioAdd(even, odd);
    to[Apart] = audioSubtractTurned(across, apart);
    to[2 * Apart] = audioSubtract(even, odd);
    to[3 * Apart] = audioAddTurned(across, apart);
}

// Transforms of Count of all Size / 2 numbers each, from four smaller ones.
template <class Cfg, int Count, class Form>
N2D2_NOINLINE void audioStage(std::uint32_t* words) {
    const int part = Count / 4, step = Cfg::Size / Count;
    for (int j = 0; j < part; ++j) {
        const std::uint32_t first = Cfg::turn(j * step), second = Cfg::turn(2 * j * step), third = Cfg::turn(3 * j * step);
        std::uint32_t* at = words + j;
        for (int i = 0; i < step / 2; ++i, at += Count)
            audioButterfly<part, Form::Halves>(at, Form::first(at[0]), Form::turned(at[part], second),
                                               Form::turned(at[2 * part], first), Form::turned(at[3 * part], third));
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

template <class Cfg>
struct AudioTransforms<Cfg, 4> {
    template <class Frame>
    static void run(std::uint32_t* words, Frame& frame) {
        const int quarter = Cfg::Size / 8;
        typename Frame::Numbers numbers = frame.begin();
        for (int i = 0, place = 0; i < quarter; ++i, numbers.advance()) {
            const std::uint32_t a = numbers.template at<4>(0), c = numbers.template at<4>(2 * quarter),
                                b = numbers.template at<4>(quarter), d = numbers.template at<4>(3 * quarter);
            audioButterfly<1, false>(words + 4 * place, a, c, b, d);
            place = audioReversedNext<audioLog2(quarter)>(place);
        }
        frame.end(numbers);
    }
};

template <class Cfg>
struct AudioTransforms<Cfg, 2> {
    template <class Frame>
    static void run(std::uint32_t* words, Frame& frame) {
        const int half = Cfg::Size / 4;
        typename Frame::Numbers numbers = frame.begin();
        for (int i = 0, place = 0; i < half; ++i, numbers.advance()) {
            const std::uint32_t a = numbers.template at<2>(0), b = numbers.template at<2>(half);
            words[2 * place] = audioAdd(a, b);
            words[2 * place + 1] = audioSubtract(a, b);
            place = audioReversedNext<audioLog2(half)>(place);
        }
        frame.end(numbers);
    }
};

// Powers of the real transform, in the place of that of the pairs; that of bin 0 is left out.
template <class Cfg, bool Adapts>
struct AudioPowers {
    static void run(std::uint32_t* words) {
        const int half = Cfg::Size / 2;
        for (int k = 1; k <= half / 2; ++k) {
            const std::uint32_t a = words[k], b = words[half - k];
            const std::int32_t first = static_cast<std::int32_t>(audioDot(a, a, ~0u)),
                               second = static_cast<std::int32_t>(audioDot(b, b, ~0u)),
                               both = static_cast<std::int32_t>(audioSwapped(a, b, 0)), mean = (first + second) >> 1;
            const std::int32_t more =
                audioHighSum(second - first, Cfg::rotation(half / 2 - k), audioHighSum(2 * both, Cfg::rotation(k), 0));
            words[half - k] = positive(mean - more);
            words[k] = positive(mean + more);
        }
    }

private:
    static N2D2_INLINE std::uint32_t positive(std::int32_t x) { return static_cast<std::uint32_t>(x > 0 ? x : 0) | 1; }
};

template <class Cfg>
struct AudioPowers<Cfg, true> {
    static void run(std::uint32_t* words) {
        const int half = Cfg::Size / 2;
        for (int k = 1; k <= half / 2; ++k) {
            const std::uint32_t a = audioScaled<2>(words[k]), b = audioScaled<2>(words[half - k]);
            const std::uint32_t sums = audioAdd(a, b), differences = audioSubtract(a, b),
                                apart = audioPacked(differences, sums), turn = Cfg::turn(half + k);
            const std::uint32_t whole = audioPacked(sums, differences),
                                turned = audioUpper<15>(audioCross(apart, turn, 1 << 14), audioDot(apart, turn, 1 << 14) << 1);
            words[k] = power(audioHalfSum(whole, turned));
            const std::uint32_t less = audioHalfDifference(whole, turned), more = audioHalfDifference(turned, whole);
            words[half - k] = power(audioPacked(less, more));
        }
    }

private:
    static N2D2_INLINE std::uint32_t power(std::uint32_t x) { return audioDot(x, x, 0); }
};

}  // namespace n2d2

#endif  // N2D2_AUDIO_FOURIER_HPP
