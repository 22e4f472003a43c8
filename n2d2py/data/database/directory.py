"""DIR_Database: the files of a folder, labelled by their sub-folders; Caltech101 and Caltech256 are special cases."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.data.database.base import PARTITION_KEYS, RAREST_KEYS, Context, Database, Items, data_path, file_items, register
from n2d2py.data.decode import READERS, SOUNDS, TABLES, read_stimulus, unreadable_error
from n2d2py.errors import N2D2Error, readable
from n2d2py.ini import REQUIRED, Ignored, Key, Kind, Unreadable, Values

_Channels = tuple[re.Pattern[str], tuple[str, ...]]
"""A pattern of the first file of a stimulus, and the paths of all its channels in terms of the pattern's groups."""


@dataclass
class Listing:
    """Files of a folder (relative paths), their label ids (-1: none), other files, and the masks without a match."""

    files: list[str] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    unmatched: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class FileSelection:
    """Files of a folder that are stimuli, and their labels.

    Attributes:
        depth, label_name, label_depth: as the keys of DIR_Database.
        ignore_masks: files and folders whose absolute path matches one are skipped.
        valid_extensions: of the files to read; () for all that are known.
        skipped: names of folders directly below the root.
        channels: of stimuli with a file for each channel.
    """

    depth: int = 1
    label_name: str = ""
    label_depth: int = 1
    ignore_masks: Sequence[str] = ()
    valid_extensions: Sequence[str] = ()
    skipped: Sequence[str] = ()
    channels: _Channels | None = None


def list_directory(root: Path, known: dict[str, int], selection: FileSelection = FileSelection()) -> Listing:
    """Return the stimuli of a folder: its files by name, then its sub-folders by name. New labels get the next ids in `known`.

    Raises: E401 if a folder cannot be read.
    """
    masks = {text: _compile_mask(text) for text in selection.ignore_masks}
    above = root.absolute().as_posix()
    valid = {"." + text.lower().lstrip(".") for text in selection.valid_extensions}
    extensions = {each for each in READERS if each not in TABLES or each in valid} | valid.intersection(SOUNDS)
    listing = Listing(unmatched=set(masks))

    def masked(path: str) -> bool:
        matching = {text for text, mask in masks.items() if mask.fullmatch(f"{above}/{path}")}
        listing.unmatched -= matching
        return bool(matching)

    def visit(folder: str) -> None:
        names, folders = _entries(root / folder)
        parts, prefix = (folder.split("/"), f"{folder}/") if folder else ([], "")
        label = selection.label_name + "".join(f"/{part}" for part in parts[: max(selection.label_depth, 0)])
        for path in [f"{prefix}{name}" for name in names]:
            extension = os.path.splitext(path)[1].lower()
            if masked(path) or (valid and extension not in valid):
                continue
            if extension not in extensions:
                listing.unreadable.append(path)
                continue
            listing.files.append(path)
            listing.labels.append(known.setdefault(readable(label), len(known)) if selection.label_depth >= 0 else -1)
        for name in folders if len(parts) != selection.depth else ():
            if (folder or name not in selection.skipped) and not masked(f"{prefix}{name}"):
                visit(f"{prefix}{name}")

    visit("")
    nothing = not listing.files and not valid and len(listing.unmatched) == len(masks)
    if nothing and any(name.lower().endswith(TABLES) for name in listing.unreadable):
        extensions.update(TABLES)
        listing = Listing(unmatched=listing.unmatched)
        visit("")
    return listing


def _entries(folder: Path) -> tuple[list[str], list[str]]:
    """Return the sorted names of the regular files and of the folders in a folder, without hidden ones."""
    try:
        with os.scandir(folder) as entries:
            shown = [entry for entry in entries if not entry.name.startswith(".")]
            return sorted(one.name for one in shown if one.is_file()), sorted(one.name for one in shown if one.is_dir())
    except OSError as error:
        raise unreadable_error(folder, error) from None


def _compile_mask(text: str) -> re.Pattern[str]:
    parts = {"*": ".*", "+": ".+", "?": "."}
    return re.compile("".join(parts.get(letter, re.escape(letter)) for letter in text), re.DOTALL)


