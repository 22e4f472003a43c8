"""EthosU export: a .tflite file compiled by Vela for Arm's Ethos-U."""
