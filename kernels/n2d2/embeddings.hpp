// Embeddings as unit vectors, and their cosines, in integers: n2d2py/arithmetic/embeddings.py has the definition.
//
// Config: type Value of the stored values; enum Size, References, Threshold; static function value() that returns a FixedScale or a
// RealScale, and references(), unit vectors one after the other, null without any.
#pragma once

#include "n2d2/fixed_scale.hpp"
#include "n2d2/square_root.hpp"

namespace n2d2 {

template <class Cfg>
class Embedder {
public:
    typedef typename Cfg::Value Value;

    // Write the unit vector of an output.
    static void run(const Value* stored, std::int16_t* vector) {
        std::int64_t peak = 0;
        for (std::int32_t i = 0; i < Cfg::Size; ++i) {
            const std::int64_t x = fixed(stored[i]), size = x < 0 ? -x : x;
            peak = size > peak ? size : peak;
        }
        std::int32_t bits = 0;
        for (; peak != 0; peak >>= 1)
            ++bits;
        std::uint64_t squares = 0;
        for (std::int32_t i = 0; i < Cfg::Size; ++i) {
            const std::int64_t x = scaled(stored[i], bits);
            squares += static_cast<std::uint64_t>(x * x);
        }
        const std::int64_t root = squares == 0 ? 1 : roundedRoot(squares);
        for (std::int32_t i = 0; i < Cfg::Size; ++i) {
            const std::int64_t x = divided(2 * Unit * scaled(stored[i], bits) + root, 2 * root), most = Unit;
            vector[i] = static_cast<std::int16_t>(x > most ? most : x < -most ? -most : x);
        }
    }

    // The cosine of two unit vectors in 1/65536.
    static std::int32_t cosine(const std::int16_t* first, const std::int16_t* second) {
        std::int64_t sum = 0;
        for (std::int32_t i = 0; i < Cfg::Size; ++i)
            sum += static_cast<std::int32_t>(first[i]) * second[i];
        return static_cast<std::int32_t>(divided(sum * 65536 + Unit * Unit / 2, Unit * Unit));
    }

    // The reference with the largest cosine, the first one of several; -1 if that is not above the threshold.
    static std::int32_t match(const std::int16_t* vector, std::int32_t& score) {
        std::int32_t best = -1;
        score = 0;
        for (std::int32_t i = 0; i < Cfg::References; ++i) {
            const std::int32_t found = cosine(Cfg::references() + static_cast<long>(i) * Cfg::Size, vector);
            if (best < 0 || found > score) {
                best = i;
                score = found;
            }
        }
        return score > Cfg::Threshold ? best : -1;
    }

private:
    enum : std::int32_t { Unit = 32767, Limit = 1 << 30 };

    static std::int64_t fixed(Value stored) { return Cfg::value().fixed(Cfg::value().value(stored), -Limit, Limit); }

    // A value with a largest magnitude of 20 bits.
    static std::int64_t scaled(Value stored, std::int32_t bits) {
        const std::int64_t x = fixed(stored);
        return bits > 20 ? x >> (bits - 20) : x * (1 << (20 - bits));
    }

    // A quotient that is rounded down.
    static std::int64_t divided(std::int64_t value, std::int64_t by) { return value / by - (value % by < 0); }
};

}  // namespace n2d2
