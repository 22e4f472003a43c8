"""The files of the C++ project, from templates (`export_templates/cpp`), kernels and the code of each layer."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

from n2d2py import resources
from n2d2py.contracts.cpp import LayerCode, dispatched
from n2d2py.contracts.cpp.identifiers import sanitise
from n2d2py.exports.cpp.headers import copy_headers
from n2d2py.exports.cpp.processors import TARGETS
from n2d2py.exports.cpp.project_view import ProjectView
from n2d2py.exports.cpp.view import ArrayView, LayerView
from n2d2py.exports.cpp.weights_file import WEIGHTS_FILE, weight_rows
from n2d2py.exports.stimuli import write_stimuli
from n2d2py.files import write_text
from n2d2py.postprocessing import files_of
from n2d2py.resources import templates
from n2d2py.runtime.graph_file import GRAPH_FILE, StoredRows, write_graph

_GROUP, _BIG_GROUP = 8, 14
"""Layers of a source file, and those of a big network."""


def _groups(layers: list[LayerView], most: int, least: int) -> list[list[LayerView]]:
    """Return the layers of each source file: at most `most` that follow each other, and `least` files for a small network."""
    count = max(-(-len(layers) // most), min(least, len(layers)))
    cuts = [i * len(layers) // count for i in range(count + 1)] if count else [0]
    return [layers[begin:end] for begin, end in pairwise(cuts)]


def wanted_names(*groups: tuple[object, str]) -> list[str]:
    """Return the names of the groups whose condition is true."""
    return [name for wanted, names in groups if wanted for name in names.split()]


class Project(ProjectView):
    """Turns a request and the code of its layers by name into files; layers without code are views.

    Attributes:
        folders: where its templates are, below `export_templates`, the first ones first.
    """

    folders: tuple[str, ...] = ("cpp",)

    def write(self, folder: Path) -> None:
        """Write everything but the manifest."""
        for template, target in self._files():
            self._render(template, folder / target, {})
        self._write_targets(folder)
        most, least = _BIG_GROUP if self.weights_format == "once" or self.small_code else _GROUP, 1 if self.small_code else 2
        groups = _groups(self.compiled_layers, most, least)
        for number, group in enumerate(groups, 1):
            self._render("dnn/src/layers.cpp", folder / f"dnn/src/layers_{number}.cpp", {"group": group})
            constants = {layer.stem: self._write_layer(layer, layer.code, folder) for layer in group if layer.code}
            if self.weights_format == "once":  # a compiler takes longer to start than to read these few lines
                constants = {f"constants_{number}": "\n".join(filter(None, constants.values()))}
            for stem, text in constants.items():
                if text:
                    write_text(folder / f"dnn/parameters/{stem}.cpp", text)
        if self.weights_file:
            (folder / "dnn/parameters" / WEIGHTS_FILE).write_bytes(self.weights_file.data)
        copy_headers(self.kernel_headers, resources.folder("kernels"), folder / "kernels", self.sets)
        self._write_stimuli(folder)
        for key, path in files_of(self.request.post).items() if self.request.post else ():
            shutil.copyfile(path, folder / f"{key}.npy")
        rows = self._stored_rows() if self.weights_format == "once" or self.weights_file else {}
        write_graph(self.graph, folder / GRAPH_FILE, rows)

    @property
    def kernel_headers(self) -> list[str]:
        """The kernel headers that the sources include."""
        headers = [header for layer in self.compiled_layers if layer.code for header in layer.code.headers]
        names = (
            (True, "parallel plane peak quantize tuning vector_length"),
            (self.has_files, "binary"),
            (self.derivations, "derived"),
        )
        stems = [*wanted_names(*names), *([self.post.post.kernel] if self.post else [])]
        headers += [f"n2d2/{stem}.hpp" for stem in stems]
        headers += [self.conversion.header] if self.conversion else []
        return headers + [one.asks for one in dispatched() if one.asks and self.dispatch]

    def _write_targets(self, folder: Path) -> None:
        """Write the options of CMake for each processor to build for, and what runs programs for WebAssembly."""
        shutil.copyfile(resources.folder("export_templates") / "cpp" / "run" / "wasi.mjs", folder / "run" / "wasi.mjs")
        for machine in (one for one in TARGETS if not one.clang):
            self._render("cmake/target.cmake", folder / f"cmake/{machine.name}.cmake", {"target": machine})

    def _write_stimuli(self, folder: Path) -> None:
        stems = [sanitise(name) for name in self.graph.user_inputs]
        write_stimuli(self.request.stimuli, self.graph, stems, folder)

    def _files(self) -> list[tuple[str, str]]:
        """(template, file) for all that is written once."""
        once = wanted_names(
            (True, "Makefile CMakeLists.txt README.md main.cpp dnn/stack.awk"),
            (self.dispatch, "dnn/include/dispatch.hpp dnn/src/dispatch.cpp dnn/src/variant.cpp"),
            (self.derivations, "dnn/derive.cpp dnn/parameters/derived.list"),
            (self.weights_file, "dnn/src/weights.cpp dnn/include/weights.hpp run/weights.hpp"),
            (self.picture, "examples/camera.h examples/camera.c examples/camera.cpp examples/netpbm.h"),
            (self.app, f"app/{self.app}.cpp"),
            (self.app == "camera", "app/page.cpp app/page.html"),
            (self.namespace.lower() != "network", "include/network.hpp"),  # else the interface has this name already
        )
        once += [f"run/{stem}.hpp" for stem in ("stimuli", "inference", "score", "times", "profile", "tune", "dump")]
        return [(name, name) for name in (*once, *self.shared_files)] + self.interface_files

    @property
    def shared_files(self) -> list[str]:
        """Files that hosts and boards share."""
        stems = ("env", "mem_info", "transfer", "forward", "threads", "guard")
        headers = wanted_names((self.app, "app/app.h app/result.h"), (self.app in ("camera", "microphone"), "app/file.h"))
        return [*headers, *(f"dnn/include/{stem}.hpp" for stem in stems), *(f"dnn/src/{stem}.cpp" for stem in self.sources)]

    @property
    def interface_files(self) -> list[tuple[str, str]]:
        return [(f"include/interface.{suffix}", f"include/{self.namespace}.{suffix}") for suffix in ("h", "hpp")]

    @property
    def sources(self) -> list[str]:
        """Stems of the sources of every project."""
        more = wanted_names(
            (self.partial, "partial"),
            (self.other_memories or self.plan.state_memory, "memories"),
            (self.conversion, self.conversion.stem if self.conversion else ""),
            (self.post, "post"),
        )
        return ["forward", *more, "trace", "arena", "info", "quantize"]

    def _stored_rows(self) -> dict[str, StoredRows]:
        """By layer, the weights in `dnn/parameters` that are the graph's in another order."""
        file = self.weights_file
        stored = ((one.node.name, one.code and weight_rows(one.node, one.code, self.graph, file)) for one in self.layers)
        return {name: rows for name, rows in stored if rows}

    def _write_layer(self, layer: LayerView, code: LayerCode, folder: Path) -> str:
        """Write what a layer has but for the source of its constants, which it returns."""
        arrays = [ArrayView.of(array, self.weights_format) for array in code.constants]
        own = [view for view, array in zip(arrays, code.constants, strict=True) if not (array.borrowed or array.apart)]
        values = {"layer": layer, "arrays": arrays, "own": own, "headers": code.headers, "config": code.config.strip("\n")}
        self._render("dnn/include/layer.hpp", folder / f"dnn/include/{layer.stem}.hpp", values)
        (folder / "dnn/parameters").mkdir(exist_ok=True)
        for array in own:
            array.write_files(folder / "dnn/parameters")
        return self._rendered("dnn/parameters/layer.cpp", values) if own else ""

    def _rendered(self, template: str, values: dict[str, Any]) -> str:
        return templates(*self.folders).get_template(f"{template}.j2").render({"project": self, **values})

    def _render(self, template: str, path: Path, values: dict[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, self._rendered(template, values))
