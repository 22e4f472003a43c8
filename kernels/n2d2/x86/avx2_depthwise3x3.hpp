// Depthwise convolution 3 x 3 with AVX2, up to 16 channels of a line, strides 1 and 2: each column is read once and added to the
// outputs that it reaches.
//
// vpmaddwd multiplies two taps: lines 0 and 1 of a column, or line 2 of a column and of the next one. Nine taps take five
// products in place of the six of whole columns, and no column goes through memory: a sum stays in its register from
// the first column of its window to the third. More than eight channels are two vectors, 0 to 3 and 8 to 11, 4 to 7 and
// 12 to 15, as unpacking leaves them; up to eight are one.
#ifndef N2D2_X86_AVX2_DEPTHWISE3X3_HPP
#define N2D2_X86_AVX2_DEPTHWISE3X3_HPP

#include <new>

#include "n2d2/scratch.hpp"
#include "n2d2/x86/avx2.hpp"
#include "n2d2/x86/pair_depthwise.hpp"

namespace n2d2 {
namespace avx2 {

// Channels of a pixel, and two such interleaved to pairs of 16-bit integers.
template <class In, int Count, bool Two = (Count > 8)>
struct ChannelPairs {
    enum : int { Vectors = 2 };
    typedef __m256i Half;
    static N2D2_INLINE Half load(const In* from) { return _mm256_cvtepu8_epi16(flipped<In>(loadBytes<Count>(from))); }
    static N2D2_INLINE Half all(int value) { return _mm256_set1_epi16(multiplied<In>(value)); }
    static N2D2_INLINE void pairs(Half a, Half b, __m256i (&to)[2]) {
        to[0] = _mm256_unpacklo_epi16(a, b);
        to[1] = _mm256_unpackhi_epi16(a, b);
    }
};
template <class In, int Count>
struct ChannelPairs<In, Count, false> {
    enum : int { Vectors = 1 };
    typedef __m128i Half;
    static N2D2_INLINE Half load(const In* from) { return flipped<In>(loadBytes<Count>(from)); }
    static N2D2_INLINE Half all(int value) { return _mm_set1_epi8(static_cast<char>(multiplied<In>(value))); }
    static N2D2_INLINE void pairs(Half a, Half b, __m256i (&to)[1]) { to[0] = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)); }
};

// Kernel: PairDepthwise, which knows where the constants of a vector are; Count: channels of the panel.
template <class Cfg, class Kernel, int Count>
struct Depthwise3x3 {
    typedef typename Cfg::Output Output;
    typedef typename Cfg::Input::Type In;
    typedef typename Output::Type Out;
    typedef typename Kernel::Lines Lines;
    typedef ChannelPairs<In, Count> Form;
    typedef typename Form::Half Half;
    enum : int { Vectors = Form::Vectors, W = Kernel::W, OW = Kernel::OW, Left = Cfg::PadLeft };
    enum : bool { Bytes = sizeof(Out) == 1 };
    enum : int { Step = Vectors == 2 ? 2 : 1 };  // fours of channels from the first to the second of a vector
    typedef typename Kernel::template Part<Count, 0, Step> First;
    typedef typename Kernel::template Part<Count, 1, Step> Second;  // with two vectors

    struct Sums {
        __m256i of[Vectors];
        N2D2_INLINE void add(const __m256i (&pairs)[Vectors], const Sums& taps) {
            N2D2_UNROLL
            for (int v = 0; v < Vectors; ++v) {
                of[v] = _mm256_add_epi32(of[v], _mm256_madd_epi16(pairs[v], taps.of[v]));
                __asm__("" : "+x"(of[v]));  // GCC would add products of later columns first, sums on the stack
            }
        }
    };

    // The constants of a panel.
    struct Constants {
        Sums upper[3];  // the weights of lines 0 and 1 of a column
        Sums left;      // of line 2 of columns 0 and 1
        Sums right;     // of line 2 of column 2, and zero
        Sums bias;

