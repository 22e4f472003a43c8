// Fully connected layer: panels of 16 outputs times one window, the whole input.
//
// The input is read in place when it is in one piece and in the form that the microkernel multiplies (microkernel.hpp); otherwise it is
// first copied to scratch (n2d2/scratch.hpp) in that form. Layers are limited by the reading of their weights;
// groups of panels are independent.
// Scratch: the bytes of the input + 64, unless in place; where they have to be arranged first, those of a copy too.
#pragma once

#include "n2d2/output.hpp"
#include "n2d2/packed.hpp"
#include "n2d2/panels/microkernel.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"
#include "n2d2/scratch.hpp"

namespace n2d2 {

// Panels of one pixel, of weights that are unpacked first where they are packed.
template <class Microkernel, class Packing, class In, int Panels, int Words, int LastOutputs, int K, class Epilogue>
struct SinglePanels {
    template <class Sum, class At>
    static N2D2_INLINE void run(const std::uint8_t* x, const typename Packing::Stored* weights, long before, const Sum* bias,
                                int output, const At& at) {
        constexpr int each = WordOf<In, typename Packing::Weight>::Each;
        const WeightPanels<Packing, 16 * (Panels - 1) + LastOutputs, Words, each, K> w(weights, before);
        Microkernel::template Tile<In, 1, Panels, Words, LastOutputs, Epilogue>::template run<0>(x, w.first, bias, output, at);
    }
};

template <class Cfg, class Given>
struct PanelFullyConnected {
    typedef typename ForWeights<Cfg, Given>::Type Microkernel;
    N2D2_PLANES(Cfg);
    N2D2_WEIGHTS(Cfg);
    typedef PlaneRuns<Input> Runs;
    typedef PackedWeights<Cfg> Packing;
    typedef typename Packing::Stored Stored;
    static_assert(sizeof(Sum) == 4 && (sizeof(Weight) <= 2 || !std::numeric_limits<In>::is_integer),
                  "weights of 8 or 16 bits and 32-bit sums, or float");

    enum : int { K = Runs::All, Each = WordOf<In, Weight>::Each, Words = (K + Each - 1) / Each };
    typedef typename Microkernel::template Windows<In, Words> Windows;
    enum : int {
        Size = Windows::Size,  // by which the place of an input grows
        O = Output::Channels,
        Panels = (O + 15) / 16,
        LastOutputs = O - 16 * (Panels - 1),
        Group = least(int(Panels), Microkernel::singlePanels()),
        Groups = (Panels + Group - 1) / Group,
        LastGroup = Panels - (Groups - 1) * Group,
        InPlace = int(Runs::Count) == 1 && bool(Windows::Plain) && K % Each == 0,
        Run = Runs::Length,
        Direct = int(Runs::Count) == 1 || int(Run) % Windows::Unit == 0,
        WindowBytes = (Windows::Bytes + 127) / 64 * 64,
        BufferBytes = WindowBytes + (Direct ? 0 : Words * 4 + 64)
    };
    static_assert(!Cfg::Serial, "a fully connected layer cannot overwrite its input");

    typedef WeightPanels<Packing, O, Words, Each, K> AllWeights;

    struct At {
        Out* out;
        N2D2_INLINE Out* operator()(int) const { return out; }
    };

    static N2D2_INLINE void multiply(const std::uint8_t* x, unsigned char* out, const Stored* weights, const Sum* bias) {
        constexpr long work = static_cast<long>(K) * Group * 16 / N2D2_SIMD_SPEED;
        Tasks<false, 1, Groups, work>::run([=](int, int group) N2D2_INLINE_LAMBDA {
            const int output = group * Group * 16;
            const long before = static_cast<long>(output) * Words * Each;
            const At at = {line<Output>(out, 0)};
            if (group + 1 < Groups)
                SinglePanels<Microkernel, Packing, In, Group, Words, 16, K, Epilogue>::run(x, weights, before, bias, output,
                                                                                           at);
            else
                SinglePanels<Microkernel, Packing, In, LastGroup, Words, LastOutputs, K, Epilogue>::run(x, weights, before,
                                                                                                        bias, output, at);
        });
    }

    // Step: by how many bytes the place of an input grows.
    template <class Form, int Step>
    static N2D2_INLINE void copy(const unsigned char* in, std::uint8_t* to) {
        for (int i = 0; i < Runs::Count; ++i)
            Form::template copy<Run>(Runs::at(in, i), to + i * Run * Step);
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Stored* weights, const Sum* bias) {
        if (InPlace) {
            multiply(reinterpret_cast<const std::uint8_t*>(line<Input>(in, 0)), out, weights, bias);
            return;
        }
        Scratch<Cfg, InPlace ? 64 : int(BufferBytes)>::run(in, out, 0, [=](std::uint8_t* buffer) N2D2_INLINE_LAMBDA {
            if (Direct) {
                copy<Windows, Size>(in, buffer);
            } else {
                std::uint8_t* const raw = buffer + WindowBytes;
                std::memset(raw + Words * 4 - 4, 0, 4);
                copy<typename Windows::Raw, static_cast<int>(sizeof(In))>(in, raw);
                Windows::arrange(raw, buffer);
            }
            multiply(buffer, out, weights, bias);
        });
    }
};

}  // namespace n2d2
