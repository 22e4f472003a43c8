"""A table of things by name, where a second entry of a name is an error."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar

from n2d2py.errors import InternalError

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**facts):
        """Mark a class decorator that makes dataclasses, for type checkers (in `typing` since Python 3.11)."""
        return lambda decorator: decorator


T = TypeVar("T")


class Duplicate(InternalError):
    """A name that has another entry already."""


class Registry(Generic[T]):
    """Entries by name, in the order in which they were added; `what` names an entry in messages. `built_in`: the modules that
    add the entries of this package. They are imported at the first question, as plug-ins are by `-plugin`: those who ask and
    those who answer need not know each other."""

    def __init__(self, what: str, *built_in: str):
        self.what = what
        self._built_in = built_in
        self._added: dict[str, T] = {}

    @property
    def _entries(self) -> dict[str, T]:
        modules, self._built_in = self._built_in, ()
        for module in modules:
            import_module(module)
        return self._added

    def add(self, name: str, entry: T) -> T:
        """Add an entry and return it; the same entry may be added again. Raise Duplicate when the name has another entry."""
        if self._added.setdefault(name, entry) is not entry:
            raise Duplicate(f"{self.what} {name} is registered twice")
        return entry

    def declare(self, *names: str) -> Callable[[T], T]:
        """Return a decorator that adds an entry under each of these names."""

        def add(entry: T) -> T:
            for name in names:
                self.add(name, entry)
            return entry

        return add

    def get(self, name: str) -> T | None:
        """Return the entry of a name, or None."""
        return self._entries.get(name)

    def __getitem__(self, name: str) -> T:
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def values(self) -> list[T]:
        """Return the entries."""
        return list(self._entries.values())

    def snapshot(self) -> dict[str, T]:
        """Return the entries by name, as a dictionary that later additions do not change."""
        return dict(self._entries)

    def restore(self, entries: dict[str, T]) -> None:
        """Put back what `snapshot` gave."""
        self._added = dict(entries)
