"""Builds the package; setup.cfg describes it."""

from setuptools import setup

setup()
