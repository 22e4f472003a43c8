"""Databases: one file per family of types, each registered under its name in INI files."""

from dataclasses import replace

import numpy as np

from n2d2py import log
from n2d2py.data.database import annotated, arrays, directory, idx, labelled
from n2d2py.data.database.base import SETS, Context, Database, concat_items, data_path, load
from n2d2py.data.database.base import database_schemas as _type_schemas
from n2d2py.data.database.selection import STEPS
from n2d2py.data.decode import read_lines
from n2d2py.errors import N2D2Error
from n2d2py.ini import COVERED, Document, Key, Kind, Schema, Values, resolve_path


def database_schemas() -> list[Schema]:
    """Return the schemas of all database types, by name, and of the steps on them."""
    return [*_type_schemas(), *(schema for schema, _ in STEPS)]


def empty_database(label_names: tuple[str, ...] = ()) -> Database:
    """Return a database without stimuli."""
    return Database(concat_items([]), np.zeros(0, np.int64), label_names)


def has_database(document: Document) -> bool:
    """True if the document declares a database."""
    section = document.section("database")
    return section is not None and section.has("Type")


def read_database(
    document: Document, *, seed: int = 0, shape: tuple[int, ...] = (1, 1, 1), instead: Database | None = None
) -> Database:
    """Return the database of [database] after [database.filterROIs], .sortAndDropLabels and .slicing, in this order.

    Without a section or Type, return `instead`, else the empty database with a warning, with the label names of LabelPath.
    `instead` also replaces a database with missing files (E401). `shape`: network input, (C, H, W) or (F,), the default of
    Random_Database.

    Raises: E404 an unknown type, E406 an unsupported setting, and the errors of the type.
    """
    section = document.section("database")
    if section is None or not has_database(document):
        where = None if section is None else section.location
        names = () if section is None else _label_names(_WITHOUT_TYPE.read(section))
        if instead is not None:
            return replace(instead, label_names=names or instead.label_names)
        what = "the INI has no [database] with a Type"
        log.warning("W401", what, where=where, remedy="add a [database], or give -calib-data")
        return empty_database(names)
    try:
        database = load(section.text("Type").strip(), section, Context(seed, shape))
    except N2D2Error as error:
        if instead is None or error.code != "E401":
            raise
        log.notice("%s: %s; the data of -calib-data stand in for them", error.where or section.location, error.what)
        return instead
    for schema, step in STEPS:
        if (chosen := document.section(schema.name)) is not None:
            database = step(database, schema.read(chosen), seed)
    log.detail("database: %s", ", ".join(f"{name} {size}" for name, size in database.sizes().items()))
    return database


_WITHOUT_TYPE = Schema(
    "database without Type",
    (Key("LabelPath", Kind.PATH, "", "File with the names of the labels 0, 1, ..., one per line."),),
    (COVERED,),
)


def _label_names(values: Values) -> tuple[str, ...]:
    if not values["LabelPath"]:
        return ()
    return tuple(line for _, line in read_lines(data_path(values, "LabelPath", folder=False)))
