"""`jupyter nbconvert --to crush-audit`: a notebook as a report of what was done by whose leave.

The notebook is read by our own reader, which takes whatever a file holds; no preprocessor runs, so
that nothing is ever executed. The journal beside it is read if it is the user's own.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final, cast

from nbconvert.exporters.exporter import Exporter
from nbformat import NotebookNode
from traitlets import default

from crush_kernel.config.directories import project_data_directory, project_root, read_directories
from crush_kernel.history.journal.readonly import JournalDecisions, read_decisions
from crush_kernel.history.notebook import NotebookContents, read_ipynb
from crush_kernel.history.record import SessionHeader
from crush_kernel.history.usermark import MARK_NAME, user_mark
from crush_kernel.kernel.audithtml import AuditDocument, audit_html
from crush_kernel.kernel.auditreport import audited, by_turn, orphaned

_NO_JSON: Final = b"\xff"
"""Stands for what cannot be read as text."""

Resources = dict[str, Any]


class AuditExporter(Exporter):
    """Makes the report; a notebook that cannot be read makes one that says so."""

    export_from_notebook = "Crush Audit"
    output_mimetype = "text/html"

    @default("file_extension")
    def _html(self) -> str:
        return ".html"

    def from_filename(
        self,
        filename: str,
        resources: Resources | None = None,
        **more: Any,  # noqa: ANN401, ARG002 - nbconvert's
    ) -> tuple[Any, Resources]:
        """Return the report on the notebook at `filename`.

        Raises:
            OSError: it cannot be opened.
        """
        path = Path(filename)
        resources = dict(resources or {})
        metadata = dict(resources.get("metadata") or {})
        metadata |= {"name": path.stem, "path": str(path.parent)}
        return self._report(path.read_bytes(), resources | {"metadata": metadata})

    def from_file(
        self,
        file_stream: IO[Any],
        resources: Resources | None = None,
        **more: Any,  # noqa: ANN401, ARG002 - nbconvert's
    ) -> tuple[Any, Resources]:
        """Return the report on the notebook that a file holds."""
        try:
            data = file_stream.read()
        except UnicodeDecodeError:
            data = _NO_JSON
        return self._report(data, resources)

    def from_notebook_node(
        self,
        nb: NotebookNode,
        resources: Resources | None = None,
        **more: Any,  # noqa: ANN401, ARG002 - nbconvert's
    ) -> tuple[Any, Resources]:
        """Return the report on a notebook in memory."""
        try:
            data: str | bytes = json.dumps(nb)
        except (TypeError, ValueError, RecursionError):
            data = _NO_JSON
        return self._report(data, resources)

    def _report(self, data: str | bytes, resources: Resources | None) -> tuple[Any, Resources]:
        init = cast("Callable[[Resources | None], Resources]", self._init_resources)  # pyright: ignore[reportUnknownMemberType] - it has no types
        found = init(resources)
        metadata = found["metadata"]
        name = str(metadata.get("name") or "notebook")
        folder = Path(os.path.realpath(str(metadata.get("path") or ".")))
        is_there = (folder / f"{name}.ipynb").is_file()
        return audit_html(document_of(read_ipynb(data), name, folder if is_there else None)), found


def document_of(contents: NotebookContents, name: str, folder: Path | None) -> AuditDocument:
    """Return what the report says of a notebook.

    Args:
        contents: of the notebook.
        name: of the notebook.
        folder: where it is, and may have a journal; `None` if that is not known.
    """
    header = contents.header or SessionHeader()
    journal = _journal(header.id, folder)
    decisions = by_turn(journal.decisions)
    turns = [
        audited(cell.turn, decisions.pop(cell.turn.id, ()))
        for cell in contents.cells
        if cell.turn is not None
    ]
    others = [
        orphaned(turn_id, records, asked="what was asked is not kept")
        for turn_id, records in decisions.items()
    ]
    return AuditDocument(
        name=name,
        turns=turns,
        others=others,
        title=header.title,
        session=header.id,
        journal="" if journal.trouble else str(journal.path),
        trouble=journal.trouble,
        problems=contents.problems,
    )


def _journal(session: str, folder: Path | None) -> JournalDecisions:
    """Return what the user's own journal knows of a session; nothing is made to find it."""
    if folder is None:
        return JournalDecisions(Path(), trouble="it is not known where the notebook is")
    if not session:
        return JournalDecisions(Path(), trouble="the notebook does not say which session it is")
    directories, _ = read_directories(os.environ)
    marked = (directories.data / MARK_NAME).exists()
    mark = user_mark(directories.data) if marked else ""
    data = project_data_directory(folder, project_root(folder))
    return read_decisions(data, session, mark=mark)
