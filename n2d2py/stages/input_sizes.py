"""Sizes of inputs that an ONNX file leaves open: from -input-shape, or from the arrays that are given."""

from __future__ import annotations

from n2d2py import log
from n2d2py.data.database.numpy_file import read_arrays
from n2d2py.data.given import given_data
from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.layout import nhwc_inputs
from n2d2py.frontend.onnx.model import OnnxModel
from n2d2py.stages.options import LoadOptions


def size_inputs(model: OnnxModel, options: LoadOptions) -> None:
    """Gives inputs whose sizes an ONNX file leaves open those of -input-shape, or of the arrays that are given.

    Raises:
        N2D2Error: E003 a text that is no shape, E305 a shape that the file does not allow, an input that there is not.
    """
    for name, sizes in _shapes(options.input_shape, [one.name for one in model.fed]).items():
        model.set_sizes(name, sizes)
    first, *others = model.fed
    if not others and first.is_open and options.data is not None:
        given = given_data(options.data)
        if not given.is_folder:
            sizes = read_arrays(given)[0].shape[1:]
            channels_last = first.name in nhwc_inputs(model.proto.graph)
            if len(sizes) == 3 and (options.layout == "nhwc") != channels_last:
                sizes = (*sizes[1:], sizes[0]) if channels_last else (sizes[2], *sizes[:2])
            model.set_sizes(first.name, sizes)
            log.notice("the input '%s' is %s, as %s", first.name, "x".join(map(str, sizes)), given.name)


def _shapes(text: str | None, names: list[str]) -> dict[str, tuple[int, ...]]:
    """The shapes by the names of the inputs; one without name is that of the only input."""
    found: dict[str, tuple[int, ...]] = {}
    for part in text.split(",") if text is not None else ():
        name, equals, sizes = part.rpartition("=")
        try:
            shape = tuple(int(size) for size in sizes.lower().split("x"))
        except ValueError:
            shape = ()
        if not shape or min(shape) < 1 or (not equals and len(names) > 1):
            raise N2D2Error(
                "E003",
                f"-input-shape {text} gives no shape for '{name or names[0]}'",
                remedy="give sizes such as 3x224x224, with NAME= in front where there are several inputs",
            )
        found[name.strip() if equals else names[0]] = shape
    return found
