"""What a tool is about to do, in enough detail for a person, and for a rule, to judge it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Action = Literal["use", "read", "list", "write", "execute", "fetch"]
"""`use` touches nothing but the conversation: a list of what is to do, a question."""


BE_USED: Final = "be used"
"""The title of a request for a tool as a whole, whatever it would do."""


@dataclass(frozen=True, slots=True)
class CommandPart:
    """One simple command of a command line, and what it does."""

    text: str
    """As it is written."""
    argv: tuple[str | None, ...]
    """Its words, quotes taken off; `None` for one that only the shell can know."""
    does: str
    """In two or three words: `runs the project's code`."""
    is_read_only: bool = False
    """Whether it is known to change nothing and to run nothing else."""
    reads: tuple[str, ...] = ()
    """The paths that it reads, from where the command line starts."""
    writes: tuple[str, ...] = ()
    """The paths that it makes, changes or removes, as far as they are known."""
    is_outside: bool = False
    """Whether it runs, reads or writes outside the project, links resolved."""
    rule_words: int = 0
    """How many of the first words a rule has to name so that it means something; 0 if only the
    whole command may be granted for good."""
    danger_words: int = 0
    """How many of the first words it takes to be dangerous: 1 for `curl`, 3 for
    `git push --force`; 0 if they are not."""


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """What a tool is about to do."""

    call_id: str
    tool: str
    action: Action
    title: str
    """What is wanted, to go after "<tool> wants to": `run`, `edit src/price.py`."""
    paths: tuple[Path, ...] = ()
    """The real paths that are read or written, links resolved. Of a command, those outside."""
    is_outside: bool = False
    """Whether a path lies outside the project."""
    command: str = ""
    """The command line, for `execute`."""
    cwd: Path | None = None
    parts: tuple[CommandPart, ...] = ()
    """Of the command line; without any, it could not be read."""
    is_read_only: bool = False
    """Whether the command line only reads, wherever that is."""
    reads: tuple[Path, ...] = ()
    """The real paths that a command reads, as far as they are known."""
    writes: tuple[Path, ...] = ()
    """The real paths that a command changes, as far as they are known."""
    redirects: tuple[Path, ...] = ()
    """Of `reads` and `writes`, those that a redirection names and not a word of a part."""
    unnamed: tuple[str, ...] = ()
    """What a command line does that stands in no part and in none of these paths, one clause
    each: `goes on in the background`, `cannot be read for certain`. No pattern covers it."""
    is_unsure: bool = False
    """Whether only the shell can know which program a command line runs, or where it writes."""
    dangers: tuple[str, ...] = ()
    """Why a person has to say whatever mode it is, one sentence each."""
    diff: str = ""
    """Unified diff of what would change, for `write`."""
    notes: tuple[str, ...] = ()
    """Further facts a person should know, one line each."""
    server: str = ""
    """Who is talked to, for `fetch`; what is granted is granted for this server only."""
    is_private: bool = False
    """Whether that server is this machine or in a private network, where no stranger gets."""
    on_behalf: str = ""
    """Whose tool it is if not the agent's own, such as `agent: task`; what is granted is
    granted to all."""

    @property
    def read_paths(self) -> tuple[Path, ...]:
        """Return all real paths that are read, as far as they are known."""
        return self.paths if self.action in ("read", "list") else self.reads

    @property
    def written_paths(self) -> tuple[Path, ...]:
        """Return all real paths that are changed, as far as they are known."""
        # Of a fetch: where a download goes.
        return self.paths if self.action in ("write", "fetch") else self.writes

    @property
    def grant(self) -> "Grant":
        """Return what "allow for this session" would allow.

        A command is granted as written, word for word, in its folder. An edit inside the
        project is granted with all other edits by the same tool inside it; outside, or where
        there is danger, with that very file. A server is granted as public or as private, never
        as both, and with the file that is written, if one is.
        """
        if self.action == "execute":
            return Grant(tool=self.tool, action=self.action, scope=f"{self.cwd}\0{self.command}")
        if self.action == "fetch":
            reach = "private" if self.is_private else "public"
            scope = "\0".join((reach, self.server, *map(str, self.paths)))
            return Grant(tool=self.tool, action=self.action, scope=scope)
        if self.is_outside or self.dangers:
            return self.exact_grant
        return Grant(tool=self.tool, action=self.action, scope="")

    @property
    def exact_grant(self) -> "Grant":
        """Return what allows this and nothing beside it: of files, those that are named.

        Where somebody wants to be asked of a file, a grant of the whole project is no answer.
        """
        if self.action in ("execute", "fetch"):
            return self.grant
        return Grant(tool=self.tool, action=self.action, scope="\0".join(map(str, self.paths)))


@dataclass(frozen=True, slots=True)
class Grant:
    """Something allowed for the rest of this kernel's life."""

    tool: str
    action: Action
    scope: str
    """What it is limited to; empty means the whole project."""
