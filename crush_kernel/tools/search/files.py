"""What `glob` and `grep` have in common: where they search, how they find files, what they say.

The walk is ripgrep's, under the one policy of `ignore`. Its output is taken in as it comes,
in bounded memory, and what is kept is put in order and sifted at the end.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.tools.pace import Pace
from crush_kernel.tools.paths import Target
from crush_kernel.tools.search.candidates import Candidates, PathStream, Selection, matching
from crush_kernel.tools.search.globs import BadGlob, Glob, parse_glob
from crush_kernel.tools.search.ignore import IgnoreRules
from crush_kernel.tools.search.ripgrep import Outcome, run_ripgrep
from crush_kernel.wording import counted

MAX_RESULTS = 100
TIMEOUT_S = 20.0
MAX_GLOB_CHARACTERS = 4_096
"""As long as a path can be."""

ALL_FILES = parse_glob("**")


@dataclass(frozen=True, slots=True)
class Found:
    """The files that a search came to."""

    selection: Selection
    outcome: Outcome


async def find_files(
    program: Path,
    options: Sequence[str],
    *,
    base: Path,
    rules: IgnoreRules,
    glob: Glob,
    limit: int,
    timeout_s: float,
    progress: Callable[[str], None],
) -> Found:
    """Return the first `limit` files below `base` that ripgrep lists under `options`.

    Args:
        program: ripgrep.
        options: what makes it print paths that end with NUL, and which.
        base: the folder to search.
        rules: what is left out there.
        glob: what the paths have to match, too.
        limit: how many files are wanted.
        timeout_s: when to stop and make do with what was found.
        progress: is told how many there are so far.

    Raises:
        ToolError: ripgrep refuses the options or cannot be started.
    """
    candidates, stream, pace = Candidates(), PathStream(), Pace(progress)

    def take(chunk: bytes) -> bool:
        if paths := stream.feed(chunk):
            candidates.add(matching(paths, glob))
            pace.step(lambda: f"{counted(candidates.total, 'file')} so far")
        return True

    arguments = ("--null", *rules.ripgrep_options, *_sieve(glob), *options, "--", ".")
    outcome = await run_ripgrep(program, arguments, cwd=base, take=take, timeout_s=timeout_s)
    selection = await anyio.to_thread.run_sync(
        candidates.select, base, limit, rules.keep, abandon_on_cancel=True
    )
    return Found(selection, outcome)


def understand(pattern: str) -> Glob:
    """Return the glob that the model means.

    Raises:
        ToolError: it is none; the message says why.
    """
    if len(pattern) > MAX_GLOB_CHARACTERS:
        raise ToolError(
            f"The glob has {len(pattern):,} characters, more than the {MAX_GLOB_CHARACTERS:,} "
            "that are understood. Search with a shorter one."
        )
    try:
        return parse_glob(pattern)
    except BadGlob as error:
        raise ToolError(f"The glob {pattern!r} cannot be understood: {error}.") from error


def require_text(text: str, name: str) -> None:
    """Fail if `text` is empty or cannot be handed to a program.

    Raises:
        ToolError: says what is wrong with the argument `name`.
    """
    if not text:
        raise ToolError(f"{name} is empty. Say what to search for.")
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ToolError(f"{name} contains a NUL or half a character. Write it without.")


def shown_below(base: Target, path: str) -> str:
    """Return how to name `path`, relative to `base`, so that the model can pass it on."""
    return printable(path) if base.shown == "." else f"{base.shown.rstrip('/')}/{printable(path)}"


def order_of(selection: Selection) -> str:
    """Return in which order the files of `selection` come, for a sentence about a part of it."""
    return "the newest first" if selection.is_by_time else "by name, too many to sort by time"


def faults_of(*outcomes: Outcome, timeout_s: float) -> Iterator[str]:
    """Yield why a search may have missed something."""
    if any(outcome.end == "timeout" for outcome in outcomes):
        yield (
            f"stopped after {timeout_s:g} s; this is what was found until then. Narrow the path "
            "or the pattern rather than repeat the search"
        )
    if faults := [fault for outcome in outcomes for fault in outcome.faults]:
        places = counted(len(faults), "place")
        yield f"{places} could not be read: {printable(faults[0])}"


def place(base: Target) -> str:
    """Return how to name `base` in a sentence."""
    return "the working directory" if base.shown == "." else base.shown


def with_notes(text: str, notes: Iterable[str]) -> str:
    """Return `text` with `notes` below, each in brackets on a line of its own."""
    lines = "".join(f"\n[{note}]" for note in notes)
    return f"{text}\n{lines}" if lines else text


def _sieve(glob: Glob) -> Iterator[str]:
    """Yield what makes ripgrep leave out files that cannot match, where it can tell.

    As a file type, since a type never brings an ignored file back, and `--glob` does.
    """
    if glob.name_glob not in (None, "*"):
        yield f"--type-add=crush:{glob.name_glob}"
        yield "--type=crush"
    if glob.max_depth is not None:
        yield f"--max-depth={glob.max_depth}"
