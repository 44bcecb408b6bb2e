"""The notebook file that a run reads, and the one that it writes.

Written as JupyterLab writes it, so that a diff shows what has changed and nothing else: one
blank of indentation, sorted keys, one line of text a line. Written whole or not at all: to
a new file in the same folder that then takes the place of the old one, with its mode. A
link stays a link. What somebody else has written meanwhile is never overwritten.

Source: the notebook format, 4.5; nbformat's writer, which Jupyter Server uses.
"""

import os
import re
import stat
import tempfile
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

from crush_kernel.cli.notebookformat import nbformat
from crush_kernel.cli.records import Notebook
from crush_kernel.cli.usage import UsageError
from crush_kernel.errors import CrushKernelError
from crush_kernel.kernel.plaintext import visible

_MINOR_WITH_IDS: Final = 5
"""Cells have ids since nbformat 4.5."""

_VALID_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

_DEFAULT_MODE: Final = 0o666
"""Of a file that is new; the user's umask takes from it."""


class NotebookFile:
    """One notebook on disk, read from `source` and written to `target`."""

    def __init__(self, source: Path, target: Path | None = None) -> None:
        self.source = source
        self.target = target or source
        self._is_in_place = self.target == source
        self._known = b""
        """The notebook as it was read or saved last, in the form of a save."""
        self._seen: bytes | None = None
        """The hash of what the target held when we last looked; `None` if it was not there."""

    def read(self) -> Notebook:
        """Return the notebook, its cells with ids that differ.

        A cell without an id gets one that follows from its place and text, so that two copies
        of a notebook stay copies when both are run.

        Raises:
            UsageError: there is no such file, or it is no notebook.
        """
        notebook = _parsed(_read(self.source), self.source)
        self._known = _encoded(notebook)
        self._seen = _hash_of(self.target)
        return notebook

    def check_target(self) -> None:
        """Make sure that the target can be written, before anything is done that is worth it.

        Raises:
            CrushKernelError: it cannot.
        """
        target = _real(self.target)
        if target.is_dir() or (target.exists() and not target.is_file()):
            raise UsageError(f"{str(self.target)!r} is no file that a notebook can be written to")
        if not target.parent.is_dir():
            raise UsageError(f"there is no folder {str(self.target.parent)!r} to write to")
        if target.exists() and not os.access(target, os.W_OK):
            raise CrushKernelError(f"{str(self.target)!r} is read-only", hint=_ELSEWHERE)
        try:
            with tempfile.TemporaryFile(dir=target.parent) as file:
                file.write(b"\0")
                file.flush()
        except OSError as error:
            raise CrushKernelError(
                f"the folder of {str(self.target)!r} cannot be written: {_why(error)}",
                hint=_ELSEWHERE,
            ) from error

    def save(self, notebook: Notebook) -> bool:
        """Write `notebook` if it differs from what is there; return whether it was written.

        Raises:
            CrushKernelError: it cannot be written, or somebody else has changed the file; then
                it is beside it, under the name that the hint tells.
        """
        data = _encoded(notebook)
        if self._seen == _hash(data) or (self._is_in_place and data == self._known):
            return False
        if _hash_of(self.target) != self._seen:
            raise self._put_aside(data)
        try:
            _replace(_real(self.target), data)
        except OSError as error:
            raise CrushKernelError(
                f"{str(self.target)!r} cannot be saved: {_why(error)}",
                hint="Free the disk or make the folder writable, then run it again.",
            ) from error
        self._known, self._seen = data, _hash(data)
        return True

    def _put_aside(self, data: bytes) -> CrushKernelError:
        aside = self.target.with_name(f"{self.target.stem}-{_hash(data).hex()[:8]}.ipynb")
        message = f"{str(self.target)!r} was changed by somebody else while it ran"
        try:
            _replace(_real(aside), data)
        except OSError as error:
            return CrushKernelError(f"{message}, and {str(aside)!r} cannot be saved: {_why(error)}")
        return CrushKernelError(message, hint=f"What this run has brought is in {str(aside)!r}.")


_ELSEWHERE = "Make it writable, or name another place with --output."


