"""Servers that let other programs ask: the mind over MCP, and the configuration of the clients that start it."""
