"""[database.filterROIs] and [database.sortAndDropLabels]: which labels of a database are used."""

from __future__ import annotations

import numpy as np

from n2d2py import log
from n2d2py.data.database.base import Database
from n2d2py.errors import Location, N2D2Error, nearest
from n2d2py.ini import Key, Kind, Schema, Section

FILTER_ROIS = Schema(
    "database.filterROIs",
    (
        Key("Labels", Kind.STRINGS, doc="Names of database labels."),
        Key("FilterKeep", Kind.BOOL, True, "1: keep these labels. 0: leave them out."),
        Key("RemoveStimuli", Kind.BOOL, True, "1: remove the stimuli of the other labels. 0: keep them without a label."),
    ),
    doc="Select stimuli by label. A stimulus is a whole image, or a region cropped by ExtractROIs.",
)

SORT_AND_DROP = Schema(
    "database.sortAndDropLabels",
    (
        Key("NbKeep", Kind.UINT, doc="Number of labels to keep.", minimum=1),
        Key("Ascending", Kind.BOOL, True, "1: keep the labels with the fewest stimuli. 0: keep those with the most."),
    ),
    doc="Sort the labels by their number of stimuli and keep the first ones, with ids from 0 in that order. The stimuli of "
    "the other labels are removed.",
)


def filter_labels(database: Database, section: Section) -> Database:
    """The database with the stimuli that [database.filterROIs] chooses; label ids stay.

    Raises:
        N2D2Error: E410 for a label that the database does not have.
    """
    values = FILTER_ROIS.read(section)
    listed = np.isin(database.labels, [_label(name, database, values.where("Labels")) for name in values["Labels"]])
    kept = listed if values["FilterKeep"] else ~listed
    log.notice(
        "%s: %d of %d stimuli are %s",
        section.name,
        int(kept.sum()),
        len(kept),
        "kept" if values["RemoveStimuli"] else "labelled",
    )
    if values["RemoveStimuli"]:
        return _only(database, kept, database.labels, database.label_names)
    return _only(database, np.ones(len(kept), bool), np.where(kept, database.labels, -1), database.label_names)


def sort_and_drop_labels(database: Database, section: Section) -> Database:
    """The database with the labels that [database.sortAndDropLabels] keeps."""
    values = SORT_AND_DROP.read(section)
    used = np.unique(np.concatenate([database.labels[at] for at in database.sets.values()]))
    count = max(int(used.max(initial=-1)) + 1, len(database.label_names))
    sizes = np.bincount(database.labels[database.labels >= 0], minlength=count)
    order = np.argsort(sizes if values["Ascending"] else -sizes, kind="stable")
    kept = np.sort(order[: values["NbKeep"]])
    new_ids = np.full(count + 1, -1, np.int64)  # the last entry is that of label -1
    new_ids[kept] = np.arange(len(kept))
    names = tuple(database.label_names[old] if old < len(database.label_names) else str(old) for old in kept)
    log.notice(
        "%s: %d of %d labels are kept: %s",
        section.name,
        len(kept),
        count,
        ", ".join(names[:10]) + (", ..." if len(names) > 10 else ""),
    )
    labels = new_ids[database.labels]
    return _only(database, labels >= 0, labels, names)


def _only(database: Database, kept: np.ndarray, labels: np.ndarray, names: tuple[str, ...]) -> Database:
    """The database whose sets hold the kept stimuli only; the list of stimuli is the same."""
    sets = {name: at[kept[at]] for name, at in database.sets.items()}
    return Database(database.type, database.items, labels, names, sets, database.maps)


def _label(name: str, database: Database, where: Location) -> int:
    for candidate in (name, f"/{name}"):
        if candidate in database.label_names:
            return database.label_names.index(candidate)
    like = nearest(name, database.label_names)
    raise N2D2Error(
        "E410",
        f"label '{name}' is not in the database",
        where=where,
        remedy=f"did you mean '{like}'?" if like else "correct Labels",
    )
