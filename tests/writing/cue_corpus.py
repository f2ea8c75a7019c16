"""Values behind a cue, and harmless lines that look alike, in six parts: to tune on, held out, fresh, last, and two more.

Generated, with a fixed seed. The parts share no class of values and no class of harmless lines. The first three have few
contexts and cue words in common; the forms of the last are put together from usual cues and links, so it is easier.
"held out" was written with the part to tune on and its misses were read when the rules stood; "fresh" was written before
those misses were read, and "last" when the rules had been mended for "fresh". "told" and "told, held out" have words
between the cue and its verb; their values look like secrets. They were written together, before the rules for them,
and the misses of the second were read when those rules stood. It imports nothing of Kept.
"""

# ruff: noqa: E501  (tables: one form or class a line)

import random
import string
from collections.abc import Callable, Iterator
from typing import NamedTuple

Random = random.Random
Maker = Callable[[Random], str]

TUNED, HELD_OUT, FRESH, LAST = "tuned", "held out", "fresh", "last"
TOLD, TOLD_HELD_OUT = "told", "told, held out"


class Sample(NamedTuple):
    """A text, the secret in it, the class of the secret and the form that announces it."""

    text: str
    secret: str
    value_class: str
    form: str


class Part(NamedTuple):
    """Forms by the sort of value they may hold, and makers of values."""

    forms: dict[str, tuple[str, ...]]
    values: dict[str, tuple[str, Maker]]  # class: the sort of value, its maker


def _pick(rng: Random, alphabet: str, low: int, high: int) -> str:
    return "".join(rng.choices(alphabet, k=rng.randint(low, high)))


def _with_digit(rng: Random, alphabet: str, low: int, high: int) -> str:
    """A random string that has both a letter and a digit, and ends with neither a point nor a comma."""
    while True:
        value = _pick(rng, alphabet, low, high)
        if (
            any(c.isdigit() for c in value)
            and any(c.isalpha() for c in value)
            and value[0].isalnum()
            and value[-1].isalnum()
        ):
            return value


def _joined(words: list[str], sign: str, low: int, high: int) -> Maker:
    return lambda rng: sign.join(rng.sample(words, rng.randint(low, high)))


def _humps(words: list[str], low: int, high: int) -> Maker:
    return lambda rng: "".join(word.capitalize() for word in rng.sample(words, rng.randint(low, high)))


LETTERS_AND_DIGITS = string.ascii_letters + string.digits

# ---- the part to tune on ----

WORDS_A = """correct horse battery staple velvet mango tractor piano walnut copper falcon breeze meadow lantern pepper
    saddle glacier thunder ribbon cactus marble violin badger orchid tundra anchor pretzel comet willow harbor""".split()
HUMAN_A = """Summer2031! hunter22 qwerty!9 Tr0mbone&7 letmein99 dragonfly7 S0nnenschein! b4n4n4 MyCat#12 pa55w0rt!
    Berlin#2031 iloveyou3 monkey.77 Zebra*Stripes sunflower! Geheim!77 R0sebud? blackbird_9""".split()

TUNED_PART = Part(
    forms={
        # any value without a blank
        "any": (
            "the password is {s}",
            "The staging password is {s}.",
            "the db passphrase is {s}, keep it safe",
            "my password is now {s} btw",
            "password: {s}",
            "Password: {s}",
            "pw: {s}",
            "secret: {s}",
            "client secret: {s}",
            "the client secret is {s}",
            "token: {s}",
            "the deploy token is {s}",
            "api_key: {s}",
            "api key: {s}",
            "the API key is {s}",
            "the admin password for grafana is {s}",
            "DB_PASSWORD={s}",
            "SMTP_PASS={s}",
            "API_TOKEN={s}",
            "export CLIENT_SECRET={s}",
            "ENV ADMIN_PASSWORD={s}",
            "db:\n  user: app\n  password: {s}\n  port: 5432",
            "auth:\n  api_key: {s}",
            '{{"user": "app", "password": "{s}"}}',
            '{{"client_secret": "{s}"}}',
            "deploy --password {s} --force",
            "deploy --token={s}",
            "psql 'host=db user=app password={s} dbname=app'",
            "Server=db;Uid=app;Password={s};Timeout=3",
            "X-Api-Key: {s}",
            "CREATE USER app WITH PASSWORD '{s}';",
            "run htpasswd -b .htpasswd bob {s} on the box",
            "htpasswd -b .htpasswd bob {s}",
            "das Passwort lautet {s}",
            "Passwort: {s}",
            "le mot de passe est {s}",
            "la contraseña es {s}",
            "a senha é {s}",
            "密码：{s}",
            "пароль: {s}",
            'password = "{s}"',
            "connect(user='app', password='{s}')",
        ),
        # quoted, so a blank may be in it
        "spaced": (
            'SMTP_PASS="{s}"',
            "deploy --password='{s}' --force",
            "gpg --passphrase '{s}' -d x.gpg",
            "host=db password='{s}' dbname=app",
            'the password is "{s}"',
            "password: '{s}'",
            '{{"passphrase": "{s}"}}',
            'export WIFI_PASSWORD="{s}"',
        ),
        # digits only: behind words that announce a number
        "number": (
            "the password is {s}",
            "password: {s}",
            "DB_PASSWORD={s}",
            "deploy --password {s} --force",
            '{{"password": "{s}"}}',
            "the passcode is {s}",
        ),
        "shape": (
            "ASANA_TOKEN={s}",
            "I used {s} for the import",
            "the Asana token is {s}",
            "curl -H 'Authorization: Bearer {s}' https://app.test",
        ),
    },
    values={
        "random, letters and digits": ("any", lambda rng: _with_digit(rng, LETTERS_AND_DIGITS, 12, 20)),
        "8 letters and digits": ("any", lambda rng: _with_digit(rng, LETTERS_AND_DIGITS, 8, 8)),
        "10 letters of both cases": ("any", lambda rng: _pick(rng, string.ascii_letters, 10, 10)),
        "10 small letters": ("any", lambda rng: _pick(rng, string.ascii_lowercase, 10, 10)),
        "human": ("any", lambda rng: rng.choice(HUMAN_A)),
        "hyphenated passphrase": ("any", _joined(WORDS_A, "-", 3, 5)),
        "words in mixed case": ("any", _humps(WORDS_A, 2, 3)),
        "quoted with blanks": ("spaced", lambda rng: f"{_pick(rng, string.ascii_lowercase, 1, 6)} {rng.choice(WORDS_A)} {_with_digit(rng, string.ascii_lowercase + string.digits, 2, 4)}"),
        "quoted words": ("spaced", _joined(WORDS_A, " ", 3, 5)),
        "digits": ("number", lambda rng: _pick(rng, string.digits, 8, 8)),
        "asana": ("shape", lambda rng: f"{rng.randint(1, 2)}/{_pick(rng, '123456789', 16, 16)}:{_pick(rng, '0123456789abcdef', 32, 32)}"),
    },
)  # fmt: skip

