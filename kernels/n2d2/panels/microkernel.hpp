// A microkernel: what an instruction set has for matrix products on panels of weights (panel_convolution.hpp, panel_fullyconnected.hpp).
//
// A panel is the weights of 16 outputs, [Words][16][weights of a word]; the last one of a layer has only LastOutputs of 16. A word is four
// bytes of inputs, or two of 16 bits, or a float: the exporter packs [K / 4][16][4], [K / 2][16][2] of int8 or [K][16] of float, filled up
// with zeros. Bytes count as unsigned ones, signed ones + 128, or all as signed ones, unsigned ones - 128; the bias makes up for it
// (`signed` in the table of instruction sets).
//
//   Windows<In, Words>        the form of a window of Words words in memory
//     Plain                   values are multiplied as they lie in the plane: 1 x 1 windows are read in place
//     Size, Unit, Bytes       by how many bytes the place of an input in a window grows; parts of windows are multiples of Unit inputs; of a window
//     copy<Count>(from, to)   Count inputs; up to 63 bytes behind them may be written
//     fill<Count>(value, to)  Count times the value of the padding
//     Raw, arrange(raw, to)   windows with parts that are no multiples of Unit are copied in the form Raw and then arranged
//   Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue>
//     run<Pitch>(x, w, bias, output, at)   the outputs from `output` on of Pixels pixels: their windows, which lie Pitch bytes apart from x on,
//                             times Panels panels from w on, added to bias[output] and so on, go through the epilogue to at(pixel) + output.
//                             The constants of the epilogue are read before anything is stored, which might be they; nothing else is written.
//   tilePanels(panels)        panels of a tile of a layer with `panels` of them
//   tilePixels(panels)        the most pixels of such a tile
//   singlePanels()            panels of a tile of one pixel (fully connected layers)
//   LineVector                optional, bytes of a vector: tiles are also read from input lines (panel_tiles.hpp), run<Pitch, Lines, Jump>(...):
//                             a window is Lines pieces, Jump bytes apart
//   Wide                      the microkernel for weights of 16 bits: panels [K / 2][16][2] of int16, words of two inputs, whatever their type
//
// The matrix products of Winograd's form have another one (panel_winograd.hpp).
#pragma once

#include "n2d2/halfwords.hpp"

namespace n2d2 {

// Inputs in a word: as many as their type and that of the weights allow.
template <class In, class Weight>
struct WordOf {
    enum : bool { Wide = std::numeric_limits<In>::is_integer && sizeof(Weight) == 2 };
    enum : int { Each = bool(Wide) ? 2 : 4 / static_cast<int>(sizeof(In)) };
};

// Tiles of Pixels pixels of one panel, or of one pixel of Single panels.
template <int Pixels, int Single = 1>
struct OnePanelTiles {
    static N2D2_INLINE constexpr int tilePixels(int) { return Pixels; }
    static N2D2_INLINE constexpr int tilePanels(int) { return 1; }
    static N2D2_INLINE constexpr int singlePanels() { return Single; }
};

// Weights of 16 bits: tiles of the same shape, windows of 16-bit integers.
template <class Microkernel, template <class, int, int, int, int, class, class> class AnyTile>
struct WideWeights : Microkernel {
    template <class In, int Words>
    struct Windows : Halfwords<In, Words, 2> {};
    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Tile : AnyTile<In, Pixels, Panels, Words, LastOutputs, Epilogue, std::int16_t> {};
};

// The microkernel for the weights of a layer.
template <class Cfg, class Microkernel, bool = bool(WordOf<typename Cfg::Input::Type, typename Cfg::Weight>::Wide)>
struct ForWeights {
    typedef Microkernel Type;
};
template <class Cfg, class Microkernel>
struct ForWeights<Cfg, Microkernel, true> {
    typedef typename Microkernel::Wide Type;
};

N2D2_OPTIONAL(int, LineVectorOf, LineVector, 0);

}  // namespace n2d2