def _channels(values: Values) -> _Channels | None:
    text, replace = values["MultiChannelMatch"], values["MultiChannelReplace"]
    if not text and not replace:
        return None
    key = "MultiChannelMatch" if replace else "MultiChannelReplace"
    try:
        if not text or not replace:
            raise ValueError("one of the two keys is absent")
        match = re.compile(text)
        templates = tuple(re.sub(r"\$(\d+)", r"\\g<\1>", each.replace("\\", "/")) for each in replace if each)
        for template in templates:
            re.compile(f"(?:{text})|").sub(template, "")
    except (re.error, ValueError, IndexError, RecursionError) as error:
        where = values.where("MultiChannelMatch" if text else "MultiChannelReplace")
        problem = Unreadable(f"{key} cannot be used: {error}", "give both, with groups that MultiChannelMatch has")
        raise problem.error(where) from None
    return match, templates


def _channel_items(root: Path, files: Sequence[str], channels: _Channels) -> Items:
    """Return stimuli with a file for each channel; `files` are those of the first channels."""
    match, templates = channels
    names = [tuple(match.sub(template, name, count=1) for template in templates) for name in files]
    absent = [each for found in names for each in found if not (root / each).is_file()]
    if absent:
        log.notice("%s: %d channels have no file and are 0, the first one is %s", root.name, len(absent), absent[0])

    def read(index: int) -> np.ndarray:
        first = read_stimulus(root / files[index], files[index])
        planes = []
        for name in names[index]:
            path = root / name
            planes.append(read_stimulus(path, name) if path.is_file() else np.zeros_like(first))
            height, width = planes[-1].shape[:2]
            if (height, width) != first.shape[:2] or planes[-1].dtype != first.dtype:
                what = f"the channel {name} is {width}x{height} {planes[-1].dtype}, unlike {files[index]}"
                raise N2D2Error("E402", what, remedy="store all channels of a stimulus in one size and type")
        return np.concatenate(planes, axis=2)

    return Items(files, read, root)


def _read_folder(root: Path, values: Values, known: dict[str, int], selection: FileSelection, context: Context) -> Database:
    """Return the stimuli of a folder, with the sets of a section; new labels get the next ids in `known`.

    Raises: E401, E409, E416 if the folder contains no stimulus.
    """
    where = values.section.location
    listing = list_directory(root, known, selection)
    files, labels = listing.files, np.array(listing.labels, np.int64)
    channels = selection.channels
    if channels:
        first = np.array([channels[0].fullmatch(name) is not None for name in files], bool)
        files, labels = [files[index] for index in np.flatnonzero(first)], labels[first]
    if others := listing.unreadable:
        log.notice("%s: ignored %d files that are not stimuli, the first one is %s", root.name, len(others), others[0])
    if listing.unmatched:
        what = f"IgnoreMasks matches nothing with {', '.join(sorted(listing.unmatched))}"
        log.warning("W413", what, where=where, remedy="begin it with */: a mask is compared with whole paths")
    if not files:
        remedy = "check DataPath, Depth, ValidExtensions and IgnoreMasks"
        raise N2D2Error("E416", f"{root} contains no stimulus", where=where, remedy=remedy)
    items = _channel_items(root, files, channels) if channels else file_items(root, files)
    return Database(items, labels, sets=context.split(labels, values))


def _read_map(root: Path, database: Database, index: int) -> np.ndarray:
    """Return the pixel-wise labels of a stimulus from a file of the folder `root`, named like the stimulus."""
    name = database.items.name(index)
    files = [root / f"{name.rpartition('.')[0]}{extension}" for extension in (".png", ".npy")]
    file = next((one for one in files if one.is_file()), None)
    if file is None:
        what = f"{files[0].relative_to(root)} or .npy with the pixel-wise labels of {name} is missing in {root}"
        raise N2D2Error("E401", what, remedy="set LabelImagePath to the folder of the labels")
    labels = read_stimulus(file, f"the labels of {name}")
    if labels.shape[2] != 1 or labels.dtype.kind not in "iu":
        what = f"the labels of {name} have {labels.shape[2]} channels of type {labels.dtype}"
        raise N2D2Error("E402", what, remedy="store gray images or integers of shape (H, W)")
    ids = labels[:, :, 0].astype(np.int64)
    return np.where((ids < 0) | ((ids == 255) & (labels.dtype == np.uint8)), -1, ids)


