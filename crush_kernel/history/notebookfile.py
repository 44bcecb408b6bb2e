"""A notebook's file, read where no page tells what is in it. Never written here."""

from pathlib import Path

from crush_kernel.history.notebook import MAX_NOTEBOOK_BYTES, NotebookContents, read_ipynb


def read_notebook_file(path: Path) -> NotebookContents:
    """Read the notebook at `path`; one that does not exist holds nothing. Never raises."""
    try:
        # Opening a pipe would wait for somebody to write into it.
        if path.exists() and not path.is_file():
            return NotebookContents(problems=("The notebook cannot be read: it is no file.",))
        with path.open("rb") as file:
            # One byte more tells that there is more.
            return read_ipynb(file.read(MAX_NOTEBOOK_BYTES + 1))
    except FileNotFoundError:
        return NotebookContents()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its name is no path"
        return NotebookContents(problems=(f"The notebook cannot be read: {reason}.",))
