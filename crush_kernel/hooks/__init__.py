"""Hooks: programs of the user's that are asked about what the agent does.

They can refuse, allow, have a person asked, change the input of a tool, add to what the model
reads, or end the turn. May import `config`, `shell`, `files` and `messages`; the agent is handed
them and knows no configuration.
"""
