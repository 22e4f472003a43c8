"""The version of n2d2py; `setup.cfg` reads it here."""

__version__ = "0.5.0"
