// Weights that are unpacked, or transformed for Winograd's form, once, by the first inference, into static memory.
//
// Config: Prepacked, PrepackedWinograd (n2d2/packed.hpp). Their memory belongs to the layer, and is there for as long as the program runs.
// Inferences that begin together: one makes the weights, the others wait for it.
#pragma once

#include <atomic>
#include <new>

#include "n2d2/packed.hpp"

namespace n2d2 {

template <class Cfg, class Made>
struct Prepacked {
    enum : int { New, Begun, Done };
    static std::atomic<int> state;
    alignas(64) static unsigned char place[sizeof(Made)];

    template <class Stored>
    static N2D2_NOINLINE void make(const Stored* weights) {
        int expected = New;
        if (state.compare_exchange_strong(expected, Begun)) {
            new (static_cast<void*>(place)) Made(weights, 0);
            state.store(Done, std::memory_order_release);
        }
        while (state.load(std::memory_order_acquire) != Done) {
        }
    }

    // Made(weights, 0) of the weights of the layer, the same in all calls.
    template <class Stored>
    static N2D2_INLINE const Made& of(const Stored* weights) {
        if (state.load(std::memory_order_acquire) != Done)
            make(weights);
        return *elementsOf<Made>(place);
    }
};

template <class Cfg, class Made>
std::atomic<int> Prepacked<Cfg, Made>::state(Prepacked<Cfg, Made>::New);
template <class Cfg, class Made>
alignas(64) unsigned char Prepacked<Cfg, Made>::place[sizeof(Made)];

}  // namespace n2d2
