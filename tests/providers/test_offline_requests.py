"""Which prompts are plain requests, and which are honestly not understood."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from crush_kernel.providers.offline.requests import plan
from crush_kernel.providers.offline.words import MAX_PROMPT_CHARS


@pytest.mark.parametrize(
    ("prompt", "intent"),
    [
        ("ls", ListFolder(".")),
        ("List the files.", ListFolder(".")),
        ("  please\tlist   all files in src ", ListFolder("src")),
        ("Can you list the files in the docs folder?", ListFolder("docs")),
        ("What files are here?", ListFolder(".")),
        ("what files are there in tests?", ListFolder("tests")),
        ("which files do you see", ListFolder(".")),
        ("What's in this folder?", ListFolder(".")),
        ("what’s in src/", ListFolder("src/")),
        ("show me everything in this project", ListFolder(".")),
        ("show the folder `my data`", ListFolder("my data")),
        ("list files in ..", ListFolder("..")),
        ("# List the files", ListFolder(".")),
        ("**list the files**", ListFolder(".")),
        ("- list the files", ListFolder(".")),
    ],
)
def test_asking_for_a_listing_lists_the_folder(prompt: str, intent: Intent) -> None:
    assert plan(prompt) == intent


@pytest.mark.parametrize(
    ("prompt", "intent"),
    [
        ("Show me README.md, please", ShowFile("README.md")),
        ("hey, could you open the file src/a.py for me?", ShowFile("src/a.py")),
        ("what does the README say?", ShowFile("README")),
        ("what is in price.py", ShowFile("price.py")),
        ("cat .gitignore", ShowFile(".gitignore")),
        ('show me "my notes.txt"', ShowFile("my notes.txt")),
        ("show “my notes.txt”.", ShowFile("my notes.txt")),
        ("show me `it's.txt`", ShowFile("it's.txt")),
        ("show lines 3-9 of src/a.py", ShowFile("src/a.py", offset=2, limit=7)),
        ("show line 3 of a.py", ShowFile("a.py", offset=2, limit=1)),
        ("show lines 9 to 3 of a.py", ShowFile("a.py", offset=8, limit=1)),
        ("show the first 5 lines of @a.py", ShowFile("a.py", limit=5)),
        ("show @a.py:3-9", ShowFile("a.py", offset=2, limit=7)),
    ],
)
def test_asking_to_see_a_file_shows_it(prompt: str, intent: Intent) -> None:
    assert plan(prompt) == intent


@pytest.mark.parametrize(
    ("prompt", "intent"),
    [
        ("find all Python files", FindFiles("**/*.py")),
        ("find yaml files in config", FindFiles("**/*.{yaml,yml}", "config")),
        ("find files ending in .md", FindFiles("**/*.md")),
        ("find files named conf*", FindFiles("**/conf*")),
        ("find the file price.py", FindFiles("**/price.py")),
        ("find *.py in src", FindFiles("**/*.py", "src")),
        ("find src/*.py", FindFiles("src/*.py")),
        ("Where is price.py?", FindFiles("**/price.py")),
        ("find TODO", FindText("TODO")),
        ('find "hello world" in src', FindText("hello world", "src")),
        ("find 'the user's keys'", FindText("the user's keys")),
        ("search for the word price", FindText("price")),
        ("grep parse_args in *.py", FindText("parse_args", include="*.py")),
        ('which files contain "import os"?', FindText("import os")),
        ("where is parse_args defined?", FindText("parse_args")),
        ("where is the function main used?", FindText("main")),
    ],
)
def test_asking_to_find_something_searches_names_or_text(prompt: str, intent: Intent) -> None:
    assert plan(prompt) == intent


@pytest.mark.parametrize(
    ("prompt", "command"),
    [
        ("run `ls -la`", "ls -la"),
        ("Run the command `make test` in the shell.", "make test"),
        ("run: ls -la", "ls -la"),
        ("run pytest -q tests", "pytest -q tests"),
        ("please execute ./build.sh --fast", "./build.sh --fast"),
        ('run echo "hello  world"', 'echo "hello  world"'),
        ("run 'ls'", "ls"),
        ("$ git status", "git status"),
        ("run `don't`", "don't"),
        ("run this:\n```bash\ncd src\nls\n```", "cd src\nls"),
    ],
)
def test_asking_to_run_a_command_runs_just_that(prompt: str, command: str) -> None:
    assert plan(prompt) == RunCommand(command)


@pytest.mark.parametrize(
    ("prompt", "intent"),
    [
        ('write "hello" to notes.txt', WriteFile("notes.txt", "hello\n")),
        ('create a file notes.txt with "it\'s fine"', WriteFile("notes.txt", "it's fine\n")),
        (
            "Create hello.py with:\n```python\nprint('hi')\n\nprint('ho')\n```",
            WriteFile("hello.py", "print('hi')\n\nprint('ho')\n"),
        ),
        (
            "create notes.md with:\n````\n```\ninner\n```\n````",
            WriteFile("notes.md", "```\ninner\n```\n"),
        ),
        ("make a new python file called tool with `x = 1`", WriteFile("tool", "x = 1\n")),
        ("create an empty file empty.txt", WriteFile("empty.txt", "")),
        ('save `x = 1` as "my file.py"', WriteFile("my file.py", "x = 1\n")),
        (r'write "a \"quoted\" word" to x.txt', WriteFile("x.txt", 'a "quoted" word\n')),
    ],
)
def test_asking_to_write_a_file_takes_the_content_from_the_quotes(
    prompt: str, intent: Intent
) -> None:
    assert plan(prompt) == intent


@pytest.mark.parametrize(
    ("prompt", "intent"),
    [
        ('replace "x" with "y" in f.py', ReplaceText("f.py", "x", "y")),
        ("replace 'it's' with 'it is' in f.txt", ReplaceText("f.txt", "it's", "it is")),
        (
            'In f.py, replace `a = "1"` by `a = "2"`.',
            ReplaceText("f.py", 'a = "1"', 'a = "2"'),
        ),
        ("change 0.20 to 0.25 in price.py", ReplaceText("price.py", "0.20", "0.25")),
        ('replace "x" with "" in "my file.py"', ReplaceText("my file.py", "x", "")),
        ('replace all "a" with "b" in f.txt', ReplaceText("f.txt", "a", "b", is_everywhere=True)),
        ("replace `not` with `never` in f.txt", ReplaceText("f.txt", "not", "never")),
        (r"replace `\d+$` with `$&\1` in f.txt", ReplaceText("f.txt", r"\d+$", r"$&\1")),
    ],
)
def test_asking_to_replace_text_takes_both_texts_literally(prompt: str, intent: Intent) -> None:
    assert plan(prompt) == intent


@pytest.mark.parametrize(
    ("prompt", "intent"),
    [
        ("explain this project", ExplainProject()),
        ("What does this project do?", ExplainProject()),
        ("give me an overview of this repository", ExplainProject()),
        ("describe the codebase briefly", ExplainProject()),
        ("explain price.py", ExplainFile("price.py")),
        ("Read src/a.py and tell me in two sentences what it does.", ExplainFile("src/a.py")),
        ("What have we done so far?", Recap()),
        ("summarize this conversation", Recap()),
        ("Remember this: the shop opens at ten.", Remember()),
        ("please remember that f.py is old", Remember()),
        ("help", About()),
        ("hi!", About()),
        ("Hello! What can you do?", About()),
    ],
)
def test_asking_for_words_needs_no_more_than_reading(prompt: str, intent: Intent) -> None:
    assert plan(prompt) == intent


@pytest.mark.parametrize(
    "prompt",
    [
        pytest.param("", id="nothing"),
        pytest.param(" \n\t ", id="white space"),
        pytest.param("???", id="punctuation"),
        pytest.param("don't run `rm -rf build`", id="a negation"),
        pytest.param("Don’t list the files", id="a negation with a typographic apostrophe"),
        pytest.param('do not write "x" to f.txt', id="a negation of a write"),
        pytest.param("never run `ls`", id="never"),
        pytest.param("list the files without the tests", id="an exception"),
        pytest.param("run ls and then delete everything", id="two wishes, the first understood"),
        pytest.param("list the files, then run `ls`", id="two wishes"),
        pytest.param("- list files\n- run `ls`", id="a list of wishes"),
        pytest.param("list the files\nin a poem", id="several lines"),
        pytest.param("show my notes.txt", id="a path with a space, unquoted"),
        pytest.param("cat a b.txt", id="two words where a path goes"),
        pytest.param("run the tests", id="a command that is not named"),
        pytest.param("run away", id="no program"),
        pytest.param("run:\n```python\nprint(1)\n```", id="a block that is no shell"),
        pytest.param("write a poem to poem.txt", id="content that would have to be made up"),
        pytest.param("create a file x.txt with a poem about cats", id="content described"),
        pytest.param("change it to red in a.css", id="a pronoun as text"),
        pytest.param('replace "" with "x" in f.py', id="nothing to replace"),
        pytest.param('replace "x" with "x" in f.py', id="the same text"),
        pytest.param("rename foo to bar in f.py", id="a symbol, not a text"),
        pytest.param("replace x with y", id="no file"),
        pytest.param("what is in it", id="a pronoun as a folder"),
        pytest.param("list the files in them", id="a pronoun as a folder to list"),
        pytest.param("find files named it", id="a pronoun as a name"),
        pytest.param("find TODO in it", id="a pronoun as a place"),
        pytest.param('write "x" to it', id="a pronoun as a file"),
        pytest.param("show:\n```\na.py\n```", id="a block as a path"),
        pytest.param("show\n```\na.py\n```", id="a block as a path, too"),
        pytest.param('show ""', id="an empty path"),
        pytest.param("show `a\nb`", id="a path of two lines"),
        pytest.param("find bugs", id="a wish that only sounds like a search"),
        pytest.param("find my keys", id="no search at all"),
        pytest.param('find "\n"', id="a search for a line break"),
        pytest.param("list files larger than 1 MB", id="a condition"),
        pytest.param("list three reasons to love Python", id="a list of something else"),
        pytest.param("explain quantum physics", id="no file"),
        pytest.param("show me how to write a test", id="a question"),
        pytest.param("delete everything", id="a deed that is not offered"),
        pytest.param("Zeige mir die Dateien", id="German"),
        pytest.param("列出文件", id="Chinese"),
        pytest.param("liste les fichiers", id="French"),
        pytest.param("run `ls", id="an open quote"),
        pytest.param("find 'the users' keys'", id="a quote that may end in two places"),
        pytest.param("show ..", id="a folder where a file is meant"),
        pytest.param("run \ue000", id="the mark of a quoted span, typed"),
        pytest.param("run `ls`\x00", id="a NUL"),
        pytest.param("run " + "`ls` " * 70, id="more quotes than anybody means"),
        pytest.param("run `" + "x" * MAX_PROMPT_CHARS + "`", id="a wall of text"),
    ],
)
def test_what_is_not_clear_is_not_done(prompt: str) -> None:
    assert plan(prompt) is None


@pytest.mark.slow
@given(st.text())
def test_no_prompt_makes_planning_fail(prompt: str) -> None:
    plan(prompt)


@pytest.mark.slow
@given(st.text(alphabet="`'\"“”« » \\\n~ab", max_size=40), st.sampled_from(["run ", "show ", ""]))
def test_no_mixture_of_quotes_makes_planning_fail(quotes: str, start: str) -> None:
    plan(start + quotes)


@pytest.mark.slow
@given(
    st.text(alphabet=st.characters(exclude_characters="`", exclude_categories=["C"]), min_size=1)
)
def test_a_quoted_command_is_run_as_it_stands(command: str) -> None:
    stripped = command.strip()

    assert plan(f"run `{command}`") == (RunCommand(stripped) if stripped else None)
