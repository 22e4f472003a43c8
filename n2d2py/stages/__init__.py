"""The stages of a run, one module each; `n2d2py.pipeline` knows their order."""
