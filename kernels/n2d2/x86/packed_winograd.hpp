// Convolutions whose weights may be packed: in Winograd's form the weights of a panel are unpacked and transformed on the stack.
//
// Weights and inputs of 4 bits are multiplied as bytes (byte_winograd.hpp), weights of 4 bits and fewer with inputs of a byte as 16-bit integers in tiles
// of four by four outputs: bit for bit the sums of the direct form, which have its bias.
#ifndef N2D2_X86_PACKED_WINOGRAD_HPP
#define N2D2_X86_PACKED_WINOGRAD_HPP

#include "n2d2/panels/winograd_stack_panel.hpp"
#include "n2d2/x86/byte_winograd.hpp"

namespace n2d2 {

// The kernel of a layer: in bytes, in tiles of four, or the direct one.
template <class Cfg, class Bytes, class Pairs, class Direct, bool InBytes = (WinogradSumsOf<Cfg>::Words > 0),
          bool InFours = (int(WinogradTileOf<Cfg>::Edge) == 4 && int(PackedWeights<Cfg>::Bits) != 0)>
struct PackedConvolution : Direct {};
template <class Cfg, class Bytes, class Pairs, class Direct>
struct PackedConvolution<Cfg, Bytes, Pairs, Direct, true, false> : ByteConvolution<Cfg, Bytes> {};
template <class Cfg, class Bytes, class Pairs, class Direct>
struct PackedConvolution<Cfg, Bytes, Pairs, Direct, false, true>
    : TiledWinograd<Cfg, StackPanels<Pairs, typename Pairs::Vec, std::uint8_t> > {};

}  // namespace n2d2

#endif  // N2D2_X86_PACKED_WINOGRAD_HPP
