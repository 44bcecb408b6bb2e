"""The edge to Jupyter: messages, threads, widgets, comms and display.

The only package that knows `asyncio`, ipykernel, comm and ipywidgets.
"""
