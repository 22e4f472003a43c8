"""Caltech101_DIR_Database and Caltech256_DIR_Database: folders of images by category."""

from __future__ import annotations

from n2d2py.data.database.base import Context, Database, data_path, fraction, register
from n2d2py.data.database.directory import directory_database
from n2d2py.data.database.partition import Partition
from n2d2py.ini import REQUIRED, Key, Kind, Values
from n2d2py.ini.ignored import Ignored


def _register(type_name: str, default: str, clutter: str, others: tuple[str, ...]) -> None:
    @register(
        type_name,
        fraction(
            "Learn",
            REQUIRED,
            "Learning set: fraction of the images of the rarest label. The same number is taken of each label.",
        ),
        fraction("Validation", 0.0, "Validation set: defined like Learn. All other images are the test set."),
        Key("IncClutter", Kind.BOOL, False, f"Keep the category {clutter}."),
        Key("DataPath", Kind.PATH, "", f"Folder of the categories. Default: $N2D2_DATA/{default}."),
        accepted=(
            Ignored("LabelPath", "paths of labels", "tells where the labels are", "remove it: the folders are the labels"),
        ),
        doc=f"The categories of {type_name.split('_')[0]} in folders. Labels are "
        "/name." + (f" {', '.join(others)} is excluded." if others else ""),
    )
    def _load(values: Values, context: Context) -> Database:
        return directory_database(
            data_path(values, context, default=default, folder=True),
            Partition(values["Learn"], values["Validation"], None, values["RandomPartitioning"]),
            context.seed,
            type_name=type_name,
            left_out=others if values["IncClutter"] else (*others, clutter),
            valid_extensions=("jpg",),
        )


_register("Caltech101_DIR_Database", "101_ObjectCategories", "BACKGROUND_Google", ("Faces_easy",))
_register("Caltech256_DIR_Database", "256_ObjectCategories", "257.clutter", ())
