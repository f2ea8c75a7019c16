"""What redaction takes out, what it leaves alone, and how it behaves while doing so. Checklist C24."""

import ast
import hashlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from kept.model import Draft, Redaction, Source
from kept.writing import redact as redact_module
from kept.writing import secrets
from kept.writing.redact import Redacted, RedactedSpan, redact, redact_draft
from kept.writing.secrets import cues, disguises, looks, rules, shapes, verdict
from tests.speed import reference_ms

GITHUB = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
KEY_LINES = [
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
    "MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDu",
]
PEM = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(KEY_LINES) + "\n-----END PRIVATE KEY-----"


def kinds(text: str, **options: Any) -> list[str]:
    return [found.kind for found in redact(text, **options).found]


# ---- C24: what must never reach the disk ----


@pytest.mark.parametrize(
    ("text", "secret", "kind"),
    [
        (f"use {GITHUB} for now", GITHUB, "github"),
        ("key id AKIAZQ3DMTW7KX5PVN4R", "AKIAZQ3DMTW7KX5PVN4R", "aws"),
        ("OPENAI_API_KEY=abcdef1234567890abcdef", "abcdef1234567890abcdef", "api-key"),
        ("write to alice@example.com", "alice@example.com", "email"),
        (f"here it is:\n{PEM}\nthanks", KEY_LINES[1], "private-key"),
        ("DATABASE_URL=postgres://app:s3cr3t-pw@db.test:5432/app", "s3cr3t-pw", "password"),
    ],
)
def test_c24_keys_tokens_addresses_and_connection_strings_are_redacted(text: str, secret: str, kind: str) -> None:
    redacted = redact(text)
    assert secret not in redacted.text
    assert f"[redacted:{kind}]" in redacted.text
    assert kind in [found.kind for found in redacted.found]


def test_c24_entropy_alone_decides_nothing() -> None:
    """More than 4 bits over more than 20 characters is what paths and hashes have too: a cue or a shape is needed."""
    opaque = "kX9vQ2mZ7pLw4RtY8sBn3CfH"
    assert redact(f"see {opaque} in the log") == Redacted(f"see {opaque} in the log", ())
    assert opaque not in redact(f"the staging password is {opaque}").text


@pytest.mark.parametrize(
    "text",
    [
        "the db password is hunter2hunter",
        "pw: hunter2hunter",
        "my token for staging is hunter2hunter8841",
        "das Passwort lautet hunter2hunter",
        "Das Kennwort für die Datenbank ist hunter2hunter.",
        "le mot de passe est hunter2hunter",
        "la contraseña es hunter2hunter",
        "a senha do servidor é hunter2hunter",
        "hasło: hunter2hunter",
        "пароль hunter2hunter",
        "数据库密码是hunter2hunter",
        "パスワードは hunter2hunter です",
        "use hunter2hunter as the root password",
        "log in with user bob and password hunter2hunter",
        "credentials: bob / hunter2hunter",
        "I changed the password to hunter2hunter yesterday",
        "What is the password? It's hunter2hunter",
        "here is the api key:\n\nhunter2hunter8841\n\nplease try",
        'password = "hunter2hunter"',
        'const char* password = "hunter2hunter";',
        '{"user": "bob", "password": "hunter2hunter"}',
        '{"body": "{\\"password\\": \\"hunter2hunter\\"}"}',
        "spring.datasource.password=hunter2hunter",
        "export DB_PASSWORD=hunter2hunter",
        "database:\n  password: hunter2hunter",
        "- name: DB_PASSWORD\n  value: hunter2hunter",
        'variable "db_password" {\n  type = string\n  default = "hunter2hunter"\n}',
        "ENV DB_PASSWORD hunter2hunter",
        "deploy --password hunter2hunter --force",
        '["deploy", "--password", "hunter2hunter"]',
        "curl -u bob:hunter2hunter https://internal.test",
        "mysql -u root -phunter2hunter app",
        "sshpass -p hunter2hunter ssh bob@internal.test",
        "kubectl create secret generic x --from-literal=any=hunter2hunter",
        "psql 'host=db user=bob password=hunter2hunter'",
        "machine internal.test login bob password hunter2hunter",
        "db.test:5432:app:bob:hunter2hunter",
        "https://bob:hunter2hunter@git.test/x.git",
        "redis://:hunter2hunter@cache:6379/0",
        "root:hunter2hunter@tcp(db:3306)/app",
        "Server=db;Uid=bob;Pwd=hunter2hunter;",
        "<password>hunter2hunter</password>",
        '<add key="DbPassword" value="hunter2hunter" />',
        "CREATE USER bob WITH PASSWORD 'hunter2hunter';",
        "Authorization: Basic aHVudGVyMjpodW50ZXIy",
        "Cookie: session=hunter2hunter; theme=dark",
        "Set-Cookie: session=hunter2hunter; Path=/; HttpOnly",
        "https://api.test/v1?access_token=hunter2hunter&page=2",
        "user,password\nbob,hunter2hunter\n",
        "insert into users (name, password) values ('bob', 'hunter2hunter')",
        '{"token": {"value": "hunter2hunter8841"}}',
        "$ echo $DB_PASSWORD\nhunter2hunter",
        "| user | password |\n|---|---|\n| bob | hunter2hunter |",
        'requests.get(url, auth=("bob", "hunter2hunter"))',
        'os.environ["DB_PASSWORD"] = "hunter2hunter"',
        "the passphrase is correct horse battery staple",
        'passphrase: "correct horse battery staple"',
        "the password is swordfish.",
        "my pin is 4829",
    ],
)
def test_a_value_behind_a_cue_is_redacted(text: str) -> None:
    redacted = redact(text, email=False)
    for secret in ("hunter2", "aHVudGVy", "staple", "swordfish", "4829"):
        assert secret not in redacted.text
    assert len(redacted.found) == 1


