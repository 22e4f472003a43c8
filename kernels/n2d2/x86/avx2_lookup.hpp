// Tables of 256 bytes with AVX2: 64 inputs at a time.
//
// The table lies in 16 vectors of 16 entries. A byte's low four bits choose an entry of each (vpshufb); its high bits then choose among
// these 16 results, pairs first: vpblendvb reads the highest bit of a byte, where a shift puts the bit that counts.
//
// Lines that are no runs, and what is left of a line, go through the portable form.
#ifndef N2D2_X86_AVX2_LOOKUP_HPP
#define N2D2_X86_AVX2_LOOKUP_HPP

#include "n2d2/x86/intrinsics.hpp"

namespace n2d2 {
namespace avx2 {

struct ByteTable {
    __m256i rows[16];

    N2D2_INLINE explicit ByteTable(const void* table) {
        for (int i = 0; i < 16; ++i)
            rows[i] = _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(table) + i));
    }

    // Entries of the 16 rows from First on, Count of them; bits: the index shifted so that bit 3 + log2(Count) of a byte is the highest.
    template <int First, int Count, class Any = void>
    struct Choice {
        static N2D2_INLINE __m256i of(const __m256i* rows, __m256i low, const __m256i* bits) {
            return _mm256_blendv_epi8(Choice<First, Count / 2>::of(rows, low, bits + 1),
                                      Choice<First + Count / 2, Count / 2>::of(rows, low, bits + 1), bits[0]);
        }
    };
    template <int First, class Any>
    struct Choice<First, 1, Any> {
        static N2D2_INLINE __m256i of(const __m256i* rows, __m256i low, const __m256i*) {
            return _mm256_shuffle_epi8(rows[First], low);
        }
    };

    // index: the place in the table.
    N2D2_INLINE __m256i at(__m256i index) const {
        const __m256i low = _mm256_and_si256(index, _mm256_set1_epi8(15));
        const __m256i bits[4] = {index, _mm256_slli_epi16(index, 1), _mm256_slli_epi16(index, 2), _mm256_slli_epi16(index, 3)};
        return Choice<0, 16>::of(rows, low, bits);
    }
};

template <class Cfg>
struct Lookup {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    typedef typename Output::Type Out;
    typedef typename Input::Type In;
    static_assert(sizeof(In) == 1 && sizeof(Out) == 1, "bytes to bytes");
    enum : int {
        Length = static_cast<int>(Output::Width) * static_cast<int>(Output::Channels),
        Whole = Length / 32 * 32,
        Runs = PlaneTraits<Input>::Packed != 0 && PlaneTraits<Output>::Packed != 0 && Length >= 64
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Out* table,
                                const Rows& rows = Rows::all<Output>()) {
        Form<(Runs != 0)>::run(in, out, table, rows);
    }

    template <bool, class Any = void>
    struct Form {
        static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Out* table, const Rows& rows) {
            n2d2::Lookup<Cfg, Portable>::run(in, out, table, rows);
        }
    };
    template <class Any>
    struct Form<true, Any> {
        static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Out* table, const Rows& rows) {
            constexpr bool reverse = Cfg::Reverse != 0;
            constexpr long work = Length / 4;
            LayerTasks<Cfg, 1, work>::run(rows, [=](int y, int) N2D2_INLINE_LAMBDA {
                const ByteTable entries(table);
                const In* const from = line<Input>(in, y);
                Out* const to = line<Output>(out, y);
                if (reverse)
                    rest(from, to, table, true);
                for (int i = 0; i < Whole; i += 32)
                    vector(entries, from, to, reverse ? Whole - 32 - i : i);
                if (!reverse)
                    rest(from, to, table, false);
            });
        }
    };

    static N2D2_INLINE void vector(const ByteTable& entries, const In* from, Out* to, int i) {
        __m256i index = load256(from + i);
        if (std::numeric_limits<In>::is_signed)
            index = _mm256_xor_si256(index, _mm256_set1_epi8(static_cast<char>(0x80)));
        store256(to + i, entries.at(index));
    }

    static N2D2_INLINE void rest(const In* from, Out* to, const Out* table, bool backwards) {
        constexpr int first = std::numeric_limits<In>::min(), length = Length, whole = Whole;
        for (int i = whole; i < length; ++i) {
            const int at = backwards ? length - 1 - (i - whole) : i;
            to[at] = table[static_cast<int>(from[at]) - first];
        }
    }
};

}  // namespace avx2
}  // namespace n2d2

#endif  // N2D2_X86_AVX2_LOOKUP_HPP