# ---- the part that is held out ----

WORDS_B = """purple donkey wagon quilt biscuit sailor pebble clarinet hammock juniper otter canyon mustard trumpet
    blizzard feather gondola turnip magnet parsley rocket squirrel teapot vulture yonder zipper acorn bonfire""".split()
HUMAN_B = """Winterz4uber! m0nk3ys r3dRum!! Sch4tzi. f00tball# KarlMarx1818 x1x2x3x4 N0tAgain? tomcat! w1ldcat_
    Pa$$ion7 Luna&Stella 99bottles BlueMoon7! jazz&blues G3orge!! el1zabeth Moin+Moin""".split()
FOREIGN = """Grüße-aus-Köln Überraschung7 señorita#4 naïveté2 Ελλάδα2031 Пельмени7 ёлка-палка Zażółć!3 çilek&nar
    Fußgänger9 crème-brûlée Šárka1977""".split()

HELD_OUT_PART = Part(
    forms={
        "any": (
            "fyi, our wifi password's {s}",
            "I set the passphrase to {s} yesterday",
            "new passcode: {s}",
            "the root passwd should be {s} from now on",
            "login: admin, password: {s}",
            "the webhook secret is {s}",
            "shared secret = {s}",
            "signing secret: {s}",
            "access token: {s}",
            "the refresh token is {s}",
            "bot token → {s}",
            "apikey: {s}",
            "encryption key: {s}",
            "the private API key for billing is {s}",
            "- **Password**: {s}",
            "MYSQL_ROOT_PASSWORD={s} docker compose up",
            "export GRAFANA_TOKEN='{s}'",
            "STRIPE_SECRET: {s}",
            "ARG NPM_TOKEN={s}",
            "ENV JWT_SECRET {s}",
            "    environment:\n      - REDIS_PASSWORD={s}",
            "redis:\n  auth:\n    password: '{s}'",
            '"secretKey" : "{s}",',
            "{{'api_token': '{s}'}}",
            "restic --password={s} backup /srv",
            "vault-cli --secret {s} --role app",
            "mycli --api-key '{s}' list",
            "amqp://app:{s}@mq.test:5672/",
            "jdbc:postgresql://db/app?user=app&password={s}",
            "Data Source=db;User ID=sa;Pwd={s}",
            "X-Auth-Token: {s}",
            "ALTER ROLE app PASSWORD '{s}';",
            "SET PASSWORD FOR 'app'@'%' = '{s}';",
            "curl -u admin:{s} https://internal.test/",
            "just run `htpasswd -nb bob {s}` and paste it",
            "spring.mail.password={s}",
            "<password>{s}</password>",
            "das Kennwort ist {s}",
            "mein Kennwort: {s}",
            "Mot de passe : {s}",
            "mi contraseña: {s}",
            "minha senha: {s}",
            "la password è {s}",
            "het wachtwoord is {s}",
            "パスワード: {s}",
            "пароль от почты — {s}",
            "const apiSecret = `{s}`;",
            'Client(token="{s}")',
        ),
        "spaced": (
            "DB_PASSWORD='{s}'",
            'mysql --password="{s}" app',
            'borg --passphrase="{s}" init',
            'user=app password="{s}" sslmode=require',
            "The vault password is '{s}'.",
            'secret: "{s}"',
            '"wifiPassword": "{s}"',
            "IDENTIFIED BY '{s}'",
            'set -x ADMIN_PASS "{s}"',
        ),
        "number": (
            "my pw is {s}",
            "Passwort: {s}",
            "ADMIN_PASSWORD={s}",
            "restic --password={s} backup /srv",
            "<password>{s}</password>",
        ),
        "shape": (
            "asana_pat: {s}",
            "it worked once I pasted {s}.",
            "PAT = '{s}'",
        ),
    },
    values={
        "random with symbols": ("any", lambda rng: _with_digit(rng, LETTERS_AND_DIGITS + "!#%*+=~?^_", 14, 22)),
        "base64": ("any", lambda rng: _with_digit(rng, LETTERS_AND_DIGITS + "+", 24, 32) + "=="),
        "hex": ("any", lambda rng: _with_digit(rng, "0123456789abcdef", 16, 16)),
        "12 small letters": ("any", lambda rng: _pick(rng, string.ascii_lowercase, 12, 12)),
        "9 capitals": ("any", lambda rng: _pick(rng, string.ascii_uppercase, 9, 9)),
        "6 letters and digits": ("any", lambda rng: _with_digit(rng, string.ascii_lowercase + string.digits, 6, 6)),
        "other human": ("any", lambda rng: rng.choice(HUMAN_B)),
        "passphrase with capitals": ("any", lambda rng: "-".join(word.capitalize() for word in rng.sample(WORDS_B, 4))),
        "passphrase with underscores": ("any", _joined(WORDS_B, "_", 4, 4)),
        "passphrase with points": ("any", _joined(WORDS_B, ".", 3, 4)),
        "passphrase and a number": ("any", lambda rng: "-".join(rng.sample(WORDS_B, 3)) + f"-{rng.randint(2, 99)}"),
        "small and capital words": ("any", lambda rng: "".join(rng.choice((str.upper, str.lower, str.capitalize))(word) for word in rng.sample(WORDS_B, 2)) + rng.choice(WORDS_B).capitalize()),
        "not ASCII": ("any", lambda rng: rng.choice(FOREIGN)),
        "quoted with signs": ("spaced", lambda rng: f"{rng.choice(WORDS_B).capitalize()} & {rng.choice(WORDS_B)}, {rng.randint(10, 99)}!"),
        "quoted short words": ("spaced", lambda rng: " ".join(_pick(rng, string.ascii_lowercase, 1, 3) for _ in range(4))),
        "9 digits": ("number", lambda rng: _pick(rng, string.digits, 9, 9)),
        "asana, new": ("shape", lambda rng: f"2/{_pick(rng, '123456789', 16, 16)}/{_pick(rng, '123456789', 16, 16)}:{_pick(rng, '0123456789abcdef', 32, 32)}"),
    },
)  # fmt: skip

