"""Microcontrollers: the C++ export with boards, startup code and a test program that QEMU runs."""
