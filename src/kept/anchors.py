"""Anchors: files, folders, symbols and commands that connect a memory with a tool call, and the file of them.

    f:  the end of a path, two parts or more       s:  a name with the shape of an identifier
    b:  the name of a file                         c:  a command: program and sub-command
    d:  a folder that a memory names               a:  an activity: commit, release, test …
    w:  a word of a rule

A memory and a tool call concern each other if they have a key in common; a word alone is little, so `memory.actions`
weighs the words of paths and commands by how few memories have them. The keys of both are made here, so that they
are written alike. Keys are stored as short keyed hashes with the id of the memory, a file for each space, so that the
hook of a tool call finds out that no memory concerns it before it opens the memory.
Rule: this module imports next to nothing, because a hook imports it at every tool call.
"""

from _blake2 import blake2b  # as hashlib does, which also loads OpenSSL
from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FOLDER = "hook/anchors"  # in the home
KEY_FILE = "key"  # the random key of the hashes
PLACE_PREFIX = "at-"  # of a file that says which space a folder of the disk belongs to
MAGIC = b"KEPTANC3"
MARK_BYTES = 24  # MAGIC, the number of the journal's last event in here, the beginning of its hash
BITMAP_BYTES = 32_768  # a bit for each hash by its first bits: most hashes that are looked for are not there
HEADER_BYTES = MARK_BYTES + BITMAP_BYTES
RECORD_BYTES = 8  # a hash of four bytes, the id of a memory of four
MAX_TEXT_CHARS = 20_000  # of the new text of an edit
MAX_COMMAND_CHARS = 2_000
MAX_PATH_PARTS = 8
MAX_WORDS = 40  # of a memory or a call: a text with more says something of everything
MAX_SUFFIX_CHARS = 8
OF_A_FOLDER = 0.5  # of the weight of a word: folders have words that many files share
MANY_HOLD = 200  # memories: a word that more of them have tells none apart
ANY = " *"  # behind a program in a key: with any sub-command

# Every character that is part of no name, path or assignment becomes a space.
_KEPT_CHARS = "_./-:@+~$="
_SPLIT = {code: " " for code in range(128) if not chr(code).isalnum() and chr(code) not in _KEPT_CHARS}
_SPLIT |= {ord(char): " " for char in "“”‘’„«»…—–→←•·、。，（）「」"}

