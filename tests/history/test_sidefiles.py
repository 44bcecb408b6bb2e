"""What goes out of a notebook because it is too large, and how it comes back."""

import base64
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crush_kernel.history.sidefiles import (
    NOTICE_BYTES,
    PREVIEW_EDGE,
    Caps,
    budget_notice,
    caps_for,
    restored,
    spilled,
)
from crush_kernel.history.turn import digest_of
from crush_kernel.messages import (
    MESSAGES,
    Media,
    Message,
    Part,
    Reasoning,
    ShellCommand,
    Text,
    ToolCall,
    ToolResult,
)
from tests.fakes.media import decoded, encoded, noise, pdf, photo

CAPS = Caps(text_bytes=4_000, media_characters=8_000, preview_bytes=3_000)
LONG = "".join(f"line {n}\n" for n in range(2_000))
PNG = encoded(noise((200, 150)), "PNG")
PAPER = pdf(90)


class Store(dict[str, bytes]):
    """Content by its hash."""

    def keep(self, data: bytes) -> str:
        name = sha256(data).hexdigest()
        self[name] = data
        return name


def media(data: bytes, media_type: str = "image/png", name: str = "plot.png") -> Media:
    return Media(media_type, base64.b64encode(data).decode(), name=name)


def user(*parts: Part) -> tuple[Message, ...]:
    return (Message("user", parts),)


def answered(result: ToolResult) -> tuple[Message, ...]:
    return (Message("tool", (result,)),)


def sole(messages: tuple[Message, ...]) -> Part:
    ((part,),) = (message.parts for message in messages)
    return part


def size_of(messages: tuple[Message, ...]) -> int:
    return len(MESSAGES.dump_json(messages))


LARGE = [
    pytest.param(user(Text(LONG)), id="an attached text"),
    pytest.param(user(ShellCommand("make", LONG, 2)), id="the output of a command"),
    pytest.param(user(media(PNG)), id="an attached image"),
    pytest.param(user(media(PAPER, "application/pdf", "paper.pdf")), id="an attached document"),
    pytest.param(answered(ToolResult("c1", LONG)), id="a result"),
    pytest.param(answered(ToolResult("c1", "see", media=(media(PNG), media(PNG, name="b")))),
                 id="images of a result"),
    pytest.param(answered(ToolResult("c1", "done", metadata={"diff": LONG, "summary": "+1"})),
                 id="a diff"),
    pytest.param(answered(ToolResult("c1", LONG, is_error=True, media=(media(PNG),),
                                     metadata={"diff": LONG})), id="all of it"),
]  # fmt: skip


@pytest.mark.parametrize("messages", LARGE)
def test_what_is_large_goes_out_and_comes_back_whole(messages: tuple[Message, ...]) -> None:
    store = Store()
    kept = spilled(messages, caps=CAPS, keep=store.keep)
    assert size_of(kept) < 15_000 < size_of(messages)
    assert store
    loaded = MESSAGES.validate_json(MESSAGES.dump_json(kept))
    assert restored(loaded, fetch=store.get) == messages


def test_a_part_that_is_whole_is_stored_as_before_there_were_previews() -> None:
    messages = user(Text("a"), media(b"a"), ToolResult("c1", "a"), ShellCommand("a", "a", 0))
    stored = MESSAGES.dump_json(messages)
    assert b"blob" not in stored
    assert MESSAGES.validate_json(stored) == messages


@pytest.mark.parametrize("messages", LARGE)
def test_what_went_out_does_not_go_out_again(messages: tuple[Message, ...]) -> None:
    store = Store()
    once = spilled(messages, caps=CAPS, keep=store.keep)
    assert spilled(once, caps=CAPS, keep=Store().keep) == once
    lower = Caps(text_bytes=1, media_characters=1, preview_bytes=500)
    twice = spilled(once, caps=lower, keep=store.keep)
    assert restored(twice, fetch=store.get) == messages


@pytest.mark.parametrize("messages", LARGE)
def test_what_cannot_be_kept_apart_stays(messages: tuple[Message, ...]) -> None:
    assert spilled(messages, caps=CAPS, keep=lambda _: "") == messages


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(Text("y" * 4_000), id="a text as long as may be"),
        pytest.param(media(bytes(6_000)), id="a file as large as may be"),
        pytest.param(Media("image/png", "aGk" * 9_000 + "!", "a.png"), id="damaged Base64"),
        pytest.param(Media("image/png", "aGl=" + "aGk=" * 9_000, "a.png"), id="padding within"),
        pytest.param(Media("image/png", "QUFB" * 9_000 + "aGl=", "a.png"), id="a second spelling"),
        pytest.param(Reasoning(LONG, {"signature": LONG}), id="reasoning"),
        pytest.param(ToolCall("c1", "write", f'{{"text": "{"y" * 9_000}"}}'), id="a call"),
        pytest.param(ToolResult("c1", "ok", metadata={"diff": 7, "more": LONG}), id="other facts"),
    ],
)
def test_everything_else_stays(part: Part) -> None:
    store = Store()
    assert spilled(user(part), caps=CAPS, keep=store.keep) == user(part)
    assert store == {}


