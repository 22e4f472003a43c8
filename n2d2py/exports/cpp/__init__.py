"""The C++ export: a standalone C++11 project for one network."""