# Programs with sub-commands, so that the program alone says little. Those that are English words count only before a
# sub-command that is known.
_SUBCOMMANDS = frozenset(
    "git hg jj npm pnpm yarn docker podman kubectl helm terraform cargo pip pip3 uv poetry pipenv pdm conda brew apt "
    "apt-get dnf yum apk gem bundle rails rake mix dotnet mvn gradle gradlew composer artisan gh glab aws gcloud az "
    "heroku netlify vercel fly flyctl wrangler firebase alembic prisma knex bunx npx uvx pipx nx turbo lerna systemctl "
    "manage.py django-admin flask".split()
)
_WORDS_TOO = {
    "go": ("test", "build", "mod", "vet", "run", "fmt", "generate", "install", "get"),
    "bun": ("run", "test", "install", "add", "build", "x"),
    "make": ("test", "build", "lint", "install", "clean", "release", "check", "deploy", "format"),
    "just": ("test", "build", "lint", "release", "check", "deploy"),
}
_WRAPPERS = {  # words before a program, each with its options that take a value
    "sudo": ("-u", "-g", "-C", "-D"),
    "env": ("-u", "-C"),
    "time": ("-f", "-o"),
    "timeout": ("-s", "-k", "--signal", "--kill-after"),
    "nice": ("-n",),
    "ionice": ("-c", "-n"),
    "stdbuf": ("-i", "-o", "-e"),
    "xargs": ("-n", "-I", "-P", "-L", "-d", "-a"),
    **dict.fromkeys("doas nohup setsid exec command then do else if while until !".split(), ()),
}
# Options before the sub-command that take a value.
_VALUED = {
    "git": ("-C", "-c", "--git-dir", "--work-tree", "--namespace"),
    "hg": ("-R", "--cwd"),
    "npm": ("--prefix", "-w", "--workspace"),
    "pnpm": ("-C", "--dir", "-F", "--filter"),
    "yarn": ("--cwd",),
    "docker": ("-H", "--host", "-c", "--context", "-f", "--file", "-p", "--project-name", "--profile"),
    "kubectl": ("-n", "--namespace", "--context", "--kubeconfig"),
    "helm": ("-n", "--namespace", "--kube-context", "--kubeconfig"),
    "make": ("-C", "-f"),
    "cargo": ("--manifest-path", "-C"),
    "uv": ("--directory", "--project", "--with", "-p", "--python", "--extra", "--group"),
    "poetry": ("-C", "--directory", "-P", "--project"),
    "gh": ("-R", "--repo"),
    "mvn": ("-f", "-pl"),
    "gradle": ("-p",),
    "gradlew": ("-p",),
    "aws": ("--profile", "--region"),
    "gcloud": ("--project",),
    "python": ("-W", "-X"),
    "python3": ("-W", "-X"),
}
_RUNNERS = ("npx", "bunx", "uvx", "pnpx", "pipx")
_RUN_THROUGH = {
    "uv": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "rye": ("run",),
    "pipx": ("run",),
    "pnpm": ("exec", "dlx"),
    "npm": ("exec",),
    "yarn": ("exec", "dlx"),
    "bundle": ("exec",),
}
GENERAL = frozenset(  # programs that say nothing about the work
    "python python3 py node deno ruby perl php java sh bash zsh fish pwsh cat ls grep rg find sed awk head tail wc "
    "sort cp mv mkdir touch chmod curl wget tar zip unzip du df ps kill which man less more tee xargs diff env date "
    "tmux ssh".split()
)
_LONG = ("run", "compose", "exec")  # sub-commands that have a sub-command
_PYTHONS = ("python", "python3", "py", "pypy3")
_SHELLS = ("sh", "bash", "zsh", "dash", "fish")
_READERS = frozenset("cat bat grep egrep fgrep rg ag head tail less more ls tree diff cmp wc nl stat file jq".split())
_GIT_READERS = ("diff", "log", "show", "blame", "status", "grep", "ls-files")
_ON_FILES = ("rm", "rmdir", "mv", "cp", "ln", "touch", "tee", "truncate", "unlink", "shred", "chmod")
_SILENT = ("cd", "echo", "export", "set", "true", "false", "source", "[", "test", "printf", "sleep", "fi", "done")

# From a command to the activity that a rule may speak of.
_ACTIVITY_OF = {
    "commit": ("git commit", "hg commit", "jj commit", "jj describe"),
    "push": ("git push", "hg push", "jj git"),
    "merge": ("git merge", "git rebase", "gh pr merge"),
    "release": (
        "git tag",
        "gh release",
        "npm publish",
        "pnpm publish",
        "yarn publish",
        "cargo publish",
        "poetry publish",
        "uv publish",
        "gem push",
        "mix hex.publish",
        "twine",
        "goreleaser",
        "semantic-release",
    ),
    "migration": (
        "alembic",
        "flyway",
        "liquibase",
        "rails db:migrate",
        "rake db:migrate",
        "mix ecto.migrate",
        "prisma migrate",
        "knex migrate",
        "manage.py migrate",
        "manage.py makemigrations",
        "flask db",
        "dbmate",
        "goose",
    ),
    "test": (
        *("pytest", "tox", "nox", "jest", "vitest", "mocha", "rspec", "phpunit", "ctest", "playwright", "unittest"),
        *("npm test", "pnpm test", "yarn test", "bun test", "go test", "cargo test", "cargo nextest", "mix test"),
        *(
            "make test",
            "just test",
            "dotnet test",
            "mvn test",
            "gradle test",
            "gradlew test",
            "rails test",
            "deno test",
        ),
        *("npm run test", "pnpm run test", "yarn run test", "bun run test", "manage.py test"),
        *("nx test", "turbo test"),
    ),
    "deletion": ("rm", "rmdir", "unlink", "shred", "del", "git rm", "git clean", "dropdb"),
    "install": (
        *(
            "npm install",
            "npm i",
            "npm ci",
            "npm add",
            "pnpm add",
            "pnpm install",
            "pnpm i",
            "yarn add",
            "yarn install",
        ),
        *("bun add", "bun install", "pip install", "pip3 install", "uv add", "uv pip", "uv sync"),
        *("poetry add", "poetry install", "pipenv install", "cargo add", "cargo install", "go get", "go install"),
        *(
            "gem install",
            "bundle install",
            "bundle add",
            "composer require",
            "brew install",
            "apt install",
            "apt-get install",
        ),
        *("mix deps.get", "conda install", "dotnet add", "apk add"),
    ),
    "deploy": (
        *("kubectl apply", "kubectl delete", "helm upgrade", "helm install", "terraform apply", "terraform destroy"),
        *("docker push", "fly deploy", "flyctl deploy", "vercel", "netlify deploy", "firebase deploy", "serverless"),
        *("wrangler deploy", "wrangler publish", "ansible-playbook", "make deploy", "just deploy", "cdk deploy"),
    ),
    "format": (
        *("ruff", "black", "isort", "flake8", "pylint", "mypy", "pyright", "prettier", "eslint", "biome", "gofmt"),
        *("goimports", "golangci-lint", "rustfmt", "clang-format", "rubocop", "stylelint", "markdownlint", "shfmt"),
        *("go fmt", "go vet", "cargo fmt", "cargo clippy", "mix format", "mix credo", "dotnet format", "make lint"),
        *("make format", "npm run lint", "pnpm run lint", "yarn run lint", "bun run lint", "pnpm lint", "yarn lint"),
    ),
}
_ACTIVITIES = {command: activity for activity, commands in _ACTIVITY_OF.items() for command in commands}
_ACTIVITY_OF_SUBCOMMAND = {"deploy": "deploy", "publish": "release", "migrate": "migration"}  # of any program

