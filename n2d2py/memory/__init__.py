"""Static memory: every byte of every activation placed before the network is compiled.

`plan_memory` decides, `check_plan` proves the decision with its own code, `write_memory_files`
records it.
"""
