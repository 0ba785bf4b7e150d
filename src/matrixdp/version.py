"""The version of the software; every release carries it."""

__version__ = "0.1.0"
