"""Commands beside `n2d2py` that run it many times: `n2d2py-batch`, `n2d2py-tune`."""