@pytest.mark.parametrize(
    "text",
    [
        "the password policy is strict",
        "password must be at least 12 characters",
        "the password is required and is hashed with argon2id",
        "the password is base64-encoded, the token RS256-signed",
        "token budget is 1500, the token count was 128000",
        'password = os.environ["DB_PASSWORD"]',
        "password = getpass.getpass()",
        "if token is None: token = getToken(user2)",
        "def login(user: str, password: str, token: str | None = None) -> SecretKey:",
        "secret_key: SecretKey",
        "api_key: Optional[str] = None",
        "<password>",
        "password: *****",
        "API_KEY=YOUR_API_KEY",
        "api_key: <your api key>",
        "DB_PASSWORD=${DB_PASSWORD}",
        "password: {{ .Values.db.password }}",
        "token = process.env.API_TOKEN",
        "Authorization: Bearer $TOKEN",
        "the bearer token is sent in the Authorization header",
        "postgres://app:${PASSWORD}@db/app and https://user@host/path",
        "git@github.com:org/repo.git at icon@2x.png and lodash@4.17.21",
        "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        'integrity "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="',
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl bob",
        "src/kept/writing/redact.py:120 and C:\\Users\\bob\\token.json",
        "primary key (id); the cache key is user:42:profile; public key authentication",
        "toolu_01A09q90qw90lq917835lq9F and call_abc123DEF456ghi789JKL012",
        "1700000000000000 and 4111111111111112 are no cards",
        '"token_type": "bearer", "nextToken": "abc123def456ghi789"',
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa\n-----END CERTIFICATE-----",
        'if "-----BEGIN PRIVATE KEY-----" in text: raise ValueError("no keys here")',
        "all tests pass: 120 passed, PASS: test_login_2",
        "Map<Private> and Local<Private> are types",
    ],
)
def test_ordinary_text_survives_untouched(text: str) -> None:
    assert redact(text) == Redacted(text, ())


CUED = [
    "the password is {correct-horse-battery-staple}",
    "the passphrase is {purple_donkey_wagon_quilt}, keep it",
    "the wifi password is {SilverFox}",
    "the deploy token is {qktfUqyBxV}",
    "password: {x7aB0zRs}",
    "token: {vyscxgbynr}",
    "secret: {anhmytutjs}",
    "api_key: {xusonanlwe}",
    "the client secret is {piano-glacier-comet}",
    'SMTP_PASS="{a b c9}"',
    "deploy --password='{Feather & otter, 42!}' --force",
    "gpg --passphrase '{my dog ate 9 shoes}' -d x.gpg",
    "host=db password='{a b c9}' dbname=app",
    "bot token → {kfxqimmjretf}",
    "ALTER ROLE app PASSWORD '{HHETJWZPN}';",
    "smtp:\n  pass: '{ginger-lizard-plywood}'",
    "пароль {monsoon-flannel-saffron}",
    "Kennwort = {crayonJasmineMitten}",
    "la contraseña es {SilverFox}",
    "a senha é {Moin+Moin}",
    "I used {1/4888563925284787:5c4ff55a2942843a3aaaa525009cfbff} for the import",
    "it is {2/4888563925284787/5246187873395439:5c4ff55a2942843a3aaaa525009cfbff}.",
    "run htpasswd -b .htpasswd bob {letmein99} on the box",
    "just run `htpasswd -nb bob {letmein99}` and paste it",
    'curl -u "bob:{a b c9}" https://internal.test',
    "sshpass -p '{a b c9}' ssh host",
]


