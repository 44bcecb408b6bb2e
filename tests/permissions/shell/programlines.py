"""Command lines by kind, with what is to be said of them."""

READ_ONLY = {
    "lists": r"""
        ls
        ls -la
        ls -la src tests
        ls -lah --color=never src
        ls --sort=size -r
        ls -d */
        ls -1 *.py
        ls -- -odd
        ls "$dir"
        /bin/ls -l
        /usr/bin/ls
        /usr/local/bin/ls
        stat -c %s setup.py
        stat --format=%a file
        file -b a.bin
        du -sh .
        du -sh * --max-depth=1
        du -h -d 1 src
        df -h
        df --output=avail .
        tree -L 2 -I node_modules
        tree -a src
        pwd
        pwd -P
        basename /a/b.c .c
        dirname a/b
        realpath src/../a
        readlink -f link
    """,
    "reads": r"""
        cat a.txt
        cat -n a.txt b.txt
        cat
        cat -
        cat src/*.py
        cat *
        cat "$file"
        head -5 a
        head -n 20 a
        head -n20 a
        head --lines=5 -q a b
        tail -20 log
        tail -n +10 log
        tail -f log
        wc -l a b
        wc -l *.py
        tac a
        rev a
        nl -ba a
        fold -w 80 a
        cut -d: -f1,3 /etc/passwd
        cut -d ',' -f 2 a.csv
        paste -d, a b
        tr a-z A-Z
        tr -d '\n'
        sort a
        sort -rn -k2,2 a
        sort -t: -k 3n a
        sort -u a b
        uniq -c
        uniq a
        column -t -s, a
        join a b
        comm -12 a b
        cmp -s a b
        diff -u a b
        diff a b
        md5sum a
        sha256sum --tag a b
        sha1sum *.tgz
        b2sum a
        base64 -d a
        xxd a
        xxd -l 64 a
        hexdump -C a
        od -c a
        strings -n 8 a.out
        jq .name package.json
        jq -r '.a[] | .b' f.json
        jq --arg x y '.[$x]' f.json
        jq -n --slurpfile a f.json '$a'
        zcat a.gz
        expand -t 4 a
        fmt -w 72 a
        iconv -f latin1 -t utf-8 a
        shuf -n 3 a
    """,
    "searches": r"""
        grep foo a
        grep -rn foo src
        grep -rn --include='*.py' foo .
        grep -E 'a|b' -i a
        grep -e foo -e bar a
        grep -A3 -B 2 foo a
        grep -5 foo a
        grep -c foo *.py
        grep -q foo "$file"
        grep -l foo -r src tests
        grep --color=auto foo
        egrep 'a|b' a
        fgrep a.b a
        rg foo
        rg -n foo src
        rg -g '*.py' -i foo
        rg --type py foo src
        rg --files src
        rg -A 3 foo
        rg -uu foo
        rg -e foo -e bar src
        find
        find .
        find . -name '*.py'
        find src tests -type f -name '*.py' -not -path '*/x/*'
        find . -maxdepth 2 -type d
        find . \( -name a -o -name b \) -print0
        find . -newer setup.py
        find . -mtime -1 -size +10k -ls
        find . -printf '%p\n'
        find . -name x -prune -o -print
        find . -newermt 2020-01-01
        which python
        which -a python3
        type ls
        whereis -b gcc
        command -v git
        command -V git
    """,
    "tells": r"""
        whoami
        id
        id -un
        groups
        hostname
        hostname -s
        uname
        uname -a
        date
        date +%s
        date -u +%Y-%m-%d
        date -d yesterday
        date -d yesterday +%F
        date -r setup.py
        uptime
        ps aux
        ps axo pid,args
        ps -ef
        ps 12 13
        ps ax
        ps -ef
        ps -o pid,cmd -p 1
        pgrep -fl python
        free -h
        nproc
        lscpu
        lsblk
        env
        env -0
        printenv
        printenv HOME PATH
        locale -a
        getconf PAGE_SIZE
        tty
        arch
        cal 2024
        python --version
        python3 -V
        node --version
        pip --version
        git --version
        npm -v
        gcc --version
        pip3 show requests
        pip show -f requests
        pip freeze
        pip check
    """,
    "shell": r"""
        echo
        echo hi there
        echo -n hi
        echo --- title ---
        echo "$HOME"
        echo *
        printf '%s\n' a b
        printf 'x'
        printf '%s\n' "$x"
        printf -- '--%s'
        :
        : anything
        true
        false
        sleep 1
        seq 10
        seq 1 2 10
        expr 1 + 2
        test -f a
        test -n "$x"
        [ -d src ]
        [ "$x" = y ]
        [ 1 -lt 2 ]
        [ ! -e a ]
        [ a -nt b ]
        cd src
        cd
        cd -
        cd "$x"
        pushd src
        set -e
        set -euo pipefail
        set -x
        set +x
        exit 1
        exit $?
        wait
        wait %1
        read -r line
        umask
        ulimit -a
    """,
    "changes text on its way": r"""
        sed -n 1,5p a
        sed -n '1,5p' a b
        sed -n '/foo/,/bar/p' a
        sed s/a/b/ a
        sed 's/a/b/g;s/c/d/' a
        sed -e s/a/b/ -e 's|c|d|' a
        sed -E 's/(a)(b)/\2\1/' a
        sed '/^#/d' a
        sed 5q a
        sed '$d' a
        sed '1!G;h;$!d' a
        sed 's/^[[:space:]]*//' a
        sed -n '/x/{p;q}' a
        sed -n '$=' a
        awk '{print $1}' a
        awk -F: '{print $1, $3}' a
        awk -F , -v x=1 '$2 == x {print}' a
        awk '$3 > 100' a
        awk '$3 > 100 {print $1}' a
        awk 'NR==1 || NR==3' a
        awk 'BEGIN {print 1+1}'
        awk '{s+=$1} END {print s}' x=1 a
    """,
    "git": r"""
        git log
        git log --oneline -5
        git log -p -- src/a.py
        git log --since=yesterday --author=me --format=%h
        git log -n 3 main..HEAD
        git log -S foo --stat
        git log -L 1,5:src/a.py
        git log --graph --all --decorate
        git show
        git show HEAD
        git show HEAD:src/a.py
        git show --stat HEAD~2
        git diff
        git diff --cached
        git diff HEAD~1 -- src
        git diff --stat --name-only
        git diff -U10
        git diff -w main...HEAD
        git status
        git status -sb
        git status --porcelain=v2
        git blame src/a.py
        git blame -L 1,5 src/a.py
        git branch
        git branch -a
        git branch -vv
        git branch --show-current
        git branch --list 'x*'
        git branch --contains HEAD
        git branch --merged
        git branch --merged main
        git tag
        git tag -l 'v*'
        git tag --sort=-creatordate
        git tag -n
        git remote
        git remote -v
        git remote get-url origin
        git stash list
        git stash show -p
        git worktree list
        git config --get user.name
        git config --list
        git config -l --show-origin
        git config user.email
        git config list
        git describe --tags --always
        git rev-parse HEAD
        git rev-parse --show-toplevel
        git rev-parse --abbrev-ref HEAD
        git rev-list --count HEAD
        git ls-files
        git ls-files -o --exclude-standard
        git ls-tree -r --name-only HEAD
        git cat-file -p HEAD
        git grep -n foo
        git grep foo -- '*.py'
        git shortlog -sn
        git reflog
        git reflog show main
        git show-ref --heads
        git for-each-ref --format='%(refname)' refs/heads
        git merge-base main HEAD
        git check-ignore -v a
        git count-objects -v
        git symbolic-ref HEAD
        git -C sub status
        git -C sub log -3
        git --no-pager log -3
        git -P diff
        git --no-optional-locks status
    """,
    "wrappers": r"""
        timeout 5 ls
        timeout -k 3 5s cat a
        timeout --signal=KILL 5 ls
        nice ls
        nice -n 10 du -sh .
        nice -10 ls
        ionice -c 3 ls
        nohup ls
        time ls
        time -p ls
        stdbuf -oL cat a
        env ls
        env LC_ALL=C sort a
        env -i ls
        env -u FOO TZ=UTC date
        env PAGER=cat git log
        command ls
        command -p ls
        builtin echo hi
        exec ls
        xargs
        xargs cat
        xargs -0 grep foo
        xargs -n 1 wc -l
        xargs -I{} grep foo {}
        xargs -r -d '\n' head -3
        busybox ls
        toybox cat a
        sh -c ls
        bash -c 'ls -la'
        bash -euc 'ls'
        bash -o pipefail -c 'ls'
        bash --norc -c ls
        sh -c 'cat "$1"' sh a
        eval ls -la
        eval 'ls'
        timeout 5 nice env LC_ALL=C ls
        find . -name x -exec cat {} +
        find . -type f -exec grep -n foo {} \;
    """,
    "archives": r"""
        tar tf a.tar
        tar -tvf a.tar
        tar tzf a.tgz
        tar --list --file a.tar
        unzip -l a.zip
        zipinfo a.zip
    """,
}
"""Lines that only read, with all that they run."""

