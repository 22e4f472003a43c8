"""Makes a shared library of a float ONNX model by Aidge's own int8 C++ export, so that it can be timed beside the others.

    PYTHON benchmarks/aidge_model.py MODEL.onnx LIBRARY.so

PYTHON has aidge_core, aidge_onnx, aidge_backend_cpu, aidge_quantization and aidge_export_cpp (0.10). The model is quantized by
aidge_quantization (random calibration data: times do not depend on it), exported for the target "host", and compiled with the flags
of the export's own CMakeLists.txt (-O3 -ffast-math -march=native, OpenMP). What Aidge cannot export raises what Aidge raises.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from common import input_shapes

__all__ = ["write_aidge"]

FLAGS = ["-O3", "-ffast-math", "-march=native", "-fopenmp", "-fPIC", "-shared"]
"""Those of the export, and what makes a library of it."""


def write_aidge(model: Path, library: Path) -> Path:
    """Writes the shared library, whose `model_forward(int8_t* input, T** output)` is one inference; returns its path."""
    import aidge_backend_cpu  # noqa: F401  registers the kernels that calibrate
    import aidge_core
    import aidge_export_cpp  # noqa: F401  registers the target "host"
    import aidge_onnx
    import aidge_quantization  # noqa: F401  quantizes within export()
    from aidge_core.export_utils.export import ExportConfig, export

    aidge_core.Log.set_console_level(aidge_core.Level.Error)
    graph = aidge_onnx.load_onnx(str(model.resolve()))
    random, (shape,) = np.random.default_rng(0), input_shapes(model).values()
    samples = [aidge_core.Tensor(random.random(shape, np.float32)) for _ in range(8)]
    library, here = library.resolve(), Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "export"
        os.chdir(name)  # Aidge leaves drawings of the graph where it runs
        try:
            export(graph, ExportConfig(target="host", export_folder=str(folder), dtype="int8", compile=False), samples)
        finally:
            os.chdir(here)
        sources = [str(path) for path in sorted(folder.glob("dnn/src/**/*.cpp"))]
        includes = [f"-I{folder / part}" for part in ("dnn", "dnn/include", ".")]
        subprocess.run(["g++", *FLAGS, *includes, *sources, "-o", str(library)], check=True)
    return library


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(write_aidge(Path(sys.argv[1]), Path(sys.argv[2])))
