"""Commands that Crush bans are found by their real name, whatever runs them."""

import pytest

from tests.permissions.shell.commandwords import everything_judged

BANNED = """
alias aria2c axel chrome curl curlie firefox http-prompt httpie links lynx nc safari scp ssh telnet
w3m wget xh doas su sudo apk apt apt-cache apt-get dnf dpkg emerge home-manager makepkg opkg pacman
paru pkg pkg_add pkg_delete portage rpm yay yum zypper at batch chkconfig crontab fdisk mkfs mount
parted service systemctl umount firewall-cmd ifconfig ip iptables netstat pfctl route ufw
""".split()  # noqa: SIM905 - to be compared with the reference
"""Source: Crush, banned commands."""

WAYS = """
{} x
/usr/bin/{} x
../bin/{} x
'{}' x
env {} x
env -i A=1 {} x
env -u A -C /tmp {} x
env -S '{} x'
timeout 5 {} x
timeout -s KILL -k 1 5 {} x
nice -n 5 {} x
ionice -c3 {} x
nohup {} x
time {} x
stdbuf -o0 {} x
setsid {} x
xargs {}
xargs -0 -n 1 -P 4 {} x
xargs -I% {} %
command {} x
builtin {} x
exec {} x
exec -a ls {} x
eval {} x
eval '{} x'
sh -c '{} x'
bash -lc '{} x'
zsh -c '{} x'
dash -c '{} x'
ksh -c '{} x'
busybox {} x
toybox {} x
find . -exec {} {{}} +
find . -execdir {} x \\;
find . -ok {} x \\;
parallel {} ::: a b
watch -n 1 {} x
script -c '{} x' out
flock lock {} x
flock -n lock -c '{} x'
chroot / {} x
sudo -u me {} x
doas {} x
su -c '{} x'
unshare -n {} x
strace -f -o out {} x
ltrace {} x
systemd-run --user {} x
tmux new-session -d '{} x'
screen -dm {} x
taskset 1 {} x
git bisect run {} x
git submodule foreach '{} x'
git rebase -i --exec '{} x' main
git -c alias.z='!{} x' z
uv run {} x
timeout --unknown 5 {} x
nice $x {} x
trap '{} x' EXIT
timeout 5 nice env A=1 sh -c 'exec {} x'
""".strip().splitlines()


@pytest.mark.parametrize("way", WAYS)
def test_what_is_banned_is_found(way: str) -> None:
    missed = [name for name in BANNED if not _is_danger(way.format(name))]
    assert missed == []


@pytest.mark.parametrize("name", BANNED)
def test_what_is_banned_is_told_with_a_reason(name: str) -> None:
    (danger,) = everything_judged(f"{name} x")[0].dangers
    assert danger.startswith(f"{name} ")
    assert danger.endswith(".")
    assert "\n" not in danger


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        pytest.param("curl x", "fetch and download", id="curl"),
        pytest.param("wget x", "fetch and download", id="wget"),
        pytest.param("sudo x", "!", id="sudo"),
        pytest.param("npm i -g x", "in the project", id="npm"),
    ],
)
def test_what_to_use_instead_is_said(line: str, instead: str) -> None:
    assert instead in everything_judged(line)[0].dangers[0]


def _is_danger(line: str) -> bool:
    return any(judged.dangers for judged in everything_judged(line))