# The words by which a rule speaks of an activity. A word with a space is looked for in the text.
_ACTIVITY_WORDS = {
    "commit": ("commit", "commits", "committing", "committed", "committen"),
    "push": ("push", "pushing", "pushed", "force-push", "pushes"),
    "merge": ("merge", "merging", "rebase", "rebasing"),
    "release": (
        "release",
        "releases",
        "releasing",
        "publish",
        "publishing",
        "tag a",
        "version bump",
        "bump the version",
    ),
    "migration": ("migration", "migrations", "migrate", "migrating", "schema change", "change the schema"),
    "test": ("run the tests", "run tests", "running the tests", "running tests"),
    "deletion": ("delete", "deleting", "remove files", "removing files", "rm -rf"),
    "install": ("dependency", "dependencies", "install", "installing", "new package", "new packages"),
    "deploy": ("deploy", "deploying", "deployment", "deploys", "rollout"),
    "format": ("lint", "linter", "linting", "formatter", "reformat", "auto-format"),
}
_WORD_ACTIVITIES = {word: activity for activity, words in _ACTIVITY_WORDS.items() for word in words}
_RULE_WORDS = frozenset(
    "always never must mustn't don't dont do not no only before after until unless without every each ask make please "
    "should shouldn't first require requires required need needs nie immer erst vor".split()
)
_RUN_WORDS = ("run", "running", "runs", "ran", "use", "using", "call", "invoke", "execute", "start", "via")
_CHOICES = ("not", "never", "no", "avoid", "of", "than", "over", "prefer", "only", "with")
_AGAINST = ("not", "never", "no", "avoid", "over", "don't", "dont")
_FUNCTION_WORDS = frozenset(
    "a an the in on at for to of from with by as and or but nor not never no only over than instead rather when while "
    "if because since is are was were be has have this that these those it its we you i our your my here there "
    "anywhere everywhere ever any all prefer avoid please unless until before after without so".split()
)
_MARKS = ".,;:!?()[]\"'*"
_EVERYWHERE = ("git", "gh", "docker")  # a rule means some of their sub-commands


class ToolCall:
    """A tool call, neutral between agents: paths as given, shell commands, and the new text of an edit."""

    __slots__ = ("commands", "files", "text")

    def __init__(self, files: "Sequence[str]" = (), commands: "Sequence[str]" = (), text: str = "") -> None:
        self.files = tuple(files)
        self.commands = tuple(commands)
        self.text = text


# Keys


def keys_of_call(call: ToolCall, root: str = "") -> "list[str]":
    """Return the keys of a tool call, the most telling first. `root` is the folder of the project."""
    keys: list[str] = []
    root = root
    for path in call.files:
        if own := _keys_of_path(path, root):
            name = path.replace("\\", "/").rpartition("/")[2]
            keys += own + _symbols([name.partition(".")[0]])  # SaveGame is in SaveGame.cs
    for command in call.commands:
        keys += _keys_of_command(command[:MAX_TEXT_CHARS], root)
    keys += _symbols(_tokens(call.text[:MAX_TEXT_CHARS]))
    return list(dict.fromkeys(keys))


