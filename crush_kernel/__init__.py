"""A Jupyter kernel in which each notebook cell is a turn of a coding agent.

The packages, in reading order: `kernel` (what Jupyter calls), `runtime` (builds
everything), `agent` (the turn loop), `tools`, `permissions`, `providers`, `history`,
`prompt`, `config`, `shell`, and the words they all use: `messages` and `errors`.
Imports point down that list only.
"""

__version__ = "0.1.0"
