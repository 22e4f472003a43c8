"""Recurrent layers: LSTM and GRU over the steps of a sequence."""

from n2d2py.operators.arrays.recurrent.op import GATES, ArrayRecurrent