READS_UNKNOWN = frozenset(
    (
        'ls "$dir"',
        'cat "$file"',
        'grep -q foo "$file"',
        "xargs cat",
        "xargs -0 grep foo",
        "xargs -n 1 wc -l",
        "xargs -I{} grep foo {}",
        r"xargs -r -d '\n' head -3",
        "sh -c 'cat \"$1\"' sh a",
        "find . -name x -exec cat {} +",
        r"find . -type f -exec grep -n foo {} \;",
    )
)
"""Of those, the lines of which nobody knows what they read: it may lie anywhere."""

NOT_READ_ONLY = {
    "unlisted options": r"""
        ls --nonsense
        ls --colo
        cat -X a
        head --evil a
        sort -T /tmp a
        sort --compress-program=./x a
        sort --files0-from=a
        wc --files0-from=a
        du --files0-from=a
        rg --pre ./x foo
        rg --pre=./x foo
        rg --hostname-bin ./x foo
        rg -z foo
        rg -L foo
        rg --follow foo
        grep -R foo .
        file -C -m a
        file -z a
        file -f a
        tree -o out
        tree -l
        date -s now
        date --set=now
        date -f a
        date 010203
        date 010203 -u
        hostname evil
        hostname -F a
        printf -v PATH x
        printf $x
        printf %n PATH
        printf -- %5ln PATH
        printf -- "$x" PATH
        wait -n -p x
        wait $x
        jq 'import "a" as a; .' f
        jq 'include "../a"; .' f
        jq "$x" f
        printf
        xxd -r a
        xxd -r a b
        jq -f a b
        jq --from-file a b
        top
        ps --evil
        top -bn1
        pip list
        pip list --outdated
        pip list -o
        diff -r a b
        iconv -o b a
        locale --evil
    """,
    "files of arguments": r"""
        sha256sum -c sums
        md5sum --check sums
        b2sum -bc sums
        cksum --check sums
        strings @list
        strings -n 4 '@list'
        strings *
        strings [@a]*
        strings -e @list a
    """,
    "variables of other processes": r"""
        ps e
        ps auxe
        ps eww
        ps aux e
        ps axo pid,args e
        ps -ww e
    """,
    "repositories inside of the repository": r"""
        git diff --submodule=diff
        git log -p --submodule=diff
        git diff --ignore-submodules=none
        git status --ignore-submodules=dirty
        git diff-index HEAD
        git diff-index -p --cached HEAD
        git describe --dirty
        git describe --tags --broken
    """,
    "checks of signatures": r"""
        git log --format=%G?
        git log --pretty='%h %GS'
        git for-each-ref --format='%(signature)'
    """,
    "operands that write": r"""
        uniq a b
        xxd a b
        sort -o a b
        sort -oa b
        sort -uo a b
        sort --output=a b
        shuf -o a b
        iconv -o b a
        git symbolic-ref HEAD refs/heads/x
        git branch new
        git tag v1
        git branch -v new
        git config user.name me
        git config alias.x '!ls'
        git remote add x y
    """,
    "find": r"""
        find . -delete
        find . -fprint out
        find . -fprintf out %p
        find . -fls out
        find -L .
        find . -follow
        find . -files0-from a
        find . -exec rm {} \;
        find . -exec ./x {} +
        find . -exec sh -c 'rm "$1"' sh {} \;
        find . -ok rm {} \;
        find . -execdir ./x \;
        find . -okdir rm {} \;
        find $x
        find . $x
        find . -name $x
        find * -name a
        find . -unknown
        find . -exec ls
        find . -name
    """,
    "sed and awk": r"""
        sed -i s/a/b/ a
        sed -i.bak s/a/b/ a
        sed -ni p a
        sed -n -i p a
        sed --in-place=.b s/a/b/ a
        sed -f script a
        sed 's/a/b/w out' a
        sed 's/a/b/e' a
        sed 'w out' a
        sed '1e ls' a
        sed e a
        sed 'r other' a
        sed '/x/W out' a
        sed '1R other' a
        sed "$script" a
        sed -n -e p -e 'w out' a
        sed 's/[/]/x/w out' a
        sed 's/a\/b/c/;w out' a
        sed --expression='w out' a
        sed 'a hello' a
        sed 'p;' 'x' --evil
        awk -f x a
        awk '{system("ls")}' a
        awk '{print > "out"}' a
        awk '{print >> "out"}' a
        awk '{print | "sh"}' a
        awk 'BEGIN {while ("ls" | getline) print}'
        awk 'BEGIN {getline < "/etc/passwd"}'
        awk -i inplace '{print}' a
        awk '@load "x"; {print}' a
        awk 'BEGIN {f = "sys" "tem"; @f("ls")}'
        awk "$script" a
        awk 'BEGIN {ARGV[1]="/etc/passwd"; ARGC=2} {print}'
        awk
        gawk -E x
        awk --source x
    """,
    "git": r"""
        git log --output=out
        git diff --output out
        git diff --ext-diff
        git log --ext-diff -p
        git diff --no-index a /etc/passwd
        git show --textconv HEAD
        git log --show-signature
        git grep -O foo
        git grep -Oless foo
        git grep --open-files-in-pager=x foo
        git grep --no-index foo
        git grep -f /etc/passwd
        git cat-file --textconv HEAD:a
        git -c core.pager=x log
        git -c alias.x='!ls' x
        git --exec-path=. log
        git --git-dir=evil log
        git --work-tree=/ status
        git --config-env=a=b log
        git -p log
        git --paginate log
        git ls-remote
        git ls-remote 'ext::sh -c x'
        git remote show origin
        git remote update
        git remote prune origin
        git fetch
        git fetch --upload-pack=./x
        git pull
        git push
        git clone x
        git add .
        git commit -m x
        git merge x
        git rebase main
        git checkout main
        git switch main
        git restore a
        git reset
        git stash
        git stash push -m wip
        git stash pop
        git branch -m a b
        git branch -d a
        git branch --edit-description
        git branch -u origin/main
        git tag -d v1
        git tag -a v1
        git tag -v v1
        git reflog expire --all
        git reflog delete x
        git notes add x
        git worktree add x
        git config --unset user.name
        git config --global user.name me
        git config -e
        git config --file a --list
        git config -f a -l
        git config set user.name x
        git submodule update
        git submodule foreach ls
        git bisect run ./x
        git rebase --exec ./x main
        git difftool
        git mergetool
        git gc
        git archive HEAD
        git format-patch -1
        git bundle create a HEAD
        git hash-object -w a
        git apply a.patch
        git cherry-pick x
        git revert x
        git init
        git unknown
        git lfs ls-files
        git
        git help log
        git log $x
        git $x
        git log *
        git -C
        git blame --contents /etc/passwd a
    """,
    "another's program": r"""
        ./ls
        ./ls -la
        src/ls
        ../bin/cat a
        /tmp/ls
        ~/bin/ls
        ls-evil
        LS
        Cat a
        git-evil
        ./git status
        node_modules/.bin/ls
        $cmd
        "$cmd" a
        l?
        ''
        ls.exe
        /bin/../tmp/ls
        /bin/./x
    """,
    "unknown words": r"""
        sort $x
        sort *
        sort "$x"
        rg foo *
        rg foo $x
        rg $x
        rg foo ?.py
        tree $x
        file $x
        uniq $x
        date $x
        sed -n p $x
        awk '{print}' $x
        head -n $x a
        [ -n $x ]
        [ $x ]
        test -v 'a[$(x)]'
        test -R x
        [ -f a -o -v x ]
        read PATH
        read 'a[0]'
        read
        read -a x
        set -- a
        set
        set -k
        set -o posix
        umask 000
        ulimit -n 10
        cmp $x
        sed p* a
        sed *p a
        awk {print}* a
        jq .a* f
        sh -c "ls "*
        timeout 5* ls
    """,
    "wrappers": r"""
        env FOO=1 ls
        env PATH=. ls
        env LD_PRELOAD=./x ls
        env GIT_SSH_COMMAND=x git log
        env BASH_ENV=./x bash -c ls
        env GIT_PAGER=./x git log
        env PAGER="$x" git log
        env -S 'ls -la'
        env --evil ls
        env rm a
        timeout 5 rm a
        timeout $x ls
        timeout --evil 5 ls
        nice ./x
        time -o out ls
        nohup ./x
        xargs rm
        xargs sort
        xargs rg foo
        xargs ./x
        xargs sh -c
        xargs -I{} {} a
        xargs -I% sh -c %
        xargs -p ls
        xargs --evil ls
        command rm a
        command ./ls
        builtin evil
        exec ./x
        eval rm a
        eval "$x"
        sh -c 'rm a'
        sh -c "$x"
        sh script.sh
        bash
        bash -s
        bash -l
        bash -lc ls
        bash -ic ls
        zsh -c ls
        ksh -c ls
        fish -c ls
        bash --rcfile x -c ls
        bash --init-file x -c ls
        bash $x
        bash --evil -c ls
        busybox rm a
        busybox sh -c 'rm a'
        sudo ls
        doas ls
        su -c ls
        watch ls
        parallel cat
        script -c ls
        flock a ls
        chroot . ls
        strace ls
        strace -o out ls
        ltrace ls
        unshare ls
        setsid ls
        systemd-run ls
        tmux new-session ls
        screen ls
        ssh host ls
        docker run alpine ls
        docker exec x ls
        entr ls
        taskset 1 ls
        uv run ls
        poetry run ls
        npx ls
        trap ls EXIT
        coproc ls
        source a
        . a
    """,
    "code": r"""
        python
        python a.py
        python -c 'print(1)'
        python -m pip list
        python -m json.tool a
        python -V a.py
        python --version a.py
        python3.11 a.py
        ./python --version
        node a.js
        node -e 1
        node --version a.js
        perl -e 1
        perl -ne print a
        ruby a.rb
        php -r 1
        pytest
        pytest -q tests
        make
        make -n
        make --version x
        npm test
        npm run build
        npm ls
        npm view x
        cargo --version
        cargo build
        rustc --version
        go version
        go build
        go list ./...
        go env
        docker ps
        kubectl get pods
        gradle tasks
        tox
        jupyter --version
        yq . a
        less a
        more a
        man ls
        vim a
        bat a
        fd x
        crontab -l
        ./gradlew
        terraform plan
        unknown-program
    """,
    "files": r"""
        rm a
        rm -rf build
        rmdir a
        mv a b
        cp a b
        mkdir -p a/b
        touch a
        ln -s a b
        tee a
        install a b
        rsync -a a/ b/
        chmod +x a
        chown me a
        dd if=a of=b
        truncate -s 0 a
        patch -p1
        tar xf a.tar
        tar cf a.tar b
        tar tf host:a.tar
        tar tf a.tar --to-command=./x
        tar -t -I ./x -f a.tar
        tar --checkpoint-action=exec=./x -tf a.tar
        unzip a.zip
        zip a.zip b
        gzip a
        gunzip a.gz
        split a
        mktemp
        shred a
        ed a
        black .
        export A=1
        unset A
        alias ls=rm
        kill 1
        mkfifo a
    """,
}
"""Lines of which some part does not count as only reading."""