def test_what_the_model_says_stays() -> None:
    said = (Message("assistant", (Text(LONG),)),)
    assert spilled(said, caps=CAPS, keep=Store().keep) == said


def test_a_text_is_previewed_by_its_ends_and_a_note() -> None:
    store = Store()
    part = sole(spilled(user(ShellCommand("make", LONG, 0)), caps=CAPS, keep=store.keep))
    assert isinstance(part, ShellCommand)
    assert (part.command, part.exit_code, [part.blob]) == ("make", 0, list(store))
    assert part.output.startswith("line 0\nline 1\n")
    assert part.output.endswith("line 1998\nline 1999\n")
    count = len(LONG) - 3_000
    assert f"\n[… {count:,} bytes are kept beside this notebook: {part.blob} …]\n" in part.output


@pytest.mark.parametrize("total", [0, 1_000_000, 1_500_000, 2_000_000])
@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        pytest.param(encoded(photo((1_568, 900)), "JPEG", quality=99), "image/jpeg", id="JPEG"),
        pytest.param(encoded(noise((900, 500)), "PNG"), "image/png", id="PNG"),
        pytest.param(encoded(noise((700, 400)), "WEBP", lossless=True), "image/webp", id="WebP"),
    ],
)
def test_an_image_is_previewed_by_a_small_one(total: int, data: bytes, media_type: str) -> None:
    store, caps = Store(), caps_for(total)
    kept = spilled(user(media(data, media_type)), caps=caps, keep=store.keep)
    part = sole(kept)
    assert isinstance(part, Media)
    assert (part.media_type, part.name, store) == (media_type, "plot.png", {part.blob: data})
    preview = base64.b64decode(part.data)
    assert max(decoded(preview).size) <= PREVIEW_EDGE
    assert len(preview) <= caps.preview_bytes < caps.media_characters


def test_two_files_without_preview_are_told_apart_in_what_a_turn_says() -> None:
    papers = [user(media(pdf(pages), "application/pdf")) for pages in (90, 91)]
    kept = [spilled(paper, caps=CAPS, keep=Store().keep) for paper in papers]
    assert digest_of(kept[0]) != digest_of(kept[1])


@pytest.mark.parametrize(
    ("messages", "reads"),
    [
        pytest.param(user(Text(LONG)), "only its two ends are left.]", id="text"),
        pytest.param(user(ShellCommand("make", LONG, 2)), "only its two ends are left.]",
                     id="output"),
        pytest.param(answered(ToolResult("c1", LONG)), "only its two ends are left.]",
                     id="result"),
        pytest.param(user(media(PNG)), "[Of plot.png only this small preview is left: the whole "
                     "is not in this folder.]", id="image"),
        pytest.param(answered(ToolResult("c1", "see", media=(media(PNG, name=""),))),
                     "see\\n[Of a file only this small preview is left: the whole is not in this "
                     "folder.]", id="image of a result"),
        pytest.param(user(media(PAPER, "application/pdf", "paper.pdf")), "[paper.pdf "
                     "(application/pdf) is left out: it is not in this folder.]", id="document"),
        pytest.param(answered(ToolResult("c1", "see", media=(media(PAPER, "application/pdf"),))),
                     "see\\n[plot.png (application/pdf) is left out: it is not in this folder.]",
                     id="document of a result"),
    ],
)  # fmt: skip
def test_what_is_not_in_this_folder_is_stood_for_by_its_preview_and_a_note(
    messages: tuple[Message, ...], reads: str
) -> None:
    kept = spilled(messages, caps=CAPS, keep=Store().keep)
    seen = restored(kept, fetch=lambda _: None)
    assert reads in MESSAGES.dump_json(seen).decode()
    assert restored(seen, fetch=lambda _: None) == seen
    files = [part for message in seen for part in message.parts if isinstance(part, Media)]
    files += [
        file
        for message in seen
        for part in message.parts
        if isinstance(part, ToolResult)
        for file in part.media
    ]
    for file in files:
        image = decoded(base64.b64decode(file.data))
        assert f"image/{(image.format or '').lower()}" == file.media_type


