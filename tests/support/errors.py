"""What a call says when it is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from n2d2py.errors import N2D2Error


def error_line(call: Callable[..., Any], *arguments: Any, **keys: Any) -> str:
    """The first line of the N2D2Error that the call raises, with its code and place."""
    with pytest.raises(N2D2Error) as caught:
        call(*arguments, **keys)
    return caught.value.line()
