"""Commands that run `n2d2py` many times: `n2d2py-sweep`."""