@pytest.mark.parametrize("marked", CUED)
def test_a_value_behind_a_cue_need_not_look_like_a_secret(marked: str) -> None:
    before, secret, after = re.split("[{}]", marked)
    redacted = redact(before + secret + after)
    assert re.fullmatch(re.escape(before) + r"\[redacted:[a-z-]+\]" + re.escape(after), redacted.text)


@pytest.mark.parametrize(
    "text",
    [
        "Redis key cache:user:42",
        "The session key is tenant:user:session",
        "S3 key: exports/2031-04/users.parquet",
        "token: color-primary-500",
        "spacing token is md",
        "cookie: SameSite=Strict",
        "AKIAIOSFODNN7EXAMPLE / wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        'if token == "lambda": token = state.push("code_inline", "code", 0)',
        "def create(cls, markdown: Markdown, token: Token) -> MarkdownElement:",
        'sp.add_argument("--api-key", help="API key/token (if required)")',
        "`--token` bypasses any prompt",
        "private_key: ed25519.Ed25519PrivateKey, f_priv: _FragList",
        '"password": "Passwort", "token": "Jeton"',
        "the secret is to keep it small",
        "passwords: minimum 12 characters",
        "secret: type Opaque",
        "the API key is called STRIPE_KEY",
        "htpasswd -b takes the password on the command line",
    ],
)
def test_names_types_and_talk_behind_a_cue_are_left_alone(text: str) -> None:
    assert redact(text) == Redacted(text, ())


def test_at_least_sixty_vendors_are_known() -> None:
    vendors = {line.split()[0] for line in rules.VENDORS.strip().splitlines()}
    assert len(vendors | {kind for _, kind, _ in rules.SHAPES}) >= 100


# ---- blocks ----


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <private>x</private> b", "a [redacted:private] b"),
        ("a <PRIVATE>x</Private> b", "a [redacted:private] b"),
        ("a <private>x <private>y</private> z</private> b", "a [redacted:private] b"),
        ("a <private>x, and never closed", "a [redacted:private]"),
        ("a < private reason='no'>x</ private > b", "a [redacted:private] b"),
        ("a &lt;private&gt;x&lt;/private&gt; b", "a [redacted:private] b"),
        ('{"a": "\\u003cprivate\\u003ex\\u003c/private\\u003e"}', '{"a": "[redacted:private]"}'),
        ("a <pri\u200bvate>x</private> b", "a [redacted:private] b"),
        ("x</private> y", "x</private> y"),
    ],
)
def test_what_stands_between_private_tags_is_dropped(text: str, left: str) -> None:
    assert redact(text).text == left


@pytest.mark.parametrize(
    "text",
    [
        PEM,
        PEM.replace("PRIVATE KEY", "RSA PRIVATE KEY"),
        PEM.replace("PRIVATE KEY", "OPENSSH PRIVATE KEY"),
        PEM.replace("PRIVATE KEY-----", "PGP PRIVATE KEY BLOCK-----"),
        PEM.partition("-----END")[0],
        PEM.partition("-----END")[0] + "and then some words",
        PEM.partition("KEY-----\n")[2],
        PEM.replace("\n", "\\n"),
        PEM.replace("\n", "\n    > "),
        "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(PEM.splitlines(), 1)),
        f'KEY = """{PEM}"""',
        "PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 2\n" + "\n".join(KEY_LINES) + "\nPrivate-MAC: " + "ab" * 32,
    ],
)
def test_a_private_key_is_redacted_however_it_was_pasted_or_cut(text: str) -> None:
    redacted = redact("before\n" + text + "\nafter words")
    assert not any(line[8:40] in redacted.text for line in KEY_LINES)
    assert redacted.text.startswith("before\n")
    assert redacted.text.endswith("after words")
    assert {found.kind for found in redacted.found} == {"private-key"}


def test_a_seed_phrase_is_redacted_behind_its_cue_only() -> None:
    words = "abandon ability able about above absent absorb abstract absurd abuse access accident"
    assert redact(f"my seed phrase: {words}").text == "my seed phrase: [redacted:seed-phrase]"
    assert redact(f"twelve words: {words}").found == ()


@pytest.mark.parametrize("number", ["4242424242424242", "4242 4242 4242 4242", "3782-822463-10005", "5555555555554444"])
def test_card_numbers_are_redacted_by_their_check_digit(number: str) -> None:
    assert redact(f"card {number}, thanks").text == "card [redacted:card], thanks"
    assert redact(f"order {number[:-1]}{(int(number[-1]) + 1) % 10}").found == ()


