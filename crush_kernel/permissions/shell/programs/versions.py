"""Programs that run code of the project or talk to the network, but tell of themselves when asked.

Only what starts nothing of the project counts: the proxies of `rustup` and `go` look into it for
another version of themselves, `pip list` asks whether there is a newer one, `make -n` runs what is
in `$(shell)`.
"""

from collections.abc import Mapping
from typing import Final

from crush_kernel.permissions.shell.judgement import Judgement, Word
from crush_kernel.permissions.shell.programs.names import names_in
from crush_kernel.permissions.shell.programs.operands import Usage, judge_usage, usage

_VERSIONS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(
        names_in(
            "git bash gcc g++ clang cmake make ninja pip pip3 uv ruff mypy black npm docker podman"
            " sqlite3 psql openssl tar jq rg gh curl java ruby php perl"
        ),
        frozenset(["--version"]),
    ),
    "npm": frozenset(["--version", "-v"]),
    "java": frozenset(["--version", "-version"]),
    "pip": frozenset(["--version", "-V"]),
    "openssl": frozenset(["version"]),
}
_PACKAGES: Final[Mapping[str, Usage]] = {
    "show": usage("-fv --files --verbose", "t*"),
    "freeze": usage("-l --all --local --user --exclude: --exclude-editable", ""),
    "check": usage("", ""),
}
_LISTINGS: Final[Mapping[str, Mapping[str, Usage]]] = {
    "pip": _PACKAGES,
    "pip3": _PACKAGES,
    "apt-mark": {"showmanual": usage("", "")},
}


def judge_telling(name: str, arguments: tuple[Word, ...]) -> Judgement | None:
    """Return what `name` does if it only tells of itself or lists what it has."""
    first = arguments[0].text if arguments else None
    if first is None:
        return None
    if len(arguments) == 1 and first in _VERSIONS.get(name, ()):
        return Judgement("tells its version", is_read_only=True)
    listing = _LISTINGS.get(name, {}).get(first)
    if listing is None:
        return None
    judged = judge_usage(listing, arguments[1:])
    if not judged.is_read_only:
        return None
    return Judgement("lists packages", is_read_only=True, rule_words=2)
