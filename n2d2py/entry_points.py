"""The entry points by which installed packages add to the tool.

They are in one group: ``NAME = package.module`` names a module that declares operators, functions, recipes, kernels and
instruction sets, ``NAME = package.module:Class`` the target that `-export NAME` asks for. The first are read at each start, a
target when it is asked for.
"""

from importlib.metadata import EntryPoint, entry_points

GROUP = "n2d2py.plugins"


def declaring_modules() -> list[EntryPoint]:
    """Entry points of modules that declare, sorted by name."""
    return sorted((entry for entry in entry_points(group=GROUP) if not entry.attr), key=lambda entry: entry.name)


def targets() -> dict[str, list[EntryPoint]]:
    """Entry points of targets by name, sorted, each value once; a name that several packages claim has several."""
    by_name: dict[str, dict[str, EntryPoint]] = {}
    for entry in entry_points(group=GROUP):
        if entry.attr:
            by_name.setdefault(entry.name, {}).setdefault(entry.value, entry)
    return {name: list(by_name[name].values()) for name in sorted(by_name)}