# ---- disguises ----


@pytest.mark.parametrize(
    "disguised",
    [
        GITHUB[:9] + "\u200b" + GITHUB[9:],
        "\u200d".join(GITHUB),
        GITHUB[:9] + "\u00ad\u2060\ufeff" + GITHUB[9:],
        "".join(chr(ord(character) + 0xFEE0) for character in GITHUB),
        "\x1b[1m\x1b[32m" + GITHUB[:9] + "\x1b[0m" + GITHUB[9:],
    ],
)
def test_invisible_and_wide_characters_hide_nothing(disguised: str) -> None:
    text = f"so: {disguised} ok"
    redacted = redact(text)
    assert GITHUB[10:] not in redacted.text
    (found,) = redacted.found
    assert found.kind == "github"
    assert text[found.start : found.end].endswith(disguised[-6:])
    assert redacted.text == text[: found.start] + "[redacted:github]" + text[found.end :]


@pytest.mark.parametrize("before", ['"a\\n', "\\t", "%20", "&quot;", "\\u0022", "x=%3D", '{\\"k\\":\\"', "token%3D"])
def test_escapes_before_a_token_do_not_hide_it(before: str) -> None:
    assert GITHUB[10:] not in redact(before + GITHUB + "\\n").text


# ---- the report ----


def test_found_tells_kind_and_place_and_never_the_secret() -> None:
    text = f"first {GITHUB} then bob@corp.test and pw: hunter2!"
    redacted = redact(text)
    assert redacted.found == (
        RedactedSpan("github", 6, 46),
        RedactedSpan("email", 52, 65),
        RedactedSpan("password", 74, 82),
    )
    assert [text[found.start : found.end] for found in redacted.found] == [GITHUB, "bob@corp.test", "hunter2!"]
    assert RedactedSpan.__struct_fields__ == ("kind", "start", "end")
    assert "hunter2" not in repr(redacted)


def test_email_addresses_are_left_alone_when_asked_to() -> None:
    assert kinds("bob@corp.test") == ["email"]
    assert kinds("bob@corp.test, pw: hunter2!", email=False) == ["password"]


def test_a_value_that_a_person_declared_harmless_is_spared() -> None:
    text = f"test key {GITHUB}"
    assert redact(text, allow={GITHUB}).found == ()
    assert redact(text, allow={hashlib.sha256(GITHUB.encode()).hexdigest()}).found == ()
    assert redact(text, allow={GITHUB[:-1]}).text == "test key [redacted:github]"


def test_the_longest_of_overlapping_finds_names_the_kind() -> None:
    assert redact(f"Cookie: session={JWT}; theme=dark").text == "Cookie: [redacted:cookie]"
    assert redact(f"GITHUB_TOKEN={GITHUB}").text == "GITHUB_TOKEN=[redacted:github]"


@pytest.mark.parametrize(
    "text", [f"t: {GITHUB}", "pw: hunter2! and mail bob@corp.test", PEM, "a <private>b", f"Bearer {JWT}"]
)
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text)
    assert once.found
    assert redact(once.text) == Redacted(once.text, ())


# ---- failing closed, in linear time ----


def test_a_failing_rule_redacts_the_whole_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str, small: str) -> Iterator[tuple[int, int, str]]:
        raise ZeroDivisionError

    monkeypatch.setattr(redact_module, "FINDERS", (*redact_module.FINDERS, broken))
    text = "nothing secret here"
    assert redact(text) == Redacted("[redacted:error]", (RedactedSpan("error", 0, len(text)),))


def test_a_rule_that_never_settles_redacts_the_whole_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(text: str, small: str) -> Iterator[tuple[int, int, str]]:
        place = text.find("a")
        if place >= 0:
            yield place, place + 1, "letter"

    monkeypatch.setattr(redact_module, "FINDERS", (greedy,))
    assert redact("a a a").text == "[redacted:letter] [redacted:letter] [redacted:letter]"
    assert kinds("a " * 100) == ["error"]


def test_a_long_text_made_of_cue_words_is_redacted_as_a_whole() -> None:
    assert kinds("x-api-key: " * 100) == []
    assert kinds("x-api-key: " * 20_000) == ["error"]


