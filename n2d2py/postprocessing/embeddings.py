"""Networks whose output is an embedding: unit vectors, their cosines, and the best match among references."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from n2d2py.arithmetic.embeddings import Embedder, unit
from n2d2py.arithmetic.fixed_scale import ONE
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.graph.shapes import dims_text
from n2d2py.ini.schema import Key, Kind
from n2d2py.postprocessing.contract import Infos, KernelConfig, PostProcessor, Size, misfit, only_output, real_array, register
from n2d2py.postprocessing.results import Embedding

_KEYS = (
    Key("references", Kind.PATH, None, "File .npy of known embeddings (number, values). The classes are their names."),
    Key(
        "threshold",
        Kind.FLOAT,
        0.5,
        "The reference with the largest cosine matches if that is above it.",
        minimum=-1,
        maximum=1,
    ),
)


@dataclass(frozen=True)
class EmbeddingMatcher(PostProcessor):
    """An embedding that is bound to an output of a network. `decoder`: its integers."""

    decoder: Embedder

    kernel: ClassVar = "embeddings"
    kernel_class: ClassVar = "Embedder"
    function: ClassVar = "embed"
    folder: ClassVar = "embeddings"

    @property
    def count(self) -> int:
        """The number of references."""
        return len(self.decoder.references) // self.decoder.size

    @property
    def config(self) -> KernelConfig:
        return KernelConfig.of(self.decoder, {"Value": 0}, {"references": self.decoder.references}, References=self.count)

    @property
    def memory(self) -> np.ndarray:
        return np.zeros(self.decoder.size, np.int16)

    def decode(self, outputs: Sequence[np.ndarray]) -> np.ndarray:
        return self.decoder.embed(outputs[0].reshape(1, -1))[0]

    def result(self, stored: np.ndarray, source: FrameSource | None = None, frame: Size | None = None) -> Embedding:
        """Return a stored vector in real numbers, and its match."""
        label, score = self.decoder.match(stored)
        return Embedding(label, self.name(label), score / ONE, (stored / np.float32(32767)).astype(np.float32))


def _bind(values: Mapping[str, Any], inputs: Infos, outputs: Infos, names: tuple[str, ...]) -> EmbeddingMatcher:
    info = only_output(outputs)
    size = int(np.prod(info.stored))
    if size != info.stored[1] or not 2 <= size < 65536:
        raise misfit(f"the output '{info.name}' of {dims_text(info.shape)} is not one vector", "choose another by -outputs")
    references = () if values["references"] is None else _references(Path(values["references"]), size)
    count = len(references) // size
    if names and references and len(names) != count:
        raise misfit(f"{len(names)} class names do not fit {count} references", "name each reference by -class-names")
    return EmbeddingMatcher(
        names if references else (), Embedder(size, Embedder.scale(info.type), references, round(values["threshold"] * ONE))
    )


def _references(path: Path, size: int) -> tuple[int, ...]:
    vectors = real_array(path, "references").astype(np.float64)
    if vectors.ndim != 2 or vectors.shape[1] != size:
        raise misfit(f"the references {path} are not vectors of {size} values", "save embeddings of this model, a row each")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.all((lengths > 0) & (lengths < np.inf)):
        raise misfit(f"a vector of {path} has no direction", "save embeddings of this model, a row each")
    return tuple(unit(np.rint(vectors / lengths * ONE).astype(np.int64)).ravel().tolist())


register("embedding", "A vector, such as of a face or a voice: cosines to known vectors.", _KEYS, _bind)
