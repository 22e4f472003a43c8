// Loops over independent pieces of work, on several threads where OpenMP is enabled and it pays.
//
// A layer whose output overlaps its input (Cfg::Serial) must store its lines in order, from the last to the
// first with Cfg::Reverse; only the pieces of one line are then independent, and those of lines that an Order
// (line_order.hpp) puts together. No sum is ever split between threads, so results do not depend on them.
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
    static N2D2_INLINE constexpr Rows all() {
        return Rows(0, Plane::Height);
    }
};

// One of the threads that run the same code. With N2D2_SHARES_BACKWARDS, for tests, the one thread of a build without OpenMP
// works through what several would share from the end.
struct Member {
    int self;
    int threads;
    double* waited;  // seconds at barriers, of the thread that waits for the others; null for the others

    // The first of the pieces of thread `thread`, of `count`; its share ends at that of the next thread.
    N2D2_INLINE long begin(long count, int thread) const { return count * thread / threads; }

    template <class Body>
    N2D2_INLINE void share(int count, const Body& body) const {
#if defined(N2D2_SHARES_BACKWARDS)
        for (int i = count; i-- > 0;)
            body(i);
#else
        for (int i = static_cast<int>(begin(count, self)), end = static_cast<int>(begin(count, self + 1)); i < end; ++i)
            body(i);
#endif
    }
    N2D2_INLINE bool alone() const {
#if defined(N2D2_SHARES_BACKWARDS)
        return false;
#else
        return threads == 1;
#endif
    }
    // Until all threads are here.
    N2D2_INLINE void wait() const {
#if defined(_OPENMP)
        if (threads > 1) {
            const double began = waited ? omp_get_wtime() : 0;
#pragma omp barrier
            if (waited)
                *waited += omp_get_wtime() - began;
        }
#endif
    }
};

// body(member) on every thread of a team.
template <bool Parallel>
struct Team {
    template <class Body>
    static N2D2_INLINE void run(const Body& body) {
        const Member only = {0, 1, nullptr};
        body(only);
    }
};

#if defined(_OPENMP)
// The decision to wait for a team. Where other programs hold the processors, the others of a team come milliseconds late to every layer.
// A thread that has waited for them much longer than it worked does without them for ten times as long as it waited.
template <class = void>
struct Patience {
    static unsigned resumes;  // in milliseconds, which overflow; 0: waiting pays

    static unsigned milliseconds(double seconds) {
        return static_cast<unsigned>(static_cast<unsigned long long>(seconds * 1000));
    }

    static bool lost() {
        unsigned until;
#pragma omp atomic read
        until = resumes;
        if (until == 0)
            return false;
        if (static_cast<int>(until - milliseconds(omp_get_wtime())) > 0)
            return true;
#pragma omp atomic write
        resumes = 0;
        return false;
    }

    static void add(double worked, double waited) {
        if (waited <= worked + 0.0002)  // shares differ, a thread takes that long to wake up
            return;
        const unsigned until = milliseconds(omp_get_wtime() + 10 * waited) | 1;
#pragma omp atomic write
        resumes = until;
    }
};
template <class Unused>
unsigned Patience<Unused>::resumes = 0;

// A parallel region costs a third of a microsecond even for a team of one, so with one thread there is none. The work is a
// function of its own, which both ways call: it is compiled once.
template <>
struct Team<true> {
    template <class Body>
    static N2D2_NOINLINE void member(int self, int threads, double* waited, const Body& body) {
        const Member one = {self, threads, waited};
        body(one);
    }
    template <class Body>
    static N2D2_INLINE void run(const Body& body) {
        if (omp_get_max_threads() == 1 || Patience<>::lost()) {
            member(0, 1, nullptr, body);
            return;
        }
        const double began = omp_get_wtime();
        double done = began, waited = 0;
#pragma omp parallel
        {
            const int self = omp_get_thread_num();
            member(self, omp_get_num_threads(), self == 0 ? &waited : nullptr, body);
            if (self == 0)
                done = omp_get_wtime();
        }
        const double worked = done - began - waited;
        Patience<>::add(worked, waited + omp_get_wtime() - done);
    }
};
#endif

template <bool Parallel>
struct Loop {
    template <class Body>
    static N2D2_INLINE void run(int count, const Body& body) {
        Team<Parallel>::run([&](const Member& member) N2D2_INLINE_LAMBDA { member.share(count, body); });
    }
};

// The order of lines without knowledge about the layer: one after the other.
struct OneByOne {
    enum : bool { Known = false };
    // The number of lines from step `step` on that may be computed together.
    static N2D2_INLINE constexpr int together(int) { return 1; }
    // Into how many groups `lines` lines fall.
    static N2D2_INLINE constexpr int groups(int lines) { return lines; }
};

// body(line, piece) for every piece of every line, or of the given ones. PieceWork: multiply-accumulates of one piece.
template <bool Serial, int Lines, int Pieces, long PieceWork, bool Reverse = false, class Order = OneByOne>
struct Tasks {
    template <class Body>
    static N2D2_INLINE void run(const Body& body) {
        run(Rows(0, Lines), body);
    }

    template <class Body>
    static N2D2_INLINE void run(const Rows& rows, const Body& body) {
        constexpr bool parallel = Lines * Pieces > 1 && PieceWork * Pieces * Lines >= N2D2_PARALLEL_WORK;
        const int first = rows.begin;
        Loop<parallel>::run((rows.end - first) * Pieces,
                            [&](int i) N2D2_INLINE_LAMBDA { body(first + i / Pieces, i % Pieces); });
    }
};

template <int Lines, int Pieces, long PieceWork, bool Reverse, class Order>
struct Tasks<true, Lines, Pieces, PieceWork, Reverse, Order> {
    // Threads meet behind every group of lines, which costs less than waking them.
    enum : long { Work = PieceWork * Pieces * Lines };
    enum : bool {
        Parallel = int(Pieces) * Lines > Order::groups(Lines) && N2D2_PARALLEL_WORK <= long(Work) &&
                   N2D2_PARALLEL_WORK / (Order::Known ? 4 : 1) <= long(Work) / Order::groups(Lines)
    };

    template <class Body>
    static N2D2_INLINE void run(const Body& body) {
        run(Rows(0, Lines), body);
    }

    template <class Body>
    static N2D2_INLINE void run(const Rows& rows, const Body& body) {
        Team<Parallel>::run([&](const Member& member) N2D2_INLINE_LAMBDA {
            for (int step = rows.begin; step < rows.end;) {
                const int first = step, lines = member.alone() ? 1 : least(Order::together(step), rows.end - step);
                member.share(lines * Pieces, [&](int i) N2D2_INLINE_LAMBDA {
                    const int line = first + i / Pieces;
                    body(Reverse ? Lines - 1 - line : line, i % Pieces);
                });
                member.wait();
                step += lines;
            }
        });
    }
};

// The lines of a layer, in the order that its config asks for.
template <class Cfg, int Pieces, long PieceWork, class Order = OneByOne>
struct LayerTasks : Tasks<(Cfg::Serial != 0), Cfg::Output::Height, Pieces, PieceWork, (Cfg::Reverse != 0), Order> {};

}  // namespace n2d2

#endif  // N2D2_PARALLEL_HPP
