"""What it costs to decide by two hundred rules, and to make a policy of them."""

from dataclasses import replace
from pathlib import Path
from statistics import median
from time import process_time

from crush_kernel.permissions.decision import decide
from crush_kernel.permissions.pathpattern import Place
from crush_kernel.permissions.policy import Policy, StandingRule
from crush_kernel.permissions.request import CommandPart, PermissionRequest
from crush_kernel.permissions.rule import parse_rule
from tests.bench.report import Row, Scale

RULES = 200
PARTS = 4
_TIMES = 200
_ROOT = Path("/home/u/project")


def measure(scale: Scale) -> tuple[Row, ...]:
    """Measure a command of ten parts that the last rules allow, and a change to a file."""
    policy = _policy()
    repeats = scale.repeats(21, 5)
    return (
        Row(f"{RULES} rules read", _read(repeats), "ms", limit=50),
        Row(
            f"decide on {PARTS} commands by {RULES} rules",
            _decided(_command(), policy, repeats),
            "ms",
            limit=0.2,
        ),
        Row(
            f"decide on a file by {RULES} rules",
            _decided(_change(), policy, repeats),
            "ms",
            limit=0.2,
        ),
    )


def _texts() -> list[str]:
    kinds = (
        "bash(tool{} run:*)",
        "bash(git sub{} *)",
        "edit(src/part{}/**)",
        "fetch(domain:h{}.example)",
    )
    return [kinds[number % len(kinds)].format(number) for number in range(RULES)]


def _policy() -> Policy:
    verdicts = ("deny", "ask", "allow")
    rules = [
        StandingRule(verdicts[number * len(verdicts) // RULES], parse_rule(text))
        for number, text in enumerate(_texts())
    ]
    return Policy(tuple(rules), Place(_ROOT, Path("/home/u")))


def _command() -> PermissionRequest:
    parts = tuple(
        CommandPart("x", ("git", f"sub{number}", "--all", "x"), "does")
        for number in range(RULES - 4 * PARTS + 1, RULES, 4)
    )
    writes = tuple(_ROOT / f"out/{number}.txt" for number in range(PARTS))
    return PermissionRequest(
        "c", "bash", "execute", "run", command="x", cwd=_ROOT, parts=parts, writes=writes
    )


def _change() -> PermissionRequest:
    path = _ROOT / f"src/part{RULES - 2}/a.py"
    return PermissionRequest("c", "edit", "write", "edit", paths=(path,))


def _read(repeats: int) -> float:
    taken: list[float] = []
    for _ in range(repeats):
        began = process_time()
        _policy()
        taken.append(1000 * (process_time() - began))
    return median(taken)


def _decided(request: PermissionRequest, policy: Policy, repeats: int) -> float:
    if decide(request, mode="default", grants=frozenset(), policy=policy).kind != "allow":
        raise AssertionError("the request is one that the last rules allow")
    # Never the same one twice, so that nothing remembered of it helps.
    requests = [replace(request) for _ in range(_TIMES)]
    taken: list[float] = []
    for _ in range(repeats):
        began = process_time()
        for each in requests:
            decide(each, mode="default", grants=frozenset(), policy=policy)
        taken.append(1000 * (process_time() - began) / _TIMES)
    return median(taken)
