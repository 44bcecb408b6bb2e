"""Where people keep keys, passwords and sessions. Pure."""

from typing import Final

KEY_FOLDERS: Final = frozenset(
    (".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".password-store")
)
"""By name, wherever they are. A notebook in the home folder makes it the project, and they must
not come to be inside with it: reading there always asks, and searches leave it out."""

KEYS_IN_HOME: Final = (
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/chromium",
    ".config/gcloud",
    ".config/gh",
    ".config/google-chrome",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".docker",
    ".git-credentials",
    ".local/share/keyrings",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".vault-token",
)
"""Further folders and files, from the home folder: writing there always asks, and commands in the
sandbox see nothing of them."""
