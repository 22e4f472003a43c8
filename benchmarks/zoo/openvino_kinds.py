"""Prints OpenVINO's microseconds for each kind of layer of an ONNX file as JSON: MODEL.onnx THREADS."""

from __future__ import annotations

import json
import sys
from collections import defaultdict

import numpy as np
import openvino

REPEATED = 30


def main() -> None:
    core = openvino.Core()
    network = core.compile_model(
        sys.argv[1], "CPU", {"INFERENCE_NUM_THREADS": int(sys.argv[2]), "NUM_STREAMS": 1, "PERF_COUNT": True}
    )
    request = network.create_infer_request()
    feeds = {
        i: np.zeros([axis.get_length() if axis.is_static else 1 for axis in port.partial_shape], np.float32)
        for i, port in enumerate(network.inputs)
    }
    least: dict[tuple[str, str], float] = {}
    for _ in range(REPEATED):
        request.infer(feeds)
        for part in request.profiling_info:
            if str(part.status).endswith("EXECUTED"):
                key, us = (part.node_name, f"{part.node_type} {part.exec_type}"), part.real_time.total_seconds() * 1e6
                least[key] = min(us, least.get(key, us))
    kinds: dict[str, float] = defaultdict(float)
    for (_, kind), us in least.items():
        kinds[kind] += us
    print(json.dumps(dict(sorted(kinds.items(), key=lambda item: -item[1]))))


if __name__ == "__main__":
    main()
