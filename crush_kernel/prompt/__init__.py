"""The system prompt: facts are gathered, then rendered from `templates/`.

May import `config` and lower. `prompts` is what the rest of the program uses.
"""
