"""Data of a run: databases, transformations, the stimuli provider, calibration sources, labels."""

from n2d2py.data.database import Database, database_schemas, read_database
from n2d2py.data.environment import Environment, read_environment
from n2d2py.data.labels import LabelsMapping, read_labels_mapping
from n2d2py.data.provider import StimuliProvider, build_provider, provider_schemas
from n2d2py.data.sources import open_source, synthetic
from n2d2py.data.stimuli import Stimuli
from n2d2py.data.transformations.base import transformation_schemas
