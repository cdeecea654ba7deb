"""The version of the package; the release sets it."""

__version__ = "0.0.0"
