// Fully connected layers with packed weights of 4 bits, with AVX2: the weights are multiplied as they come out of their bytes.
//
// A word of a panel, [16 outputs][4 inputs], has the weights 0 and 2 of each output in the low halves of its 32 bytes, and 1 and 3 in the
// high ones. A table in a register gives their values; vpmaddubsw multiplies them with the inputs 0 and 2, and 1 and 3, of the
// window, which lie apart. Sums of 16 bits, one for each output, are kept over NibbleSums words, for which the exporter has proved that they fit.
#ifndef N2D2_X86_AVX2_NIBBLE_TILE_HPP
#define N2D2_X86_AVX2_NIBBLE_TILE_HPP

#include "n2d2/packed.hpp"
#include "n2d2/x86/avx2_tile.hpp"

namespace n2d2 {
namespace avx2 {

// A word of the inputs 0 to 3 as 0, 2, 0, 2, 1, 3, 1, 3; signed ones + 128.
template <class In, int Words>
struct NibbleWindow {
    typedef bytes::ByteWindow<In, Words, Vec> Raw;
    enum : bool { Plain = false };
    enum : int { Size = 2, Unit = 4, Bytes = 8 * Words };

    static N2D2_INLINE void put(__m128i x, std::uint8_t* to) {
        const __m128i order = _mm_setr_epi8(0, 2, 0, 2, 1, 3, 1, 3, 4, 6, 4, 6, 5, 7, 5, 7);
        store128(to, _mm_shuffle_epi8(x, order));
    }
    template <class T, int Count>
    static N2D2_INLINE void copyAs(const T* from, std::uint8_t* to) {
        constexpr int rest = Count % 8;
        for (int i = 0; i + 8 <= Count; i += 8)
            put(bytes::flipped<T>(loadBytes<8>(from + i)), to + 2 * i);
        if (rest != 0)
            put(bytes::flipped<T>(loadBytes<(rest != 0 ? rest : 1)>(from + Count - rest)), to + 2 * (Count - rest));
    }
    template <int Count>
    static N2D2_INLINE void copy(const In* from, std::uint8_t* to) {
        copyAs<In, Count>(from, to);
    }
    static N2D2_INLINE void arrange(const std::uint8_t* raw, std::uint8_t* to) { copyAs<std::uint8_t, 4 * Words>(raw, to); }
};

// One pixel of Panels panels; Run: the words that sums of 16 bits hold.
template <class Packing, int Run, class In, int Panels, int Words, int LastOutputs, class Epilogue>
struct NibbleTile : Tile<In, 1, Panels, Words, LastOutputs, Epilogue> {
    typedef Tile<In, 1, Panels, Words, LastOutputs, Epilogue> Base;
    enum : int { Vectors = Base::Vectors };

    // The bytes of a word of a panel.
    static N2D2_INLINE __m256i stored(const std::uint8_t* w, int panel, int word) {
        const std::uint8_t* const from = w + panel * 32L * Words;
        return panel == Panels - 1 ? Vec::loadSome<2 * LastOutputs>(from + word * 2 * LastOutputs) :
                                     Vec::load(from + 32 * word);
    }

    // The value of each number of 4 bits.
    static N2D2_INLINE __m256i values() {
        std::int8_t all[16];
        for (int i = 0; i < 16; ++i)
            all[i] = static_cast<std::int8_t>(Packing::weight(static_cast<std::uint8_t>(i), 0));
        return _mm256_broadcastsi128_si256(loadBytes<16>(all));
    }

    static N2D2_INLINE void word(const std::uint8_t* x, const std::uint8_t* w, int q, __m256i table,
                                 __m256i (&places)[Panels]) {
        const __m256i even = Vec::word(x + 8 * q), odd = Vec::word(x + 8 * q + 4), low = _mm256_set1_epi8(15);
        N2D2_UNROLL
        for (int n = 0; n < Panels; ++n) {
            const __m256i both = stored(w, n, q);
            const __m256i a = _mm256_shuffle_epi8(table, _mm256_and_si256(both, low));
            const __m256i b = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(both, 4), low));
            places[n] = _mm256_add_epi16(places[n], _mm256_maddubs_epi16(even, a));
            places[n] = _mm256_add_epi16(places[n], _mm256_maddubs_epi16(odd, b));
        }
    }

    template <class At>
    static N2D2_NOINLINE void run(const std::uint8_t* x, const std::uint8_t* w, const std::int32_t* bias, int output,
                                  const At at) {
        __m256i sums[1][Vectors];
        Base::start(bias + output, sums);
        const __m256i table = values();
        for (int q = 0; q < Words; q += Run) {
            __m256i places[Panels];
            N2D2_UNROLL
            for (int n = 0; n < Panels; ++n)
                places[n] = _mm256_setzero_si256();
            const int end = least(q + Run, int(Words));
            for (int i = q; i < end; ++i)
                word(x, w, i, table, places);
            N2D2_UNROLL
            for (int v = 0; v < Vectors; ++v) {
                const __m256i place = places[v / 2];
                const __m128i half = v % 2 == 0 ? _mm256_castsi256_si128(place) : _mm256_extracti128_si256(place, 1);
                sums[0][v] = _mm256_add_epi32(sums[0][v], _mm256_cvtepi16_epi32(half));
            }
        }
        Base::store(sums, output, at);
    }
};

template <int Run>
struct NibbleMicrokernel : BytesMicrokernel {
    enum : int { NibbleSums = Run };
    template <class In, int Words>
    struct Windows : NibbleWindow<In, Words> {};
    template <class Packing, class In, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Single : NibbleTile<Packing, Run, In, Panels, Words, LastOutputs, Epilogue> {};
    static N2D2_INLINE constexpr int singlePanels() { return 4; }
};

// By the constant NibbleSums of a layer.
template <class Cfg, class Found = void>
struct SingleMicrokernel {
    typedef ByteMicrokernel<BytesMicrokernel, Cfg::ByteSums> Type;
};
template <class Cfg>
struct SingleMicrokernel<Cfg, typename Exists<Cfg::NibbleSums>::Type> {
    typedef NibbleMicrokernel<Cfg::NibbleSums> Type;
};

}  // namespace avx2
}  // namespace n2d2

#endif  // N2D2_X86_AVX2_NIBBLE_TILE_HPP