        N2D2_INLINE void load(int panel, const std::int8_t* w, const std::int32_t* b) {
            N2D2_UNROLL
            for (int v = 0; v < Vectors; ++v) {
                __m256i fours[3];  // four lines of a column to a channel
                for (int t = 0; t < 3; ++t) {
                    fours[t] = Kernel::template weights<Count, Step>(w, panel, t, v);
                    upper[t].of[v] = words<0, 1>(fours[t]);
                }
                left.of[v] = _mm256_or_si256(words<2, -1>(fours[0]), words<-1, 2>(fours[1]));
                right.of[v] = words<2, -1>(fours[2]);
                bias.of[v] = v == 0 ? First::bias(b, panel) : Second::bias(b, panel);
            }
        }
    };

    const Constants constants;
    const Lines lines;
    const int channel;
    Out* const out;
    const typename First::Rescale epilogue0;
    const typename Second::Rescale epilogue1;

    N2D2_INLINE Depthwise3x3(const Constants& all, const Lines& window, int panel, Out* to)
        : constants(all),
          lines(window),
          channel(16 * panel),
          out(to + 16 * panel),
          epilogue0(First::epilogue(panel)),
          epilogue1(Second::epilogue(panel)) {}

    // Bytes Low and High of each four as 16-bit integers, -1: zero.
    template <int Low, int High>
    static N2D2_INLINE __m256i words(__m256i fours) {
        constexpr char none = static_cast<char>(0x80);
        constexpr char a = Low < 0 ? none : Low, b = High < 0 ? none : High, step = 4;
        constexpr char da = Low < 0 ? 0 : step, db = High < 0 ? 0 : step;
        const __m128i order = _mm_setr_epi8(none, a, none, b, none, a + da, none, b + db, none, a + 2 * da, none, b + 2 * db,
                                            none, a + 3 * da, none, b + 3 * db);
        return _mm256_srai_epi16(_mm256_shuffle_epi8(fours, _mm256_broadcastsi128_si256(order)), 8);
    }

    // Line u of column x; with Edge it may lie outside.
    template <bool Edge>
    N2D2_INLINE Half at(int u, int x) const {
        if (Edge && (x < 0 || x >= W))
            return Form::all(Cfg::InputZero);
        return Form::load(lines.pixel(u, x, channel));
    }
    template <bool Edge>
    N2D2_INLINE void upperPairs(int x, __m256i (&to)[Vectors]) const {
        Form::pairs(at<Edge>(0, x), at<Edge>(1, x), to);
    }

    N2D2_INLINE void finish(const Sums& sums, Out* to) const { store(sums.of, to); }
    N2D2_INLINE void store(const __m256i (&sums)[2], Out* to) const {
        Vec::storeTwo<typename Cfg::Epilogue, Count>(epilogue0.template apply<Bytes>(sums[0]),
                                                     epilogue1.template apply<Bytes>(sums[1]), to);
    }
    N2D2_INLINE void store(const __m256i (&sums)[1], Out* to) const {
        Vec::storeOne<typename Cfg::Epilogue, Count>(epilogue0.template apply<Bytes>(sums[0]), to);
    }

    // Stride 1. Column x is the third of `first`, the second of `second` and the first of `third`; below: its line 2.
    template <bool Edge>
    N2D2_INLINE void column(int x, Half& below, Sums& first, Sums& second, Sums& third) const {
        __m256i pairs[Vectors];
        upperPairs<Edge>(x, pairs);
        third = constants.bias;
        first.add(pairs, constants.upper[2]);
        second.add(pairs, constants.upper[1]);
        third.add(pairs, constants.upper[0]);
        const Half next = at<Edge>(2, x + 1);
        Form::pairs(below, next, pairs);
        below = next;
        first.add(pairs, constants.right);
        third.add(pairs, constants.left);
    }
    template <bool Edge>
    N2D2_INLINE void output(int x, Half& below, Sums& first, Sums& second, Sums& third) const {
        column<Edge>(x + 2 - Left, below, first, second, third);
        finish(first, out + static_cast<long>(x) * Output::Stride);
    }
    template <bool Edge>
    N2D2_INLINE void outputs(int begin, int end, Half& below, Sums& first, Sums& second) const {
        Sums third;
        for (; begin + 3 <= end; begin += 3) {
            output<Edge>(begin, below, first, second, third);
            output<Edge>(begin + 1, below, second, third, first);
            output<Edge>(begin + 2, below, third, first, second);
        }
        for (; begin < end; ++begin) {
            output<Edge>(begin, below, first, second, third);
            first = second;
            second = third;
        }
    }
    N2D2_INLINE void strideOne() const {
        Half below = at<true>(2, -Left);
        Sums first = constants.bias, second = first, third = first;
        column<true>(-Left, below, first, second, third);
        column<true>(1 - Left, below, second, third, first);
        // Columns of outputs [inside, stop) and the next ones are within the line.
        constexpr int inside = least(int(OW), largest(0, Left - 2)), stop = largest(inside, least(int(OW), W - 3 + Left));
        outputs<true>(0, inside, below, third, first);
        outputs<false>(inside, stop, below, third, first);
        outputs<true>(stop, OW, below, third, first);
    }

