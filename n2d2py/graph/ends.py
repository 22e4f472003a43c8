"""Inputs and outputs of a network; the last ones may be states."""

from __future__ import annotations

from math import prod
from typing import Any

from n2d2py.errors import InternalError
from n2d2py.graph.port import FilePort, plain_port
from n2d2py.graph.shapes import Shape, elements


class Ends:
    """Inputs and outputs of a graph. The last `states` inputs are the last outputs of the previous call."""

    name: str
    tensors: dict[str, Any]
    inputs: list[str]
    outputs: list[str]
    states: int
    input_ports: list[FilePort]
    output_ports: list[FilePort]

    def __repr__(self) -> str:
        layers = sum(not getattr(node, "helper", False) for node in getattr(self, "nodes", ()))
        return f"{self.name}: {layers} layers, inputs {self._shapes(self.inputs)}, outputs {self._shapes(self.outputs)}"

    def _shapes(self, names: list[str]) -> str:
        return ", ".join(f"{name} {'x'.join(map(str, self.shape(name)[1:]))}" for name in names)

    def shape(self, tensor: str) -> Shape:
        """Return the shape of a tensor, including batch 1."""
        return self.tensors[tensor].shape

    def verify_outputs(self, known: set[str]) -> None:
        """Raise InternalError for an output that is not one of the `known` tensors, or a duplicate."""
        for name in self.outputs:
            if name not in known:
                raise InternalError(f"output {name} is never written")
        if len(set(self.outputs)) != len(self.outputs):
            raise InternalError(f"a tensor is an output twice: {', '.join(self.outputs)}")

    @property
    def user_input_ports(self) -> list[FilePort]:
        """The axes and types of the inputs except states, as in the file; those of the graph without a file."""
        return [self._port(name, self.input_ports, index) for index, name in enumerate(self.user_inputs)]

    @property
    def user_output_ports(self) -> list[FilePort]:
        """The axes and types of the outputs except states, as `user_input_ports`."""
        return [self._port(name, self.output_ports, index) for index, name in enumerate(self.user_outputs)]

    def _port(self, name: str, ports: list[FilePort], index: int) -> FilePort:
        shape = self.shape(name)
        return ports[index] if index < len(ports) and prod(ports[index].sample) == elements(shape) else plain_port(shape)

    @property
    def user_inputs(self) -> list[str]:
        """The inputs that the user passes: all except states."""
        return self.inputs[: len(self.inputs) - self.states]

    @property
    def user_outputs(self) -> list[str]:
        """The outputs that the user receives: all except states."""
        return self.outputs[: len(self.outputs) - self.states]

    @property
    def state_inputs(self) -> list[str]:
        """The inputs that are states."""
        return self.inputs[len(self.inputs) - self.states :]

    @property
    def state_outputs(self) -> list[str]:
        """The outputs that become the states of the next call, in the order of `state_inputs`."""
        return self.outputs[len(self.outputs) - self.states :]