def keys_of_memory(content: str, files: "Sequence[str]" = ()) -> "list[str]":
    """Return the keys of a memory: of its files, and of the names, paths and commands in its text."""
    keys: list[str] = []
    content = content
    for path in files:
        keys += _named_path(path, is_sure=True)
    spans = content.split("`")
    for span in spans[1::2]:
        keys += _named_command(span)
    for token in (tokens := _tokens(content)):
        if "/" in token or "." in token:
            keys += _named_path(token)
    keys += _symbols(tokens)
    keys += _chosen_in(content.replace("`", ""))
    keys += _commands_in_words(" ".join(spans[0::2]))
    keys += [f"a:{activity}" for activity in activities_in(content)]
    return list(dict.fromkeys(keys))


def activities_in(content: str) -> "list[str]":
    """Return the activities that a rule speaks of; none if the text does not read like a rule."""
    words = content.lower().translate(_SPLIT).split()
    if _RULE_WORDS.isdisjoint(words):
        return []
    said = " ".join(words)
    found = [_WORD_ACTIVITIES[word] for word in words if word in _WORD_ACTIVITIES]
    found += [activity for word, activity in _WORD_ACTIVITIES.items() if " " in word and word in said]
    return list(dict.fromkeys(found))


def is_general(program: str) -> bool:
    """Return True for a program that is used for everything, or whose sub-command names the work."""
    return program in GENERAL or program in _SUBCOMMANDS or program in _WORDS_TOO


def _parts_of_path(path: str) -> "list[str]":
    """Return the parts of a path in lower case; `..` takes back the part before it."""
    parts: list[str] = []
    for part in path.replace("\\", "/").strip().lower().split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return parts


def _parts_below(path: str, root: str) -> "list[str]":
    """Return the parts of a path below the folder of the project; none if it lies elsewhere."""
    path = path.strip()
    if path.startswith("~/"):
        return []
    is_absolute = path.startswith(("/", "\\")) or path[1:2] == ":"
    if not root or not is_absolute:
        return _parts_of_path(path)
    parts, above = _parts_of_path(path), _parts_of_path(root)
    return parts[len(above) :] if parts[: len(above)] == above else []


def _keys_of_path(path: str, root: str) -> "list[str]":
    """Return the keys of a file that is touched: all the ends of its path, and the folders it lies in."""
    parts = _parts_below(path, root)[-MAX_PATH_PARTS:]
    if not parts:
        return []
    keys = [f"f:{'/'.join(parts[start:])}" for start in range(len(parts) - 1)]
    keys.append(f"b:{parts[-1]}")
    is_folder = "." not in parts[-1]  # perhaps, as in `rm -r build`
    for end in range(len(parts) - 1 + is_folder, 0, -1):
        keys += [f"d:{'/'.join(parts[start:end])}" for start in range(end)]
    return keys


def _named_path(token: str, *, is_sure: bool = False) -> "list[str]":
    """Return the keys of a file or a folder that a memory names: `src/render.go:26`, `tests/golden/`.

    `is_sure` says that a word alone is a path as well, such as `Makefile`.
    """
    path, _, line = token.replace("\\", "/").partition(":")
    if line and not line[:1].isdigit():
        return []
    path = path.rstrip(".")
    name = "/".join(_parts_of_path(path))
    if is_sure and len(name) > 1 and "/" not in name and "." not in name and not path.endswith("/"):
        return [f"b:{name}", f"d:{name}"]
    return _keys_of_named(name, is_folder=path.endswith("/"))


def _keys_of_named(path: str, *, is_folder: bool) -> "list[str]":
    """Return the keys of a path; one without a suffix may be a file or a folder."""
    has_parts, has_suffix = "/" in path, "." in path.rpartition("/")[2]
    if len(path) < 3 or (path[0].isdigit() and not has_parts):
        return []
    if is_folder or not has_parts:
        return [f"d:{path}"] if is_folder else [f"b:{path}"] if has_suffix else []
    return [f"f:{path}"] if has_suffix else [f"f:{path}", f"d:{path}"]


def _tokens(text: str) -> "list[str]":
    return list(dict.fromkeys(text.translate(_SPLIT).split()))