# ---- the fresh part ----

WORDS_C = """lobster candle ginger monsoon plywood raccoon saffron trolley umbrella whisper almond boulder crayon
    dolphin ember flannel gravel heron igloo jasmine kettle lizard mitten nectar oyster puddle quartz rooster""".split()
HUMAN_C = """Fr3iburg? tiger!tiger L1verp00l oma&opa66 Spring.2032 n3verm1nd 4everyoung K4ffeetasse cheese+wine
    1Two3Four rockNroll! Gandalf_grey7 abc.def.9 Tuesday#3 iLoveRust9 m0therL0de""".split()

FRESH_PART = Part(
    forms={
        "any": (
            "btw the router password is {s}",
            "Our sudo password: {s}",
            "pwd={s}",
            "PW: {s}",
            "the keystore password for prod is {s}.",
            "you can log in with the password {s!r}",
            "consumer secret: {s}",
            "the OAuth client secret is `{s}`",
            "app secret={s}",
            "auth token is {s}",
            "personal access token: {s}",
            "The session token: {s}",
            "my api token is {s}",
            "License key: {s}",
            "the OpenAI API key is {s}",
            "access key = {s}",
            "POSTGRES_PASSWORD: {s}",
            "$env:ADMIN_PASSWORD = '{s}'",
            "set DB_PASS={s}",
            "ELASTIC_PASSWORD={s} ./run.sh",
            "RUN echo ok\nENV SMTP_PASSWORD={s}",
            "users:\n  - name: bob\n    password: {s}",
            "smtp:\n  pass: '{s}'",
            '{{"auth": {{"apiKey": "{s}"}}}}',
            '{{"login": "bob", "passwd": "{s}", "tls": true}}',
            "ansible-vault --vault-password={s} view x",
            "app login --secret={s}",
            "cli --passphrase {s} unlock",
            "mongodb://bob:{s}@db.test/admin",
            "Host=db;Username=app;Password={s}",
            "X-Vault-Token: {s}",
            "ALTER USER bob IDENTIFIED BY '{s}';",
            "curl --user bob:{s} https://internal.test/",
            "htpasswd -cbB /etc/nginx/.htpasswd bob {s}",
            "try htpasswd -b users.htpasswd bob {s}, then reload",
            "mail.smtp.password = {s}",
            '<property name="password" value="{s}"/>',
            "Das Passwort für den Server ist {s}",
            "Kennwort = {s}",
            "mon mot de passe: {s}",
            "la contraseña del wifi es {s}",
            "a senha do banco é {s}",
            "wachtwoord: {s}",
            "пароль {s}",
            "API_SECRET := {s}",
            "final String apiToken = \"{s}\";",
        ),
        "spaced": (
            "ADMIN_PASSWORD='{s}' ./setup",
            'cli --password "{s}" sync',
            "openssl --passphrase='{s}' x",
            "conninfo = host=db password='{s}' port=5432",
            'Her password was "{s}", I think',
            "passwd: '{s}'",
            '{{"keystorePassword":"{s}"}}',
        ),
        "number": (
            "the wifi password is {s}",
            "pwd={s}",
            "passcode: {s}",
            "cli --password {s} sync",
        ),
        "shape": ("token: {s}", "see {s} in the vault export", "{s}"),
    },
    values={
        "random, 9 characters": ("any", lambda rng: _with_digit(rng, LETTERS_AND_DIGITS, 9, 9)),
        "urlsafe, 32": ("any", lambda rng: _with_digit(rng, LETTERS_AND_DIGITS + "-_", 32, 32)),
        "14 letters of both cases": ("any", lambda rng: _pick(rng, string.ascii_letters, 14, 14)),
        "11 small letters": ("any", lambda rng: _pick(rng, string.ascii_lowercase, 11, 11)),
        "fresh human": ("any", lambda rng: rng.choice(HUMAN_C)),
        "three words and hyphens": ("any", _joined(WORDS_C, "-", 3, 3)),
        "six words and hyphens": ("any", _joined(WORDS_C, "-", 6, 6)),
        "words, hyphens, one capital": ("any", lambda rng: "-".join(rng.sample(WORDS_C, 3)).capitalize()),
        "camel case": ("any", lambda rng: rng.choice(WORDS_C) + _humps(WORDS_C, 2, 2)(rng)),
        "words, then a number": ("any", lambda rng: _humps(WORDS_C, 2, 2)(rng) + str(rng.randint(10, 9999))),
        "leet": ("any", lambda rng: rng.choice(WORDS_C).translate(str.maketrans("aeio", "4310")) + rng.choice("!?#") + rng.choice(WORDS_C)),
        "quoted words, one capital": ("spaced", lambda rng: " ".join(rng.sample(WORDS_C, 3)).capitalize()),
        "quoted, two words and a number": ("spaced", lambda rng: f"{rng.choice(WORDS_C)} {rng.choice(WORDS_C)} {rng.randint(1, 99)}"),
        "10 digits": ("number", lambda rng: _pick(rng, string.digits, 10, 10)),
        "asana, old": ("shape", lambda rng: f"0/{_pick(rng, '123456789', 14, 16)}:{_pick(rng, '0123456789abcdef', 32, 32)}"),
    },
)  # fmt: skip