HOSTILE = [
    "password ", "pw ", "pw=a1b2c3d4 ", "password is ", "password for a b c d e f g ", "token: ", "?key=",
    "x-api-key: ", "://a:b@c ", "://", "@", "a@b.co ", "<private>", "sk-", "ghp_", "eyJa.", "AKIA",
    "-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----", "cookie: aaaaa=bbbbbbb; ",
    "authorization: bearer x", "4111 1111 1111 1111 ", "4", "a-", "\\n", "\u200b", "密码是", "curl -u ", "mysql -p ",
    "user,password\n", 'password="', "password: [", "$2b$", "\x1b[0m", "[redacted:x]", "seed phrase: a b ",
    "hunter2 as the password ", "name: PASSWORD\nvalue: ", "auth=(", "%20", "&quot;", "a,password\nx\n",
    "docker login ", "curl '", "curl -u 'a b' ", "htpasswd -b ", "password: a-b-c-d ", "token = a.b.c ",
    "secret: AbCd ", "--password x ", "api key - a ", "sign in with ", "zip -P ", "secret_", "eyJhbGciOi", "/1",
    "MIIAAAIBAA",
    '"a1b2c3d4e5" + ', '"ghp_a1b2c3" ', "ghp_a1b2\n", "stringData:\n a: b\n", "kind: Secret\ndata:\n a: b\n",
    "stringData: {",
    "%41", "%41 ", "QUFB", "QUFBQUFBQUFBQUFBQUFBQUFBQUFB ", "616263646566", "<token>\n", "alpha ", "alpha beta\n",
]  # fmt: skip


def seconds(text: str) -> float:
    start = process_time()
    redact(text)
    return process_time() - start


def test_the_time_grows_with_the_length_and_with_nothing_else() -> None:
    """Twice the text, twice the time; 20 KB of the worst that we can think of take 16 times the reference."""
    redact("warm up: password is x, https://a:b@c, 4111")
    once = {unit: seconds((unit * 10_000)[:10_000]) for unit in HOSTILE}
    twice = {unit: seconds((unit * 20_000)[:20_000]) for unit in HOSTILE}
    assert 1_000 * max(twice.values()) < 24 * min(reference_ms() for _ in range(15))
    assert sum(twice.values()) < 3 * sum(once.values())


def number_of_ways(parsed: Any) -> float:
    """How many ways a parsed pattern can match at one place: what backtracking may cost at most."""
    ways = 1.0
    for operation, argument in parsed:
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, body = argument
            inner = number_of_ways(body)
            most = float("inf") if str(most) == "MAXREPEAT" else int(most)
            ways *= (
                most - least + 1
                if inner == 1
                else float("inf")
                if inner**most > 1e9
                else inner**most * (most - least + 1)
            )
        elif name == "BRANCH":
            ways *= sum(map(number_of_ways, argument[1]))
        elif name == "SUBPATTERN":
            ways *= number_of_ways(argument[3])
    return ways


MODULES = (cues, disguises, looks, verdict, shapes, secrets)


def pattern_sources() -> Iterator[tuple[str, str]]:
    """Every pattern of redaction: those written where they are used, those of the tables, and those put together."""
    for module in MODULES:
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "compiled":
                source = node.args[0]
                if isinstance(source, ast.Name) and source.id in ("tail", "source"):  # from a table
                    continue
                pattern = vars(module).get(source.id) if isinstance(source, ast.Name) else ast.literal_eval(source)
                assert isinstance(pattern, str), ast.unparse(node)
                yield module.__name__, pattern
        makers: list[Callable[[], Any]] = [
            member
            for member in vars(module).values()
            if hasattr(member, "cache_clear") and not signature(member).parameters
        ]
        yield from ((module.__name__, made.pattern) for make in makers if isinstance(made := make(), re.Pattern))
    yield from (("SHAPES", source) for _, _, source in rules.SHAPES)
    yield from (("COMMANDS", source) for commands in rules.COMMANDS.values() for _, source in commands)
    yield from ((prefix, tail) for tails in shapes.vendor_tails().values() for prefix, _, tail in tails)


def test_no_pattern_can_backtrack_without_bound() -> None:
    """Linear by construction: every repeat is possessive or small, so one place costs at most a constant."""
    parse: Callable[[str], Any] = sys.modules["re._parser"].parse
    sources = list(pattern_sources())
    assert len(sources) > 300
    unbounded = {source: ways for where, source in sources if (ways := number_of_ways(parse(source))) > 10_000}
    assert not unbounded
    assert number_of_ways(parse(r"(a+)+b")) == float("inf")


def test_a_tag_that_was_seen_before_is_judged_by_the_rules_of_its_own_draft() -> None:
    draft = Draft(content="Ask her", tags=("me@corp.test",))
    assert redact_draft(draft, email=True).draft.tags == ("[redacted:email]",)
    assert redact_draft(draft, email=False).draft.tags == draft.tags
    assert redact_draft(draft, email=True, allow=draft.tags).draft.tags == draft.tags
    assert redact_draft(draft, email=True).redactions == (Redaction(kind="email", count=1),)
    assert redact_draft(Draft(content="x", key="of anna@example.org"), email=True).draft.key == "of [redacted:email]"


