"""LSTM and GRU: C++ gives Python's bits, in integers and in floating point, portable and with every instruction set."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.exports.cpp.selection import row_panels


def test_panels_of_rows_and_what_their_sums_begin_with():
    """Each gate has panels of its own; what inputs are moved by is taken out modulo 2^32."""
    rows = np.arange(2 * 18 * 5).reshape(36, 5).astype(np.int8)
    (form,) = row_panels(rows, 18, NumType(16), 2**30)
    panels, begin = form.values[: 36 * 8], form.values[36 * 8 :].view("<i4")
    second = panels[18 * 8 :].reshape(-1)[: 2 * 16 * 4].reshape(2, 16, 4)
    assert second[0, 3].tolist() == rows[21, :4].tolist() and second[1, 3].tolist() == [rows[21, 4], 0, 0, 0]
    x = np.array([-32768, 32767, 5, -1, 0], np.int64)
    wrapped = (begin.astype(np.int64) + rows.astype(np.int64) @ (x + 32768)) & 0xFFFFFFFF
    assert wrapped.tolist() == ((rows.astype(np.int64) @ x) & 0xFFFFFFFF).tolist()
    assert row_panels(rows.astype(np.int16), 18, NumType(16), 2**30) == row_panels(rows, 18, NumType(16), 2**31) == ()
    assert not row_panels(rows, 18, NumType(8, False), 1)[0].values[36 * 8 :].any()
