"""Prints the OpenAPI document, without a server or a database: `python -m backend.openapi`."""

import json
import sys
import tempfile

from backend.app import create_app
from backend.platform.settings import Settings

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        json.dump(create_app(Settings(home=home)).openapi(), sys.stdout, indent=1)
