"""A model provider over real HTTP that plays a script and refuses what the real ones refuse."""
