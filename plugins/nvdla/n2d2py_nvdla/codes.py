"""The codes of the errors and warnings of the NVDLA target and of `n2d2py-nvdla`."""

from __future__ import annotations

CODES = {
    "E715": ("a layer, or a tensor, that the NVDLA hardware cannot run", "run it elsewhere, or choose another configuration"),
    "E716": ("a network beyond the limits of NVDLA's firmware or runtime", "use a larger configuration"),
    "E717": ("a loadable that the checker refuses: a defect", "report it"),
    "E718": ("a calibration table that cannot be read, or does not fit the network", "correct it"),
    "E901": ("a file that is not an NVDLA loadable, or a damaged one", "compile or copy it again"),
    "E902": ("a file of `n2d2py-nvdla` that cannot be read or written", "check the path and its permissions"),
    "E903": ("a loadable that the functional model cannot run", "use what NVIDIA's compiler and firmware use"),
    "E904": ("a loadable on which hardware would wait for ever", "correct the dependency graph, or compile it again"),
    "E905": ("an input, or an output, of another kind or size than the loadable's", "see the message"),
    "E906": ("a descriptor that leaves its memory", "compile it again"),
    "E907": ("an unknown configuration of the NVDLA hardware", "use one of those listed"),
    "E908": ("a loadable that hardware, firmware or NVIDIA's runtime would refuse", "compile it again"),
    "W701": ("NVDLA layers that run on the CPU as extension operations", "run the loadable with `n2d2py-nvdla`"),
    "W702": ("a loadable that leaves weights in the convolution buffer", "compile it again before it runs more than once"),
}
"""Code -> (what it means, the general remedy)."""
