"""Which kernel runs a notebook."""

from pathlib import Path

import pytest
from jupyter_client.kernelspec import NoSuchKernel

from crush_kernel.cli.kernelspecs import Kernelspec
from crush_kernel.cli.records import Json
from crush_kernel.cli.runkernel import choose_kernel, manager_for
from crush_kernel.cli.usage import UsageError

INSTALLED = {
    "python3": Kernelspec(Path("/k/python3"), ("python", "-m", "ipykernel_launcher")),
    "crush-dev": Kernelspec(Path("/k/dev"), ("/dev/python", "-m", "crush_kernel.kernel")),
}


def notebook(name: str | None) -> Json:
    return {"metadata": {} if name is None else {"kernelspec": {"name": name}}}


@pytest.mark.parametrize(
    ("own", "wanted", "chosen"),
    [
        pytest.param("crush", None, "crush", id="ours, installed or not"),
        pytest.param(None, None, "crush", id="a notebook that names none"),
        pytest.param("", None, "crush", id="an empty name"),
        pytest.param("crush-dev", None, "crush-dev", id="ours under another name"),
        pytest.param("python3", "crush", "crush", id="another, ours wanted"),
        pytest.param("gone", "crush", "crush", id="a missing one, ours wanted"),
        pytest.param("crush", "python3", "python3", id="ours, another wanted"),
        pytest.param(None, "python3", "python3", id="none, another wanted"),
    ],
)
def test_a_kernel_is_chosen(own: str | None, wanted: str | None, chosen: str) -> None:
    assert choose_kernel(notebook(own), wanted, find=INSTALLED.get) == chosen


@pytest.mark.parametrize(
    ("own", "wanted", "message"),
    [
        pytest.param("python3", None, "is for the kernel 'python3', not for Crush", id="another"),
        pytest.param("gone", None, "is for the kernel 'gone', not for Crush", id="a missing one"),
        pytest.param("crush", "gone", "there is no kernel 'gone'", id="a missing one wanted"),
    ],
)
def test_the_wrong_kernel_is_refused_with_advice(
    own: str, wanted: str | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        choose_kernel(notebook(own), wanted, find=INSTALLED.get)

    assert caught.value.hint


def test_our_kernel_is_found_where_its_kernelspec_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(*_: str) -> list[str]:
        return [str(tmp_path)]

    monkeypatch.setattr("jupyter_client.kernelspec.jupyter_path", nowhere)

    spec = manager_for("crush").kernel_spec

    assert spec is not None
    assert spec.argv[:1] == ["python"]
    assert "crush_kernel.kernel" in spec.argv
    with pytest.raises(NoSuchKernel):
        _ = manager_for("gone").kernel_spec
