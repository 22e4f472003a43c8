"""The INI language: lexing, inheritance, templates, expansion, and typed values by schemas."""

from n2d2py.ini.builder import load_document
from n2d2py.ini.config import merge_config
from n2d2py.ini.document import Document, Section, wildcard_match
from n2d2py.ini.params import Params, read_params
from n2d2py.ini.paths import resolve_path
from n2d2py.ini.schema import REQUIRED, Key, Kind, Schema, Values, keys

__all__ = [
    "REQUIRED",
    "Document",
    "Key",
    "Kind",
    "Params",
    "Schema",
    "Section",
    "Values",
    "keys",
    "load_document",
    "merge_config",
    "read_params",
    "resolve_path",
    "wildcard_match",
]
