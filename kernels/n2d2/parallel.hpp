// Loops over independent pieces of work, on several threads where OpenMP is enabled and it pays.
//
// A layer whose output overlaps its input (Cfg::Serial) must store its lines in order, from the last to the
// first with Cfg::Reverse; only the pieces of one line are then independent, and those of lines that an Order
// (line_order.hpp) puts together. No sum is ever split between threads, so results do not depend on them.
#pragma once

#include "n2d2/env.hpp"

#if defined(_OPENMP)
#include <omp.h>
#include <sched.h>
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
    N2D2_INLINE long begin(long count, int thread) const { return threads == 1 ? count * thread : count * thread / threads; }

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

// A team whose threads wait for work, so that a layer costs two messages between processors instead of waking threads.
class WaitingTeam {
    typedef void (*Job)(const void* body, int self, int threads, double* waited);
    unsigned posted, done;  // which all threads read
    Job job;
    const void* body;
    const long least;
    int threads;

    explicit WaitingTeam(long work) : posted(0), done(0), job(nullptr), body(nullptr), least(work), threads(1) {}

    template <class Condition>
    static void await(const Condition& holds) {
        for (int i = 0; !holds(); ++i) {
            if (i > 4096)
                sched_yield();
#if defined(__x86_64__) && defined(__GNUC__)
            __builtin_ia32_pause();
#endif
        }
    }
    void post(Job next, const void* work) {
        job = next;
        body = work;
        __atomic_store_n(&posted, posted + 1, __ATOMIC_RELEASE);
    }
    N2D2_NOINLINE void serve(int self) {
        for (unsigned seen = 0;; __atomic_fetch_add(&done, 1, __ATOMIC_RELEASE)) {
            await([&] { return __atomic_load_n(&posted, __ATOMIC_ACQUIRE) != seen; });
            ++seen;
            if (!job)
                return;
            job(body, self, threads, nullptr);
        }
    }

public:
    // That of the calling thread, or null.
    static WaitingTeam*& current() {
        static thread_local WaitingTeam* team = nullptr;
        return team;
    }

    // work() on the calling thread; the others share what takes at least `least` multiply-accumulates.
    template <class Work>
    static void run(long least, const Work& work) {
        WaitingTeam team(least);
        current() = &team;
        if (least == LONG_MAX || omp_get_max_threads() == 1 || Patience<>::lost())
            work();
        else {
#pragma omp parallel
            if (omp_get_thread_num() == 0) {
                team.threads = omp_get_num_threads();
                work();
                team.post(nullptr, nullptr);
            } else
                team.serve(omp_get_thread_num());
        }
        current() = nullptr;
    }

    N2D2_NOINLINE void share(long work, Job next, const void* shared) {
        if (threads == 1 || work < least || Patience<>::lost()) {
            next(shared, 0, 1, nullptr);
            return;
        }
        const double began = omp_get_wtime();
        double waited = 0;
        post(next, shared);
        next(shared, 0, threads, &waited);
        const double worked = omp_get_wtime() - began - waited;
        const unsigned all = posted * static_cast<unsigned>(threads - 1);
        await([&] { return __atomic_load_n(&done, __ATOMIC_ACQUIRE) == all; });
        Patience<>::add(worked, omp_get_wtime() - began - worked);
    }
};

// The work from which the layers of a network are shared, by the time of whole inferences: what a layer gains depends on its neighbours,
// whose outputs lie in the cache of one processor or of several.
class SharingLimit {
    enum : int { Choices = 3, Tries = 3, Period = 2000 };
    double times[Choices];
    int turn;

    static long least(int choice) {
        return choice == 0 && N2D2_PARALLEL_WORK > 0 ? LONG_MAX : N2D2_PARALLEL_WORK * (1L << 2 * (Choices - 1 - choice));
    }

public:
    SharingLimit() : times(), turn(0) {}

    template <class Inference>
    void run(const Inference& inference) {
        int choice = turn % Choices;
        const bool tries = turn < Tries * Choices;
        if (!tries)
            for (int i = choice = 0; i < Choices; ++i)
                choice = times[i] < times[choice] ? i : choice;
        const double began = omp_get_wtime();
        WaitingTeam::run(least(choice), inference);
        const double time = omp_get_wtime() - began;
        if (tries)
            times[choice] = turn < Choices ? time : n2d2::least(times[choice], time);
        turn = (turn + 1) % Period;
    }
};
#endif

// body(member) on the calling thread, or on every thread of its team where the work is worth it. It is a function of its own, which both ways
// call: it is compiled once.
template <long Work, bool Splits = true, bool = Splits && Work >= N2D2_PARALLEL_WORK>
struct Team {
    template <class Body>
    static N2D2_INLINE void run(const Body& body) {
        const Member only = {0, 1, nullptr};
        body(only);
    }
};

#if defined(_OPENMP)
template <long Work>
struct Team<Work, true, true> {
    template <class Body>
    static N2D2_NOINLINE void member(const void* body, int self, int threads, double* waited) {
        const Member one = {self, threads, waited};
        (*static_cast<const Body*>(body))(one);
    }
    template <class Body>
    static N2D2_INLINE void run(const Body& body) {
        if (WaitingTeam::current())
            WaitingTeam::current()->share(Work, &member<Body>, &body);
        else if (Work < 4 * N2D2_PARALLEL_WORK || omp_get_max_threads() == 1)
            member<Body>(&body, 0, 1, nullptr);
        else
            WaitingTeam::run(0, [&] { WaitingTeam::current()->share(Work, &member<Body>, &body); });
    }
};
#endif

template <long Work, bool Splits = true>
struct Loop {
    template <class Body>
    static N2D2_INLINE void run(int count, const Body& body) {
        Team<Work, Splits>::run([&](const Member& member) N2D2_INLINE_LAMBDA { member.share(count, body); });
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
        const int first = rows.begin;
        Loop<PieceWork * Pieces * Lines, (Lines * Pieces > 1)>::run(
            (rows.end - first) * Pieces, [&](int i) N2D2_INLINE_LAMBDA { body(first + i / Pieces, i % Pieces); });
    }
};

template <int Lines, int Pieces, long PieceWork, bool Reverse, class Order>
struct Tasks<true, Lines, Pieces, PieceWork, Reverse, Order> {
    // Threads meet behind every group of lines.
    static constexpr long Work = PieceWork * Pieces * Lines;
    static constexpr long Shared = Work / Order::groups(Lines) / (Order::Known ? 1 : 4);
    static constexpr bool Splits = int(Pieces) * Lines > Order::groups(Lines);

    template <class Body>
    static N2D2_INLINE void run(const Rows& rows, const Body& body) {
        Team<Shared, Splits>::run([&](const Member& member) N2D2_INLINE_LAMBDA {
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
