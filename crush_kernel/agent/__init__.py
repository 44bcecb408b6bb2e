"""Turns: request, reply, tool calls, results, and again until the model is done.

May import `tools`, `history`, `providers.base`, `permissions`, `prompt` and lower; it is
handed its parts and never looks at `config`, `lsp` or `mcp`.
"""
