// Scratch: bytes that a layer needs only while it runs. The plan of the memory has a place for them in the arena, which a config names:
//
//   ScratchBytes   how many bytes a thread may use; kernels choose blocks that fit. 0, or no such constant: no limit
//   ScratchBase    where they are: 1, from the pointer that the output is relative to, 2, from that of the input; 0: on the stack
//   ScratchAt      the offset from there, a multiple of 64
//
// The bytes of the arena are those of the thread that calls the layer; others of its team have theirs on their stacks, and so has a
// kernel that needs more than the config gives; with -DN2D2_SCRATCH_MUST_FIT, for tests, none may.
#pragma once

#include "n2d2/env.hpp"

namespace n2d2 {

template <class Cfg, class Found = void>
struct ScratchOf {
    enum : int { Bytes = 0, Base = 0 };
    enum : long { At = 0 };
};
template <class Cfg>
struct ScratchOf<Cfg, typename Exists<Cfg::ScratchBytes>::Type> {
    enum : int { Bytes = Cfg::ScratchBytes, Base = Cfg::ScratchBase };
    enum : long { At = Cfg::ScratchAt };
};

// body(at) with Bytes bytes from `at` on, a multiple of 64. `self`: the number of the thread in its team.
template <class Cfg, int Bytes, bool InArena = (int(ScratchOf<Cfg>::Base) != 0 && Bytes <= int(ScratchOf<Cfg>::Bytes))>
struct Scratch {
#if defined(N2D2_SCRATCH_MUST_FIT)
    static_assert(int(ScratchOf<Cfg>::Base) == 0, "the kernel needs more scratch than it is given");
#endif
    template <class Body>
    static N2D2_INLINE void run(const unsigned char*, unsigned char*, int, const Body& body) {
        alignas(64) std::uint8_t buffer[Bytes];
        body(static_cast<std::uint8_t*>(buffer));
    }
};
template <class Cfg, int Bytes>
struct Scratch<Cfg, Bytes, true> {
    // A function of its own, so that no other has its frame.
    template <class Body>
    static N2D2_NOINLINE void onStackOfThread(const Body& body) {
        alignas(64) std::uint8_t buffer[Bytes];
        body(static_cast<std::uint8_t*>(buffer));
    }
    template <class Body>
    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, int self, const Body& body) {
        // The input lies in the arena then, which is no constant.
        unsigned char* const base = int(ScratchOf<Cfg>::Base) == 1 ? out : const_cast<unsigned char*>(in);
        if (self == 0)
            body(static_cast<std::uint8_t*>(base + static_cast<long>(ScratchOf<Cfg>::At)));
        else
            onStackOfThread(body);
    }
};

}  // namespace n2d2
