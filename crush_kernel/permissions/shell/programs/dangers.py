"""Why a person has to say in any mode: commands that Crush bans, and those that destroy.

One sentence each, with what to use instead where there is something.

Source: Crush, banned commands and argument blockers, by real name and through every wrapper.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final

from crush_kernel.permissions.shell.judgement import Word
from crush_kernel.permissions.shell.programs.git import GitCall, git_call
from crush_kernel.permissions.shell.programs.names import names_in
from crush_kernel.permissions.shell.programs.options import is_one, options, scan

_FETCHES = "gets things from the network, which the tools fetch and download are for"
_CONNECTS = "connects to other machines: run it in a cell of your own, with ! before it"
_BROWSES = "opens a browser: the tool fetch reads pages"
_PRIVILEGED = "acts as another user: run it in a cell of your own, with ! before it"
_PACKAGES = (
    "manages the software of the whole machine: run it in a cell of your own, with ! before it"
)
_SYSTEM = "changes how this machine runs: run it in a cell of your own, with ! before it"
_NETWORK = "looks into or changes the network: run it in a cell of your own, with ! before it"
_ALIAS = "gives commands another meaning: write the command out instead"
_DESTROYS_DISKS = "destroys what is on a disk"
_ENDS = "ends this machine or all that runs on it"
_KILLS = "ends processes by name, which may be others than are meant: use kill with a number"
_ACCOUNTS = "changes the accounts of this machine"

BANNED: Final[Mapping[str, str]] = {
    name: reason
    for names, reason in (
        ("aria2c axel curl curlie http-prompt httpie wget xh", _FETCHES),
        ("nc scp ssh telnet", _CONNECTS),
        ("chrome firefox links lynx safari w3m", _BROWSES),
        ("doas su sudo", _PRIVILEGED),
        ("apk apt apt-cache apt-get dnf dpkg emerge home-manager makepkg opkg pacman", _PACKAGES),
        ("paru pkg pkg_add pkg_delete portage rpm yay yum zypper", _PACKAGES),
        (
            "at batch chkconfig crontab fdisk mkfs mount parted service systemctl umount",
            _SYSTEM,
        ),
        ("firewall-cmd ifconfig ip iptables netstat pfctl route ufw", _NETWORK),
        ("alias", _ALIAS),
    )
    for name in names.split()
}
"""Why not to use them, by name."""

_ALIKE: Final[Mapping[str, str]] = {
    name: reason
    for names, reason in (
        ("http https wget2", _FETCHES),
        ("ncat netcat socat sftp ftp rsh rlogin mosh", _CONNECTS),
        ("google-chrome chromium chromium-browser elinks", _BROWSES),
        ("pkexec runuser gosu", _PRIVILEGED),
        ("nft ip6tables nmcli", _NETWORK),
        ("wipefs blkdiscard sgdisk sfdisk cfdisk mke2fs mkswap cryptsetup", _DESTROYS_DISKS),
        ("shutdown reboot halt poweroff", _ENDS),
        ("killall killall5 pkill", _KILLS),
        ("useradd userdel usermod groupdel passwd chpasswd visudo", _ACCOUNTS),
        ("init telinit insmod rmmod modprobe sysctl swapoff", _SYSTEM),
    )
    for name in names.split()
}
"""The same for others that do the same, and for what destroys whatever its arguments are."""

_ABOUT_INSTALLING = (
    "installs software for more than this project: install it in the project instead"
)
_PUBLISHES = "publishes for others, which cannot be taken back"


def _rules(text: str, reason: str) -> tuple[tuple[tuple[str, ...], frozenset[str], str], ...]:
    """Return a rule for each line: the leading words, of which `|` stands between flags."""
    rules: list[tuple[tuple[str, ...], frozenset[str], str]] = []
    for line in text.split(";"):
        words, _, flags = line.partition("|")
        rules.append((tuple(words.split()), frozenset(flags.split()), reason))
    return tuple(rules)


_RULES: Final = (
    *_rules(
        "brew install;cargo install;gem install;go install;pipx install;uv tool install;"
        "npm install|-g --global --location=global;npm i|-g --global --location=global;"
        "npm add|-g --global --location=global;npm link|-g --global;"
        "pnpm add|-g --global;pnpm install|-g --global;pnpm i|-g --global;yarn global add;"
        "bun add|-g --global;bun install|-g --global;"
        "pip install|--user --break-system-packages",
        _ABOUT_INSTALLING,
    ),
    *_rules("go test|-exec --exec", "runs the tests by another program: run them without -exec"),
    *_rules(
        "npm publish;pnpm publish;yarn publish;yarn npm publish;cargo publish;gem push;"
        "twine upload;poetry publish;uv publish;hatch publish;flit publish",
        _PUBLISHES,
    ),
    *_rules(
        "docker system prune;docker volume rm;docker volume prune;docker image prune|-a --all;"
        "docker container prune;docker compose down|-v --volumes;docker-compose down|-v --volumes;"
        "podman system prune;podman volume rm;podman volume prune",
        "deletes what containers have stored",
    ),
    *_rules(
        "kubectl delete;kubectl drain;helm uninstall;helm delete;terraform destroy;tofu destroy;"
        "terraform apply|-auto-approve --auto-approve -destroy;pulumi destroy;cdk destroy;"
        "aws s3 rb;aws s3 rm|--recursive;aws ec2 terminate-instances;gsutil rb;"
        "gcloud projects delete;gh repo delete;gh release delete;heroku apps destroy;"
        "vagrant destroy;zfs destroy;zpool destroy;lvremove;vgremove;redis-cli flushall;"
        "redis-cli FLUSHALL;dropdb;dropuser",
        "deletes what runs or is stored elsewhere",
    ),
)
_RULES_OF: Final[Mapping[str, tuple[tuple[tuple[str, ...], frozenset[str], str], ...]]] = {
    name: tuple(rule for rule in _RULES if rule[0][0] == name)
    for name in {rule[0][0] for rule in _RULES}
}
_SAME_AS: Final[Mapping[str, str]] = {"pip3": "pip", "pip2": "pip", "tofu": "terraform"}


def dangers_of(name: str, arguments: tuple[Word, ...]) -> tuple[str, ...]:
    """Return why a person has to say before the program `name` gets `arguments`."""
    if name not in _CONCERNED and not name.startswith("mkfs."):
        return ()
    return tuple(dict.fromkeys(_found(name, arguments)))


def _found(name: str, arguments: tuple[Word, ...]) -> Iterator[str]:
    if reason := BANNED.get(name) or _ALIKE.get(name):
        yield f"{name} {reason}."
    if name.startswith("mkfs."):
        yield f"{name} {_DESTROYS_DISKS}."
    for leading, flags, reason in _RULES_OF.get(_SAME_AS.get(name, name), ()):
        if _follows(leading[1:], flags, arguments):
            yield f"{' '.join((name, *leading[1:]))} {reason}."
    if check := _CHECKS.get(name):
        yield from check(arguments)


def _follows(leading: tuple[str, ...], flags: frozenset[str], arguments: tuple[Word, ...]) -> bool:
    """Return whether `leading` are the first operands and any of `flags` is there."""
    texts = [word.text or "" for word in arguments]
    if flags and not any(_is_flag(text, flags) for text in texts):
        return False
    places = (at for at, text in enumerate(texts) if not text.startswith("-"))
    first = tuple(islice(places, len(leading) + 1))
    operands = tuple(texts[at] for at in first)
    if operands[: len(leading)] == leading:
        return True
    # What follows an option may be its value, or an operand: both ways.
    return any(
        _may_be_value(texts, at) and (*operands[:index], *operands[index + 1 :]) == leading
        for index, at in enumerate(first)
    )


def _may_be_value(texts: list[str], at: int) -> bool:
    return at > 0 and texts[at - 1].startswith("-") and "=" not in texts[at - 1]


def _is_flag(text: str, flags: frozenset[str]) -> bool:
    """Return whether `text` is one of `flags`, with a value or in a cluster of letters."""
    if text in flags or text.partition("=")[0] in flags:
        return True
    return (
        text.startswith("-")
        and text[1:].isalpha()
        and len(text) <= 4
        and any(len(flag) == 2 and flag[1] in text for flag in flags)
    )


def _git(arguments: tuple[Word, ...]) -> Iterator[str]:
    call = git_call(arguments)
    texts = [word.text or "" for word in call.rest]
    flags = {text.partition("=")[0] for text in texts if text.startswith("--")}
    for text in texts:
        if text.startswith("-") and not text.startswith("--"):
            flags |= {f"-{letter}" for letter in text[1:]}
    if reason := _GIT_CHECKS.get(call.name):
        for marks, sentence in reason:
            if not marks or flags & marks or set(texts) & marks:
                yield sentence
                break
    yield from _git_words(call, texts)


def _git_words(call: GitCall, texts: list[str]) -> Iterator[str]:
    match call.name:
        case "push" if any(text.startswith(("+", ":")) for text in texts):
            yield _GIT_FORCE
        case "config" if (key := _setting(call.rest)) and not _is_harmless_setting(key):
            yield f"The setting {key} may make git run programs or talk to others."
        case _:
            pass
    if any(name in ("-c", "--config-env") for name, _ in call.given.texts):
        keys = [(word.text or "").partition("=")[0] for _, word in call.given.texts]
        if not all(map(_is_harmless_setting, keys)):
            yield "git -c may make git run programs or talk to others."


_GIT_FORCE: Final = "A forced push replaces what others have pushed, or deletes it."
_GIT_DISCARDS: Final = "It throws away changes that are not committed."
_FORCE: Final = frozenset(["-f", "--force"])
_GIT_CHECKS: Final[Mapping[str, tuple[tuple[frozenset[str], str], ...]]] = {
    "push": (
        (
            frozenset(["-f", "--force", "--force-with-lease", "--mirror", "--delete", "-d"])
            | {"--prune", "--force-if-includes"},
            _GIT_FORCE,
        ),
    ),
    "reset": ((frozenset(["--hard", "--merge", "--keep"]), _GIT_DISCARDS),),
    "clean": ((_FORCE, "git clean deletes files that git does not know."),),
    "checkout": ((_FORCE | {"--", "."}, _GIT_DISCARDS),),
    "restore": ((frozenset(["."]), _GIT_DISCARDS),),
    "switch": ((_FORCE | {"--discard-changes"}, _GIT_DISCARDS),),
    "branch": (
        (frozenset(["-D", "-f", "--force"]), "It deletes or moves a branch with its work."),
    ),
    "stash": ((frozenset(["drop", "clear"]), "It deletes changes that were put aside."),),
    "reflog": ((frozenset(["expire", "delete"]), "It deletes the last trace of lost work."),),
    "gc": ((frozenset(["--prune", "--aggressive"]), "It deletes the last trace of lost work."),),
    "prune": ((frozenset(), "It deletes the last trace of lost work."),),
    "filter-branch": ((frozenset(), "It rewrites the whole history."),),
    "filter-repo": ((frozenset(), "It rewrites the whole history."),),
    "update-ref": ((frozenset(["-d", "--delete"]), "It deletes a branch or a tag."),),
    "worktree": ((_FORCE, _GIT_DISCARDS),),
    "rm": ((_FORCE, "It deletes files with changes that are not committed."),),
}
_HARMLESS_SETTINGS: Final = names_in(
    "user.name user.email user.signingkey init.defaultbranch pull.rebase pull.ff push.default"
    " push.autosetupremote core.autocrlf core.eol core.quotepath core.filemode core.longpaths"
    " core.ignorecase merge.conflictstyle diff.algorithm diff.renames fetch.prune rebase.autostash"
    " rebase.autosquash commit.gpgsign log.date"
)
_HARMLESS_SECTIONS: Final = names_in("color rerere advice column status")


def _is_harmless_setting(key: str) -> bool:
    lower = key.lower()
    return lower in _HARMLESS_SETTINGS or lower.partition(".")[0] in _HARMLESS_SECTIONS


_SETTING_OPTIONS: Final = options(
    "-f> --file> --blob: --type: --default: -e --edit --unset --add --global --local --system"
)


def _setting(words: tuple[Word, ...]) -> str:
    """Return which setting `git config` changes with `words`, empty if none."""
    given = scan(words, _SETTING_OPTIONS)
    if given.names & {"--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l"}:
        return ""
    texts = [word.text or "?" for word in given.operands if word.text not in ("set", "unset")]
    if given.names & {"-e", "--edit"}:
        return "?"
    is_set = len(texts) > 1 and texts[0] not in ("get", "list")
    return texts[0] if is_set else ""


def _rm(arguments: tuple[Word, ...]) -> Iterator[str]:
    given = scan(arguments, options("-rRfidvI --recursive --force --dir --verbose --interactive?"))
    # One word alone may be an option, but then nothing is left to be deleted.
    is_safe = not given.unclear or (len(given.operands) == 1 and is_one(given.operands[0]))
    if not given.names & {"-r", "-R", "--recursive"} and is_safe:
        return
    if any(word.text is None for word in given.operands):
        yield "What it deletes is known to the shell only."
    if any(_is_everything(word) for word in given.operands):
        yield "It deletes everything in a folder."


def _is_everything(word: Word) -> bool:
    return word.has_glob and set((word.text or "").rpartition("/")[2]) <= set("*.?")


def _dd(arguments: tuple[Word, ...]) -> Iterator[str]:
    for word in arguments:
        text = word.text or ""
        if text.startswith("of=/dev/") and text[3:] not in _HARMLESS_DEVICES:
            yield "dd writes to a disk, over what is on it."


_HARMLESS_DEVICES: Final = frozenset(
    ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/zero", "/dev/full", "/dev/tty"]
)


def _kill(arguments: tuple[Word, ...]) -> Iterator[str]:
    numbers = [word.text for word in arguments]
    if numbers[1:] and "-1" in numbers[1:]:
        yield "It ends all processes that it may end."


def _shred(_: tuple[Word, ...]) -> Iterator[str]:
    yield "shred destroys files beyond repair."


_CHECKS: Final[Mapping[str, Callable[[tuple[Word, ...]], Iterator[str]]]] = {
    "git": _git,
    "rm": _rm,
    "dd": _dd,
    "kill": _kill,
    "shred": _shred,
}

_CONCERNED: Final = frozenset({*BANNED, *_ALIKE, *_RULES_OF, *_SAME_AS, *_CHECKS})
"""The programs of which there is anything to say."""
