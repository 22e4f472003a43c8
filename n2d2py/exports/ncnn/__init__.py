"""The export NCNN: the integers of the tool, or real numbers, as the .param and .bin files of ncnn."""
