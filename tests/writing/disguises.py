"""Secrets that are not in one piece or behind an English word: encoded, split, in columns, in other languages.

Beside `secret_corpus`, and generated like it: from a description of how people and tools write such things, without any
pattern of the rules. A sample may have several places where the secret could survive; `leaks` says which of its pieces
are still readable.
"""

import base64
import urllib.parse
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.writing.secret_corpus import ALNUM, SHAPES, Random, _b64, _pick

Split = Callable[[str, str], str]

VENDOR_SHAPES = [
    name for name in SHAPES if "url" not in name and "hook" not in name and "card" not in name and "hash" not in name
]


class Disguise(NamedTuple):
    """A text, the pieces of it that give the secret away, and the form it is written in."""

    text: str
    pieces: tuple[str, ...]
    form: str

    def leaks(self, redacted: str) -> bool:
        return any(piece in redacted for piece in self.pieces)


def _token(rng: Random) -> str:
    """A vendor's token on one line, in an alphabet that can be told from prose by its prefix."""
    while True:
        token = SHAPES[rng.choice(VENDOR_SHAPES)](rng)
        if 24 <= len(token) <= 160 and token.isascii() and not set(token) & set(" \n'\"\\/$:|{}"):
            return token


def _aws_secret(rng: Random) -> str:
    return _pick(rng, ALNUM + "/+", 40)


def _aws_id(rng: Random) -> str:
    return "AKIA" + _pick(rng, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)


# ---- columns ----

KEY_PAIRS = (
    "Access key ID,Secret access key\n{i},{s}\n",
    "User name,Access key ID,Secret access key\ndeploy,{i},{s}\n",
    "User Name,Password,Access key ID,Secret access key,Console login link\nci,,{i},{s},https://x.test/console\n",
    '"Access key ID","Secret access key"\n"{i}","{s}"',
    "\ufeffAccess key ID,Secret access key\r\n{i},{s}\r\n",
    "{i},{s}",
    "{i}\t{s}",
    "keys: {i} / {s}",
    "{i};{s}",
    "{i}:{s}",
    "aws: {i}\n{s}\n",
    "id | secret\n--- | ---\n{i} | {s}",
    "name;api key\nstaging;{s}\n",
    "service,client secret,owner\nbilling,{s},anna\n",
    "host\tdb password\nalpha\t{s}\n",
    "| service | API token |\n|---|---|\n| billing | {s} |",
)

# ---- manifests ----

MANIFESTS = (
    "users:\n- name: admin\n  user:\n    client-certificate-data: LS0tQ0VSVA==\n    client-key-data: {b}\n",
    "    client-key-data: {b}",
    '"user": {{"client-key-data": "{b}"}}',
    "apiVersion: v1\nkind: Secret\nmetadata:\n  name: app\nstringData:\n  url: {s}\n  other: {s2}\n",
    "kind: Secret\ntype: Opaque\nstringData:\n  dsn: {s}\n  salt: {s2}\nmetadata:\n  name: app\n",
    "kind: Secret\nmetadata: {{name: app}}\ndata:\n  first: {e}\n  second: {e2}\n",
    'apiVersion: v1\ndata:\n  cookie: {e}\n  salt: "{e2}"\nkind: Secret\nmetadata:\n  name: app\n',
    '{{"kind": "Secret", "stringData": {{"a": "{s}", "b": "{s2}"}}}}',
    '{{"apiVersion": "v1", "data": {{"a": "{e}", "b": "{e2}"}}, "kind": "Secret"}}',
    "stringData:\n  config.yaml: |\n    dsn: {s}\n    salt: {s2}\n",
)

# ---- encodings of a whole token ----


def _hex(text: str) -> str:
    return text.encode().hex()


def _percent(text: str) -> str:
    return "".join(f"%{ord(character):02X}" for character in text)


