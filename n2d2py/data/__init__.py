"""The data of a run: databases, transformations, the stimuli provider, calibration sources, labels.

Messages:

=====  ==========================================================================================
E401   a data file or folder is missing or cannot be read
E402   a data file is damaged or not of its format
E403   an image cannot be decoded
E404   an unknown type of database
E405   an unknown type of transformation
E406   a feature of N2D2 that is not supported applies to the data
E407   the size after the transformations is not the declared one
E408   a transformation cannot be applied to the data
E409   the fractions of the sets cannot be met
E410   a label or a value of a list or table cannot be read
E411   the size of the network's input is not declared, or cannot be used
E412   a line of a labels mapping cannot be read
E413   a label has no output
E414   an array has a shape or type that cannot be used
E415   stimuli of different number types
E416   a source without stimuli
E417   a parameter of a transformation or a source is invalid
E418   a stimulus holds NaN or infinity
E419   a chain of LoadMore that does not end
W401   no database
W402   synthetic stimuli
W403   an unknown sub-section of the provider
W404   labels without a name
W405   a mapping of a label that the database does not have
W406   matrices of StimuliData that stimuli of different sizes do not have
=====  ==========================================================================================
"""

from n2d2py.data.database import Database, database_schemas, read_database
from n2d2py.data.labels_mapping import LabelsMapping, read_labels_mapping
from n2d2py.data.provider import Environment, StimuliProvider, build_provider, provider_schemas, read_environment
from n2d2py.data.sources import open_source, synthetic
from n2d2py.data.stimuli import Stimuli
from n2d2py.data.transformations import transformation_schemas

__all__ = [
    "Database",
    "Environment",
    "LabelsMapping",
    "Stimuli",
    "StimuliProvider",
    "build_provider",
    "database_schemas",
    "open_source",
    "provider_schemas",
    "read_database",
    "read_environment",
    "read_labels_mapping",
    "synthetic",
    "transformation_schemas",
]