    // Stride 2. Column x is the third of `sums`, and the first of those that it begins.
    template <bool Edge>
    N2D2_INLINE void twoColumns(int x, Sums& ending, Sums& sums) const {
        __m256i pairs[Vectors];
        upperPairs<Edge>(x, pairs);
        sums = constants.bias;
        ending.add(pairs, constants.upper[2]);
        sums.add(pairs, constants.upper[0]);
        Form::pairs(at<Edge>(2, x), at<Edge>(2, x + 1), pairs);
        ending.add(pairs, constants.right);
        sums.add(pairs, constants.left);
        upperPairs<Edge>(x + 1, pairs);
        sums.add(pairs, constants.upper[1]);
    }
    template <bool Edge>
    N2D2_INLINE void outputsOfTwo(int begin, int end, Sums& ending) const {
        for (; begin < end; ++begin) {
            Sums sums;
            twoColumns<Edge>(2 * begin + 2 - Left, ending, sums);
            finish(ending, out + static_cast<long>(begin) * Output::Stride);
            ending = sums;
        }
    }
    N2D2_INLINE void strideTwo() const {
        Sums ending = constants.bias, sums;
        twoColumns<true>(-Left, ending, sums);
        constexpr int inside = least(int(OW), largest(0, (Left - 1) / 2)),
                      stop = largest(inside, least(int(OW), (W - 2 + Left) / 2));
        outputsOfTwo<true>(0, inside, sums);
        outputsOfTwo<false>(inside, stop, sums);
        outputsOfTwo<true>(stop, OW, sums);
    }

    // The channels of a panel of one line of outputs.
    static N2D2_INLINE void run(const Constants& all, const Lines& window, int panel, Out* to) {
        const Depthwise3x3 line(all, window, panel, to);
        if (Cfg::StrideWidth == 1)
            line.strideOne();
        else
            line.strideTwo();
    }
};

