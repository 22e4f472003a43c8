"""The message of a call that is refused."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from n2d2py.errors import N2D2Error


def error_of(call: Callable[..., Any], *arguments: Any, **keys: Any) -> N2D2Error:
    """The N2D2Error that the call raises."""
    with pytest.raises(N2D2Error) as caught:
        call(*arguments, **keys)
    return caught.value


def error_line(call: Callable[..., Any], *arguments: Any, **keys: Any) -> str:
    """The first line of the N2D2Error that the call raises, with its code and place."""
    return error_of(call, *arguments, **keys).line()


def refused(pattern: str, call: Callable[..., Any], *arguments: Any, **keys: Any) -> bool:
    """True if the call raises an N2D2Error whose line has the pattern."""
    return re.search(pattern, error_line(call, *arguments, **keys)) is not None
