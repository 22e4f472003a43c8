"""The INI language: lexing, inheritance, templates, expansion, and typed values by schemas."""

from n2d2py.ini.builder import load_document
from n2d2py.ini.document import Document, Section, resolve_path, wildcard_match
from n2d2py.ini.ignored import CACHES, COVERED, ON_LABELS, SPIKING, TRAINING, Ignored, IgnoredKeys
from n2d2py.ini.kinds import Kind, Unreadable
from n2d2py.ini.params import (
    GENERAL,
    LAYER_PARAMETERS,
    PRECISION_KEYS,
    ExportParameters,
    ParametersT,
    Params,
    field_of,
    fields_by_key,
    parameter,
    read_params,
)
from n2d2py.ini.schema import REQUIRED, Key, Schema, Values, Wrong, keys, merge_config, option_error, read_choice, require_known