def _symbols(tokens: "Iterable[str]") -> "list[str]":
    """Return the keys of names that have the shape of an identifier: snake_case, camelCase, dotted.name."""
    keys: list[str] = []
    for token in tokens:
        if "/" in token or (token.islower() and "_" not in token and "." not in token):
            continue
        name = token.partition("=")[0].strip(".:-+~@$=").replace("::", ".")
        keys += _parts_of_name(name) if "." in name else [f"s:{name.lower()}"] if _has_shape(name) else []
    return keys


def _parts_of_name(name: str) -> "list[str]":
    """Return the keys of a dotted name, and of its parts that are no ordinary words."""
    parts = [part for part in name.split(".") if part]
    if len(parts) < 2 or not all(part.replace("_", "a").isalnum() and not part[0].isdigit() for part in parts):
        return []
    whole = [f"s:{'.'.join(parts).lower()}"] if len(name) > 5 else []
    return whole + [f"s:{part.lower()}" for part in parts if _has_shape(part)]


def _has_shape(name: str) -> bool:
    """Return True for an identifier that is no ordinary word: it has an underscore or a hump inside."""
    if len(name) < 4 or not name.replace("_", "").isalnum() or name[0].isdigit():
        return False
    is_plural = name[:-1].isupper() and name[-1] == "s"  # URLs
    return "_" in name.strip("_") or not (name[1:].islower() or name.isupper() or name.islower() or is_plural)


# Words


def words_of_memory(content: str) -> "list[str]":
    """Return the words of a text as they are compared with those of a call; no suffixes of files, which say little."""
    found: list[str] = []
    for token in content.split():
        bare = token.strip(_MARKS + "`")
        name, _, suffix = bare.rpartition(".")
        found += _words(name if _is_suffix(suffix) and name[-1:].isalnum() else bare)
    return list(dict.fromkeys(found))


def words_of_call(call: ToolCall, root: str = "") -> "dict[str, float]":
    """Return the words of the paths and commands of a call, each with its weight."""
    weights: dict[str, float] = {}
    for path in call.files:
        below = len(_parts_below(path, root))
        parts = [part for part in path.replace("\\", "/").split("/") if part]
        _add_words_of_path(weights, "/".join(parts[-min(below, MAX_PATH_PARTS) :]) if below else "")
    for command in call.commands:
        for word in _telling_words(command[:MAX_TEXT_CHARS]):
            if _is_path(word):
                _add_words_of_path(weights, word)
            elif len(word.split()) == 1:  # not a sentence in quotes
                weights.update(dict.fromkeys(_words(word), 1.0))
    return dict(list(weights.items())[:MAX_WORDS])


def _telling_words(command: str) -> "Iterator[str]":
    """Yield the words of a command that tell its subject: nothing of a reading one, and no general program."""
    for run in _runs(command):
        if not run.only_reads:
            yield from run.words[1 if is_general(run.head[0]) else 0 :]


def _add_words_of_path(weights: "dict[str, float]", path: str) -> None:
    folder, _, name = path.rpartition("/")
    for word in _words(folder):
        weights.setdefault(word, OF_A_FOLDER)
    weights.update(dict.fromkeys(_words(name), 1.0))


def _is_suffix(word: str) -> bool:
    return word.isalnum() and word[0].isalpha() and len(word) <= MAX_SUFFIX_CHARS


def _words(text: str) -> "Iterator[str]":
    """Yield the words of a text in lower case and singular: of SaveGame, tarn_v4 and --pack their parts."""
    for run in "".join(char if char.isalnum() else " " for char in text).split():
        start = 0
        for end in range(1, len(run) + 1):
            if end == len(run) or _is_hump(run, end):
                word = run[start:end].lower()
                start = end
                if len(word) > 1:
                    yield _singular(word)


def _singular(word: str) -> str:
    """Return a word without the s of its plural."""
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word


def _is_hump(run: str, at: int) -> bool:
    """Return True if a word begins inside a run of letters and digits: at the G of SaveGame, or the R of XMLReader."""
    if not run[at].isupper():
        return False
    return not run[at - 1].isupper() or run[at + 1 : at + 2].islower()


# Commands


_END, _INTO, _FROM = "\0end", "\0into", "\0from"  # marks between words: an operator, `>`, `<`


