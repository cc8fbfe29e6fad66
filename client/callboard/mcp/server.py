"""The tools as a server of the Model Context Protocol, by its own SDK (`callboard-client[mcp]`)."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

import mcp_types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool

from callboard.client import connect
from callboard.errors import CallboardError
from callboard.mcp.tools import INSTRUCTIONS, READING, WRITING, Rest, answer
from callboard.transport import MAX_ANSWER_BYTES, Transport

Connect = Callable[[Any], Rest]
"""Returns the REST API for a request, given the SDK's context of it."""


def create_server(rest_of: Connect, *, allow_write: bool, version: str = "") -> MCPServer[Any]:
    """A server with all tools; those that change something only with `allow_write`."""
    tools = [_tool(tool, rest_of, writes=False) for tool in READING]
    tools += [_tool(tool, rest_of, writes=True) for tool in WRITING if allow_write]
    return MCPServer("callboard", instructions=INSTRUCTIONS, version=version, tools=tools, log_level="ERROR")


def serve(*, allow_write: bool) -> None:
    """Serve over standard input and output with the rights of `CALLBOARD_TOKEN`, until the input ends.

    Raises:
        NotConfigured: no server, or no token for it.
    """
    client = connect()
    rest = _Remote(client.transport)
    try:
        create_server(lambda context: rest, allow_write=allow_write).run("stdio")
    finally:
        client.close()


class _Remote:
    """The REST API of another process."""

    def __init__(self, transport: Transport) -> None:
        self.url = transport.server.url
        self.request = transport.request
        self._transport = transport

    def text(self, path: str, params: Mapping[str, Any]) -> str:
        content = bytearray()
        with self._transport.stream(path, params) as response:
            for part in response.iter_bytes():
                content += part
                if len(content) > MAX_ANSWER_BYTES:
                    break
        return content.decode(errors="replace")


def _tool(function: Callable[..., Any], rest_of: Connect, *, writes: bool) -> Tool:
    hints = mcp_types.ToolAnnotations(read_only_hint=not writes, destructive_hint=False)
    tool = Tool.from_function(_bound(function, rest_of), annotations=hints, structured_output=False)
    # The SDK leaves arguments out that a tool does not have, and would start runs without them.
    tool.fn_metadata.arg_model.model_config["extra"] = "forbid"
    tool.fn_metadata.arg_model.model_rebuild(force=True)
    tool.parameters["additionalProperties"] = False
    return tool


def _bound(tool: Callable[..., Any], rest_of: Connect) -> Callable[..., str]:
    """A tool as the SDK calls it: it gets the context of the request, and returns text."""

    def call(ctx: Any, **arguments: Any) -> str:
        try:
            return answer(tool(rest_of(ctx), **arguments))
        except (CallboardError, ValueError) as error:
            raise ToolError(str(error)[:2_000]) from None

    types = {name: kind for name, kind in typing.get_type_hints(tool).items() if name != "return"}
    types["rest"] = Context
    _, *others = inspect.signature(tool).parameters.values()
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Context)
    parameters = [context, *(part.replace(annotation=types[part.name]) for part in others)]
    call.__name__, call.__doc__ = tool.__name__, inspect.getdoc(tool)
    call.__signature__ = inspect.Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    annotations = {part.name: part.annotation for part in parameters}
    call.__annotations__ = annotations | {"return": str}
    return call
