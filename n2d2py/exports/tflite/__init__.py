"""The export TFLite: the integers of the tool as a .tflite file, for LiteRT and for TFLite Micro."""
