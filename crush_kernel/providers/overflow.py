"""Requests that are longer than the context window, in whose words ever. Pure."""
