"""Tensors of samples of which the largest lie in temporary files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from tempfile import TemporaryFile
from threading import Lock

import numpy as np

_LARGE = 1 << 23
"""Bytes from which on a tensor is written to a file."""


class SpilledTensors(MutableMapping[str, np.ndarray]):
    """Tensors by name. Each access to one of at least `_LARGE` bytes reads it from its file, which goes with its last owner."""

    def __init__(self, tensors: Mapping[str, np.ndarray]):
        self._tensors: dict[str, np.ndarray | _File] = {}
        self.update(tensors)

    def __getitem__(self, name: str) -> np.ndarray:
        found = self._tensors[name]
        return found.read() if isinstance(found, _File) else found

    def __setitem__(self, name: str, tensor: np.ndarray) -> None:
        self._tensors.pop(name, None)
        try:
            self._tensors[name] = tensor if tensor.nbytes < _LARGE else _File(tensor)
        except OSError:  # no room for temporary files
            self._tensors[name] = tensor

    def __delitem__(self, name: str) -> None:
        del self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def copy(self) -> SpilledTensors:
        """Return another mapping of the same tensors, with the same files."""
        other = SpilledTensors({})
        other._tensors = dict(self._tensors)
        return other


class _File:
    """A tensor in a temporary file; threads may share it."""

    def __init__(self, tensor: np.ndarray):
        self._lock, self._shape, self._type = Lock(), tensor.shape, tensor.dtype
        self._file = TemporaryFile(prefix="n2d2py-")  # noqa: SIM115  closed with its last owner
        np.ascontiguousarray(tensor).tofile(self._file)

    def read(self) -> np.ndarray:
        """Return the tensor."""
        with self._lock:
            self._file.seek(0)
            return np.fromfile(self._file, self._type).reshape(self._shape)