DANGEROUS = {
    "installs for the machine": r"""
        npm i -g foo
        npm install -g foo
        npm install foo --global
        npm -g install foo
        npm --global i foo
        npm i foo -gD
        npm install --location=global foo
        npm --prefix x install -g foo
        pnpm add -g foo
        pnpm add --global foo
        yarn global add foo
        pip install --user foo
        pip3 install --user foo
        pip install foo --user
        python -m pip install --user foo
        python3 -m pip install foo --user
        python3.11 -m pip install --user foo
        python -Im pip install --user foo
        cargo install foo
        gem install foo
        go install foo@latest
        brew install foo
        apk add foo
        apt install foo
        apt-get install -y foo
        pacman -S foo
        pacman -Q
        dnf install foo
    """,
    "runs by another program": r"""
        go test -exec ./x ./...
        go test --exec=./x ./...
        go test ./... -exec="./x"
        go -C sub test -exec ./x
    """,
    "removes": r"""
        rm -rf $x
        rm -r "$x"
        rm -rf *
        rm -rf ./*
        rm -fr build/*
        rm $x
        rm "$x" y
        shred a
        shred -u a
        sudo rm a
        xargs rm -rf
        xargs rm
        find . -exec rm -rf {} +
        timeout 5 rm -rf $x
        sh -c 'rm -rf $x'
    """,
    "disks": r"""
        dd if=/dev/zero of=/dev/sda
        dd of=/dev/nvme0n1 if=x
        mkfs /dev/sda
        mkfs.ext4 /dev/sda
        wipefs -a /dev/sda
        fdisk /dev/sda
        mount /dev/sda /mnt
        umount /mnt
    """,
    "machine": r"""
        shutdown now
        reboot
        halt
        poweroff
        killall python
        pkill -f python
        kill -9 -1
        kill -KILL -1
        kill -s TERM -1
        systemctl stop x
        service x stop
        crontab -r
        crontab a
        userdel x
        sysctl -w a=b
    """,
    "git": r"""
        git log --output=a
        git log -p --output a
        git diff --output=.bashrc
        git show --ext-diff
        git diff --ext-d
        git show --textconv a:b
        git grep -O./pager x
        git grep -Oless x
        git grep --open-files-in-pager=./pager x
        git grep --open x
        git push --force
        git push -f
        git push -uf origin main
        git push origin +main
        git push origin :main
        git push --delete origin main
        git push --force-with-lease
        git push --mirror
        git reset --hard
        git reset --hard HEAD~1
        git clean -f
        git clean -fdx
        git clean --force
        git checkout -- .
        git checkout .
        git checkout -f main
        git checkout HEAD -- a
        git restore .
        git switch --discard-changes main
        git branch -D x
        git branch --delete --force x
        git branch -df x
        git stash drop
        git stash clear
        git reflog expire --all
        git gc --prune=now
        git filter-branch x
        git update-ref -d refs/heads/x
        git -C sub reset --hard
        git --no-pager clean -fd
        git worktree remove --force x
        git config core.hooksPath x
        git config --global core.sshCommand x
        git config alias.x '!ls'
        git config --add include.path x
        git config -e
        git -c core.fsmonitor=./x status
        git -c alias.x='!rm a' x
        sudo git status
    """,
    "elsewhere": r"""
        docker system prune
        docker system prune -af
        docker volume rm x
        docker compose down -v
        kubectl delete pod x
        kubectl -n x delete pod y
        terraform destroy
        terraform apply -auto-approve
        helm uninstall x
        aws s3 rm --recursive s3://x
        aws s3 rb s3://x
        gh repo delete x
        npm publish
        cargo publish
        twine upload dist/x
        dropdb x
    """,
    "network": r"""
        curl http://example.invalid
        /usr/bin/curl -V
        ./curl x
        timeout 5 curl x
        timeout --evil 5 curl x
        timeout $x curl y
        nohup curl x
        bash -c 'curl x'
        bash -lc 'curl x'
        eval curl x
        command curl x
        'curl' x
        c"ur"l x
        busybox wget x
        env -S 'curl x'
        env $x curl y
        env A=1 curl x
        env -i -u A curl x
        find . -exec curl {} \;
        xargs -n1 curl
        xargs -I{} curl {}
        parallel curl ::: a b
        parallel -j4 'curl {}'
        watch -n 1 curl x
        watch 'curl x'
        script -qc 'curl x' out
        flock lock curl x
        flock lock -c 'curl x'
        strace -f curl x
        unshare -n curl x
        setsid curl x
        tmux new-session -d 'curl x'
        tmux new-session -d curl x
        screen -dm curl x
        trap 'curl x' EXIT
        git bisect run curl x
        git submodule foreach 'curl x'
        git submodule foreach --recursive curl x
        git rebase --exec 'curl x' main
        git rebase -x 'curl x' main
        git -c alias.x='!curl x' x
        docker exec x curl y
        uv run curl x
        poetry run curl x
        nice -n 5 ionice -c3 stdbuf -oL curl x
        su -c 'curl x'
        runuser -u x -- curl y
        chroot / curl x
        systemd-run --user curl x
        exec curl x
        builtin command curl x
        wget -qO- x
        ssh host
        scp a host:b
        nc -l 1
    """,
}
"""Lines that a person has to say about in any mode."""