class _Run:
    """A program that a line of shell runs: its head, such as ["npm", "run", "build"], and all its words."""

    __slots__ = ("head", "words")

    def __init__(self, head: "list[str]", words: "list[str]") -> None:
        self.head = head
        self.words = words

    @property
    def only_reads(self) -> bool:
        program = self.head[0]
        if program == "sed":
            return not any(word.startswith("-") and "i" in word for word in self.words)
        return program in _READERS or (program == "git" and self.head[1:2] != [] and self.head[1] in _GIT_READERS)

    def files(self) -> "Iterator[str]":
        """Yield the words that may be paths of files that the program changes."""
        if self.only_reads:
            return
        program, is_general = self.head[0], self.head[0] in GENERAL
        if "/" in self.words[0]:
            yield self.words[0]
        for word in self.words[1:]:
            named = word.partition("=")[2] if word.startswith("-") else word
            if is_general and (" " in named or "(" in named):  # a program in the line, as of `python -c`
                yield from filter(_is_path, _tokens(named))
            elif _is_path(named) or (named and program in _ON_FILES):
                yield named


def _runs(command: str, depth: int = 1) -> "Iterator[_Run]":
    """Yield what a line of shell runs, also behind `sudo`, `uv run` and, once, `bash -c`."""
    for words, _ in _simple_commands(command):
        while words := _unwrapped(words):
            program = words[0].replace("\\", "/").rpartition("/")[2].lower()
            if program in _SILENT or not _is_plain(program):
                break
            if script := _script(program, words[1:]):
                if depth:
                    yield from _runs(script, depth - 1)
                break
            yield _Run(_head(program, words[1:]), words)
            words = _inner(program, words[1:])


def _targets(command: str, depth: int = 1) -> "Iterator[str]":
    """Yield the files that a line of shell writes by `>`."""
    for words, targets in _simple_commands(command):
        yield from targets
        words = _unwrapped(words)
        if depth and words and (script := _script(words[0].rpartition("/")[2], words[1:])):
            yield from _targets(script, depth - 1)


def _simple_commands(command: str) -> "Iterator[tuple[list[str], list[str]]]":
    """Yield the words of each simple command of a line, and the files into which it redirects."""
    words: list[str] = []
    targets: list[str] = []
    mark = ""
    for word in _lexed(command):
        if word is _END:
            yield words, targets
            words, targets = [], []
        elif word is _INTO or word is _FROM:
            mark = word
            continue
        elif mark is _INTO:
            targets.append(word)
        elif not mark:
            words.append(word)
        mark = ""
    yield words, targets


def _lexed(command: str) -> "Iterator[str]":
    """Yield the words of a line of shell without their quotes, and marks for operators and redirections."""
    command = _without_documents(command.replace("\\\r\n", "").replace("\\\n", ""))[:MAX_COMMAND_CHARS]
    word: list[str] = []
    place = 0
    while place < len(command):
        char = command[place]
        if char in "'\"":
            quoted, place = _quoted(command, place)
            word.append(quoted)
            continue
        place += 1
        if char == "#" and not command[place - 2 : place - 1].strip():  # a comment, to the end of the line
            place += len(command[place:].partition("\n")[0])
        elif char == "\\":
            following = command[place : place + 1]
            word.append(following if following in "\\ '\"$&|;()<>" else char + following)
            place += 1
        elif not char.isspace() and char not in "&|;(){}`<>":
            word.append(char)
        else:
            number = char in "<>" and "".join(word).isdigit()  # of a stream, as in `2>`
            if word and not number:
                yield "".join(word)
            word = []
            mark, place = _mark(command, place - 1)
            if mark:
                yield mark
    if word:
        yield "".join(word)


def _quoted(command: str, start: int) -> "tuple[str, int]":
    """Return the text in the quotes that begin at a place, and the place behind them."""
    quote, end = command[start], start + 1
    while end < len(command) and command[end] != quote:
        end += 2 if quote == '"' and command[end] == "\\" else 1
    inside = command[start + 1 : end]
    return (inside.replace('\\"', '"') if quote == '"' else inside), end + 1


def _mark(command: str, start: int) -> "tuple[str, int]":
    """Return the mark for the space or operator at a place, "" for none, and the place behind it."""
    char, end = command[start], start + 1
    if char == ">":
        while command[end : end + 1] in (">", "|", "&"):
            end += 1
        if command[end - 1] == "&" and (command[end : end + 1].isdigit() or command[end : end + 1] == "-"):
            return "", end + 1  # into another stream, as in `2>&1`
        return _INTO, end
    if char == "<":
        while command[end : end + 1] in ("<", "&", "-"):
            end += 1
        return _FROM, end
    if char == "&" and command[end : end + 1] == ">":
        return "", end
    return ("" if char != "\n" and char.isspace() else _END), end


