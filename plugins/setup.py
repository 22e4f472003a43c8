"""Builds a plug-in: what all of them share. The setup.cfg of each has the rest."""

from pathlib import Path

from setuptools import find_packages, setup

setup(
    author="n2d2py contributors",
    license="Apache-2.0",
    long_description=Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    packages=find_packages(include=["n2d2py_*"]),
    package_data={"": ["py.typed", "kernels/**/*", "templates/**/*"]},
    python_requires=">=3.10",
)
