"""Static memory planning: every byte of every activation gets its address before the network is compiled.

`plan_memory` computes the plan, `check_plan` proves it with independent code, `write_memory_files` records it.
"""
