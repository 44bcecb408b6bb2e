"""What usual programs do, in words for a person, and how many words name it.

By program and subcommand, `npm run`; the longest entry that fits counts.
"""

from collections.abc import Mapping
from typing import Final

from crush_kernel.permissions.shell.judgement import Word
from crush_kernel.permissions.shell.programs.names import names_in

_RUNS_PROJECT = "runs the project's code"

_EFFECTS: Final[Mapping[str, str]] = {
    name.strip(): does
    for does, names in {
        _RUNS_PROJECT: "pytest, py.test, tox, nox, unittest, coverage, jest, vitest, mocha, ava,"
        " karma, playwright, cypress, rspec, phpunit, ctest, bats, make, gmake, just, task,"
        " rake, gradle, gradlew, mvn, mvnw, ant, sbt, lein, bazel, buck2, meson, ninja, cmake,"
        " invoke, doit, scons, npm test, npm t, npm start, npm run, npm run-script, pnpm test,"
        " pnpm run, pnpm start, yarn test, yarn run, yarn start, bun test, bun run, deno test,"
        " deno run, deno task, cargo build, cargo test, cargo run, cargo check, cargo bench,"
        " cargo clippy, cargo doc, go build, go test, go run, go vet, go generate,"
        " dotnet build, dotnet test, dotnet run, swift build, swift test, swift run, zig build,"
        " zig test, mix, bundle exec, rails, flask, django-admin, uvicorn, gunicorn, hypercorn,"
        " celery, scrapy, streamlit, jupyter, ipython, papermill, nbconvert, sphinx-build,"
        " mkdocs, hugo, jekyll, next, vite, webpack, rollup, esbuild, parcel, turbo, nx, lerna,"
        " gulp, grunt, tsc, vue-tsc, eslint, stylelint, pylint, mypy, pyright, pre-commit,"
        " alembic, dbt, airflow, snakemake, hatch test, hatch build, poetry build, uv build,"
        " python setup.py, entr, nodemon",
        "installs packages": "pip, pip install, pip3, npm install, npm i, npm ci, npm add,"
        " npm update, npm uninstall, pnpm install, pnpm i, pnpm add, pnpm remove, yarn,"
        " yarn install, yarn add, yarn remove, bun install, bun add, cargo add, cargo install,"
        " cargo update, cargo fetch, go get, go install, go mod, gem, bundle, bundle install,"
        " composer, poetry add, poetry install, poetry lock, poetry update, uv add, uv sync,"
        " uv pip, uv lock, uv tool, pipenv, pipx, conda, mamba, micromamba, brew, nix, nix-env,"
        " apt, apt-get, dnf, yum, pacman, apk, zypper, snap, flatpak, port, opam, cabal, stack,"
        " luarocks, cpan, cpanm, rustup, nvm, pyenv, rbenv, asdf, sdk, corepack, hatch env,"
        " dotnet add, dotnet restore, mise",
        "runs a package": "npx, bunx, pnpm dlx, pnpm exec, yarn dlx, npm exec, npm x, uvx,"
        " pipx run, dlx",
        "talks to the network": "curl, wget, ssh, scp, sftp, ftp, nc, ncat, telnet, socat, ping,"
        " traceroute, dig, nslookup, host, whois, http, https, xh, aria2c, gh, glab, hub, aws,"
        " gcloud, az, gsutil, heroku, fly, flyctl, vercel, netlify, wrangler, firebase, doctl,"
        " rclone, s3cmd, twine, npm publish, npm view, npm audit, npm outdated, npm login,"
        " cargo publish, cargo search, ansible, ansible-playbook, terraform, tofu, pulumi,"
        " kubectl, helm, k9s, psql, mysql, mongosh, redis-cli, openssl s_client, pip download,"
        " pip index, pip search, ntpdate, rsh, mosh",
        "runs containers": "docker, podman, docker run, docker compose, docker-compose, nerdctl,"
        " docker build, podman run, vagrant, buildah, minikube, kind",
        "changes the database": "sqlite3, alembic upgrade, dropdb, createdb, pg_restore, duckdb",
        "compiles code": "gcc, g++, clang, clang++, cc, c++, rustc, javac, ghc, ocamlc, ld, as,"
        " nasm, swiftc, kotlinc, scalac, zig, go tool, protoc, pdflatex, xelatex, latexmk",
        "changes files": "black, isort, autopep8, yapf, ruff, ruff format, ruff check, gofmt,"
        " rustfmt, cargo fmt, go fmt, clang-format, prettier, biome, shfmt, dprint, codespell,"
        " dos2unix, npm init, npm version, npm pkg, cargo new, cargo init, go mod tidy, uv init,"
        " poetry new, nbstripout, jupytext, pandoc, convert, magick, ffmpeg, sox, yq",
        "deletes files": "cargo clean, make clean, go clean, npm prune, docker rm, docker rmi,"
        " pip uninstall, pip cache, npm cache, uv cache, trash, srm",
        "ends processes": "kill, killall, pkill, skill, fuser",
        "changes the system": "systemctl, service, mount, umount, sysctl, useradd, userdel,"
        " usermod, passwd, crontab, at, batch, fdisk, mkfs, parted, modprobe, insmod, chsh,"
        " iptables, ufw, ip, ifconfig, hostnamectl, timedatectl, launchctl, defaults, shutdown,"
        " reboot, halt, poweroff, update-alternatives, ldconfig, swapoff, swapon",
        "changes the shell": "export, unset, declare, typeset, local, readonly, alias, unalias,"
        " shopt, set, umask, ulimit, enable, hash, source, read, mapfile, readarray, getopts,"
        " let, shift, bind, complete, disown, bg, fg, popd, dirs, compopt",
        "opens a window": "open, xdg-open, code, subl, firefox, chrome, chromium, safari, start",
        "runs on its own": "tmux, screen, daemonize, nohup, disown, pm2, supervisorctl, forever",
        "copies files": "rclone copy, docker cp, kubectl cp",
        "reads files": "less, more, bat, man, info, view, zless, zmore, yq, tokei, cloc, scc",
        "lists files": "exa, eza, lsd, ranger",
        "finds files": "fd, fdfind, locate, mlocate",
        "waits": "inotifywait, fswatch",
        "tells about the machine": "top, htop, lsof, ss, dmesg, journalctl, vmstat, iostat, who",
        "makes keys": "ssh-keygen, gpg, openssl, age-keygen, keytool",
        "lists packages": "pip list, pip show, pip freeze, pip check, pip3 list, npm ls, npm list,"
        " conda list, brew list, gem list, uv pip list",
        "lists containers": "docker ps, docker images, docker inspect, docker logs, docker version,"
        " docker info, docker compose ps, docker compose logs, podman ps, podman images",
        "tells about a cluster": "kubectl get, kubectl describe, kubectl logs, kubectl version,"
        " kubectl config",
    }.items()
    for name in names.split(",")
}

