"""Preloaded by the fork server: importing this module prepares that process.

Separate from `child`, whose import must have no such effect: the engine's own process imports `child`.
"""

from workers.engine.processes.child import prepare_fork_server

prepare_fork_server()