_UNLESS_TABLES = "File extensions to read. Default: all supported; text files (.csv, .dat, .txt) if there are no others."
_MASKS = """Leave out files and folders whose whole path, DataPath included, matches one of these patterns. * stands for any \
characters, + for at least one, ? for one."""
_MATCH = "Regular expression for the path (from DataPath) of a file with one channel of a stimulus. Other files are left out."
_REPLACE = "Path of the file of each channel, with $1, $2, ... for groups of MultiChannelMatch. A missing file is zeros."
_MAPS = """Extension of n2d2py: folder with the label ids of the pixels of each stimulus under the same path, images .png or arrays \
.npy; 255 (images) or -1 means unlabelled."""


@register(
    "DIR_Database",
    Key("DataPath", Kind.PATH, REQUIRED, "Folder of the stimuli."),
    *PARTITION_KEYS,
    Key("Depth", Kind.INT, 1, "Number of sub-folder levels to search. -1: all levels.", minimum=-1),
    Key("LabelName", Kind.STRING, "", "Prefix of every label."),
    Key("LabelDepth", Kind.INT, 1, "Sub-folder levels that form the label, each as /name. 0: LabelName. -1: none.", minimum=-1),
    Key("IgnoreMasks", Kind.STRINGS, (), _MASKS),
    Key("ValidExtensions", Kind.STRINGS, (), _UNLESS_TABLES),
    Key("MultiChannelMatch", Kind.STRING, "", _MATCH),
    Key("MultiChannelReplace", Kind.STRINGS, (), _REPLACE),
    Key("LoadMore", Kind.STRING, "", "Another section with such keys whose stimuli are added."),
    Key("LabelImagePath", Kind.PATH, "", _MAPS),
    Key("LabelNames", Kind.STRINGS, (), "Extension of n2d2py: names of the label ids in LabelImagePath."),
    doc="The files of a folder in sorted order. The sub-folders are the labels; label ids follow the order of first "
    "appearance.",
)
def _load(values: Values, context: Context) -> Database:
    known: dict[str, int] = {}
    parts = []
    for one in context.load_more(values):
        keys = "Depth LabelName LabelDepth IgnoreMasks ValidExtensions".split()
        selection = FileSelection(*(one[key] for key in keys), channels=_channels(one))
        parts.append(_read_folder(data_path(one, folder=True), one, known, selection, context))
    database = Database.join(parts, tuple(known))
    if "" in known and len(known) > 1:
        first = database.items.name(int(np.argmax(database.labels == known[""])))
        what = f"files next to the labelled folders, such as {first}, have a label without a name"
        remedy = "move them, set IgnoreMasks, or name the label with LabelName"
        log.warning("W404", what, where=values.section.location, remedy=remedy)
    if not values["LabelImagePath"]:
        return database
    maps = partial(_read_map, data_path(values, "LabelImagePath", folder=True), database)
    return replace(database, labels=np.full(len(database.items), -1), label_names=values["LabelNames"], maps=maps)


def _load_categories(default: str, skipped: tuple[str, ...], clutter: str, values: Values, context: Context) -> Database:
    root = data_path(values, default=default, folder=True)
    selection = FileSelection(valid_extensions=("jpg",), skipped=skipped if values["IncClutter"] else (*skipped, clutter))
    known: dict[str, int] = {}
    return Database.join([_read_folder(root, values, known, selection, context)], tuple(known))


for _name, _default, _skipped, _clutter in (
    ("Caltech101", "101_ObjectCategories", ("Faces_easy",), "BACKGROUND_Google"),
    ("Caltech256", "256_ObjectCategories", (), "257.clutter"),
):
    register(
        f"{_name}_DIR_Database",
        *RAREST_KEYS,
        Key("IncClutter", Kind.BOOL, False, f"Keep the category {_clutter}."),
        Key("DataPath", Kind.PATH, "", f"Folder of the categories. Default: $N2D2_DATA/{_default}."),
        accepted=(
            Ignored("LabelPath", "paths of labels", "tells where the labels are", "remove it: the folders are the labels"),
        ),
        doc=f"The categories of {_name} in folders. Labels are /name." + "".join(f" {each} is excluded." for each in _skipped),
    )(partial(_load_categories, _default, _skipped, _clutter))
