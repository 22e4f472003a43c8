"""The export EthosU: a TFLite file compiled by Vela for Arm's Ethos-U."""