# ---- the last part: cues, links and ends put together ----

WORDS_D = """barrel cobalt dagger easel fiddle goblet hazel ivory jigsaw kitten ladder mosaic nutmeg opal pigeon
    quiver rascal sardine temple urchin vortex wizard yogurt zebra apron bamboo cinder dune elbow fossil""".split()
HUMAN_D = """Kirsche#8 d3utsch1! Bonjour_77 L33tSpeak p1zzaT1me! Barca1899? aloha!! No1Knows m1n3craft Zwiebel.4
    qwertz123 Passat-B6 2Fast4U! hello_kitty8 Ananas&Co Schlaf7gut""".split()


def _composed() -> tuple[str, ...]:
    """Said, in files and on command lines: every cue of a list with two of the list's links."""
    rng = Random(4711)
    said = [
        (f"{opener}{cue}{link}{{s}}{end}")
        for cue in (
            "password", "admin passphrase", "mysql password", "NAS password", "passcode", "pw", "PIN password",
            "OAuth secret", "HMAC secret", "shared secret", "id token", "upload token", "registry token", "API token",
            "Datadog API key", "SendGrid api key", "private key passphrase", "root pwd",
        )
        for opener, link, end in rng.sample(
            [("the ", " is ", ""), ("the ", " is: ", " ok?"), ("", ": ", ""), ("my ", " is ", "."), ("new ", ": ", ", valid now"),
             ("(", ": ", ")"), ("* ", ": ", ""), ("> the ", " is ", " now"), ("Our ", " = ", ""), ("note: ", " is ", " for the demo")], 3)
    ]  # fmt: skip
    filed = [
        form.replace("NAME", name)
        for name in ("ROOT_PASSWORD", "SESSION_SECRET", "CI_TOKEN", "MAPS_API_KEY", "LDAP_BIND_PASSWORD")
        for form in rng.sample(
            ["NAME={s}", "export NAME={s}", 'NAME="{s}"', "NAME: {s}", "ENV NAME={s}", "      - NAME={s}", "set NAME={s}",
             'env["NAME"] = "{s}"', "docker run -e NAME={s} app", "NAME='{s}' make deploy"], 5)
    ]  # fmt: skip
    options = [
        form.replace("NAME", name)
        for name in ("password", "db-password", "client-secret", "auth-token", "api-key")
        for form in rng.sample(
            ["tool --NAME {s} run", "tool --NAME={s}", "tool --NAME '{s}' run", '["--NAME", "{s}"]'], 2
        )
    ]
    keys = [
        form.replace("NAME", name)
        for name in ("password", "dbPassword", "clientSecret", "access_token", "api-key")
        for form in rng.sample(['"NAME": "{s}"', "NAME: '{s}'", 'NAME = "{s}"', "NAME: {s}", "'NAME' => '{s}'"], 3)
    ]
    return (*said, *filed, *options, *keys)


LAST_PART = Part(
    forms={
        "any": _composed(),
        "spaced": (
            "ROOT_PASSWORD='{s}'", 'tool --db-password "{s}" run', '"dbPassword": "{s}"', "the NAS password is '{s}'",
            'dsn = "host=db password=\'{s}\' user=app"', "admin passphrase: '{s}'",
        ),
        "number": ("the NAS password is {s}", "ROOT_PASSWORD={s}", "tool --password {s} run"),
        "shape": ("I pasted {s} by mistake", "the upload token is {s}"),
    },
    values={
        "last human": ("any", lambda rng: rng.choice(HUMAN_D)),
        "four words and hyphens": ("any", _joined(WORDS_D, "-", 4, 4)),
        "two capitals": ("any", _humps(WORDS_D, 2, 2)),
        "13 small letters": ("any", lambda rng: _pick(rng, string.ascii_lowercase, 13, 13)),
        "8 letters of both cases": ("any", lambda rng: _pick(rng, string.ascii_letters, 8, 8)),
        "7 letters and digits": ("any", lambda rng: _with_digit(rng, LETTERS_AND_DIGITS, 7, 7)),
        "40 letters and digits": ("any", lambda rng: _with_digit(rng, LETTERS_AND_DIGITS, 40, 40)),
        "words and underscores": ("any", _joined(WORDS_D, "_", 3, 4)),
        "last quoted words": ("spaced", _joined(WORDS_D, " ", 4, 4)),
        "7 digits": ("number", lambda rng: _pick(rng, string.digits, 7, 7)),
        "asana, any": ("shape", lambda rng: f"1/{_pick(rng, '123456789', 13, 16)}:{_pick(rng, '0123456789abcdef', 32, 32)}"),
    },
)  # fmt: skip

# ---- words between the cue and its verb ----

HUMAN_E = (
    """Gr4nite!7 Tr0wel&33 Oktober2031! p1ckle#jar W1nd0w$eat Lisb0a_88 Quartz!2032 h0tCh0c99 B1rne?Apfel""".split()
)
HUMAN_F = (
    """Kn0blauch!5 T3apot&92 Januar2034? m0ss#stone C4st1e$hill Porto_1893 Feather!77 g1ngerBr3ad Pf1ff!Karte""".split()
)


