"""Fixtures of the client's tests: agents are loaded from a real service."""

from tests.client.conftest import spools, target

__all__ = ["spools", "target"]
