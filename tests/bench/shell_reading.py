"""Reading a command line: what stands between a `bash` call and its permission."""

from statistics import median
from time import process_time

from crush_kernel.permissions.shell.reading import read_command
from tests.bench.report import Row, Scale

CHARACTERS = 4_000

_LINES = (
    "# what has changed in {0}",
    "git status --short && git diff --stat HEAD~1 -- src/part{0}/prices.py | head -n 50",
    "if [ -f src/part{0}/rates.csv ]; then wc -l 'src/part{0}/rates.csv'; fi",
    'echo "{0}: $(git log -1 --format=%cd)" 2>/dev/null',
    "grep -rn --include='*.py' \"def total{0}\" src tests | sort | uniq -c",
)


def measure(scale: Scale) -> tuple[Row, ...]:
    """Measure a script of many lines, and a usual line."""
    script = long_script()
    repeats = scale.repeats(30, 10)
    return (
        Row(
            f"reading a command line, {len(script):,} characters",
            _ms(script, repeats),
            "ms",
            limit=2,
        ),
        Row("reading a command line of three commands", _ms(_LINES[1], repeats), "ms", limit=0.2),
    )


def long_script() -> str:
    """Return a script that only looks, of about `CHARACTERS`."""
    text = ""
    number = 0
    while len(text) < CHARACTERS:
        text += "\n".join(_LINES).format(number) + "\n"
        number += 1
    return text


def _ms(text: str, repeats: int) -> float:
    times: list[float] = []
    for _ in range(repeats + 1):
        start = process_time()
        read_command(text)
        times.append((process_time() - start) * 1e3)
    return median(times[1:])  # the first loads the parser
