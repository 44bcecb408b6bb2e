"""The conversation: what was said in which cell, and what the next request may say of it.

May import `config` and lower.
"""
