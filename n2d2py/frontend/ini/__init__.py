"""Reading of INI layer sections, targets and weights into a Graph."""
