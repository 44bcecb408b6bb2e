"""Why a prompt cache was missed. Pure."""