def test_a_failure_that_has_passed_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str, small: str) -> Iterator[tuple[int, int, str]]:
        raise MemoryError

    draft = Draft(content="Ask her", tags=("a-tag-of-its-own",), source=Source(agent="an-agent-of-its-own"))
    with monkeypatch.context() as patch:
        patch.setattr(redact_module, "FINDERS", (broken,))
        assert redact_draft(draft, email=True).draft.tags == ("[redacted:error]",)
    assert redact_draft(draft, email=True).draft == draft


def test_names_that_hold_secrets_are_not_kept_in_memory() -> None:
    names = [GITHUB[:-1] + letter for letter in "abc"]
    draft = Draft(content="Ask her", tags=(names[0],), files=(names[1],), source=Source(agent=names[2]))
    before = redact_module._harmless.cache_info()
    safe = redact_draft(draft, email=True)
    assert safe.redactions == (Redaction(kind="github", count=3),)
    assert safe.draft.source == Source(agent="[redacted:github]")
    after = redact_module._harmless.cache_info()
    assert (after.currsize, after.misses) == (before.currsize, before.misses + 3)


def is_needed(sign: str, parsed: Any) -> bool:
    """Whether nothing without the sign, in this case, can match a parsed pattern."""
    run = ""
    for operation, argument in parsed:
        name = str(operation)
        run = run + chr(argument) if name == "LITERAL" else ""
        if (
            sign in run
            or (name.endswith("_REPEAT") and argument[0] and is_needed(sign, argument[2]))
            or (name == "BRANCH" and all(is_needed(sign, way) for way in argument[1]))
            or (name == "SUBPATTERN" and not argument[1] & re.IGNORECASE and is_needed(sign, argument[3]))
        ):
            return True
    return False


def test_no_command_goes_without_the_sign_that_it_is_listed_under() -> None:
    parse: Callable[[str], Any] = sys.modules["re._parser"].parse
    commands = [(sign, *command) for sign, listed in rules.COMMANDS.items() for command in listed]
    assert len(commands) > 25
    for sign, words, source in commands:
        assert words == words.lower()
        assert all(sign in word.upper() for word in words.split()) or is_needed(sign, parse(source)), source
    assert not is_needed("-", parse("(?:-a|b)-?"))
    assert not is_needed("ab", parse("a?b(?i:ab)(?!ab)"))


COMMAND_LINES = [
    "curl -u bob:{s} host", "curl -sS --user bob:{s}", "curl --proxy-user=bob:{s}", "curl -Ubob:{s}", "curl -b sid={s}",
    "client --auth bob:{s}", "http -a bob:{s} host", "https POST host -a bob:{s}", "mysql -u root -p{s} app",
    "mysqldump -p{s}", "mariadb-dump -p{s}", "sshpass -p {s} ssh host", "redis-cli -h host -a {s}",
    "mongosh -u bob -p {s}", "ldapsearch -x -w {s}", "zip -P {s} a.zip a", "7za a -p{s} a.7z a", "openssl enc -k {s}",
    "smbclient -U bob%{s} //host", "htpasswd -b file bob {s}", "htpasswd -nb bob {s}", "kubectl --from-literal=a={s}",
    "kubectl --from-literal a={s}",
    "keytool -storepass {s}", "keytool -keypass {s}", "vault login {s}", "openssl rsa -passin pass:{s}",
    "openssl rsa -passout pass:{s}", "openssl enc -pass pass:{s}", "openssl enc -k pass:{s}",
    "echo {s} | docker login --password-stdin", "echo bob:{s} | sudo chpasswd", "echo {s} | sudo -S ls",
    "net use Z: //host/x /user:bob {s}", "net user bob {s} /add",
    *(f"{name} login -u bob -p {{s}} host" for name in "docker podman nerdctl buildah skopeo crane az oc cf".split()),
    "helm registry login -p {s}",
    *(f"{name} -u bob -P {{s}} -t x" for name in "sqlcmd bcp mosquitto_pub mosquitto_sub mosquitto_rr".split()),
    *(f"{name} -u bob -p {{s}} host" for name in "cqlsh cypher-shell snowsql rabbitmqadmin rdesktop".split()),
    "evil-winrm -i host -p {s}",
    *(f"{name} -pw {{s}} bob@host" for name in "plink pscp psftp".split()),
    "lftp -u bob,{s} host", "unrar x -p{s} a.rar",
    "rar a -hp{s} a.rar a", "net use Z: \\\\host\\x {s} /user:bob",
    *(f"{name} /u:bob /p:{{s}}" for name in "xfreerdp wfreerdp sdl-freerdp".split()), "schtasks /create /rp {s}",
    *(f"{name} bob/{{s}}@db" for name in "sqlplus expdp impdp".split()), "mc alias set a https://host id {s}",
    "vncpasswd -f <<< {s}", "chpasswd -e <<< {s}", "wpa_passphrase home {s}", "rabbitmqctl add_user bob {s}",
]  # fmt: skip


