"""Running what the target wrote: an interpreter that knows its files and nothing of the tool's arithmetic."""

import json

import numpy as np

from n2d2py.runtime import Network, Runner


class ToyRunner(Runner):
    """toy.json on arrays of int64."""

    label = "toy"

    def __init__(self, folder, details):
        self.layers = json.loads((folder / "toy.json").read_text())["layers"]
        with np.load(folder / "toy.npz") as file:
            self.arrays = dict(file)
        self.by_input = details["order"] == "inputs"

    def run(self, x) -> dict[str, np.ndarray]:
        """The result of each layer by name, for stored inputs (N, K)."""
        results = {}
        for number, layer in enumerate(self.layers):
            weights = self.arrays[f"weights{number}"].astype(np.int64)
            total = x.astype(np.int64) @ (weights if self.by_input else weights.T) + self.arrays[f"bias{number}"]
            rounded = (total * layer["multiplier"] + (1 << layer["shift"] >> 1)) >> layer["shift"]
            x = results[layer["name"]] = np.clip(rounded, *layer["clamp"]).astype(np.int8)
        return results

    def outputs(self, graph, count):
        results = self.run(self.arrays["stimuli"][:count])
        return {layer["tensor"]: results[layer["name"]] for layer in self.layers if layer["tensor"] in graph.outputs}

    def sizes(self):
        return {"constants": sum(array.nbytes for name, array in self.arrays.items() if name != "stimuli")}

    def network(self):
        return ToyNetwork(self)


class ToyNetwork(Network):
    """The interpreter as a network for -compare."""

    def __init__(self, runner):
        self._runner = runner

    def stored_layers(self, inputs):
        return self._runner.run(inputs[0])
