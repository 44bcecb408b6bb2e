"""Plain requests: which of a few things a prompt asks for, by rule.

Pure. A rule has to fit the whole prompt, never a part of it, and a "not" anywhere makes the
prompt a thing that is not understood: better to say so than to do what was not asked.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from crush_kernel.providers.offline.intents import (
    About,
    ExplainFile,
    ExplainProject,
    FindFiles,
    FindText,
    Intent,
    ListFolder,
    Recap,
    Remember,
    ReplaceText,
    RunCommand,
    ShowFile,
    WriteFile,
)
from crush_kernel.providers.offline.words import (
    MARK,
    Found,
    is_file_name,
    is_identifier,
    plain_request,
)


def plan(prompt: str) -> Intent | None:
    """Return what `prompt` asks for, `None` if that is not clear beyond doubt."""
    if _SUMMARY.search(prompt):
        return Recap()
    request = plain_request(prompt)
    if not request.words or request.is_negated:
        return None
    for rule in _RULES:
        match = rule.pattern.fullmatch(request.words)
        if match and (intent := rule.build(Found(match, request.spans))) is not None:
            return intent
    return None


_SUMMARY = re.compile(r"this conversation is about to be replaced by a summary", re.IGNORECASE)
"""In what the agent asks when a conversation has become too long, in many words."""

_EXTENSIONS: Mapping[str, str] = {
    "c": "c",
    "css": "css",
    "csv": "csv",
    "go": "go",
    "html": "html",
    "java": "java",
    "javascript": "js",
    "json": "json",
    "jupyter": "ipynb",
    "markdown": "md",
    "notebook": "ipynb",
    "python": "py",
    "ruby": "rb",
    "rust": "rs",
    "shell": "sh",
    "sql": "sql",
    "text": "txt",
    "toml": "toml",
    "typescript": "ts",
    "xml": "xml",
    "yaml": "{yaml,yml}",
}


def _about(_: Found) -> Intent:
    return About()


def _recap(_: Found) -> Intent:
    return Recap()


def _remember(_: Found) -> Intent:
    return Remember()


def _explain_project(_: Found) -> Intent:
    return ExplainProject()


def _explain_file(found: Found) -> Intent | None:
    path = found.file("path")
    return None if path is None else ExplainFile(path)


def _list_folder(found: Found) -> Intent | None:
    path = found.folder("folder")
    return None if path is None else ListFolder(path)


def _list_or_show(found: Found) -> Intent | None:
    path = found.path("path")
    if path is None:
        return None
    return ShowFile(path) if is_file_name(path) else ListFolder(path)


def _show_file(found: Found) -> Intent | None:
    path, first, last = found.file("path"), found.number("first"), found.number("last")
    if path is None:
        return None
    ranged = re.fullmatch(r"(.+\.\w+):([1-9]\d{0,6})(?:-(\d{1,7}))?", path)
    if ranged and not first:
        path, first, last = ranged[1], int(ranged[2]), int(ranged[3] or 0)
    if first:
        return ShowFile(path, offset=first - 1, limit=max(1, (last or first) - first + 1))
    return ShowFile(path, limit=found.number("count"))


def _find_by_name(found: Found) -> Intent | None:
    name, path = found.path("name"), found.folder("folder")
    if name is None or path is None:
        return None
    is_clear = found.raw("called") or found.span("name") or re.search(r"[.*?/\[{]", name)
    return FindFiles(name if "/" in name else f"**/{name}", path) if is_clear else None


def _find_by_kind(found: Found) -> Intent | None:
    path, given = found.folder("folder"), found.path("extension")
    extension = given.lstrip("*.") if given else _EXTENSIONS.get(found.raw("kind").lower())
    return FindFiles(f"**/*.{extension}", path) if extension and path is not None else None


def _find_text(found: Found) -> Intent | None:
    text, place = found.text("text") or "", found.folder("folder")
    is_clear = found.span("text") or found.raw("literal") or is_identifier(text)
    if not text.strip() or "\n" in text or not is_clear or place is None:
        return None
    return FindText(text, include=place) if re.search(r"[*?\[{]", place) else FindText(text, place)


def _run(found: Found) -> Intent | None:
    command = found.command("command")
    return None if command is None else RunCommand(command)


def _write(found: Found) -> Intent | None:
    path = found.path("path") if found.raw("called") else found.file("path")
    content = found.span("content")
    if path is None or (content is None and not found.raw("empty")):
        return None
    text = content.text if content else ""
    return WriteFile(path, text if not text or text.endswith("\n") else f"{text}\n")


def _replace(found: Found) -> Intent | None:
    path, old, new = found.file("path"), found.text("old"), found.text("new")
    if path is None or not old or new is None or old == new:
        return None
    is_everywhere = bool(found.raw("all") or found.raw("everywhere"))
    return ReplaceText(path, old, new, is_everywhere=is_everywhere)


@dataclass(frozen=True, slots=True)
class _Rule:
    """Builds an intent from the prompts that fit a pattern."""

    pattern: re.Pattern[str]
    build: Callable[[Found], Intent | None]


def _rule(build: Callable[[Found], Intent | None], *pieces: str) -> _Rule:
    return _Rule(re.compile("".join(pieces), re.IGNORECASE), build)


# Fragments of patterns. A word is all that stands between two spaces; `Found` judges it.
_WORD = r"\S+"
_PROJECT = r"(?:this|the|my|our) (?:project|repo|repository|codebase|code base|folder|directory)"
_HERE = (
    r"(?:here|(?:this|the|my|our)(?: current| working| whole| entire)?"
    r" (?:folder|directory|project|repo|repository|workspace|codebase))"
)
_FOLDER = (
    rf"(?:{_HERE}|(?:the )?(?:folder|directory) (?P<folder>{_WORD})"
    rf"|(?:the )?(?P<folder_>{_WORD})(?: folder| directory)?)"
)
_IN = rf"(?: (?:in|inside|under|within|from|of) {_FOLDER})?"
_SHOW = r"(?:show|open|print|cat|view|read|display|see|let me see)(?: me)?"
_FILE = rf"(?:the )?(?:contents? of |text of )?(?:the )?(?:file )?(?P<path>{_WORD})"
_IS = r"(?: is|['’]s|s)"
_KIND_OF_TEXT = r"(?: (?P<literal>text|word|string|phrase|term))?"
_KIND_OF_OLD = r"(?: occurrences? of)?(?: the)?(?: text| word| string| line)?"
_SPEAK = r"(?:explain|describe|summari[sz]e|introduce)(?: me)?(?: to me)?"

_ABOUT = (
    _rule(_about, r"help(?: me)?|hi|hello(?: there)?|hey|(?:who|what) are you"),
    _rule(_about, r"what (?:can you do|do you understand)(?: here| in a notebook)?"),
    _rule(
        _recap,
        r"what (?:have we|did we|have you|did you) (?:done|do|changed?)",
        r"(?: so far)?(?: in this notebook| here)?(?: so far)?",
    ),
    _rule(_recap, r"recap|summari[sz]e (?:this|the|our) (?:conversation|session|notebook)"),
    _rule(_remember, r"remember(?: this| that)?:? .+"),
    _rule(_explain_project, rf"{_SPEAK} {_PROJECT}(?: to me| briefly)?"),
    _rule(_explain_project, rf"what{_IS} {_PROJECT}(?: about| for)?"),
    _rule(_explain_project, rf"what does {_PROJECT} do"),
    _rule(_explain_project, rf"(?:tell me about|(?:give me )?an overview of) {_PROJECT}"),
)

_LOOKING = (
    _rule(_list_folder, r"ls|dir|list|list (?:the )?(?:current )?(?:folder|directory)"),
    _rule(
        _list_folder,
        r"(?:list|show|give|print|display)(?: me)?(?: all)?(?: of)?(?: the| my)?",
        r" (?:files?|folders?|directories|contents?|files and (?:folders|directories)|everything)",
        rf"(?: that are| there are)?(?: here|{_IN})",
    ),
    _rule(
        _list_folder, rf"(?:what|which) files (?:are(?: there)?|do (?:i|we|you) (?:have|see)){_IN}"
    ),
    _rule(_list_folder, rf"(?:what|which) files are (?:there )?{_HERE}"),
    _rule(_list_folder, rf"what{_IS} (?:in )?{_HERE}"),
    _rule(
        _list_folder,
        r"(?:list|show|open|ls)(?: me)? (?:the )?(?:(?:folder|directory) ",
        rf"(?P<folder>{_WORD})|(?P<folder_>{_WORD}) (?:folder|directory))",
    ),
    _rule(_list_or_show, r"(?:ls|dir|list) (?P<path>\S*[./\ue000-\ue03f]\S*)"),
    _rule(
        _list_or_show,
        rf"(?:show me )?what{_IS} (?:there )?(?:in|inside) (?:the )?",
        rf"(?:file |folder |directory )?(?P<path>{_WORD})(?: file| folder| directory)?",
    ),
    _rule(_show_file, rf"what does {_FILE} (?:say|contain)"),
    _rule(
        _show_file,
        rf"{_SHOW} (?:only )?(?:the )?lines? (?P<first>[1-9]\d{{0,6}})",
        r"(?: ?(?:-|–|to|through) ?(?P<last>\d{1,7}))? (?:of|in|from) ",
        _FILE,
    ),
    _rule(
        _show_file,
        rf"{_SHOW} (?:only )?the first (?P<count>[1-9]\d{{0,6}}) lines (?:of|in|from) {_FILE}",
    ),
    _rule(_show_file, rf"{_SHOW} {_FILE}"),
    _rule(_explain_file, rf"{_SPEAK} {_FILE}"),
    _rule(_explain_file, rf"what does {_FILE} do"),
    _rule(
        _explain_file,
        rf"(?:read|open|look at) {_FILE},? and (?:tell me|explain|describe|summari[sz]e)",
        r"(?: in (?:a|one|two|three|a few) sentences?)? (?:it|what it (?:does|is))(?: briefly)?",
    ),
)

_FINDING = (
    _rule(
        _find_by_kind,
        r"(?:find|list|show|locate|search for)(?: me)?(?: all)?(?: the| my)?",
        rf" (?P<kind>\w+)(?: source)? (?:files|notebooks|scripts|modules){_IN}",
    ),
    _rule(
        _find_by_kind,
        r"(?:find|list|show)(?: me)?(?: all)?(?: the)? files",
        r" (?:(?:that )?end(?:ing)? (?:in|with)|with(?: the)? extension|of type)",
        rf" (?P<extension>{_WORD}){_IN}",
    ),
    _rule(
        _find_by_name,
        r"(?:find|locate|search for|which|list|show)(?: me)?(?: all| any)?(?: the| a)? files?",
        r"(?: are)? (?P<called>named|called|matching|that match|like)",
        rf" (?P<name>{_WORD}){_IN}",
    ),
    _rule(_find_by_name, rf"(?:find|locate|search for)(?: the)? file (?P<name>{_WORD}){_IN}"),
    _rule(_find_by_name, rf"where is (?:the )?file (?P<name>{_WORD})"),
    _rule(
        _find_by_name,
        rf"(?:find|locate|where is) (?P<name>[^\s\ue000-\ue03f]*[.*/][^\s\ue000-\ue03f]*){_IN}",
    ),
    _rule(
        _find_text,
        r"(?:find|search(?: for)?|grep(?: for)?|look for|locate)(?: all)?(?: the)?",
        r"(?: lines| places| files| uses| occurrences)?",
        r"(?: (?:with|containing|that contain|where|of))?(?: the)?",
        rf"{_KIND_OF_TEXT} (?P<text>{_WORD})(?: (?:is|are) used)?{_IN}",
    ),
    _rule(
        _find_text,
        r"(?:which|what) files (?:contain|mention|have|use)(?: the)?",
        rf"{_KIND_OF_TEXT} (?P<text>{_WORD}){_IN}",
    ),
    _rule(
        _find_text,
        r"where is(?: the)?(?: (?P<literal>text|word|string|function|class|variable))?",
        rf" (?P<text>{_WORD}) (?:used|defined|mentioned|called)",
    ),
)

_DOING = (
    _rule(
        _run,
        r"(?:run|execute)(?: this| the)?(?: following)?(?: shell)?(?: command)?:?",
        rf" (?P<command>{MARK})(?: in (?:the |a )?(?:shell|terminal|bash))?",
    ),
    _rule(_run, r"(?:(?:run|execute)(?: the command)?:?|\$) (?P<command>.+)"),
    _rule(
        _write,
        rf"(?:write|save|put) (?P<content>{MARK}) (?:to|in|into|as)(?: a| the)?(?: new)?",
        rf"(?: (?P<called>file))?(?: called| named)? (?P<path>{_WORD})",
    ),
    _rule(
        _write,
        r"(?:write|create|make|add)(?: me)?(?: a| the)?(?: new)?(?: (?!empty)\w+)?",
        rf"(?: (?P<called>file|script|module))?(?: called| named)? (?P<path>{_WORD})",
        r"(?: (?:with|containing|that contains|that says|which says|which contains))?",
        rf"(?: the)?(?: following)?(?: contents?| text| line)?:? (?P<content>{MARK})",
    ),
    _rule(
        _write,
        r"(?:create|make|write)(?: a| an)?(?: new)? (?P<empty>empty) (?P<called>file)",
        rf"(?: called| named)? (?P<path>{_WORD})",
    ),
    _rule(
        _replace,
        rf"(?:replace|change)(?: (?P<all>all|every))?{_KIND_OF_OLD} (?P<old>{_WORD})",
        rf" (?:with|by|to) (?P<new>{_WORD})(?P<everywhere> everywhere)?",
        rf" (?:in|inside|within)(?: the)?(?: file)? (?P<path>{_WORD})",
    ),
    _rule(
        _replace,
        rf"in(?: the)?(?: file)? (?P<path>{_WORD}),? (?:replace|change)",
        rf"(?: (?P<all>all|every))?{_KIND_OF_OLD} (?P<old>{_WORD})",
        rf" (?:with|by|to) (?P<new>{_WORD})(?P<everywhere> everywhere)?",
    ),
)

# The first rule that fits, and whose builder can make sense of its words, counts.
_RULES = (*_ABOUT, *_LOOKING, *_FINDING, *_DOING)
