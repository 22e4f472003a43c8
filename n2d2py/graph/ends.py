"""The inputs and outputs of a network, of which the last ones may be states."""

from __future__ import annotations


class Ends:
    """What graphs say of their ends: `states` of the last inputs are the last outputs of the call before."""

    inputs: list[str]
    outputs: list[str]
    states: int

    @property
    def fed(self) -> list[str]:
        """The inputs that stimuli give: those that are no states."""
        return self.inputs[: len(self.inputs) - self.states]

    @property
    def results(self) -> list[str]:
        """The outputs that are no states."""
        return self.outputs[: len(self.outputs) - self.states]

    @property
    def kept(self) -> list[str]:
        """The inputs that are states."""
        return self.inputs[len(self.inputs) - self.states :]

    @property
    def becoming(self) -> list[str]:
        """The outputs that are the states of the next call, in the order of `kept`."""
        return self.outputs[len(self.outputs) - self.states :]