_NO_RULE: Final = names_in(
    "rm rmdir unlink shred mv dd chmod chown chgrp truncate ln tee install rsync find fd sed awk"
    " gawk mawk xargs parallel eval exec source . curl wget ssh scp nc sudo su doas env sh bash zsh"
    " kill killall pkill export unset declare alias trap set read sort tar sqlite3 psql mysql"
    " tmux screen watch crontab at openssl gpg yq ansible vim vi ex ed emacs nano rclone"
    " xdg-open open start docker podman npx bunx uvx"
)
"""Programs of which only a whole command may be granted for good."""

_DO_ONE_THING_ALONE: Final = ("make", "gmake")
"""Programs of which a rule may name no more than them, when nothing follows."""

_DEPTHS: Final[Mapping[str, int]] = {
    **dict.fromkeys(
        names_in(
            "npm pnpm yarn bun deno cargo go gem bundle composer poetry uv pipenv pipx conda"
            " mamba brew dotnet swift zig mix rails gh glab aws gcloud az kubectl helm"
            " terraform tofu pulumi pip pip3 hatch pdm rye ruff jupyter just task invoke rake"
            " alembic dbt airflow flask turbo nx lerna gulp rustup nvm pyenv opam cabal stack"
            " gradle gradlew mvn mvnw bazel heroku fly flyctl vercel netlify firebase wrangler"
            " systemctl service nix apt apt-get dnf docker-compose vagrant coverage pre-commit"
            " playwright cypress"
        ),
        2,
    ),
    **dict.fromkeys(
        names_in(
            "npm run|npm run-script|pnpm run|pnpm exec|yarn run|bun run|deno task|uv run|"
            "uv pip|uv tool|poetry run|hatch run|pdm run|cargo run|go mod|go tool|gh pr|"
            "gh issue|gh repo|gh run|gh release|aws s3|gcloud compute|dotnet tool|conda env|"
            "bundle exec|docker compose|docker image|docker container|docker volume|"
            "docker network|docker system|podman compose|kubectl config|npm pkg|npm config|"
            "npm exec|yarn workspace|coverage run",
            "|",
        ),
        3,
    ),
    **dict.fromkeys(
        ["docker ps", "docker images", "docker logs", "docker inspect", "docker build"], 2
    ),
    **dict.fromkeys(_DO_ONE_THING_ALONE, 2),
    **dict.fromkeys(["npm exec", "pnpm exec", "gh api", "docker run", "docker exec"], 0),
}
"""How many words name what is run, where it is not one."""


def effect_of(name: str, arguments: tuple[Word, ...]) -> str:
    """Return what the program `name` does with `arguments`, in two or three words."""
    for key in _keys(name, arguments):
        if does := _EFFECTS.get(key):
            return does
    return f"runs {name}"


def words_of_rule(name: str, arguments: tuple[Word, ...]) -> int:
    """Return how many of the first words a rule has to name, 0 if only all of them will do."""
    keys = _keys(name, arguments)
    depths = [_DEPTHS[key] for key in keys if key in _DEPTHS]
    if not depths:
        return 0 if name in _NO_RULE else 1
    depth = depths[0]
    named = arguments[: max(depth - 1, 0)]
    if not all(map(_is_plain, named)):
        return 0
    if len(named) + 1 < depth:
        return int(name in _DO_ONE_THING_ALONE)
    return depth


def _keys(name: str, arguments: tuple[Word, ...]) -> list[str]:
    """Return the names of entries that fit, the longest first."""
    keys = [name]
    for word in arguments[:2]:
        if not _is_plain(word):
            break
        keys.append(f"{keys[-1]} {word.text}")
    return keys[::-1]


def _is_plain(word: Word) -> bool:
    return bool(word.text) and not word.has_glob and not (word.text or "-").startswith("-")
