// Loops over independent pieces of work, on several threads where OpenMP is enabled and it pays.
//
// A layer whose output overlaps its input (Cfg::Serial) must store its lines in order, from the last to the
// first with Cfg::Reverse; only the pieces of one line are then independent. No sum is ever split between threads,
// so results do not depend on them.
#ifndef N2D2_PARALLEL_HPP
#define N2D2_PARALLEL_HPP

#include "n2d2/env.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace n2d2 {

// The output lines [begin, end) that a call makes. Layers that run line by line (Cfg::Streamed) are called for some lines at a
// time; such a layer is Serial: its calls and the lines of a call follow each other.
struct Rows {
    int begin;
    int end;
    N2D2_INLINE constexpr Rows(int first, int stop) : begin(first), end(stop) {}
    template <class Plane>
    static N2D2_INLINE constexpr Rows all() { return Rows(0, Plane::Height); }
};

template <bool Parallel>
struct Loop {
    template <class Body>
    static N2D2_INLINE void run(int count, const Body& body) {
        for (int i = 0; i < count; ++i)
            body(i);
    }
};

#if defined(_OPENMP)
// A parallel region costs a third of a microsecond even for a team of one, so with one thread there is none. The loop is a
// function of its own, which both ways call: it is compiled once.
template <>
struct Loop<true> {
    template <class Body>
    static N2D2_NOINLINE void range(int begin, int end, const Body& body) {
        for (int i = begin; i < end; ++i)
            body(i);
    }
    template <class Body>
    static N2D2_INLINE void run(int count, const Body& body) {
        if (omp_get_max_threads() == 1) {
            range(0, count, body);
            return;
        }
#pragma omp parallel
        {
            const long threads = omp_get_num_threads(), self = omp_get_thread_num();
            range(static_cast<int>(count * self / threads), static_cast<int>(count * (self + 1) / threads), body);
        }
    }
};
#endif

// body(line, piece) for every piece of every line, or of the given ones. PieceWork: multiply-accumulates of one piece.
template <bool Serial, int Lines, int Pieces, long PieceWork, bool Reverse = false>
struct Tasks {
    template <class Body>
    static N2D2_INLINE void run(const Body& body) { run(Rows(0, Lines), body); }

    template <class Body>
    static N2D2_INLINE void run(const Rows& rows, const Body& body) {
        constexpr bool parallel = Lines * Pieces > 1 && PieceWork * Pieces * Lines >= N2D2_PARALLEL_WORK;
        const int first = rows.begin;
        Loop<parallel>::run((rows.end - first) * Pieces,
                            [&](int i) N2D2_INLINE_LAMBDA { body(first + i / Pieces, i % Pieces); });
    }
};

template <int Lines, int Pieces, long PieceWork, bool Reverse>
struct Tasks<true, Lines, Pieces, PieceWork, Reverse> {
    template <class Body>
    static N2D2_INLINE void run(const Body& body) { run(Rows(0, Lines), body); }

    template <class Body>
    static N2D2_INLINE void run(const Rows& rows, const Body& body) {
        constexpr bool parallel = Pieces > 1 && PieceWork * Pieces >= N2D2_PARALLEL_WORK;
        for (int step = rows.begin; step < rows.end; ++step) {
            const int y = Reverse ? Lines - 1 - step : step;
            Loop<parallel>::run(Pieces, [&](int i) N2D2_INLINE_LAMBDA { body(y, i); });
        }
    }
};

}  // namespace n2d2

#endif  // N2D2_PARALLEL_HPP
