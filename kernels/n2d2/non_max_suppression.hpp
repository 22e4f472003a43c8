// Boxes that do not overlap a better one of their class.
#pragma once

#include <cmath>

#include "n2d2/array.hpp"
#include "n2d2/functions.hpp"

namespace n2d2 {

// A box by its least and greatest corner. Centered: given as (x, y of the center, width, height), else as two corners (y, x, y, x).
template <class T>
struct Box {
    T top, left, bottom, right;

    template <bool Centered>
    static N2D2_INLINE Box of(const T* given) {
        const T halfWidth = given[2] / 2, halfHeight = given[3] / 2;
        return Centered ? ordered(given[1] - halfHeight, given[0] - halfWidth, given[1] + halfHeight, given[0] + halfWidth) :
                          ordered(given[0], given[1], given[2], given[3]);
    }

    static N2D2_INLINE Box ordered(T y, T x, T otherY, T otherX) {
        const Box box = {y < otherY ? y : otherY, x < otherX ? x : otherX, y < otherY ? otherY : y, x < otherX ? otherX : x};
        return box;
    }

    static N2D2_INLINE double area(T height, T width) {
        return rounded(static_cast<double>(height) * static_cast<double>(width));
    }

    // True if intersection / union is above the limit.
    N2D2_INLINE bool overlaps(const Box& other, double limit) const {
        const T height = (bottom < other.bottom ? bottom : other.bottom) - (top < other.top ? other.top : top);
        const T width = (right < other.right ? right : other.right) - (left < other.left ? other.left : left);
        if (!(height > 0 && width > 0))
            return limit < 0;
        const double shared = area(height, width);
        const double both =
            area(bottom - top, right - left) + area(other.bottom - other.top, other.right - other.left) - shared;
        return shared / both > limit;
    }
};

// Rows (image, class, box) of the boxes kept of boxes (Images, Boxes, 4) with scores (Images, Classes, Boxes) above `least`: at most
// Count of a class, the best first, of equal scores by position. Each is the next candidate behind the one before it: nothing is kept
// but the result, whose rows behind the last hold -1.
template <int Images, int Classes, int Boxes, int Count, bool Centered, class T>
N2D2_INLINE void nonMaxSuppression(const T* boxes, const T* scores, double limit, double least, std::int64_t* out) {
    std::int64_t* row = out;
    for (int image = 0; image < Images; ++image)
        for (int number = 0; number < Classes; ++number, scores += Boxes) {
            const T* const own = boxes + static_cast<long>(image) * Boxes * 4;
            const std::int64_t* const first = row;
            long last = -1;
            while (row - first < 3L * Count) {
                long best = -1;
                for (long at = 0; at < Boxes; ++at) {
                    const T x = scores[at];
                    const bool behind = last < 0 || x < scores[last] || (x == scores[last] && at > last);
                    if (static_cast<double>(x) > least && behind && (best < 0 || x > scores[best]))
                        best = at;
                }
                if (best < 0)
                    break;
                last = best;
                const Box<T> box = Box<T>::template of<Centered>(own + best * 4);
                bool free = true;
                for (const std::int64_t* kept = first; kept < row && free; kept += 3)
                    free = !box.overlaps(Box<T>::template of<Centered>(own + kept[2] * 4), limit);
                if (!free)
                    continue;
                row[0] = image;
                row[1] = number;
                row[2] = best;
                row += 3;
            }
        }
    for (; row < out + 3L * Images * Classes * Count; ++row)
        *row = -1;
}

}  // namespace n2d2
