"""Notebooks as tools see them: as text, as cells for the model, saved or open in a page.

May import what `tools` may, and the lower modules of `tools`; no tool.
"""
