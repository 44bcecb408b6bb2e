"""The environment that commands run in: the kernel's own, made fit for nobody watching.

What the user's programs need stays, provider keys included: a command that may run at all
can read the kernel's environment in `/proc` and the user's files, so that leaving keys out
would break programs and protect nothing. No value is ever logged.
"""

from collections.abc import Mapping

MARK = "CRUSH_COMMAND_ID"
"""Carries `<shell>.<number>`, by which every process of a command can be found again."""

_FIXED = {
    # Who runs the command. Source: Crush, shell environment.
    "CRUSH": "1",
    "AGENT": "crush",
    "AI_AGENT": "crush",
    # No colors, cursor movements or pages: the output is read as text.
    "NO_COLOR": "1",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "JJ_PAGER": "cat",
    # Nobody types: editors and questions fail at once.
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
    "JJ_EDITOR": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
}

_REMOVED = frozenset(
    (
        # Code that bash would run before the command.
        "BASH_ENV",
        "ENV",
        # With them bash would read commands otherwise than they are judged: other folders for
        # `cd`, other meanings of patterns and of words that look like assignments.
        "BASHOPTS",
        "BASH_COMPAT",
        "CDPATH",
        "GLOBIGNORE",
        "SHELLOPTS",
        # They overrule NO_COLOR.
        "FORCE_COLOR",
        "CLICOLOR_FORCE",
        # Relative to another folder than the command's.
        "OLDPWD",
        "PWD",
        # Kernels that a command starts are not those of this notebook. Source: jupyter_server.
        "JPY_SESSION_NAME",
    )
)

_INLINE_BACKEND = "module://matplotlib_inline"
"""What ipykernel puts into its own MPLBACKEND; of no use outside a kernel."""


def command_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what commands inherit from the kernel's `environ`, without the mark.

    Python programs print unbuffered unless the user decided otherwise, so that their
    output is there while they run and in the order in which it was written.
    """
    kept = {name: value for name, value in environ.items() if name not in _REMOVED}
    if kept.get("MPLBACKEND", "").startswith(_INLINE_BACKEND):
        del kept["MPLBACKEND"]
    if not kept.get("RIPGREP_CONFIG_PATH", "/").startswith("/"):
        # It would be the configuration of whoever made the folder, and can name programs.
        del kept["RIPGREP_CONFIG_PATH"]
    return {"PYTHONUNBUFFERED": "1"} | kept | _FIXED