def _crossed(seed: int, cues: str, gaps: str, links: str) -> tuple[str, ...]:
    """Every cue with three gaps, each with another link."""
    rng = Random(seed)
    return tuple(
        f"{cue} {gap}{rng.choice(links.splitlines())}"
        for cue in cues.split("; ")
        for gap in rng.sample(gaps.split("; "), 3)
    )


TOLD_PART = Part(
    forms={
        "any": (
            *_crossed(
                61,
                "the password; our shared secret; the API key; the access token; The passphrase; the client secret; "
                "the staging password; the wifi key; the refresh token; the encryption key",
                "between the two services; Mara gave me; everyone here shares; since Monday; until the migration; "
                "both teams know; Jonas wrote down; after yesterday's rotation; before Kim left; nobody changed",
                " is {s}\n was {s}.\n is now {s}\n: {s}\n is `{s}`\n is {s}, keep it safe\n was still {s} on Friday",
            ),
            "the password changed from {s} to something else",
            "We rotated the API key from {s} to another one.",
            "the secret was changed from {s} to a longer one",
            "switched the passphrase from {s} to a new one",
            "das Passwort zwischen den Diensten ist {s}",
            "das Passwort seit Montag: {s}",
            "das Kennwort, das Mara mir gab, lautet {s}",
            "le mot de passe entre les deux services est {s}",
            "la contraseña entre los dos servicios es {s}",
            "пароль между сервисами: {s}",
            "Passwort geändert von {s} auf ein anderes",
        ),
    },
    values={
        "told human": ("any", lambda rng: rng.choice(HUMAN_E)),
        "told 12 letters and digits": ("any", lambda rng: _with_digit(rng, LETTERS_AND_DIGITS, 12, 12)),
        "told 15 with signs": ("any", lambda rng: _with_digit(rng, LETTERS_AND_DIGITS + "-_+", 15, 15)),
        "told 32 hex": ("any", lambda rng: _with_digit(rng, "0123456789abcdef", 32, 32)),
        "told 24 letters of both cases": ("any", lambda rng: _pick(rng, string.ascii_letters, 24, 24)),
    },
)
TOLD_HELD_OUT_PART = Part(
    forms={
        "any": (
            *_crossed(
                67,
                "the admin passcode; my signing key; the deploy token; the webhook secret; Our root password; "
                "the master key; the router password; the bot token; the pre-shared key; the database credentials password",
                "shared among all interns; Priya mailed around; under the old contract; people type downstairs; "
                "across both regions; as of last Friday; beneath the keyboard; Tom's script expects; over there; "
                "Ops handed out",
                " is {s}\n was {s}, sadly\n equals {s}\n: '{s}'\n is still {s}!\n is \"{s}\".\n is {s} for now\n = {s}",
            ),
            "the token has moved from {s} to a fresh one",
            "Password rotated from {s} to something longer",
            "they switched the master password from {s} to another one",
            "das Token seit der Umstellung lautet {s}",
            "das Passwort unter der Tastatur war {s}",
            "le mot de passe depuis lundi est {s}",
            "la contraseña desde ayer es {s}",
            "la password tra i due servizi è {s}",
            "пароль от базы данных {s}",
            "пароль от роутера {s}",
        ),
    },
    values={
        "unheard human": ("any", lambda rng: rng.choice(HUMAN_F)),
        "unheard 10 letters and digits": ("any", lambda rng: _with_digit(rng, LETTERS_AND_DIGITS, 10, 10)),
        "unheard 18 with signs": ("any", lambda rng: _with_digit(rng, LETTERS_AND_DIGITS + "#%+-_", 18, 18)),
        "unheard 40 hex": ("any", lambda rng: _with_digit(rng, "0123456789abcdef", 40, 40)),
        "unheard 20 capitals and digits": ("any", lambda rng: _with_digit(rng, string.ascii_uppercase + string.digits, 20, 20)),
    },
)  # fmt: skip

PARTS = {
    TUNED: TUNED_PART,
    HELD_OUT: HELD_OUT_PART,
    FRESH: FRESH_PART,
    LAST: LAST_PART,
    TOLD: TOLD_PART,
    TOLD_HELD_OUT: TOLD_HELD_OUT_PART,
}


def cued(part: str, seed: int, per_form: int = 3) -> Iterator[Sample]:
    """Every form of the part with values of every class that it may hold."""
    rng = Random(seed)
    forms, values = PARTS[part]
    for name, (sort, make) in values.items():
        for form in forms[sort]:
            for _ in range(per_form):
                secret = make(rng)
                yield Sample(form.format(s=secret), secret, name, form)


# ---- harmless lines ----

