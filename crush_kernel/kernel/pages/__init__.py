"""The pages that show the notebook: what is said to them, asked of them and known of them.

May import what `kernel` may; no commands.
"""