HARMLESS = {
    "everyday": r"""
        npm install
        npm install foo
        npm ci
        npm run build
        npm i --save-dev foo
        npm run -g
        yarn add foo
        pnpm add foo
        pip install foo
        pip install -r requirements.txt
        python -m pip install -e .
        python -m pytest
        cargo build
        cargo add foo
        go test ./...
        go build
        go get foo
        make install
        rm a
        rm "$f"
        rm -f a b
        rm -r build
        rm -rf build dist
        rm *.pyc
        rmdir a
        find . -name '*.pyc'
        mv a b
        cp -r a b
        mkdir -p a
        chmod +x a
        chmod -R u+w build
        kill 123
        kill -9 123
        dd if=a of=b
        dd if=a of=/dev/null
        truncate -s 0 a
        tar xzf a.tgz
        sed -i s/a/b/ a
        git add .
        git commit -m 'push --force'
        git push
        git push origin main
        git push -u origin x
        git pull
        git fetch --all
        git checkout main
        git checkout -b x
        git switch -c x
        git branch x
        git branch -d x
        git stash
        git stash pop
        git reset HEAD a
        git reset --soft HEAD~1
        git rebase main
        git merge x
        git clean -n
        git config user.name me
        git config --global user.email me@example.org
        git config --get core.hooksPath
        git -c user.name=me commit -m x
        git -c color.ui=false log
        git rm a
        git restore a
        docker ps
        docker build .
        docker compose up -d
        docker compose down
        docker run alpine
        kubectl get pods
        kubectl apply -f a
        terraform plan
        terraform -chdir=x show destroy
        kubectl -n=x get delete
        aws s3 ls
        gh pr list
        echo curl x
        grep curl a
        cat sudo
        ls /usr/bin/curl
        which curl
        command -v curl
        timeout 5 pytest
        xargs ls
        env A=1 pytest
        bash -c 'ls'
        bash script.sh
        python -c 'import os'
        sh -c 'echo curl'
        curlie-not
        mycurl x
        CURL x
    """,
}
"""Lines with nothing that a person has to say about in any mode, whether they only read or not."""


def lines_of(table: dict[str, str]) -> list[tuple[str, str]]:
    """Return the lines of a table, each with its kind."""
    return [
        (kind, line.strip())
        for kind, lines in table.items()
        for line in lines.splitlines()
        if line.strip()
    ]