def test_a_diff_that_is_not_in_this_folder_is_shown_by_its_ends() -> None:
    messages = answered(ToolResult("c1", "done", metadata={"diff": LONG}))
    part = sole(restored(spilled(messages, caps=CAPS, keep=Store().keep), fetch=lambda _: None))
    assert isinstance(part, ToolResult)
    assert set(part.metadata) == {"diff"}
    assert str(part.metadata["diff"]).startswith("line 0\n")


def test_a_text_whose_file_holds_no_text_counts_as_missing() -> None:
    kept = spilled(user(Text(LONG)), caps=CAPS, keep=Store().keep)
    part = sole(restored(kept, fetch=lambda _: b"\xff\xfe\xfd"))
    assert isinstance(part, Text)
    assert part.text.startswith("line 0\n")
    assert part.text.endswith("only its two ends are left.]")


def repeated(piece: str, count: int) -> str:
    return piece * count


texts = st.builds(
    repeated,
    st.text(st.characters(), max_size=5) | st.just("\ud800") | st.just("𝄞"),
    st.sampled_from([0, 1, 900, 3_000]),
)
files = st.builds(
    media,
    st.sampled_from([b"", b"hi", PNG, PNG[:9_000], PAPER, bytes(9_000)]),
    st.sampled_from(["image/png", "image/jpeg", "application/pdf", "nonsense", ""]),
    st.text(max_size=3),
)
facts = st.dictionaries(st.sampled_from(["diff", "summary", "x"]), texts | st.integers())
parts = st.one_of(
    st.builds(Text, texts),
    files,
    st.builds(ShellCommand, texts, texts, st.integers(0, 255)),
    st.builds(ToolResult, st.just("c1"), texts, st.booleans(),
              st.lists(files, max_size=2).map(tuple), facts),
    st.builds(Reasoning, texts, facts),
    st.builds(ToolCall, st.just("c1"), st.just("view"), texts),
)  # fmt: skip
histories = st.lists(
    st.builds(
        Message,
        st.sampled_from(["user", "assistant", "tool"]),
        st.lists(parts, max_size=3).map(tuple),
    ),
    max_size=3,
).map(tuple)


@pytest.mark.slow
@settings(deadline=None)
@given(histories, st.sampled_from([CAPS, caps_for(0), Caps(0, 0, 500)]))
def test_every_history_comes_back_as_it_was(history: tuple[Message, ...], caps: Caps) -> None:
    store = Store()
    kept = spilled(history, caps=caps, keep=store.keep)
    assert restored(kept, fetch=store.get) == history
    assert spilled(kept, caps=caps, keep=Store().keep) == kept
    assert restored(history, fetch=store.get) == history
    seen = restored(kept, fetch=lambda _: None)
    assert restored(seen, fetch=lambda _: None) == seen


@given(st.integers(0, 10**8), st.integers(0, 10**8))
def test_caps_only_shrink_as_the_notebook_grows(one: int, other: int) -> None:
    small, large = caps_for(min(one, other)), caps_for(max(one, other))
    assert small.text_bytes >= large.text_bytes
    assert small.media_characters >= large.media_characters
    assert small.preview_bytes >= large.preview_bytes


@pytest.mark.parametrize(
    ("before", "after", "is_told"),
    [
        pytest.param(0, NOTICE_BYTES - 1, False, id="not yet"),
        pytest.param(0, NOTICE_BYTES, True, id="at once"),
        pytest.param(NOTICE_BYTES - 1, NOTICE_BYTES + 1, True, id="now"),
        pytest.param(NOTICE_BYTES, NOTICE_BYTES + 1, False, id="told before"),
        pytest.param(NOTICE_BYTES + 1, 9, False, id="on the way back"),
    ],
)
def test_the_user_is_told_once(before: int, after: int, is_told: bool) -> None:  # noqa: FBT001
    notice = budget_notice(before, after)
    assert bool(notice) is is_told
    assert not is_told or f"{after / 1_000_000:.1f} MB" in notice


@pytest.mark.slow
def test_thirty_megabytes_of_results_take_some_two_in_the_notebook() -> None:
    """Case k15: images in Base64 and outputs of a megabyte."""
    shot = media(encoded(noise((600, 400)), "PNG"))
    result = ToolResult("c1", "x" * 1_000_000, media=(shot,))
    store, total, before = Store(), 0, 0
    for number in range(20):
        turn = answered(replace(result, content=f"{number}{result.content}"))
        before += size_of(turn)
        total += size_of(spilled(turn, caps=caps_for(total), keep=store.keep))
    for _ in range(300):
        turn = answered(ToolResult("c2", "y" * 28_000))
        before += size_of(turn)
        total += size_of(spilled(turn, caps=caps_for(total), keep=store.keep))
    assert before > 38_000_000
    assert total < 2_500_000
