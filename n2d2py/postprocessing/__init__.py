"""Kinds of post-processing: what follows the outputs of a network, in integers, in Python and in an export (`-post`).

A kind is a file here that adds itself to `KINDS`.
"""

from n2d2py.postprocessing.contract import KINDS, Detector, PostProcessor, files_of, parse_post, recognized, with_files
from n2d2py.postprocessing.results import Decision, Detection, Embedding, KeyPoint
