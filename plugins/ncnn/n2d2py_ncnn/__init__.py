"""NCNN export: the tool's integers, or a float network, as ncnn's .param and .bin files."""
