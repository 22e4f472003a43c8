// The matrix product of panels in floating point: float32, products added in the order of the inputs, fused where the
// target fuses them.
//
// Panels are [K][16]: one vector, or two or four, of the weights of an input serve all pixels of a tile. A window is the inputs
// in order. The last panel and the bias are filled up to 16 outputs.
#pragma once

#include "n2d2/panels/float_vector.hpp"

namespace n2d2 {
namespace floats {

template <int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
struct Tile {
    enum : int { PerPanel = 16 / Lanes, Vectors = PerPanel * (Panels - 1) + (LastOutputs + Lanes - 1) / Lanes };

    template <class Weight>
    static N2D2_INLINE Vector weights(const Weight* w, int vector, int input) {
        return load(w + static_cast<long>(vector / PerPanel) * 16 * Words + input * 16 + vector % PerPanel * Lanes);
    }

    // A function of its own, so that nothing else takes a register from the sums.
    template <long Pitch, class Weight, class At>
    static N2D2_NOINLINE void run(const std::uint8_t* x, const Weight* w, const float* bias, int output, const At& at) {
        Vector sums[Pixels][Vectors];
        N2D2_UNROLL_FOR(v, Vectors) {
            const Vector first = load(bias + output + Lanes * v);
            N2D2_UNROLL_FOR(p, Pixels)
                sums[p][v] = first;
        }
        const float* inputs = elementsOf<float>(x);
        for (int k = 0; k < Words; ++k, ++inputs) {
            Vector part[Vectors];
            N2D2_UNROLL_FOR(v, Vectors)
                part[v] = weights(w, v, k);
            N2D2_UNROLL_FOR(p, Pixels) {
                const Vector input = spread(inputs[p * Pitch / 4]);
                N2D2_UNROLL_FOR(v, Vectors)
                    sums[p][v] = add(sums[p][v], input, part[v]);
            }
        }
        N2D2_UNROLL_FOR(p, Pixels)
            Finish<Epilogue>::template run<16 * (Panels - 1) + LastOutputs>(sums[p], output, at(p) + output);
    }
};

struct Microkernel {
    template <class In, int Words>
    struct Windows {
        typedef Windows Raw;
        enum : bool { Plain = true };
        enum : int { Size = 4, Unit = 1, Bytes = 4 * Words };
        static N2D2_INLINE void arrange(const std::uint8_t*, std::uint8_t*) {}
        template <int Count>
        static N2D2_INLINE void copy(const float* from, std::uint8_t* to) {
            std::memcpy(to, from, 4 * Count);
        }
        template <int Count>
        static N2D2_INLINE void fill(int value, std::uint8_t* to) {
            float* const values = elementsOf<float>(to);
            for (int i = 0; i < Count; ++i)
                values[i] = static_cast<float>(value);
        }
    };

    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Tile : floats::Tile<Pixels, Panels, Words, LastOutputs, Epilogue> {};

    static N2D2_INLINE constexpr int tilePixels(int) { return TilePixels; }
    static N2D2_INLINE constexpr int tilePanels(int panels) { return least(panels, int(TilePanels)); }
    static N2D2_INLINE constexpr int singlePanels() { return SinglePanels; }
};

}  // namespace floats

}  // namespace n2d2
