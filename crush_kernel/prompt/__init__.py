"""The system prompt: facts are gathered, then rendered from `templates/`.

May import `config` and lower.
"""