def taken(text: str) -> list[str]:
    """What commands take in a text that is its own view."""
    return [text[start:end] for start, end, _ in shapes.find_command_secrets(text, text.lower())]


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_a_command_is_read_however_it_is_spaced_or_its_name_is_written(line: str) -> None:
    name, blank, rest = line.format(s="Hunter22!x").partition(" ")
    for typed in (name, name.upper(), name.title()):
        for written in (typed + blank + rest, f"{typed}  {rest}", f"{typed}\t{rest}", f"see: {typed}{blank}{rest}"):
            for blanks in (" ", "  ", "\t"):
                assert taken(written.replace(" ", blanks)) == ["Hunter22!x"]


def test_every_command_of_the_table_is_read() -> None:
    lines = [line.format(s="Hunter22!x") for line in COMMAND_LINES]
    commands = [command for listed in rules.COMMANDS.values() for command in listed]
    whole = {re.escape(word) + source for words, source in commands for word in words.split()}
    assert not {source for source in whole if not any(re.search(source, line, re.MULTILINE) for line in lines)}


@pytest.mark.parametrize(
    "text",
    [
        "curl -u bob:Hunter22!x host",
        "curl -X POST \\\n  -u bob:Hunter22!x \\\n  host",
        "curl -X POST \\\r\n  -u bob:Hunter22!x \\\r\n  host",
        '{"cmd": "curl -X POST \\\\\\n  -u bob:Hunter22!x"}',
        '{"cmd": "curl\\t-u\\tbob:Hunter22!x"}',
    ],
)
def test_a_command_may_go_on_in_the_next_line(text: str) -> None:
    assert redact(text).text == text.replace("Hunter22!x", "[redacted:password]")


@pytest.mark.parametrize(
    "text",
    [
        "the net user count fell by half",
        "Net user growth slowed in spring",
        "the gross and the net\nuser numbers differ",
        "a .NET user interface with .net user secrets management",
        "internet user accounts doubled",
        "Vault login requires a second factor",
        "vault login\nwaits for the token",
        "Docker login fails with the -p flag",
        "MongoDB runs under docker run -p 27017:27017 here",
        "MySQL takes the -port option",
        "curl -b cookies.txt reads what -c wrote",
        "mysql -u root -P 3306 app",
        "the https scheme",
        "Curl has -u for users: see its manual",
    ],
)
def test_what_is_said_about_commands_is_left_alone(text: str) -> None:
    assert redact(text) == Redacted(text, ())


def test_a_text_in_which_anything_is_escaped_or_masked_is_not_plain() -> None:
    escapes = [escape for escapes in secrets.ESCAPES.values() for escape in escapes]
    for sign in (secrets.MASK, *secrets.NOISE_SIGNS, *escapes):
        assert not secrets._is_plain(f"a {sign} b")


@pytest.mark.parametrize(
    "text",
    [
        r"pass\u0077ord: hunter2hunter",
        "password&#61;hunter2hunter",
        "password&#x3a; hunter2hunter",
        r"DB\_PASSWORD=hunter2hunter",
        r"DB\\_PASSWORD=hunter2hunter",
        r'"Schl\u00fcssel der API, Passw\u00f6rter": "x", "kennwort": "hunter2hunter"',
        r'"\u5bc6\u7801\uff1ahunter2hunter"',
        r"https:\/\/me:hunter2hunter@host.test\/x",
        r"pass\u200bword: hunter2hunter",
    ],
)
def test_an_escaped_cue_or_sign_announces_a_secret_as_well(text: str) -> None:
    once = redact(text).text
    assert "hunter2hunter" not in once
    assert redact(once).text == once


def test_an_escape_is_redacted_as_a_whole_and_nothing_around_it() -> None:
    token = "ghp" + r"\_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"
    assert redact(rf"snake\_case, {token}, snake\_case").text == r"snake\_case, [redacted:github], snake\_case"


