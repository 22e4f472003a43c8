"""The command line: a table of options, its parser, the typed options that it makes, and its help."""

from n2d2py.options.help import COMMON, PURPOSE, USAGE, help_text, option_values
from n2d2py.options.parser import Arguments, parse_arguments
from n2d2py.options.table import FUSED, GROUPS, IGNORED, OPTIONS, REFUSED, Option
from n2d2py.options.typed import checked, python_words, read_command, recorded, run_options