def _without_documents(command: str) -> str:
    """Return the lines of a command without the bodies of its here-documents."""
    if "<<" not in command:
        return command
    kept: list[str] = []
    lines = iter(command.split("\n"))
    for line in lines:
        kept.append(line)
        for end in _ends_of_documents(line):
            for body in lines:
                if body.strip() == end:
                    break
    return "\n".join(kept)


def _ends_of_documents(line: str) -> "Iterator[str]":
    """Yield the words that end the here-documents which begin in a line."""
    for following in line.replace("<<<", " ").split("<<")[1:]:
        begun = following.lstrip("- \t'\"\\")
        name = begun.translate({ord(char): " " for char in "'\";|&)>"}).partition(" ")[0]
        if name.replace("_", "a").isalnum() and not name[0].isdigit():
            yield name


def _script(program: str, rest: "list[str]") -> str:
    """Return the line of shell that a command runs: behind `eval` or `bash -c`; "" for any other command."""
    if program == "eval":
        return " ".join(rest)
    if program in _SHELLS:
        for option, following in pairwise(rest):
            if not option.startswith("-"):
                break
            if option.endswith("c") and not option.startswith("--"):
                return following
    return ""


def _unwrapped(words: "list[str]") -> "list[str]":
    """Return the words from the program on: without assignments, and without sudo, env, timeout and the like."""
    place = 0
    wrapper = ""
    while place < len(words):
        word = words[place]
        is_assignment = "=" in word and word.partition("=")[0].replace("_", "a").isalnum()
        is_option = place > 0 and word.startswith("-")
        if word.lower() in _WRAPPERS:
            wrapper = word.lower()
        elif is_option and word in _WRAPPERS.get(wrapper, ()):
            place += 1
        elif not (is_assignment or is_option or word in ("$", "") or (wrapper == "timeout" and word[0].isdigit())):
            break
        place += 1
    return words[place:]


def _inner(program: str, rest: "list[str]") -> "list[str]":
    """Return the command that another one runs: behind `uv run`, `npx`, `python -m` or `python tool.py`."""
    at, *more = (*_places(program, rest), len(rest))
    first = rest[at] if at < len(rest) else ""
    if program in _PYTHONS:
        is_run = "-m" in rest[:at] or first.endswith(".py")
        return rest[at:] if is_run else []
    if program in _RUNNERS and first != "run":
        return rest[at:]
    return rest[more[0] :] if more and first in _RUN_THROUGH.get(program, ()) else []


def _places(program: str, rest: "list[str]") -> "list[int]":
    """Return the places of the words that are neither options nor values of options."""
    valued = _VALUED.get(program, ())
    return [
        place
        for place, word in enumerate(rest)
        if not word.startswith("-") and not (place and rest[place - 1] in valued)
    ]


def _head(program: str, rest: "list[str]") -> "list[str]":
    """Return the program and its sub-commands, at most two."""
    plain = [rest[place] for place in _places(program, rest)[:2]]
    head = [program]
    if plain and _is_plain(plain[0]) and program not in _PYTHONS:
        head.append(plain[0].lower())
        if plain[0] in _LONG and len(plain) > 1 and _is_plain(plain[1]):
            head.append(plain[1].lower())
    return head


def _is_plain(word: str) -> bool:
    """Return True for a word that can be a program or a sub-command: letters, digits and a few marks."""
    bare = word.replace("-", "").replace("_", "").replace(":", "").replace(".", "")
    return bool(bare) and len(word) <= 40 and word[0].isalpha() and bare.isalnum() and word.isascii()


def _keys_of_command(command: str, root: str) -> "list[str]":
    """Return the keys of a command that is run: its head in all lengths, its activity, the files that it changes."""
    keys: list[str] = []
    for run in _runs(command):
        names = [" ".join(run.head[:length]) for length in range(len(run.head), 0, -1)]
        keys += [f"c:{name}" for name in names]
        if run.head[0] in _SUBCOMMANDS:
            keys.append(f"c:{run.head[0]}{ANY}")
        activities = [*map(_ACTIVITIES.get, names), *map(_ACTIVITY_OF_SUBCOMMAND.get, run.head[1:2])]
        keys += [f"a:{activity}" for activity in activities if activity]
        for path in run.files():
            keys += _keys_of_path(path, root)
    for path in _targets(command):
        keys += _keys_of_path(path, root)
    return keys + _symbols(_tokens(command[:MAX_COMMAND_CHARS]))


