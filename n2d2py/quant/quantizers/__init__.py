"""The quantizer of each operator: its integer form, and what of it has none. A file for each operator or family."""
