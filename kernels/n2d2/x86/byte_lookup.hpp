// Tables of 256 bytes in registers.
//
// With shuffles the table lies in 16 vectors of 16 entries. A byte's low four bits choose an entry of each (vpshufb); its high bits then
// choose among these 16 results, pairs first: a blend reads the highest bit of a byte, where a shift puts the bit that counts. With VBMI it
// lies in four vectors, and vpermi2b reads two of them.
//
// Lines that are no runs, and what is left of a line, go through the portable form.
#pragma once

#include "n2d2/x86/intrinsics.hpp"

namespace n2d2 {

struct Bytes256 {
    typedef __m256i Vector;
    static N2D2_INLINE Vector load(const void* from) { return load256(from); }
    static N2D2_INLINE void store(void* to, Vector x) { store256(to, x); }
    static N2D2_INLINE Vector spread(char x) { return _mm256_set1_epi8(x); }
    static N2D2_INLINE Vector row(__m128i entries) { return _mm256_broadcastsi128_si256(entries); }
    static N2D2_INLINE Vector shifted(Vector x, int count) { return _mm256_slli_epi16(x, count); }
    static N2D2_INLINE Vector entry(Vector row, Vector low) { return _mm256_shuffle_epi8(row, low); }
    static N2D2_INLINE Vector blend(Vector a, Vector b, Vector bits) { return _mm256_blendv_epi8(a, b, bits); }
};
#if N2D2_AVX512VNNI
struct Bytes512 {
    typedef __m512i Vector;
    static N2D2_INLINE Vector load(const void* from) { return _mm512_loadu_si512(from); }
    static N2D2_INLINE void store(void* to, Vector x) { _mm512_storeu_si512(to, x); }
    static N2D2_INLINE Vector spread(char x) { return _mm512_set1_epi8(x); }
    static N2D2_INLINE Vector row(__m128i entries) { return _mm512_broadcast_i32x4(entries); }
    static N2D2_INLINE Vector shifted(Vector x, int count) { return _mm512_slli_epi16(x, static_cast<unsigned>(count)); }
    static N2D2_INLINE Vector entry(Vector row, Vector low) { return _mm512_shuffle_epi8(row, low); }
    static N2D2_INLINE Vector blend(Vector a, Vector b, Vector bits) {
        return _mm512_mask_blend_epi8(_mm512_movepi8_mask(bits), a, b);
    }
};
#endif

template <class Set>
struct ShuffledTable {
    typedef Set Bytes;
    typedef typename Set::Vector Vector;
    Vector rows[16];

    N2D2_INLINE explicit ShuffledTable(const void* table) {
        for (int i = 0; i < 16; ++i)
            rows[i] = Set::row(load128(static_cast<const __m128i*>(table) + i));
    }

    // Entries of the 16 rows from First on, Count of them; bits: the index shifted so that bit 3 + log2(Count) of a byte is the highest.
    template <int First, int Count, class Any = void>
    struct Choice {
        static N2D2_INLINE Vector of(const Vector* rows, Vector low, const Vector* bits) {
            return Set::blend(Choice<First, Count / 2>::of(rows, low, bits + 1),
                              Choice<First + Count / 2, Count / 2>::of(rows, low, bits + 1), bits[0]);
        }
    };
    template <int First, class Any>
    struct Choice<First, 1, Any> {
        static N2D2_INLINE Vector of(const Vector* rows, Vector low, const Vector*) { return Set::entry(rows[First], low); }
    };

    // index: the place in the table.
    N2D2_INLINE Vector at(Vector index) const {
        const Vector bits[4] = {index, Set::shifted(index, 1), Set::shifted(index, 2), Set::shifted(index, 3)};
        return Choice<0, 16>::of(rows, index & Set::spread(15), bits);
    }
};

#if N2D2_AVX512VNNI && defined(__AVX512VBMI__)
struct PermutedTable {
    typedef Bytes512 Bytes;
    typedef __m512i Vector;
    Vector rows[4];

    N2D2_INLINE explicit PermutedTable(const void* table) {
        for (int i = 0; i < 4; ++i)
            rows[i] = Bytes::load(static_cast<const unsigned char*>(table) + 64 * i);
    }
    N2D2_INLINE Vector at(Vector index) const {
        return Bytes::blend(_mm512_permutex2var_epi8(rows[0], index, rows[1]),
                            _mm512_permutex2var_epi8(rows[2], index, rows[3]), index);
    }
};
typedef PermutedTable Table512;
#elif N2D2_AVX512VNNI
typedef ShuffledTable<Bytes512> Table512;
#endif

// Lines that are runs of bytes, at least two vectors.
template <class Cfg, class Table>
struct LookupOfRuns {
    N2D2_PLANES(Cfg);
    static_assert(sizeof(In) == 1 && sizeof(Out) == 1, "bytes to bytes");
    enum : int {
        Length = int(Output::Width) * int(Output::Channels),
        Size = static_cast<int>(sizeof(typename Table::Vector)),
        Whole = Length / Size * Size
    };
    enum : bool { Fits = PlaneTraits<Input>::Packed != 0 && PlaneTraits<Output>::Packed != 0 && Length >= 2 * Size };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Out* table,
                                const Rows& rows = Rows::all<Output>()) {
        constexpr bool reverse = Cfg::Reverse != 0;
        LayerTasks<Cfg, 1, Length / 4>::run(rows, [=](int y, int) N2D2_INLINE_LAMBDA {
            const Table entries(table);
            const In* const from = line<Input>(in, y);
            Out* const to = line<Output>(out, y);
            if (reverse)
                rest(from, to, table, true);
            for (int i = 0; i < Whole; i += Size)
                vector(entries, from, to, reverse ? Whole - Size - i : i);
            if (!reverse)
                rest(from, to, table, false);
        });
    }

    static N2D2_INLINE void vector(const Table& entries, const In* from, Out* to, int i) {
        const typename Table::Vector index = Table::Bytes::load(from + i), sign = Table::Bytes::spread(static_cast<char>(0x80));
        Table::Bytes::store(to + i, entries.at(std::numeric_limits<In>::is_signed ? index ^ sign : index));
    }

    static N2D2_INLINE void rest(const In* from, Out* to, const Out* table, bool backwards) {
        constexpr int first = std::numeric_limits<In>::min(), length = Length, whole = Whole;
        for (int i = whole; i < length; ++i) {
            const int at = backwards ? length - 1 - (i - whole) : i;
            to[at] = table[static_cast<int>(from[at]) - first];
        }
    }
};

template <class Cfg, class Table>
struct ByteLookup : Choice<LookupOfRuns<Cfg, Table>::Fits, LookupOfRuns<Cfg, Table>, Lookup<Cfg, Portable> >::Type {};

}  // namespace n2d2
