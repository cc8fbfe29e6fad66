"""The service. `__version__` is the version of everything: the distribution, the API, the pages."""

__version__ = "0.2.0.dev0"
