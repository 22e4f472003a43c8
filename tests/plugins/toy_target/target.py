"""The target: parameters, integers, what it refuses, what it writes."""

import json

import numpy as np

from n2d2py.arithmetic import FixedPointRescale
from n2d2py.errors import N2D2Error
from n2d2py.exports import ExportRequest, Prepared, QuantDefaults, Target
from n2d2py.graph.forms import Weighted
from n2d2py.ini import Key, Kind, Schema
from toy_target.runner import ToyRunner


class ToyTarget(Target):
    """Layers as a list in toy.json, their constants and the stimuli in toy.npz."""

    name = "TOY"
    parameters = Schema(
        "export parameters of TOY",
        (
            Key("ToyLanes", Kind.UINT, 16, "outputs of a layer that the processor holds", minimum=1, maximum=64),
            Key("ToyOrder", Kind.ENUM, "outputs", "which index of the weights changes last", ("outputs", "inputs")),
            Key("ToyNote", Kind.STRING, "", "text that is kept in toy.json"),
        ),
    )
    layer_parameters = Schema(
        "export parameters of a layer of TOY", (Key("Unit", Kind.UINT, 0, "which unit runs it", maximum=3),)
    )
    quantization = QuantDefaults(
        unsigned=False,
        per_output=False,
        rescaling="Fixed-point16",
        input_bits=8,
        output_bits=8,
        mixed=False,
        wide_concats=False,
    )
    needs_plan = False
    runner = ToyRunner

    def overruled(self, parameters, graph):
        return {"ToyOrder": "with one lane there is one order"} if parameters["ToyLanes"] == 1 else {}

    def prepare(self, request: ExportRequest) -> Prepared:
        graph, lanes = request.graph, request.parameters["ToyLanes"]
        if graph.bits != 8:
            return Prepared(request, [N2D2Error("E705", "TOY computes in bytes", remedy="use -nbbits 8")])
        found, layers, arrays = [], [], {}
        for number, node in enumerate(graph.nodes):
            refused = None
            if node.op.kind != "Fc":
                refused = f"TOY has no {node.op.kind}"
            elif not isinstance(node.rescale, FixedPointRescale) or node.rescale.multipliers.size != 1:
                refused = "TOY multiplies sums by one integer for each layer"
            elif len(node.params["weights"]) > lanes:
                refused = f"it has {len(node.params['weights'])} outputs, ToyLanes={lanes}"
            if refused:
                remedy = "take another layer, or leave the mode to TOY"
                found.append(N2D2Error("E701", f"layer '{node.name}': {refused}", where=graph.name, remedy=remedy))
                continue
            form = node.form_as(Weighted)
            weights = form.weights.astype(np.int8)
            by_input = request.parameters["ToyOrder"] == "inputs"
            arrays[f"weights{number}"] = np.ascontiguousarray(weights.T if by_input else weights)
            arrays[f"bias{number}"] = form.bias.astype(np.int32)
            unit = request.layer_parameters.get(node.name, {}).get("Unit", "0")
            layer = {"name": node.name, "tensor": node.output, "unit": int(unit), "clamp": list(node.clamp)}
            layers.append({**layer, "multiplier": int(node.rescale.multipliers[0]), "shift": node.rescale.shift})
        program = {"note": request.parameters["ToyNote"], "scale": graph.type(graph.inputs[0]).scale, "layers": layers}
        return Prepared(request, found, (program, arrays))

    def details(self, prepared):
        return {"order": prepared.request.parameters["ToyOrder"]}

    def write(self, prepared, folder):
        program, arrays = prepared.result
        (folder / "toy.json").write_text(json.dumps(program, indent=1))
        stimuli = {"stimuli": prepared.request.stimuli.inputs[0]} if prepared.request.stimuli.count else {}
        np.savez(folder / "toy.npz", **arrays, **stimuli)
