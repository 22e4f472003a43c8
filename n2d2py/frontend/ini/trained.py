"""Keys of training with quantization (QAT): a network that has them is another one without them, so they are refused."""

from __future__ import annotations

from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.ini.document import Document, wildcard_match
from n2d2py.ini.ignored import Ignored

__all__ = ["QUANTIZED_ACTIVATION", "QUANTIZED_TRAINING", "refuse_quantized_training"]

_QAT = Ignored(
    "",
    "keys of training with quantization",
    "trains with quantized values (QAT)",
    "train the network in floating point and quantize it with -calib, or give it as an ONNX file with "
    "QuantizeLinear and DequantizeLinear; remove the keys only if its weights were trained without them",
    changes=True,
)
QUANTIZED_TRAINING = _QAT.of("QWeight*", "QAct*", "QBias*")
QUANTIZED_ACTIVATION = _QAT.of("ActivationFunction.Quantization*", "ActivationFunction.Log2Rounding*")


def refuse_quantized_training(document: Document) -> None:
    """Refuses a document with such keys in any section, used or not.

    Raises:
        N2D2Error: E242 with all names of keys, one for each kind of them.
    """
    errors = []
    for entry in (*QUANTIZED_TRAINING, *QUANTIZED_ACTIVATION):
        places = {
            name: section.where(name)
            for section in reversed((document.globals, *document.sections))
            for name in reversed(section.keys())
            if wildcard_match(entry.pattern, name)
        }
        if places:
            names = list(reversed(places))
            errors.append(
                N2D2Error(
                    "E242",
                    f"{', '.join(names)}: training with quantization (QAT) is not supported; without "
                    f"{'this key' if len(names) == 1 else 'these keys'} it would be another network",
                    where=places[names[0]],
                    remedy=entry.remedy,
                )
            )
    ErrorList.raise_if(errors)
