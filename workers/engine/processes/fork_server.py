"""Preloaded by the fork server: importing this module prepares that process."""

from workers.engine.processes.child import prepare_fork_server

prepare_fork_server()
