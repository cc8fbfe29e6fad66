"""A server of the Model Context Protocol, by which assistants read runs and start them: `callboard mcp`."""