def _read(path: Path) -> str:
    if not path.exists():
        raise UsageError(f"there is no notebook {str(path)!r}", hint=_nearby(path))
    if not path.is_file():
        raise _no_notebook(path, "it is no file")
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {_why(error)}") from error
    except ValueError as error:
        raise _no_notebook(path, "it is no text in UTF-8") from error


def _nearby(path: Path) -> str:
    with_suffix = path.with_name(f"{path.name}.ipynb")
    return f"There is {str(with_suffix)!r}." if path.name and with_suffix.is_file() else ""


def _parsed(text: str, path: Path) -> Notebook:
    try:
        with _without_warnings():
            notebook = nbformat.convert(nbformat.reader.reads(text), 4)
            _give_ids(notebook)
            nbformat.validate(notebook)
    except RecursionError as error:
        raise _no_notebook(path, "it is nested too deeply") from error
    except LookupError as error:
        raise _no_notebook(path, f"it lacks {visible(str(error))}") from error
    except (nbformat.ValidationError, ValueError, TypeError, AttributeError) as error:
        raise _no_notebook(path, _first_line(error)) from error
    return notebook


def _no_notebook(path: Path, why: str) -> UsageError:
    return UsageError(f"{str(path)!r} is not a notebook: {why}")


def _first_line(error: Exception) -> str:
    lines = str(getattr(error, "message", "") or error).strip().splitlines()
    return visible(lines[0][:200]) if lines else type(error).__name__


def _give_ids(notebook: Notebook) -> None:
    """Give each cell an id of its own, and the notebook a format that has ids."""
    notebook["nbformat_minor"] = max(notebook["nbformat_minor"], _MINOR_WITH_IDS)
    seen: set[str] = set()
    for index, cell in enumerate(notebook["cells"]):
        cell_id = cell.get("id")
        if not (isinstance(cell_id, str) and _VALID_ID.fullmatch(cell_id)) or cell_id in seen:
            cell_id = cell["id"] = _new_id(index, str(cell.get("source")), seen)
        seen.add(cell_id)


def _new_id(index: int, source: str, taken: set[str]) -> str:
    for attempt in range(len(taken) + 1):
        text = f"{attempt}\0{index}\0{source}".encode("utf-8", "surrogatepass")
        cell_id = blake2b(text, digest_size=4).hexdigest()
        if cell_id not in taken:
            return cell_id
    raise AssertionError  # one of them is free


def _encoded(notebook: Notebook) -> bytes:
    with _without_warnings():
        text: str = nbformat.v4.writes(notebook)
        try:
            return f"{text}\n".encode()
        except UnicodeEncodeError:  # half a character, which only an escape can hold
            return f"{nbformat.v4.writes(notebook, ensure_ascii=True)}\n".encode()


@contextmanager
def _without_warnings() -> Generator[None]:
    """Silence nbformat, which warns of what was just mended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _replace(target: Path, data: bytes) -> None:
    """Put `data` in the place of `target`, whole or not at all."""
    descriptor, name = _open_beside(target)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _take_over_mode(file.fileno(), target)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    _sync_folder(target.parent)


def _open_beside(target: Path) -> tuple[int, str]:
    for _ in range(100):
        name = f"{target.parent / f'.{target.name[:80]}.{os.urandom(4).hex()}'}.tmp"
        with suppress(FileExistsError):
            return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _DEFAULT_MODE), name
    raise FileExistsError(f"no free name beside {target}")


def _take_over_mode(descriptor: int, target: Path) -> None:
    """Give the new file the mode and, as far as this user may, the owner of the old one."""
    with suppress(FileNotFoundError):
        old = target.stat()
        if os.name != "nt":
            with suppress(OSError):
                os.fchown(descriptor, old.st_uid, old.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _sync_folder(folder: Path) -> None:
    """Have the new name survive a power failure, where folders can be synced."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _hash_of(path: Path) -> bytes | None:
    try:
        return _hash(path.read_bytes())
    except OSError:
        return None


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _why(error: OSError) -> str:
    return error.strerror or str(error)