def _is_path(word: str) -> bool:
    return ("/" in word or "." in word.strip(".")) and not word.startswith("-") and "://" not in word


def _named_command(span: str) -> "list[str]":
    """Return the key of a command that a memory quotes, in its full length; the program alone if that says enough."""
    if len(span) > MAX_COMMAND_CHARS or not span.strip():
        return []
    keys = []
    for head in (run.head for run in _runs(span)):
        keys.append(f"c:{' '.join(head)}")
        if len(head) > 1 and head[0] not in _SUBCOMMANDS and head[0] not in _WORDS_TOO:
            keys.append(f"c:{head[0]}")
    return keys


def _commands_in_words(content: str) -> "list[str]":
    """Return the keys of commands in running text: `git push`, "run Vale", `DEBUG=1 server`."""
    keys = []
    for word, following in _neighbours(content):
        program = word.lower()
        if not _is_plain(following) or following.lower() in _FUNCTION_WORDS:
            continue
        if (program in _SUBCOMMANDS and following.islower()) or following in _WORDS_TOO.get(program, ()):
            keys.append(f"c:{program} {following}")
        elif following.lower() in _EVERYWHERE:
            continue
        elif program in _RUN_WORDS or ("=" in word and word.partition("=")[0].isupper()):
            keys.append(f"c:{following.lower()}")
    return keys


def _neighbours(content: str) -> "Iterator[tuple[str, str]]":
    """Yield each word with the next one of its clause, "" at the end of a clause; marks are taken off."""
    said = content.split()
    for word, following in pairwise((*said, "")):
        yield word.strip(_MARKS), "" if word[-1] in ",;:.!?)" else following.strip(_MARKS)


def _chosen_in(content: str) -> "list[str]":
    """Return the keys of programs that are to be used, or not: "pnpm, not npm", "never use pip".

    One that is ruled out is meant with all its sub-commands, unless one follows.
    """
    keys = []
    earlier = before = ""
    for word, following in _neighbours(content.replace("\u2019", "'").lower()):
        if word in _SUBCOMMANDS and word not in _EVERYWHERE and (before in _RUN_WORDS or before in _CHOICES):
            is_whole = not _is_plain(following) or following in _FUNCTION_WORDS
            keys.append(f"c:{word}{ANY}" if is_whole and _is_ruled_out(earlier, before) else f"c:{word}")
        earlier, before = before, word
    return keys


def _is_ruled_out(earlier: str, before: str) -> bool:
    """Return True if the two words before a program say that it is not to be used."""
    if before in ("of", "than"):
        return earlier in ("instead", "rather")
    return before in _AGAINST or (before in _RUN_WORDS and earlier in _AGAINST)


# The file


def hashed(key: bytes, name: str) -> bytes:
    """Return the hash of a key of a call or a memory, as the file has it."""
    return blake2b(name.encode("utf-8", "surrogatepass"), key=key, digest_size=4).digest()


def file_name(key: bytes, name: str) -> str:
    """Return the name of the file of a space or a place, which does not give it away."""
    return blake2b(name.encode("utf-8", "surrogatepass"), key=key, digest_size=12).hexdigest()


def bit_of(mark: bytes) -> "tuple[int, int]":
    """Return the place of the byte in the bitmap that stands for a hash, and the bit in it."""
    number = int.from_bytes(mark[:3], "little") % (BITMAP_BYTES * 8)
    return number >> 3, 1 << (number & 7)


def found_in(data: bytes, mark: bytes) -> "list[int]":
    """Return the ids of the memories that have the key with this hash, in the order of the file."""
    ids: list[int] = []
    at, bit = bit_of(mark)
    if len(data) < HEADER_BYTES or not data[MARK_BYTES + at] & bit:
        return ids
    place = data.find(mark, HEADER_BYTES)
    while place >= 0:
        if place % RECORD_BYTES == 0:
            if len(number := data[place + 4 : place + RECORD_BYTES]) == 4:
                ids.append(int.from_bytes(number, "little"))
            place += RECORD_BYTES - 1
        place = data.find(mark, place + 1)
    return ids
