"""Records of whole chains in a file: compared with what is found today, and written again on purpose."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from support.chain_networks import Case
from support.chain_record import Record, differences, record, settled, shaken


@dataclass(frozen=True)
class KeptChains:
    """The cases of a file of tests, and the file that keeps their records."""

    path: Path
    cases: Mapping[str, Case]

    @cached_property
    def _records(self) -> dict[str, Record]:
        return json.loads(self.path.read_text(encoding="utf-8"))

    def differences(self, name: str) -> list[str]:
        """What is not as it was kept, in a working folder of the case's own."""
        return differences(self._records[name], self._found(name, 0))

    def write(self) -> None:
        """Keeps what is found now."""
        found, home = {}, Path.cwd()
        for name in self.cases:
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                found[name] = settled(lambda noise, name=name: self._found(name, noise))
                os.chdir(home)
        self.path.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")

    def _found(self, name: str, noise: int) -> Record:
        case, data = self.cases[name], Path("data.npz")
        file = case.make(Path.cwd())
        if noise and data.exists():
            np.savez(data, x=shaken(np.load(data)["x"], noise))
        return record(file, case.words, case.plans, noise)