HARMLESS: dict[str, dict[str, str]] = {
    TUNED: {
        "types": """
            password: str
            def login(user: str, password: SecretStr, token: str | None = None) -> Session:
            token: Optional[str]
            apiKey?: string;
            private String password;
            secret: bytes
            password: Mapped[str]
            token: AccessToken
            client_secret: SecretValue
            api_key: Annotated[str, Field(min_length=1)]
            passphrase: Buffer
            let token: &str
            """,
        "fetched by code": """
            token = get_token()
            password=os.environ["X"]
            password = getpass.getpass()
            secret = config.secret
            api_key=settings.api_key,
            token=token
            password=password, user=user)
            const token = await fetchToken(user);
            self.password = password
            client = Client(token=access_token, timeout=3)
            let secret = env::var("SECRET")?;
            token := r.Header.Get("X-Token")
            """,
        "templates": """
            secret: ${SECRET}
            --password <password>
            password: {{ vault_password }}
            DB_PASSWORD=$DB_PASSWORD
            token: %(token)s
            api_key: <your-key>
            token: ${{ secrets.NPM_TOKEN }}
            password: !vault |
            --token "$TOKEN"
            password=%DB_PASSWORD%
            """,
        "placeholders": """
            api_key=None
            password: ********
            token: "your-token-here"
            secret=changeme
            password: xxxxxxxx
            API_KEY=REPLACE_ME
            token: null
            password: ""
            client_secret: TODO
            password: <redacted>
            """,
        "states": """
            the password is stored hashed
            the token is invalid
            the token is expired
            password is required
            the secret is missing from the request
            The API key is optional here.
            the password is wrong
            the token is refreshed every hour
            password: required
            token: optional
            the passphrase is never written to disk
            the client secret is only shown once
            """,
        "design tokens": """
            token: color-primary-500
            spacing token is md
            the token is spacing-lg
            token: font-size-sm
            use the token radius-full for pills
            tokens: color.background.subtle
            the design token is surface-raised
            token: --color-accent
            The color token is brand-blue
            token: shadow-md
            """,
        "keys of caches and objects": """
            Redis key cache:user:42
            The session key is tenant:user:session
            the S3 key is uploads/2031/report.pdf
            S3 key: backups/db/latest.dump
            the cache key is user:42:profile
            key: invoices/2031/04/summary.csv
            the access key is tenant:region:name
            redis key: rate:limit:login
            session key: user_id
            object key = images/logo.png
            """,
        "limits and counts": """
            passwords: minimum 12 characters
            tokens: 4096
            max_tokens=4096
            token: 15 minutes
            the token is 32 bytes long
            passwords: 8 to 64 characters
            token budget: 1500
            the password is 12 characters long
            API key: 40 characters
            tokens = 128_000
            """,
        "cookies and CSRF": """
            cookie: SameSite=Strict
            cookie: HttpOnly; Secure
            the CSRF token is compared with the cookie
            CSRF token: double submit
            csrf_token: hidden field
            Set-Cookie: theme=dark; Path=/
            the CSRF token is sent as X-CSRF-Token
            cookie: Path=/; Max-Age=3600
            csrf token = per session
            the session token is in an HttpOnly cookie
            """,
        "manifests": """
            secret: type Opaque
            kind: Secret
            secretName: app-credentials
            secretKeyRef: name: db-secret, key: password
            imagePullSecrets: regcred
            secret:\\n  secretName: tls-cert
            secret: name: app-db
            type: kubernetes.io/tls
            apiVersion: v1, kind: Secret, type: Opaque
            secrets: inherit
            """,
        "idioms": """
            the secret is to keep it small
            The secret is patience.
            the secret to speed is caching
            the key is to test early
            the secret is that nothing is copied
            the token gesture was noticed
            the key insight is simple
            an open secret: nobody reads the log
            the secret of the cache is locality
            the key takeaway is to measure
            """,
        "documented examples": """
            AKIAIOSFODNN7EXAMPLE
            aws_access_key_id = AKIAIOSFODNN7EXAMPLE
            aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
            the key id is AKIAI44QH8DHBEXAMPLE
            password: example
            token: example-token
            secret: my-secret-example
            API_KEY=test
            password=secret
            password: password
            """,
    },
    HELD_OUT: {
        "states in other languages": """
            das Passwort ist abgelaufen
            das Passwort ist verschlüsselt gespeichert
            das Token ist ungültig
            le mot de passe est trop court
            le jeton est expiré
            la contraseña es demasiado corta
            la contraseña está cifrada
            a senha está errada
            het wachtwoord is verlopen
            la password è scaduta
            Passwort: erforderlich
            mot de passe : obligatoire
            """,
        "lexers and models": """
            the next token is a comma
            token: IDENT
            token: '}'
            the stop token is <|endoftext|>
            if token == "else":
            token is NUMBER
            the last token is dropped
            a token is about four letters
            token: whitespace
            case token.EOF:
            """,
        "labels": """
            Password: forgot it?
            Enter password:
            Confirm password: [ ]
            label="Password"
            Password (again):
            placeholder="Password"
            <label>API key</label>
            Password: Show
            Token: Copy
            Secret: Regenerate
            """,
        "errors": """
            authentication failed: password expired
            error: token: unexpected end of input
            secret: not found
            api_key: field required
            password: This field may not be blank.
            token: signature verification failed
            secret "db-creds" not found
            invalid token: missing audience
            passphrase: bad decrypt
            api key: permission denied
            """,
        "where it is kept": """
            password: see 1Password
            the password is in Vault under kv/app/db
            token: from the keychain
            credentials: ~/.aws/credentials
            the secret is mounted at /run/secrets/db
            secret: arn:aws:secretsmanager:eu-west-1:1:secret:app
            the API key is in the team vault
            password: stored in Keychain
            token: ~/.config/gh/hosts.yml
            api_key: env:OPENAI_API_KEY
            """,
        "tables of databases": """
            password varchar(255) not null
            password TEXT NOT NULL,
            ALTER TABLE users ADD COLUMN api_key text
            token uuid primary key
            secret bytea
            password_digest: string
            t.string :password, null: false
            password = models.CharField(max_length=128)
            token CHAR(36) UNIQUE
            key VARCHAR PRIMARY KEY, value TEXT
            """,
        "protocols": """
            token: Bearer
            Authorization: Bearer <token>
            "token_type": "bearer"
            grant_type=password&scope=read
            response_type=token
            WWW-Authenticate: Basic realm="kept"
            token_endpoint_auth_method: client_secret_post
            the token is sent in the Authorization header
            subject_token_type=urn:ietf:params:oauth:token-type:jwt
            auth: none
            """,
        "switches": """
            password: false
            requirepass: yes
            PasswordAuthentication no
            token: enabled
            secret: true
            api_key: disabled
            password: off
            --password-prompt always
            token_rotation=daily
            passwordless: on
            """,
        "names": """
            the API key is called STRIPE_KEY
            the secret is named db-prod
            the token is a JWT
            the token is called access_token
            the password variable is DB_PASSWORD
            the secret is called app-db-credentials
            we name the token deploy_token
            the key is named github-actions
            the secret's name is payments-webhook
            the parameter is token
            """,
        "other keys": """
            primary key: id
            the sort key is created_at
            partition key: customer_id
            foreign key: order_id
            i18n key: checkout.title
            hotkey: ctrl+k
            translation key is nav.home.title
            key: value pairs
            the dictionary key is lowercase
            the public key is ssh-ed25519
            """,
        "how to use commands": """
            mysql -p prompts for it
            use --password-stdin
            curl -u user asks for the password
            htpasswd -b takes the password on the command line
            docker login -u me --password-stdin
            pass --token to authenticate
            --password PASSWORD   the password of the user
            --token TEXT  API token
            -p, --password string   Password
            --api-key KEY   key for the API
            """,
        "policies": """
            password: at least one digit
            Passwords: rotate every 90 days
            token: valid for 15 minutes
            secret: never in git
            API key: one per customer
            passwords are salted and hashed
            tokens: short-lived and scoped
            secrets: rotated quarterly
            password rules: no repeats
            token lifetime: one hour
            """,
    },
    FRESH: {
        "plans": """
            password: move it to the vault
            token: ask Maria
            secret: needs rotation
            API key: still open
            the password is next on the list
            token: waiting for approval
            the secret is due for rotation
            API key: see ticket OPS-311
            passphrase: decide later
            password: same as staging
            """,
        "formats of values": """
            the token is base64url encoded
            the API key is prefixed with the region
            the secret is 256 bits
            the password is at most 72 bytes
            token: opaque string
            the key is hex encoded
            the token is a random UUID
            secret: base64
            the passphrase is UTF-8
            API key: alphanumeric
            """,
        "web frameworks": """
            app.config["SECRET_KEY"] = os.urandom(32)
            password = forms.CharField(widget=forms.PasswordInput)
            @Input() token: TokenResponse;
            token: z.string().min(1),
            password: Joi.string().required(),
            api_key: str = Depends(get_api_key)
            secret: process.env.SESSION_SECRET,
            const { token } = useAuth();
            token={session?.token}
            password: data.password
            """,
        "infrastructure": """
            password = random_password.db.result
            token = data.aws_eks_cluster_auth.this.token
            secret_id = aws_secretsmanager_secret.app.id
            password: "{{ lookup('env', 'DB_PASSWORD') }}"
            POSTGRES_PASSWORD_FILE: /run/secrets/pg
            token: !Ref GitHubToken
            client_secret = var.client_secret
            secrets:\n  - source: db_password
            --set-file token=./token.txt
            password: valueFrom
            """,
        "logs": """
            WARN token expired, refreshing
            INFO password changed for user 42
            DEBUG token cache hit ratio 0.93
            ERROR secret rotation failed after 3 attempts
            auth: user=bob result=denied
            token refreshed in 120 ms
            session key renegotiated
            password check took 230ms
            login failed: bad credentials
            key exchange: curve25519
            """,
        "changelogs": """
            Add --token option to the login command
            Fix password reset link in e-mails
            Rename the secret to DB_SECRET
            Deprecate api_key in favour of token
            Mask passwords in logs
            Token: support JWT and PASETO
            Passwords: switch from bcrypt to argon2id
            Drop the legacy token format
            Secrets: read from AWS
            Document the API key header
            """,
        "questions": """
            what is the token for?
            is the password encrypted?
            where is the API key stored?
            who knows the admin password?
            does the token expire?
            which secret is used here?
            how long is the password?
            is the secret rotated?
            can the token be revoked?
            why is the key public?
            """,
        "other tokens and secrets": """
            the ERC-20 token is called Wombat
            the token is burned after use
            an open secret in the team
            the secret ingredient is lemon
            the secret sauce is the index
            the key player is the scheduler
            the password manager is Bitwarden
            token ring networks
            the key signature is D major
            the passkey is bound to the device
            """,
        "tests": """
            assert response.json()["token"] is None
            expect(token).toBeDefined()
            mock_token = Mock()
            password=faker.password()
            token = "test-token"
            secret="dummy"
            api_key="fake-api-key"
            password: "test"
            token = "<token>"
            client.login(username="test", password=password)
            """,
        "other notes": """
            the password field is named pass_field
            the token lives in memory only
            the API key goes into the header
            passwords live in Vault
            the key is derived with HKDF
            the secret comes from the operator
            the token claims are sub and exp
            the passphrase prompt is hidden
            the CSRF token changes on login
            the credentials come from the instance role
            """,
    },
    LAST: {
        "said of a password": """
            the password is too easy to guess
            the password is checked against a list
            the password is the same everywhere
            the password is sent over TLS
            the password is case sensitive
            the password is not ours to choose
            the password is plaintext in the old dump
            the password is set by the installer
            the password is printed once
            the password is up to the user
            """,
        "said of a token": """
            the token is attached to the request
            the token is scoped to one repo
            the token is verified by the gateway
            the token is worthless after logout
            the token is cached for an hour
            the token is server side
            the token is proof of possession
            the token is user facing
            the token is single use
            the token is signed with RS256
            """,
        "said of a secret": """
            the secret is shared by both services
            the secret is versioned
            the secret is mounted read-only
            the secret is synced from Vault
            the secret is per environment
            the secret is out
            the secret is good tests
            the secret is injected at runtime
            the secret is stored outside the repo
            the secret is encrypted with KMS
            """,
        "said of an API key": """
            the API key is restricted to our domain
            the API key is billed per request
            the API key is passed as a header
            the API key is tied to a project
            the API key is free for students
            the API key is read from the environment
            the API key is checked in middleware
            the API key is visible in the dashboard
            the API key is rate limited
            the API key is shown once
            """,
        "after a colon": """
            password: prompt the user
            password: min 12, max 64
            token: lives in localStorage
            tokens: input and output
            secret: rotated by Terraform
            API key: header or query
            password: hashed, never logged
            token: checked on every request
            secrets: sealed with kubeseal
            API keys: listed in settings
            """,
        "code again": """
            token, err := jwt.Parse(raw, keyFunc)
            if (!token) throw new Error("no token");
            password VARCHAR2(64),
            let password = prompt("Password")
            token: token.trim(),
            secret := os.Getenv("APP_SECRET")
            passwd = pwd.getpwnam(user)
            const apiKey = useRuntimeConfig().apiKey
            this.token = token ?? null;
            return {"token": token, "user": user}
            """,
        "files again": """
            password: ${{ secrets.PASSWORD }}
            token: ((github-token))
            api_key: <%= ENV["API_KEY"] %>
            password: "{{vault_pw}}"
            client_secret: @@CLIENT_SECRET@@
            secret: file:///run/secret
            TOKEN=$(cat token.txt)
            PASSWORD=`pass show db`
            token: "#{token}"
            API_KEY=__API_KEY__
            """,
        "notes in other languages": """
            das Passwort ist im Tresor
            das Passwort ist zu kurz
            der Schlüssel ist öffentlich
            Passwort: siehe Wiki
            le mot de passe est dans le coffre
            le mot de passe est haché
            la contraseña es de un solo uso
            la contraseña es secreta
            a senha é muito curta
            a senha é gerada
            """,
        "keys again": """
            the Redis key is session:{id}
            memcached key user:7:cart
            the Kafka key is the order number
            S3 key: exports/2031-04/users.parquet
            the sort key is timestamp
            shard key: tenant
            the lookup key is email
            the JSON key is items
            api key id: 17
            the map key is its hash
            """,
        "design again": """
            token: size-400
            the token is radius-sm
            tokens: spacing-2, spacing-4
            the color token is text-muted
            token: border-default
            motion token: easing-out
            the font token is heading-xl
            token: z-index-modal
            token: colors.gray.900
            the token is --shadow-lg
            """,
    },
    TOLD: {
        "told about": """
            the token between the gateway and the service is a JWT
            the shared secret between both services is rotated weekly by cron2
            the password Mara forgot is being reset
            the password since version 2.3: optional
            the API key everyone shares is gone
            the token the server returns is base64url
            the secret between the lines is that it works
            the password users choose is hashed with argon2id
            the token after the third retry is revoked
            the key people forget is that locks are per tenant
            the password changed from optional to required
            we moved the secret from Vault to 1Password
            the token format changed from opaque to JWT
            the password policy changed from 8 to 12 characters
            we rotated the token from a cron job to a lambda
            the access token moved from the header to a cookie in v2.1.0
            """,
        "told ids": """
            the token was rejected, request id: 4bf92f3577b34da6a3ce929d0e0e4736
            the password check broke and the commit is 3f2a9c1d8e7b6a5f4c3d2e1f0a9b8c7d6e5f4a3b
            the secret was leaked in commit: 3f2a9c1d8e7b
            the token test runs against build 2031-07-04
            the password reset ticket is OPS-4711
            the secret lives next door, its version is 1a2b3c4d5e
            the token bug since Monday: see JIRA-1234
            the password page loads slowly; the trace id is 4bf92f3577b34da6a3ce929d0e0e4736
            the API key Mara uses was created 2031-07-04T10:00:00Z
            the secret everyone mounts has the digest sha256:9f86d081884c7d65
            """,
        "places": """
            the wifi password is on the whiteboard
            The admin password is on the fridge.
            the password is with Anna
            the passphrase was on Jonas' desk
            Secret: web-tls
            Credential helper: osxkeychain
            credential helper: manager-core
            """,
    },
    TOLD_HELD_OUT: {
        "unheard about": """
            the token beneath the header is parsed as UTF-8
            the secret among all of these is patience
            the password Tom expects is at least 14 characters long
            the signing key across both regions is managed by KMS
            the deploy token under the old contract was read-only
            my password as of last Friday is expired
            the master key over there is stored in an HSM
            the webhook secret Ops handed out was revoked on 2031-02-03
            the token has moved from localStorage to an HttpOnly cookie
            the passphrase prompt went from stderr to stdout in 3.11
            the key moved from us-east-1 to eu-west-1
            the password length went from 12 to 16
            the credentials switched from basic to OAuth2
            das Passwort unter der Tastatur ist ein Witz
            le mot de passe depuis lundi est obligatoire
            the API key without quotes is parsed as int32
            """,
        "unheard ids": """
            the token service crashed, pod name: web-7d4b9c6f5-x2x9z
            the secret broke the build; revision is 8e7b6a5f4c3d
            the password migration ran as job: 20310704_add_users
            the token parser regressed and the fix is in PR #4711
            the key rotation finished, run id is 550e8400-e29b-41d4-a716-446655440000
            the password column since migration 0042: nullable
            the token cache hit ratio yesterday was 97.4%
            the API key page at docs is https://docs.example.com/v2/keys
            the secret volume under the pod is /run/secrets/app2
            the password form across all locales uses i18n key auth.v2.title
            """,
        "unheard places": """
            the router password is on the sticker
            the passcode was on the door
            the token is with Priya
            Secret: ingress-tls
            Secret: registry-ssl
            Token helper: libsecret
            Password helper: pinentry
            """,
    },
}


def harmless(part: str) -> Iterator[tuple[str, str]]:
    """The harmless lines of the part, each with its class."""
    for name, lines in HARMLESS[part].items():
        for line in lines.strip().splitlines():
            yield name, line.strip().replace("\\n", "\n")
