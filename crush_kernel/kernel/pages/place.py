"""Where the notebook is that a page names by its path on the server."""

from pathlib import Path


class NotebookPlace:
    """Turns the paths that pages tell into places on the disk."""

    def __init__(self) -> None:
        self._root: Path | None = None
        """Of the server that pages name files by, where it is known."""

    def located(self, told: object, known: Path | None = None) -> Path | None:
        """Return where the notebook is that a page calls `told`; `None` if that is no name.

        The kernel was started in the notebook's folder; what was `known` of the notebook then
        tells where the server's root is, wherever the notebook is moved later.
        """
        if not isinstance(told, str) or not told.endswith(".ipynb") or "\0" in told:
            return None
        path = Path(told)
        if path.is_absolute():
            return path
        if ".." in path.parts:
            return None
        if known is not None and known.parts[-len(path.parts) :] == path.parts:
            self._root = Path(*known.parts[: -len(path.parts)])
        return (self._root / path) if self._root else Path.cwd() / path.name
