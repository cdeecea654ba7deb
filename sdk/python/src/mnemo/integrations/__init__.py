"""Adapters for other packages. Each module requires the extra of its name."""
