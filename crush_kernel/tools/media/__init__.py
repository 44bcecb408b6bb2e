"""Images and documents: what they are, whether they are let in, and how they are shown.

May import what `tools` may, and the lower modules of `tools`; no tool.
"""
