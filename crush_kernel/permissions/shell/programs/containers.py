"""What `docker` and `podman` do: a container may change whatever of this machine it is given."""

from collections.abc import Iterator
from typing import Final

from crush_kernel.permissions.shell.judgement import Judgement, Word
from crush_kernel.permissions.shell.programs.effects import effect_of, words_of_rule

_MOUNTS: Final = ("-v", "--volume", "--mount")


def judge_container(name: str, arguments: tuple[Word, ...]) -> Judgement:
    """Return what the program `name` does with `arguments`."""
    return Judgement(
        effect_of(name, arguments),
        writes=tuple(_given_folders(arguments)),
        rule_words=words_of_rule(name, arguments),
    )


def _given_folders(arguments: tuple[Word, ...]) -> Iterator[Word]:
    """Yield the folders of this machine that a container is given."""
    for at, word in enumerate(arguments):
        text = word.text or ""
        name, equals, value = text.partition("=")
        if name not in _MOUNTS:
            continue
        if equals:
            mount = Word(value, word.source)
        elif at + 1 < len(arguments):
            mount = arguments[at + 1]
        else:
            continue
        yield from _source(mount)


def _source(mount: Word) -> Iterator[Word]:
    """Yield the folder that `mount` names, if it is one: `src:/app`, `type=bind,src=src,…`."""
    if mount.text is None:
        yield mount
        return
    pairs = [field.partition("=") for field in mount.text.split(",")]
    named = [value for name, _, value in pairs if name in ("source", "src")]
    source = named[0] if named else mount.text.partition(":")[0]
    # What has no slash is the name of a volume.
    if source.startswith(("/", ".", "~")) or "/" in source:
        yield Word(source, mount.source)
