"""Pydantic models of what a run can be and what an engine emits. Nothing here but validation."""
