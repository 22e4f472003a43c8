// Weights of a Winograd convolution that are unpacked and transformed once, by the first inference, into static memory (n2d2/prepacked.hpp).
#ifndef N2D2_PANELS_WINOGRAD_KEPT_PANELS_HPP
#define N2D2_PANELS_WINOGRAD_KEPT_PANELS_HPP

#include <new>

#include "n2d2/packed.hpp"

namespace n2d2 {

// All panels of a layer, Panels::Panel<Cfg, Outputs, Parts>(weights, output, part), whose transformed weights are the first of their bytes.
template <class Cfg, class Panels, int Parts>
struct WinogradKeptPanels {
    enum : int {
        O = Cfg::Output::Channels,
        WholePanels = O / 16,
        LastOutputs = O % 16 == 0 ? 16 : O % 16,
        Count = WholePanels * Parts,
        LastCount = O % 16 == 0 ? 0 : int(Parts)
    };
    typedef typename Panels::template Panel<Cfg, (O < 16 ? int(O) : 16), Parts> Whole;
    typedef typename Panels::template Panel<Cfg, LastOutputs, Parts> Last;
    enum : long { LastAt = long(Count) * static_cast<long>(sizeof(Whole)) };

    alignas(64) unsigned char place[LastAt + long(LastCount) * static_cast<long>(sizeof(Last))];

    N2D2_INLINE WinogradKeptPanels(const std::uint8_t* weights, int) {
        for (int i = 0; i < Count; ++i)
            new (static_cast<void*>(place + i * static_cast<long>(sizeof(Whole)))) Whole(weights, i / Parts * 16, i % Parts);
        for (int i = 0; i < LastCount; ++i)
            new (static_cast<void*>(place + LastAt + i * static_cast<long>(sizeof(Last)))) Last(weights, WholePanels * 16, i);
    }

    N2D2_INLINE const std::int8_t* panel(int output, int part) const {
        const int i = output / 16;
        return reinterpret_cast<const std::int8_t*>(place) + (i < WholePanels ?
                                                                  (i * Parts + part) * static_cast<long>(sizeof(Whole)) :
                                                                  LastAt + part * static_cast<long>(sizeof(Last)));
    }
};

// One of them.
template <class Cfg, class Panels, int Outputs, int Parts>
struct WinogradKeptPanel {
    typedef WinogradKeptPanels<Cfg, Panels, Parts> All;
    const std::int8_t* const first;
    N2D2_INLINE WinogradKeptPanel(const std::uint8_t* weights, int output, int part)
        : first(Prepacked<Cfg, All>::of(weights).panel(output, part)) {}
};

}  // namespace n2d2

#endif  // N2D2_PANELS_WINOGRAD_KEPT_PANELS_HPP
