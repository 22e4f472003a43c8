"""TFLite export: a .tflite file with the tool's integers, for LiteRT and TFLite Micro."""
