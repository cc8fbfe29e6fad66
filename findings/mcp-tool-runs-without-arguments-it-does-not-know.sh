#!/bin/sh
# mcp 2.3.0 (the SDK's MCPServer): a tool whose arguments all have defaults runs when a client misspells one of
# them. The unknown argument is left out without an error or a log line, so the tool does its default instead: here
# it deletes everything instead of one name. The tool's input schema, which the client gets, does not say
# `additionalProperties: false`, so a client that validates cannot notice either. A wrong type is refused.
#
# Seen, of delete(only="*") called with {"name": "b"}, and with {"only": 3}:
#   schema forbids others: False
#   deleted *; is_error False
#   is_error True
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/python -m pip install --quiet mcp==2.3.0
cat > finding.py <<'PY'
import asyncio
import sys
from importlib.metadata import version

from mcp import Client
from mcp.server.mcpserver import MCPServer

print("mcp", version("mcp"))
server = MCPServer("example")


@server.tool(structured_output=False)
def delete(only: str = "*") -> str:
    """Delete what has this name."""
    return f"deleted {only}"


async def main() -> bool:
    async with Client(server) as client:
        [tool] = (await client.list_tools()).tools
        forbids = tool.input_schema.get("additionalProperties") is False
        misspelt = await client.call_tool("delete", {"name": "b"})
        wrong = await client.call_tool("delete", {"only": 3})
    print("schema forbids others:", forbids)
    print(f"{misspelt.content[0].text}; is_error {misspelt.is_error}")
    print("is_error", wrong.is_error)
    return (forbids, misspelt.content[0].text, misspelt.is_error, wrong.is_error) == (
        False,
        "deleted *",
        False,
        True,
    )


sys.exit(not asyncio.run(main()))
PY
venv/bin/python finding.py
