"""Transformations of stimuli: one file per group, each type registered under its name in INI files."""

from n2d2py.data.transformations import color, crops, filters, geometry, labels, matrix, random, spectrum, values
from n2d2py.data.transformations.base import (
    APPLY_TO,
    Inapplicable,
    RandomTransformation,
    Range,
    Transformation,
    applies_to,
    read_transformation,
    reported,
    transformation,
    transformation_schemas,
)
