"""The INI language: lexing, inheritance, templates, expansion, typed reading by schemas.

Messages:

=====  ==========================================================================================
E101   a file cannot be read            E112   an expression has no value
E102   a file is not UTF-8 text         E113   an expansion is beyond the bounds
E103   an unpaired quote                E114   an unclosed `${` or `$(`
E104   a line without name=value        E115   a reference without property name
E105   a malformed section header       E116   a template is not found
E106   a section declared twice         E117   a template is refused
E107   an unknown base section          E118   a malformed template
E108   a property is missing            E119   no such section
E109   a value of another type          E120   a template parameter is not or doubly defined
E110   an unknown macro                 E121   a line of params.ini cannot be read
E111   a circular definition            E122   a value that is not allowed
E124   a key that is not supported      W108   keys without effect
W101   a key given twice                W105   a continuation at the end of the text
W102   an unknown key                   W106   a comment that continues on the next line
W103   a fraction read as integer       W107   an unknown layer in params.ini
W104   blanks after a backslash
=====  ==========================================================================================
"""

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
