"""What commands inherit."""

import pytest

from crush_kernel.shell.environment import command_environment


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("CRUSH", "1", id="who runs it"),
        pytest.param("AGENT", "crush", id="what kind of user"),
        pytest.param("NO_COLOR", "1", id="no colors"),
        pytest.param("TERM", "dumb", id="no terminal"),
        pytest.param("PAGER", "cat", id="no pager"),
        pytest.param("GIT_EDITOR", "false", id="no editor"),
        pytest.param("GIT_TERMINAL_PROMPT", "0", id="no questions"),
    ],
)
def test_nobody_is_expected_to_watch_or_type_whatever_the_kernel_inherited(
    name: str, value: str
) -> None:
    environment = command_environment({name: "something else"})

    assert environment[name] == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("BASH_ENV", "/tmp/evil.sh", id="code to run before"),  # noqa: S108 - a value
        pytest.param("ENV", "/tmp/evil.sh", id="code to run before sh"),  # noqa: S108 - a value
        pytest.param("CDPATH", "/elsewhere", id="other folders for cd"),
        pytest.param("BASHOPTS", "globstar:nocaseglob", id="other meanings of patterns"),
        pytest.param("BASH_COMPAT", "3.2", id="the ways of an older bash"),
        pytest.param("GLOBIGNORE", "a", id="names that patterns pass over"),
        pytest.param("SHELLOPTS", "keyword", id="assignments behind the program"),
        pytest.param("RIPGREP_CONFIG_PATH", ".ripgreprc", id="the folder's own rg"),
        pytest.param("FORCE_COLOR", "1", id="colors"),
        pytest.param("CLICOLOR_FORCE", "1", id="colors on BSD"),
        pytest.param("OLDPWD", "/elsewhere", id="the kernel's former folder"),
        pytest.param("JPY_SESSION_NAME", "/home/ada/a.ipynb", id="the kernel's notebook"),
        pytest.param(
            "MPLBACKEND", "module://matplotlib_inline.backend_inline", id="ipykernel's plots"
        ),
    ],
)
def test_what_would_mislead_a_command_is_not_inherited(name: str, value: str) -> None:
    assert name not in command_environment({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("PATH", "/somewhere/bin", id="the path"),
        pytest.param("ANTHROPIC_API_KEY", "sk-1", id="keys, which the user's programs need"),
        pytest.param("RIPGREP_CONFIG_PATH", "/home/ada/.ripgreprc", id="the user's own rg"),
        pytest.param("MPLBACKEND", "Agg", id="the user's own plots"),
        pytest.param("PYTHONUNBUFFERED", "", id="the user's own choice of buffering"),
    ],
)
def test_the_users_own_settings_are_inherited(name: str, value: str) -> None:
    assert command_environment({name: value})[name] == value


def test_python_prints_at_once_unless_told_otherwise() -> None:
    assert command_environment({})["PYTHONUNBUFFERED"] == "1"