def _b64url(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


ENCODINGS: dict[str, Callable[[str], str]] = {
    "base64": _base64,
    "base64 of a pair": lambda token: _base64(f"deploy:{token}"),
    "base64 of json": lambda token: _base64(f'{{"auth": {{"token": "{token}"}}}}'),
    "base64 of an env file": lambda token: _base64(f"HOST=db\nTOKEN={token}\n"),
    "base64 for urls": _b64url,
    "hex": _hex,
    "hex in capitals": lambda token: _hex(token).upper(),
    "percent": _percent,
    "percent, signs only": lambda token: "".join(c if c.isalnum() else f"%{ord(c):02x}" for c in token),
    "quoted url": lambda token: urllib.parse.quote(f"token={token}", safe=""),
}
ENCODED_PLACES = (
    "The header was {e} at that time.",
    "value = '{e}'",
    "echo {e} | base64 -d",
    '{{"payload": "{e}"}}',
    "{e}",
    "  data: {e}",
    "GET /x?y={e}&page=2",
)

# ---- characters that are escaped one by one ----

ESCAPES: dict[str, Callable[[str], str]] = {
    "signs: Markdown": lambda sign: f"\\{sign}",
    "signs: Markdown in JSON": lambda sign: f"\\\\{sign}",
    "signs: JSON": lambda sign: f"\\u{ord(sign):04x}",
    "signs: JSON in JSON": lambda sign: f"\\\\u{ord(sign):04X}",
    "signs: byte": lambda sign: f"\\x{ord(sign):02x}",
    "signs: entity": lambda sign: f"&#{ord(sign)};",
    "signs: hexadecimal entity": lambda sign: f"&#x{ord(sign):X};",
    "all: JSON": lambda character: f"\\u{ord(character):04x}",
    "all: bytes": lambda character: f"\\x{ord(character):02X}",
    "all: entities": lambda character: f"&#{ord(character):03};",
    "all: hexadecimal entities": lambda character: f"&#x{ord(character):x};",
}
ESCAPED_PLACES = (
    "We push with {e} from CI.",
    "- token: {e}",
    '{{"text": "see {e}"}}',
    "<td>{e}</td>",
    "{e}",
    "| key | {e} |",
    "the value was `{e}` then",
)

# ---- a token in two or three pieces ----

SPLITS: dict[str, Split] = {
    "plus": lambda a, b: f'token = "{a}" + "{b}"',
    "plus, lines": lambda a, b: f"x = '{a}' +\n    '{b}'",
    "plus before, lines": lambda a, b: f"x = '{a}'\n    + '{b}'",
    "adjacent": lambda a, b: f'x = ("{a}"\n     "{b}")',
    "adjacent, one line": lambda a, b: f"x = '{a}' '{b}'",
    "dot": lambda a, b: f"$x = '{a}' . '{b}';",
    "ampersand": lambda a, b: f'x = "{a}" & "{b}"',
    "vb": lambda a, b: f'x = "{a}" & _\n    "{b}"',
    "concat": lambda a, b: f"x = concat('{a}', '{b}')",
    "sql": lambda a, b: f"select '{a}' || '{b}'",
    "join": lambda a, b: f'x = "".join(["{a}", "{b}"])',
    "backslash": lambda a, b: f"export X={a}\\\n{b}",
    "wrapped": lambda a, b: f"the output was\n{a}\n{b}\nand that was all",
    "wrapped, quoted mail": lambda a, b: f"> {a}\n> {b}\n> bye",
    "wrapped, indented": lambda a, b: f"   {a}\n   {b}\n",
    "wrapped, crlf": lambda a, b: f"{a}\r\n{b}\r\n",
    "escaped newline": lambda a, b: f'"out": "{a}\\n{b}"',
    "template": lambda a, b: f"x = `{a}` + `{b}`",
}

# ---- elements ----

ELEMENTS = (
    "<apiToken>\n    {s}\n</apiToken>",
    "<token>\n{s}\n</token>",
    "<clientSecret>\r\n\t{s}\r\n</clientSecret>",
    '<setting name="ApiKey">\n  <value>\n    {s}\n  </value>\n</setting>',
    '<secret id="db">\n  {s}\n</secret>',
    "<ns:accessKey>\n  {s}\n</ns:accessKey>",
    "<password>\n  <![CDATA[{s}]]>\n</password>",
    "<api_key><![CDATA[{s}]]></api_key>",
    "<SecretKey>\n\n  {s}\n\n</SecretKey>",
    "<auth-token>{s}\n</auth-token>",
)

# ---- clients of databases and hosts ----

COMMANDS = (
    "sqlcmd -S db -U sa -P {s} -Q 'select 1'",
    "bcp app.dbo.t out t.csv -U sa -P {s} -S db",
    "sqlplus app/{s}@db:1521/XE",
    "mysqldump -uroot -p{s} app > app.sql",
    "mysqladmin -u root -p{s} status",
    "mysql --user=root --password={s} app",
    "psql 'host=db user=app password={s} dbname=app'",
    "cqlsh db -u app -p {s}",
    "cypher-shell -u neo4j -p {s}",
    "influx -username admin -password {s}",
    "clickhouse-client --user app --password {s}",
    "mongosh --host db -u app -p {s}",
    "mongodump -u app -p {s}",
    "redis-cli -h db -a {s} ping",
    "redis-cli --pass {s}",
    "mosquitto_pub -h q -u dev -P {s} -t x -m y",
    "rabbitmqctl add_user app {s}",
    "rabbitmqctl change_password app {s}",
    "rabbitmqadmin -u app -p {s} list queues",
    "ldapsearch -x -D cn=admin -w {s} -b dc=test",
    "plink -ssh me@host -pw {s} uptime",
    "pscp -pw {s} a me@host:",
    "xfreerdp /v:host /u:me /p:{s}",
    "rdesktop -u me -p {s} host",
    "lftp -u me,{s} ftp.test",
    "lftp -e 'open -u me,{s} ftp.test'",
    "wget --user=me --password={s} https://x.test/a",
    "wget --http-password={s} https://x.test/a",
    "svn co --username me --password {s} https://x.test/r",
    "sshpass -p {s} ssh me@host",
    "sshpass -p{s} ssh me@host",
    "mc alias set store https://s3.test minio {s}",
    "wpa_passphrase home {s}",
    "nmcli dev wifi connect home password {s}",
    "docker login -u me -p {s} registry.test",
    "helm registry login -u me -p {s} registry.test",
    "kubectl create secret generic db --from-literal=x={s}",
    "snowsql -a acct -u me -p {s}",
    "evil-winrm -i host -u me -p {s}",
    "smbclient //host/share -U me%{s}",
    "mount -t cifs //h/s /m -o username=me,password={s}",
    "net use z: \\\\host\\share {s} /user:me",
    "cmdkey /add:host /user:me /pass:{s}",
    "schtasks /create /tn x /ru me /rp {s}",
    "unzip -P {s} a.zip",
    "7z x -p{s} a.7z",
    "unrar x -p{s} a.rar",
    "openssl enc -aes-256-cbc -k {s} -in a",
    "openssl rsa -in k.pem -passin pass:{s}",
    "gpg --batch --passphrase {s} -d a.gpg",
    "echo {s} | docker login -u me --password-stdin",
    "echo {s} | sudo -S apt update",
    "curl -u me:{s} https://x.test",
    "http -a me:{s} x.test",
    "kinit --password={s} me",
    "az login -u me -p {s}",
    "oc login -u me -p {s} https://x.test",
    "arangosh --server.password {s}",
    "vncpasswd -f <<< {s}",
    "ansible-playbook x.yml -e ansible_password={s}",
)

# ---- seed phrases: made-up words of the right length, as a wallet shows them ----

_SYLLABLES = "ban cor del fin gar hol jun kel lom mir nor pal qui ros sol tam vel wen yar zin".split()
SEED_FRAMES: tuple[Callable[[list[str]], str], ...] = (
    lambda words: "seed phrase: " + " ".join(words),
    lambda words: "Recovery phrase:\n" + "\n".join(f"{n}. {word}" for n, word in enumerate(words, 1)),
    lambda words: "my wallet words are " + " ".join(words),
    lambda words: "mnemonic = '" + " ".join(words) + "'",
    lambda words: 'MNEMONIC="' + " ".join(words) + '"',
    lambda words: "mnemonic: [" + ", ".join(f'"{word}"' for word in words) + "]",
    lambda words: "Secret Recovery Phrase\n\n" + " ".join(words),
    lambda words: "seed words: " + ", ".join(words),
    lambda words: "BIP39: " + " ".join(words),
    lambda words: "phrase de récupération : " + " ".join(words),
    lambda words: "frase semilla: " + " ".join(words),
    lambda words: "Seed-Phrase: " + " ".join(word.capitalize() for word in words),
    lambda words: "сид-фраза: " + " ".join(words),
    lambda words: " ".join(words),
    lambda words: "backup\n" + " ".join(words) + "\nkeep it safe",
)

# ---- other languages ----

FOREIGN = (
    # French
    "la clé API est {s}",
    "clé d'API : {s}",
    "la clé secrète : {s}",
    "le jeton d'accès est {s}",
    "mot de passe : {s}",
    "le code secret est {s}",
    "identifiants : admin / {s}",
    "le mot de passe de la base est {s}",
    # Spanish
    "la clave de API es {s}",
    "clave secreta: {s}",
    "la contraseña del servidor es {s}",
    "el token de acceso es {s}",
    "clave de acceso: {s}",
    "código de acceso: {s}",
    "credenciales: admin / {s}",
    "la llave privada es {s}",
    # Russian
    "пароль от базы: {s}",
    "ключ API: {s}",
    "секретный ключ: {s}",
    "API-ключ {s}",
    "токен доступа: {s}",
    "код доступа: {s}",
    "пароль — {s}",
    "мой пароль {s}",
    # Arabic
    "كلمة المرور: {s}",
    "كلمة السر هي {s}",
    "مفتاح API: {s}",
    "المفتاح السري: {s}",
    "رمز الوصول: {s}",
    "الرمز السري هو {s}",
    "توكن: {s}",
    "كلمة مرور الخادم {s}",
    # Hindi
    "पासवर्ड {s} है",
    "पासवर्ड: {s}",
    "एपीआई कुंजी: {s}",
    "API कुंजी {s} है",
    "गुप्त कुंजी: {s}",
    "टोकन: {s}",
    "कूटशब्द: {s}",
    "सर्वर का पासवर्ड {s} है",
    # Japanese
    "パスワードは{s}です",
    "パスワード：{s}",
    "APIキー：{s}",
    "APIキーは {s} です",
    "秘密鍵: {s}",
    "アクセストークンは{s}です",
    "暗証番号は{s}です",
    "認証キー：{s}",
    "合言葉は{s}",
)


def _parted(rng: Random, token: str, low: int = 12) -> tuple[str, str]:
    cut = rng.randint(min(low, len(token) // 2), len(token) - min(low, len(token) // 2))
    return token[:cut], token[cut:]


def _tail(piece: str) -> str:
    """The part of a piece that would help somebody; a prefix alone (`ghp_`) gives nothing away."""
    return piece[-10:]


def columns(rng: Random) -> Disguise:
    secret = _aws_secret(rng)
    return Disguise(rng.choice(KEY_PAIRS).format(i=_aws_id(rng), s=secret), (secret,), "columns")


def manifests(rng: Random) -> Disguise:
    first, second = (_pick(rng, ALNUM, rng.randint(12, 24)) for _ in "ab")
    encoded = _base64(first), _base64(second)
    material = base64.b64encode(b"-----BEGIN EC PRIVATE KEY-----\n" + _b64(rng, 90).encode()).decode()
    text = rng.choice(MANIFESTS)
    filled = text.format(s=first, s2=second, e=encoded[0], e2=encoded[1], b=material)
    pieces = (first, second) if "{s}" in text else encoded if "{e}" in text else (material[-40:],)
    return Disguise(filled, pieces, "manifests")


def encoded(rng: Random) -> Disguise:
    name, encode = rng.choice(list(ENCODINGS.items()))
    secret = encode(_token(rng))
    return Disguise(rng.choice(ENCODED_PLACES).format(e=secret), (secret[-24:],), name)


def escaped(rng: Random) -> Disguise:
    token = _token(rng)
    name, escape = rng.choice(list(ESCAPES.items()))
    if name.startswith("signs"):
        written = "".join(c if c.isalnum() else escape(c) for c in token)
    else:
        written = "".join(map(escape, token))
    return Disguise(rng.choice(ESCAPED_PLACES).format(e=written), (written[-12:],), name)


def split(rng: Random) -> Disguise:
    token = _token(rng)
    name, put = rng.choice(list(SPLITS.items()))
    first, second = _parted(rng, token)
    return Disguise(put(first, second), (_tail(first), _tail(second)), f"split by {name}")


def elements(rng: Random) -> Disguise:
    secret = _pick(rng, ALNUM, rng.randint(16, 40))
    return Disguise(rng.choice(ELEMENTS).format(s=secret), (secret,), "elements")


def commands(rng: Random) -> Disguise:
    secret = _pick(rng, ALNUM, rng.randint(8, 20))
    text = rng.choice(COMMANDS)
    return Disguise(text.format(s=secret), (secret,), text.split()[0])


def seeds(rng: Random) -> Disguise:
    words = ["".join(rng.sample(_SYLLABLES, 2))[: rng.randint(4, 8)] for _ in range(rng.choice((12, 15, 18, 24)))]
    return Disguise(rng.choice(SEED_FRAMES)(words), (" ".join(words[3:5]), f"{words[4]}\n", words[-1]), "seed phrases")


def foreign(rng: Random) -> Disguise:
    secret = _pick(rng, ALNUM, rng.randint(12, 24))
    text = rng.choice(FOREIGN)
    return Disguise(text.format(s=secret), (secret,), "foreign: " + text.format(s="…"))


FORMS: dict[str, Callable[[Random], Disguise]] = {
    form.__name__: form for form in (columns, manifests, encoded, escaped, split, elements, commands, seeds, foreign)
}


def disguised(form: str, seed: int, count: int = 400) -> Iterator[Disguise]:
    """Samples of one form."""
    rng = Random(seed)
    for _ in range(count):
        yield FORMS[form](rng)
