"""Transformations of stimuli: one file per group, which adds its types under their names in INI files (base.py)."""
