// The pixels of a layer in the order of their lines, some at a time, the last of a line with the first of the next.
#pragma once

#include "n2d2/mcu/lane_shape.hpp"

namespace n2d2 {
namespace lanes {

// One pixel: its output, the lines of its window (null outside the input), and the first column of it.
struct Place {
    unsigned char* out;
    const unsigned char* const* lines;
    std::int32_t left;
};

template <int Pixels>
struct PixelWalk {
    const Shape& s;
    const unsigned char* in;
    unsigned char* out;
    const unsigned char** buffer;  // of lines: Pixels * kernelHeight
    const unsigned char** lines;
    Place place;
    int count;  // pixels that are left; x: those of the line
    int x, y;

    N2D2_INLINE PixelWalk(const Shape& shape, const unsigned char* from, unsigned char* to, const unsigned char** room,
                          int begin, int end)
        : s(shape),
          in(from),
          out(to),
          buffer(room),
          lines(room),
          place(),
          count((end - begin) * shape.out.width),
          x(0),
          y(shape.reverse ? shape.out.height - begin : begin - 1) {}

    // The next ones, at the end the last one again for those that are missing; false when none is left.
    N2D2_INLINE bool next(Place* places) {
        const int step = s.reverse ? -1 : 1, first = s.reverse ? s.out.width - 1 : 0;
        if (count <= 0)
            return false;
        if (x >= Pixels) {
            const int next = step * s.out.stride, move = step * s.strideWidth;
            unsigned char* to = place.out;
            std::int32_t left = place.left;
            N2D2_UNROLL
            for (int j = 0; j < Pixels; ++j, to += next, left += move) {
                places[j].out = to;
                places[j].lines = place.lines;
                places[j].left = left;
            }
            place.out = to;
            place.left = left;
            x -= Pixels;
            count -= Pixels;
            return true;
        }
        for (int j = 0; j < Pixels; ++j) {
            if (j >= count) {
                places[j] = places[j - 1];
                continue;
            }
            if (x == 0) {
                x = s.out.width;
                y += step;
                lines = lines == buffer ? buffer + (Pixels - 1) * s.kernelHeight : lines - s.kernelHeight;
                int from = y * s.strideHeight - s.padTop;
                for (int u = 0; u < s.kernelHeight; ++u, from += s.dilationHeight)
                    lines[u] = from < 0 || from >= s.in.height ? nullptr : in + s.in.at(from);
                place.lines = lines;
                place.out = out + s.out.at(y) + first * s.out.stride;
                place.left = first * s.strideWidth - s.padLeft;
            }
            places[j] = place;
            place.out += step * s.out.stride;
            place.left += step * s.strideWidth;
            --x;
        }
        count -= Pixels;
        return true;
    }
};

}  // namespace lanes
}  // namespace n2d2