// The constants of a panel serve all lines of a band. Where lines have an order, those of as many panels as scratch (n2d2/scratch.hpp)
// has room for are made first, 384 bytes for each 16 channels, and those of others for each line.
template <class Cfg, class Kernel>
struct Panels3x3 {
    typedef typename Cfg::Output Output;
    typedef Depthwise3x3<Cfg, Kernel, 16> Whole;
    typedef Depthwise3x3<Cfg, Kernel, Kernel::LastChannels> Last;
    enum : int { Panels = Kernel::Panels };
};
template <class Cfg, class Kernel, bool Ordered>
struct Lines3x3 : Panels3x3<Cfg, Kernel> {
    typedef Panels3x3<Cfg, Kernel> Base;
    typedef typename Base::Output Output;
    typedef typename Base::Whole Whole;
    typedef typename Base::Last Last;
    typedef typename Whole::Constants Constants;
    enum : int {
        Panels = Base::Panels,
        Kept = ScratchOf<Cfg>::Base == 0 ? Panels - 1 : least(Panels - 1, ScratchOf<Cfg>::Bytes / int(sizeof(Constants)))
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const std::int8_t* w, const std::int32_t* bias,
                                const Rows& rows) {
        Scratch<Cfg, largest(1, int(Kept)) * int(sizeof(Constants))>::run(
            in, out, 0, [=](std::uint8_t* scratch) N2D2_INLINE_LAMBDA { lines(in, out, w, bias, rows, scratch); });
    }
    static N2D2_INLINE void lines(const unsigned char* in, unsigned char* out, const std::int8_t* w, const std::int32_t* bias,
                                  const Rows& rows, std::uint8_t* scratch) {
        for (int panel = 0; panel < Kept; ++panel)
            (new (scratch + panel * static_cast<int>(sizeof(Constants))) Constants)->load(panel, w, bias);
        typename Last::Constants last;
        last.load(Panels - 1, w, bias);
        const Constants* const whole = elementsOf<Constants>(scratch);
        const typename Last::Constants* const rest = &last;
        const typename Kernel::Padding padding;
        Tasks<true, Output::Height, Panels, Kernel::lineWork(), Cfg::Reverse != 0, WindowOrder<Cfg> >::run(
            rows, [=](int y, int panel) N2D2_INLINE_LAMBDA {
                if (panel + 1 < Panels) {
                    Constants made;
                    const bool known = Kept + 1 >= Panels || panel < Kept;
                    if (!known)
                        made.load(panel, w, bias);
                    Whole::run(known ? whole[panel] : made, Kernel::window(in, y, padding), panel, line<Output>(out, y));
                } else {
                    Last::run(*rest, Kernel::window(in, y, padding), panel, line<Output>(out, y));
                }
            });
    }
};
template <class Cfg, class Kernel>
struct Lines3x3<Cfg, Kernel, false> : Panels3x3<Cfg, Kernel> {
    typedef Panels3x3<Cfg, Kernel> Base;
    typedef typename Base::Output Output;
    enum : int {
        Panels = Base::Panels,
        Height = Output::Height,
        Band = largest(1, least(int(Height), 256 / Kernel::W - 2)),  // whose inputs, 64 bytes a pixel, stay in the L1 cache
        Bands = (Height + Band - 1) / Band
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const std::int8_t* w, const std::int32_t* bias,
                                const Rows&) {
        const typename Kernel::Padding padding;
        Tasks<false, Bands, Panels, Kernel::lineWork() * Band>::run([=](int index, int panel) N2D2_INLINE_LAMBDA {
            const int begin = index * Band, end = least(int(Height), begin + Band);
            if (panel + 1 < Panels)
                band<typename Base::Whole>(in, begin, end, panel, out, w, bias, padding);
            else
                band<typename Base::Last>(in, begin, end, panel, out, w, bias, padding);
        });
    }
    // A function of its own: the constants of both kinds of panels are not in one frame.
    template <class Part>
    static N2D2_NOINLINE void band(const unsigned char* in, int begin, int end, int panel, unsigned char* out,
                                   const std::int8_t* w, const std::int32_t* bias, const typename Kernel::Padding& padding) {
        typename Part::Constants constants;
        constants.load(panel, w, bias);
        for (; begin < end; ++begin)
            Part::run(constants, Kernel::window(in, begin, padding), panel, line<Output>(out, begin));
    }
};

// Windows of 3 x 3 column by column, others by pairs of lines.
template <class Cfg,
          bool Three = (Cfg::KernelHeight == 3 && Cfg::KernelWidth == 3 && Cfg::DilationWidth == 1 && Cfg::StrideWidth <= 2)>
struct Depthwise : PairDepthwise<Cfg, Vec> {};

template <class Cfg>
struct Depthwise<Cfg, true> {
    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const std::int8_t* w, const std::int32_t* bias,
                                const Rows& rows = Rows::all<typename Cfg::Output>()) {
        Lines3x3<Cfg, PairDepthwise<Cfg, Vec>, (Cfg::Serial || Cfg::Streamed)>::run(in, out, w, bias, rows);
    }
};

}  // namespace avx2
}  // namespace n2d2

#endif  // N2D2_X86_AVX2_DEPTHWISE3X3_HPP