@pytest.mark.parametrize(
    "text", [r"a\_b and \u0000 and &#0; and \x7f", r"^\w+\.\d{2}\-\/$", "&#99999999; &#x110000;", "\\" * 9]
)
def test_escapes_that_hide_nothing_are_left_alone(text: str) -> None:
    assert redact(text) == Redacted(text, ())


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("password: !!str Vk8-tQ2m", ["Vk8-tQ2m"]),
        ("db:\n  password: &pw Vk8-tQ2m\n", ["Vk8-tQ2m"]),
        ("secret: !unsafe 'Vk8-tQ2mW'", ["Vk8-tQ2mW"]),
        ("passwords:\n  - Vk8-tQ2m\n  - Zr5_pL9x\n  - 'Hn3+wB7c'\nport: 1", ["Vk8-tQ2m", "Zr5_pL9x", "Hn3+wB7c"]),
        ("tokens:\n" + "".join(f"- Vk8tQ2mR{n:03}xW\n" for n in range(600)), [f"Vk8tQ2mR{n:03}xW" for n in range(600)]),
        ("ssh root:Vk8-tQ2m@10.0.0.5", ["Vk8-tQ2m"]),
        ("recovery code 8f3k-2m9q-x7w1", ["8f3k-2m9q-x7w1"]),
        ("access code: Vk8-tQ2m", ["Vk8-tQ2m"]),
        ("PIN/PUK: 48151623", ["48151623"]),
        ("2FA seed: JBSWY3DPEHPK3PXP", ["JBSWY3DPEHPK3PXP"]),
        ("security answer: Flumbolt", ["Flumbolt"]),
        ("пароль от базы Vk8-tQ2m", ["Vk8-tQ2m"]),
        ("the password changed from Vk8-tQ2m to Zr5_pL9x", ["Vk8-tQ2m", "Zr5_pL9x"]),
    ],
)
def test_tagged_listed_and_replaced_values_are_redacted(text: str, secrets: list[str]) -> None:
    once = redact(text).text
    assert [secret for secret in secrets if secret in once] == []
    assert redact(once).text == once


@pytest.mark.parametrize(
    "text",
    [
        "fn check(token: &str, password: &mut String) -> bool",
        "secrets:\n  - db_password\n  - api_key\n",
        "password: !secret wifi_password",
        "password: !Ref DatabasePassword",
        "image app:1.2.3@10.0.0.5",
        "forward 10.0.0.4:8080@10.0.0.5",
        "the access code is in auth/access2.py",
        "a recovery code is sent by mail",
        "Credential manager: osxkeychain",
        "the unlock code path has two branches",
    ],
)
def test_references_names_and_ports_beside_a_cue_are_left_alone(text: str) -> None:
    assert redact(text) == Redacted(text, ())


def test_importing_compiles_nothing() -> None:
    """The rules cost nothing until a text needs them; the hook starts with this module loaded."""
    program = (
        "import re, sys; before = len(re._cache) if hasattr(re, '_cache') else 0\n"
        "from kept.text import compiled\nfrom kept.writing import redact\n"
        "from kept.writing.secrets import cues, shapes\n"
        "assert compiled.cache_info().currsize == 0\n"
        "assert shapes.vendor_tails.cache_info().currsize == 0\n"
        "assert cues._cue_words.cache_info().currsize == 0\n"
        "assert 're2' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": ":".join(sys.path)})


@pytest.mark.parametrize(
    "text",
    [
        "PASS: tests/test_login_2.py::test_token_3",
        "PASS: tests/unit/checkout2.test.ts",
        "Set-Cookie: theme=dark; Path=/",
        "Set-Cookie: lang=en-US",
        "The feature flag key checkout_v2_rollout is on",
        "feature flag key: ab12cd34ef56gh78",
        "alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima",
    ],
)
def test_results_of_tests_plain_cookies_and_flags_are_left_alone(text: str) -> None:
    beside = text.replace("alpha", "list of words and more of them\nalpha")
    assert redact(beside) == Redacted(beside, ())


def test_a_value_of_several_strings_is_redacted_as_a_whole() -> None:
    assert redact('password = "hunter2x" + "yz7Q9"').text == 'password = "[redacted:password]"'


def test_what_the_content_shows_to_be_a_secret_is_taken_out_of_every_other_field() -> None:
    """The word alone looks harmless; only the sentence says that it is a password."""
    secret = "Wombat4711"
    draft = Draft(
        content=f"The database password is {secret}",
        tags=("database", secret),
        files=(f"notes/{secret}.md",),
        topic=secret,
        title=f"About {secret}",
        data={"value": {"name": secret}},
    )
    safe = redact_draft(draft, email=True).draft
    assert secret not in repr(safe)
    assert safe.tags[0] == "database"
    assert safe.content == "The database password is [redacted:password]"
