"""Max and average pooling."""

from n2d2py.operators.pool.op import Pool
