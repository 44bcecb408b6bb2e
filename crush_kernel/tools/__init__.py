"""What the agent can do: one module a tool, its model-facing text beside it in `descriptions/`.

May import `permissions.decision` and what is lower than the parts.
"""
