"""Fixtures of the workers' tests that tests of coordination share."""

from tests.workers.conftest import context, settings, start

__all__ = ["context", "settings", "start"]
