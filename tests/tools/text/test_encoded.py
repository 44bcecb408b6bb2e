"""What of a tool's output is left out as Base64, and what is not."""

import base64
import time
from hashlib import sha256, sha512, shake_128

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.tools.text.encoded import KEPT_CHARACTERS, MIN_CHARACTERS, without_base64

RAW = shake_128(b"picture").digest(9_000)
RUN = base64.b64encode(RAW).decode()
WRAPPED = base64.encodebytes(RAW).decode().rstrip("\n")
NOTE = f"[… {len(RUN) - KEPT_CHARACTERS:,} characters of Base64 left out …]"
SHORT = RUN[:KEPT_CHARACTERS] + NOTE
LINES = WRAPPED.split("\n")
BLACK = base64.b64encode(bytes(3_000)).decode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(RUN, SHORT, id="alone"),
        pytest.param(f"a\nsig=data:image/webp;base64,{RUN}\nz",
                     f"a\nsig=data:image/webp;base64,{SHORT}\nz", id="a data URL"),
        pytest.param(f"url(data:image/bmp;base64,{BLACK})",
                     f"url(data:image/bmp;base64,{BLACK[:16]}"
                     "[… 3,984 characters of Base64 left out …])", id="a black picture"),
        pytest.param(f'{{"image/png": "{RUN}\\n", "n": 1}}',
                     f'{{"image/png": "{SHORT}\\n", "n": 1}}', id="in JSON"),
        pytest.param(RUN.translate(str.maketrans("+/", "-_")), SHORT, id="in the URL's alphabet"),
        pytest.param(f"{RUN}\n{RUN}", f"{SHORT}\n{SHORT}", id="two"),
        pytest.param(f"$ base64 a.png\n{WRAPPED}\n$ ", f"$ base64 a.png\n{SHORT}\n$ ",
                     id="wrapped"),
        pytest.param("\n".join(f"{n:6d}|{line}" for n, line in enumerate(LINES, 1)),
                     f"     1|{SHORT}", id="wrapped, in a viewed file"),
        pytest.param("\n".join(f"    {line}" for line in LINES), f"    {SHORT}",
                     id="wrapped and indented"),
        pytest.param("\n".join(LINES[:100]) + "\nthe end",
                     RUN[:16] + "[… 7,584 characters of Base64 left out …]\nthe end",
                     id="wrapped, all lines full"),
        pytest.param(f"     1|{RUN[:2_000]}… [cut; the line has 12,000 bytes]",
                     f"     1|{RUN[:16]}[… 1,984 characters of Base64 left out …]"
                     "… [cut; the line has 12,000 bytes]", id="a line that was cut"),
    ],
)  # fmt: skip
def test_a_long_run_is_named_with_its_length(text: str, shown: str) -> None:
    assert without_base64(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("sig=data:image/webp;base64,UklGRgAAAABXRUJQ", id="a short data URL"),
        pytest.param(RUN[: MIN_CHARACTERS - 1], id="just too short"),
        pytest.param(sha512(RAW).hexdigest() * 20, id="hexadecimal digits"),
        pytest.param("\n".join(sha256(bytes([n])).hexdigest() for n in range(200)), id="hashes"),
        pytest.param("\n".join(f"{sha256(bytes([n])).hexdigest()}  f{n}" for n in range(200)),
                     id="a list of checksums"),
        pytest.param("\n".join(["ACGTTGCA" * 8] * 200), id="genes, wrapped"),
        pytest.param("MKTAYIAKQRQISFVKSHFSRQ" * 100, id="a protein"),
        pytest.param("-" * 4_000, id="a rule"),
        pytest.param("-----BEGIN RSA PRIVATE KEY-----\n" + "\n".join(LINES[:50])
                     + "\n-----END RSA PRIVATE KEY-----", id="a key"),
        pytest.param("function a(b,c){return b.d(c)+e[0]}var f1=G();" * 100, id="minified code"),
        pytest.param("The Quick 7 Brown Foxes " * 300, id="prose"),
        pytest.param("some/Path/to_9/a-file " * 200, id="paths"),
        pytest.param("\n".join("aB3" * (20 + n % 3) for n in range(200)), id="uneven lines"),
        pytest.param("日本語Ab1" * 900, id="letters of other alphabets"),
    ],
)  # fmt: skip
def test_everything_else_stays(text: str) -> None:
    assert without_base64(text) == text


@given(st.lists(st.sampled_from([RUN, WRAPPED, "text ", "\n", "  7|", ";base64,", "AAAA"])))
def test_a_second_time_changes_nothing(pieces: list[str]) -> None:
    once = without_base64("".join(pieces))
    assert without_base64(once) == once
    assert RUN not in once


@pytest.mark.parametrize(
    "unit",
    [
        pytest.param("a" * 999 + " ", id="runs that are just too short"),
        pytest.param(("a" * 60 + "\n") * 62 + "\n", id="just too few lines"),
        pytest.param(" " * 79 + "1", id="spaces"),
        pytest.param("1" * 59 + "|", id="numbers"),
    ],
)
def test_no_text_takes_long(unit: str) -> None:
    text = unit * (400_000 // len(unit))
    started = time.process_time()
    assert without_base64(text) == text
    assert time.process_time() - started < 2
