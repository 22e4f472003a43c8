"""Where more bits pay: searches over layers and tensors by what their rounding costs at the outputs."""
