"""A made-up corpus for redaction: secrets in the places where people leave them, and lines that only look alike.

Generated from its own description of what keys look like. It imports nothing of Kept and shares no pattern with the
rules; the two may meet only in the published facts (that a GitHub token begins with `ghp_`).

`HELD_OUT` names ten key shapes that no rule was tuned on; their figures are reported apart.
"""

import base64
import random
import string
import sysconfig
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

DIGITS = string.digits
LOWER = string.ascii_lowercase
UPPER = string.ascii_uppercase
ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "-_"
HEX = "0123456789abcdef"
BASE32 = UPPER + "234567"
SLACK_HOOKS = "https://hooks.slack.com/services"

Random = random.Random
Shape = Callable[[Random], str]


class Sample(NamedTuple):
    """A text, the secret in it, the key shape and the place it was put in."""

    text: str
    secret: str
    shape: str
    place: str


def _pick(rng: Random, alphabet: str, length: int) -> str:
    """A random string that begins and ends with a letter or digit, with at least two digits if it can have some."""
    inner = [rng.choice(alphabet) for _ in range(length)]
    plain = [c for c in alphabet if c.isalnum()]
    inner[0], inner[-1] = rng.choice(plain), rng.choice(plain)
    if length >= 8 and any(c.isdigit() for c in alphabet):
        for place in rng.sample(range(1, length - 1), 2):
            inner[place] = rng.choice([c for c in alphabet if c.isdigit()])
    return "".join(inner)


def _after(prefix: str, alphabet: str, low: int, high: int | None = None) -> Shape:
    return lambda rng: prefix + _pick(rng, alphabet, rng.randint(low, high or low))


def _uuid(rng: Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _b64(rng: Random, length: int) -> str:
    return base64.b64encode(rng.randbytes(length)).decode()


def _jwt(rng: Random) -> str:
    def part(raw: bytes) -> str:
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    claims = f'{{"sub":"{rng.randint(10**8, 10**9)}","iat":{rng.randint(1600000000, 1900000000)}}}'
    return ".".join(map(part, (b'{"alg":"HS256","typ":"JWT"}', claims.encode(), rng.randbytes(32))))


def _slack(rng: Random) -> str:
    return f"xoxb-{_pick(rng, DIGITS, 12)}-{_pick(rng, DIGITS, 13)}-{_pick(rng, ALNUM, 24)}"


def _slack_id(rng: Random, letter: str) -> str:
    return letter + _pick(rng, UPPER + DIGITS, 10)


def _discord(rng: Random) -> str:
    user = base64.b64encode(str(rng.randint(3 * 10**17, 9 * 10**17)).encode()).decode().rstrip("=")
    return f"{user}.{_pick(rng, ALNUM, 6)}.{_pick(rng, URLSAFE, 38)}"


# Key shapes that can be known by themselves, without a word before them.
SHAPES: dict[str, Shape] = {
    "aws access key": _after("AKIA", BASE32, 16),
    "aws session key": _after("ASIA", BASE32, 16),
    "google api key": _after("AIzaSy", URLSAFE, 33),
    "google oauth secret": _after("GOCSPX-", URLSAFE, 28),
    "google access token": _after("ya29.a0", URLSAFE, 140, 200),
    "google refresh token": _after("1//0g", URLSAFE, 95, 100),
    "github classic": _after("ghp_", ALNUM, 36),
    "github oauth": _after("gho_", ALNUM, 36),
    "github user-to-server": _after("ghu_", ALNUM, 36),
    "github server-to-server": _after("ghs_", ALNUM, 36),
    "github refresh": _after("ghr_", ALNUM, 36, 76),
    "github fine-grained": lambda rng: f"github_pat_{_pick(rng, ALNUM, 22)}_{_pick(rng, ALNUM, 59)}",
    "gitlab": _after("glpat-", URLSAFE, 20),
    "gitlab runner": _after("glrt-", URLSAFE, 20),
    "bitbucket app password": _after("ATBB", ALNUM, 32),
    "atlassian": lambda rng: f"ATATT3xFfGF0{_pick(rng, URLSAFE, 170)}={_pick(rng, HEX.upper(), 8)}",
    "slack bot": _slack,
    "slack app": lambda rng: f"xapp-1-A{_pick(rng, UPPER + DIGITS, 10)}-{_pick(rng, DIGITS, 13)}-{_pick(rng, HEX, 64)}",
    "slack webhook": lambda rng: f"{SLACK_HOOKS}/{_slack_id(rng, 'T')}/{_slack_id(rng, 'B')}/{_pick(rng, ALNUM, 24)}",
    "stripe secret": _after("sk_live_", ALNUM, 24, 99),
    "stripe restricted": _after("rk_live_", ALNUM, 24, 99),
    "stripe webhook": _after("whsec_", ALNUM, 32),
    "twilio api key": _after("SK", HEX, 32),
    "sendgrid": lambda rng: f"SG.{_pick(rng, URLSAFE, 22)}.{_pick(rng, URLSAFE, 43)}",
    "mailgun": _after("key-", HEX, 32),
    "mailchimp": lambda rng: f"{_pick(rng, HEX, 32)}-us{rng.randint(1, 21)}",
    "openai legacy": lambda rng: f"sk-{_pick(rng, ALNUM, 20)}T3BlbkFJ{_pick(rng, ALNUM, 20)}",
    "openai project": lambda rng: f"sk-proj-{_pick(rng, URLSAFE, 74)}T3BlbkFJ{_pick(rng, URLSAFE, 74)}",
    "anthropic": lambda rng: f"sk-ant-api03-{_pick(rng, URLSAFE, 93)}AA",
    "huggingface": _after("hf_", string.ascii_letters, 34),
    "npm": _after("npm_", ALNUM, 36),
    "pypi": lambda rng: f"pypi-AgEIcHlwaS5vcmc{_pick(rng, URLSAFE, 150)}",
    "docker hub": _after("dckr_pat_", URLSAFE, 27),
    "digitalocean": _after("dop_v1_", HEX, 64),
    "heroku": lambda rng: f"HRKU-AA{_pick(rng, URLSAFE, 58)}",
    "shopify": _after("shpat_", HEX, 32),
    "square": _after("sq0atp-", URLSAFE, 22),
    "square production": _after("EAAA", URLSAFE, 60),
    "braintree": lambda rng: f"access_token$production${_pick(rng, LOWER + DIGITS, 16)}${_pick(rng, HEX, 32)}",
    "telegram bot": lambda rng: f"{rng.randint(10**9, 9 * 10**9)}:AA{_pick(rng, URLSAFE, 33)}",
    "discord bot": _discord,
    "new relic user": _after("NRAK-", UPPER + DIGITS, 27),
    "sentry user": _after("sntryu_", HEX, 64),
    "grafana service account": lambda rng: f"glsa_{_pick(rng, ALNUM, 32)}_{_pick(rng, HEX, 8)}",
    "vault service": _after("hvs.CAES", URLSAFE, 90),
    "terraform cloud": lambda rng: f"{_pick(rng, ALNUM, 14)}.atlasv1.{_pick(rng, URLSAFE, 67)}",
    "databricks": _after("dapi", HEX, 32),
    "linear": _after("lin_api_", ALNUM, 40),
    "notion": _after("ntn_", ALNUM, 46),
    "notion legacy": _after("secret_", ALNUM, 43),
    "figma": _after("figd_", URLSAFE, 40),
    "airtable": lambda rng: f"pat{_pick(rng, ALNUM, 14)}.{_pick(rng, HEX, 64)}",
    "postman": lambda rng: f"PMAK-{_pick(rng, HEX, 24)}-{_pick(rng, HEX, 34)}",
    "mapbox": lambda rng: f"sk.eyJ1{_pick(rng, ALNUM, 60)}.{_pick(rng, URLSAFE, 22)}",
    "cloudflare": _after("cfut_", ALNUM, 48),
    "netlify": _after("nfp_", ALNUM, 36),
    "supabase": _after("sbp_", HEX, 40),
    "planetscale": _after("pscale_tkn_", URLSAFE, 43),
    "doppler": _after("dp.pt.", ALNUM, 43),
    "pulumi": _after("pul-", HEX, 40),
    "dropbox": _after("sl.", URLSAFE, 136),
    "facebook": _after("EAA", ALNUM, 120, 180),
    "age": lambda rng: f"AGE-SECRET-KEY-1{_pick(rng, 'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L', 58)}",
    "1password service account": lambda rng: f"ops_eyJ{_pick(rng, ALNUM, 250)}",
    "rubygems": _after("rubygems_", HEX, 48),
    "crates.io": _after("cio", ALNUM, 32),
    "nuget": _after("oy2", LOWER + DIGITS, 43),
    "groq": _after("gsk_", ALNUM, 52),
    "replicate": _after("r8_", ALNUM, 37),
    "perplexity": _after("pplx-", ALNUM, 48),
    "xai": _after("xai-", ALNUM, 80),
    "langsmith": lambda rng: f"lsv2_pt_{_pick(rng, HEX, 32)}_{_pick(rng, HEX, 10)}",
    "pinecone": lambda rng: f"pcsk_{_pick(rng, ALNUM, 5)}_{_pick(rng, ALNUM, 63)}",
    "azure client secret": lambda rng: f"{_pick(rng, ALNUM, 3)}8Q~{_pick(rng, URLSAFE, 34)}",
    "tailscale": lambda rng: f"tskey-auth-k{_pick(rng, ALNUM, 11)}CNTRL-{_pick(rng, ALNUM, 32)}",
    "jwt": _jwt,
    "deepseek": _after("sk-", HEX, 32),
    "openrouter": _after("sk-or-v1-", HEX, 64),
    # held out
    "sonarqube": _after("squ_", HEX, 40),
    "circleci": lambda rng: f"CCIPAT_{_pick(rng, ALNUM, 22)}_{_pick(rng, HEX, 40)}",
    "posthog": _after("phx_", ALNUM, 43),
    "resend": lambda rng: f"re_{_pick(rng, ALNUM, 8)}_{_pick(rng, ALNUM, 24)}",
    "brevo": lambda rng: f"xkeysib-{_pick(rng, HEX, 64)}-{_pick(rng, ALNUM, 16)}",
    "dynatrace": lambda rng: f"dt0c01.{_pick(rng, BASE32, 24)}.{_pick(rng, BASE32, 64)}",
    "hubspot": lambda rng: f"pat-na1-{_uuid(rng)}",
    "nvidia": _after("nvapi-", URLSAFE, 64),
    "contentful": _after("CFPAT-", URLSAFE, 43),
    "typeform": lambda rng: f"tfp_{_pick(rng, URLSAFE, 44)}_{_pick(rng, URLSAFE, 14)}",
}  # fmt: skip

HELD_OUT = frozenset(
    ["sonarqube", "circleci", "posthog", "resend", "brevo", "dynatrace", "hubspot", "nvidia", "contentful", "typeform"]
)

# Keys without a shape of their own: only the words around them tell.
SHAPELESS: dict[str, Shape] = {
    "aws secret key": lambda rng: _b64(rng, 30),
    "azure storage key": lambda rng: _b64(rng, 64),
    "datadog api key": lambda rng: _pick(rng, HEX, 32),
    "datadog app key": lambda rng: _pick(rng, HEX, 40),
    "cohere": lambda rng: _pick(rng, ALNUM, 40),
    "mistral": lambda rng: _pick(rng, ALNUM, 32),
    "fastly": lambda rng: _pick(rng, URLSAFE, 32),
    "heroku legacy": _uuid,
    "twilio auth token": lambda rng: _pick(rng, HEX, 32),
    "auth0 client secret": lambda rng: _pick(rng, URLSAFE, 64),
    "algolia admin key": lambda rng: _pick(rng, HEX, 32),
    "vercel legacy": lambda rng: _pick(rng, ALNUM, 24),
    "random 12": lambda rng: _pick(rng, ALNUM, 12),
    "random 16": lambda rng: _pick(rng, ALNUM, 16),
    "random 20 with symbols": lambda rng: _pick(rng, ALNUM + "!@#%^*+=~?", 20),
    "random hex 64": lambda rng: _pick(rng, HEX, 64),
    "random base64": lambda rng: _b64(rng, rng.randint(18, 48)),
    "random small": lambda rng: _pick(rng, LOWER + DIGITS, rng.randint(12, 32)),
}  # fmt: skip

HUMAN = [
    *"""summer2024! correct-horse-battery-staple Tr0ub4dor&3 hunter2 hunter2hunter P@ssw0rd! letmein qwerty123 iloveyou
    dragon99 Monkey!23 swordfish trustno1 Winter2025 admin123! welcome1 football7 S3cr3t! MyDogRex#1 fluffy_kitten_42
    abc123xyz passw0rd Liverpool1 princess opensesame starwars77 Berlin-2023 Sommer2024! qazwsx987 zaq12wsx 1q2w3e4r
    superman! kaffee-und-kuchen-7 B4nana$plit G0ldfish! pa55phrase mickey.mouse.1928 Jul1a&R0meo 11223344 bl4ckB1rd
    Pikachu25 x-Wing1977 Hogwarts9.75 Geheim!99 motdepasse1 contrasena99 Zebra_Crossing! Sunshine1 baseball2! Qwerty!234
    ILoveMyDog123 batman#1 Chester09 letmein! JohnDoe1985 C0ffeeBreak blueSky!7 shadow99 Pa$$w0rd thunderbolt Redsox04!
    monkeybusiness tiger-lily-33 Test1234! Welcome@123 kitty*cat9 football 987654321 asdfgh12""".split(),
    "correct horse battery staple",
    "purple monkey dishwasher sunset",
    "seven tiny rabbits jumping high",
    "mango velvet tractor piano",
]

# Sentences that say nothing about secrets: {s} must be found by its shape.
BARE_PLACES: dict[str, str] = {
    "sentence": "I pasted {s} into the channel by mistake.",
    "quoted": 'The run failed with "{s}" in the environment.',
    "backticks": "Rotate `{s}` before the release, please.",
    "parentheses": "the old one ({s}) was revoked last week",
    "log line": "2025-03-14T09:26:53Z INFO client started with {s} region=eu-west-1",
    "json value": '{{"id": 17, "content": "{s}", "ok": true}}',
    "json in json": '{{"result": "{{\\"content\\": \\"{s}\\"}}"}}',
    "python": "client = Client({s!r}, timeout=30)",
    "python list": "VALUES = ['alpha', '{s}', 'omega']",
    "yaml list": "items:\n  - alpha\n  - {s}\n  - omega",
    "shell": "curl -s https://api.internal.test/v1/things -H 'X-Thing: {s}' | jq .",
    "diff": "-    connect('{s}')\n+    connect(os.environ['THING'])",
    "git remote": "origin  https://{s}@git.internal.test/team/repo.git (fetch)",
    "escaped newline": '"stdout": "done\\n{s}\\nbye"',
    "colours": "\x1b[32mok\x1b[0m \x1b[1m{s}\x1b[0m",
    "markdown table": "| staging | {s} | 2024-11-02 |",
    "csv": "alice,{s},2024-11-02,active",
    "url query": "GET https://api.internal.test/v1/list?x={s}&page=2 HTTP/1.1",
    "end of line": "worked after I switched to {s}",
    "only the key": "{s}",
    "xml": "<entry><data>{s}</data></entry>",
    "comment": "    # TODO remove {s} again",
    "windows": "C:\\> set THING={s}",
    "stack trace": "ValueError: invalid literal: {s}\n  File \"app.py\", line 3, in <module>",
}  # fmt: skip

# {s} behind a word that gives it away, in files and commands.
FILE_PLACES: dict[str, str] = {
    "env": "DB_HOST=db\nDB_PASSWORD={s}\nDB_NAME=app",
    "env export": "export API_KEY={s}",
    "env quoted": 'SECRET_KEY="{s}"',
    "env inline": "PGPASSWORD={s} psql -h db -U app",
    "json": '{{"user": "app", "password": "{s}", "port": 5432}}',
    "json compact": '{{"client_id":"web","client_secret":"{s}"}}',
    "json escaped": '{{"body": "{{\\"access_token\\": \\"{s}\\"}}"}}',
    "yaml": "database:\n  user: app\n  password: {s}\n  host: db",
    "yaml quoted": "auth:\n  token: '{s}'",
    "toml": '[service]\napi_key = "{s}"',
    "ini": "[client]\nuser=app\npassword={s}",
    "properties": "spring.datasource.password={s}",
    "python": 'password = "{s}"',
    "python kwarg": "connect(host='db', user='app', password='{s}')",
    "python dict": "HEADERS = {{'X-Api-Key': '{s}'}}",
    "python environ": 'os.environ["OPENAI_API_KEY"] = "{s}"',
    "python default": 'KEY = os.getenv("API_KEY", "{s}")',
    "javascript": "const apiKey = '{s}';",
    "typescript": 'const clientSecret: string = "{s}";',
    "go": 'apiToken := "{s}"',
    "java": 'private static final String SECRET_KEY = "{s}";',
    "rust": 'let token = String::from("{s}");',
    "csharp": 'var cs = "Server=db;User Id=app;Password={s};";',
    "php": "define('DB_PASSWORD', '{s}');",
    "ruby": "config.api_key = '{s}'",
    "terraform": 'variable "db_password" {{\n  type    = string\n  default = "{s}"\n}}',
    "terraform resource": 'resource "x" "y" {{\n  master_password = "{s}"\n}}',
    "dockerfile": "FROM alpine\nENV API_TOKEN={s}\nRUN true",
    "dockerfile space": "ENV DB_PASSWORD {s}",
    "docker run": "docker run -e POSTGRES_PASSWORD={s} -d postgres:16",
    "compose": "services:\n  db:\n    environment:\n      POSTGRES_PASSWORD: {s}",
    "compose list": "    environment:\n      - MYSQL_ROOT_PASSWORD={s}",
    "kubernetes env": "        - name: DB_PASSWORD\n          value: {s}",
    "kubernetes env quoted": '        - name: API_TOKEN\n          value: "{s}"',
    "kubectl": "kubectl create secret generic app --from-literal=db-password={s}",
    "helm": "helm upgrade app ./chart --set auth.password={s}",
    "flag": "deploy --user app --password {s} --force",
    "flag equals": "deploy --api-key={s} --region eu",
    "flag list": '["deploy", "--token", "{s}", "--dry-run"]',
    "basic auth flag": "curl -u app:{s} https://internal.test/api",
    "bearer header": "curl -H 'Authorization: Bearer {s}' https://internal.test/api",
    "api key header": "curl -H 'X-Api-Key: {s}' https://internal.test/api",
    "header dump": "> Authorization: token {s}\n> Accept: */*",
    "url": "postgres://app:{s}@db.internal.test:5432/app",
    "redis url": "REDIS_URL=redis://:{s}@cache:6379/0",
    "git url": "git clone https://oauth2:{s}@git.internal.test/team/repo.git",
    "query": "https://internal.test/feed?access_token={s}&limit=5",
    "netrc": "machine internal.test\n  login app\n  password {s}",
    "pgpass": "db.internal.test:5432:app:app:{s}",
    "npmrc": "//registry.internal.test/:_authToken={s}",
    "pypirc": "[pypi]\nusername = __token__\npassword = {s}",
    "aws credentials": "[default]\naws_secret_access_key = {s}",
    "sql": "CREATE USER app WITH PASSWORD '{s}';",
    "mysql flag": "mysql -h db -u app -p{s} app",
    "sshpass": "sshpass -p {s} ssh app@internal.test",
    "xml": "<config><password>{s}</password></config>",
    "xml attribute": '<add key="ApiKey" value="{s}" />',
    "plist": "<key>api_token</key>\n<string>{s}</string>",
    "github actions": "      env:\n        DEPLOY_TOKEN: {s}",
    "log": "level=debug msg=connect user=app password={s} attempt=2",
    "log json": '{{"level":"debug","secret":"{s}","attempt":2}}',
    "cookie": "Cookie: sessionid={s}; theme=dark",
    "set-cookie": "Set-Cookie: session={s}; Path=/; HttpOnly; Secure",
    "powershell": '$env:API_KEY = "{s}"',
    "setx": "setx API_TOKEN {s}",
    "fish": "set -gx API_TOKEN {s}",
    "makefile": "API_TOKEN ?= {s}",
    "connection string": "DefaultEndpointsProtocol=https;AccountName=app;AccountKey={s};EndpointSuffix=core.test",
    "odbc": "Driver=x;Server=db;Uid=app;Pwd={s};",
    "jdbc": "jdbc:mysql://db/app?user=app&password={s}",
    "terraform provider": 'provider "aws" {{\n  secret_key = "{s}"\n}}',
    "dockerfile arg": 'ARG NPM_TOKEN={s}',
    "compose quoted list": 'environment:\n  - "JWT_SECRET={s}"',
    "kubernetes secret": 'kind: Secret\nstringData:\n  db-password: {s}\n  username: app',
    "docker registry secret": 'kubectl create secret docker-registry reg --docker-username=bob --docker-password={s}',
    "helm string": 'helm install x --set-string "postgresql.auth.postgresPassword={s}"',
    "curl json": 'curl -X POST https://api.test/login -d \'{{"username":"bob","password":"{s}"}}\'',
    "curl form": 'curl https://api.test -d "grant_type=password&username=bob&password={s}"',
    "wget": 'wget --user=bob --password={s} https://files.test/x',
    "psql dsn": 'psql "host=db user=bob password={s} dbname=app"',
    "mysqldump": 'mysqldump -uroot -p{s} app > x.sql',
    "mongo url": 'mongosh "mongodb+srv://bob:{s}@cluster0.test/app"',
    "redis-cli": 'redis-cli -h cache -a {s} ping',
    "redis conf": 'requirepass {s}',
    "maven settings": '<server><id>nexus</id><username>u</username><password>{s}</password></server>',
    "wordpress": "define( 'DB_PASSWORD', '{s}' );",
    "php array": "'password' => '{s}',",
    "django": 'SECRET_KEY = "django-insecure-{s}"',
    "express": "app.use(session({{ secret: '{s}', resave: false }}))",
    "jwt sign": "jwt.sign(payload, '{s}')",
    "sdk client": 'client = OpenAI(api_key="{s}")',
    "kotlin": 'val apiKey = "{s}"',
    "c define": '#define WIFI_PASSWORD "{s}"',
    "header call": 'headers.set("X-Auth-Token", "{s}");',
    "basic tuple": 'requests.get(url, auth=("bob", "{s}"))',
    "smtp": "smtp.login('bob', '{s}')",
    "sqlalchemy": 'create_engine("mysql+pymysql://bob:{s}@db/app")',
    "alter user": "ALTER USER 'bob'@'%' IDENTIFIED BY '{s}';",
    "mongo user": 'db.createUser({{ user: "bob", pwd: "{s}", roles: [] }})',
    "vault put": 'vault kv put secret/app password={s}',
    "aws configure": 'aws configure set aws_secret_access_key {s}',
    "aws ssm": 'aws ssm put-parameter --name /app/db_password --value {s} --type SecureString',
    "heroku": 'heroku config:set API_SECRET={s} -a app',
    "github secret": 'gh secret set NPM_TOKEN --body "{s}"',
    "docker login": 'docker login -u bob -p {s} registry.test',
    "docker stdin": 'echo "{s}" | docker login -u bob --password-stdin',
    "npm config": 'npm config set //registry.test/:_authToken {s}',
    "secure string": '$pw = ConvertTo-SecureString "{s}" -AsPlainText -Force',
    "wpa": 'network={{\n  ssid="home"\n  psk="{s}"\n}}',
    "ansible": 'ansible_become_password: {s}',
    "kafka": 'PlainLoginModule required username="bob" password="{s}";',
    "kubeconfig": 'users:\n- name: admin\n  user:\n    token: {s}',
    "name and value": '{{"name":"SECRET_TOKEN","value":"{s}","type":"secret"}}',
    "xml entry": '<entry key="db.password">{s}</entry>',
    "hidden field": '<input type="hidden" name="api_token" value="{s}">',
    "service bus": 'Endpoint=sb://x.test/;SharedAccessKeyName=Root;SharedAccessKey={s}',
    "ruby log": '[debug] POST /login params={{"user"=>"bob", "password"=>"{s}"}}',
    "vault header": '> X-Vault-Token: {s}',
    "reset link": 'https://app.test/reset?token={s}',
    "keystore": 'keytool -genkey -storepass {s} -keystore k.jks',
    "openssl": 'openssl rsa -in k.pem -passin pass:{s}',
    "gpg": 'gpg --batch --passphrase {s} -d x.gpg',
    "zip": 'zip -P {s} out.zip x',
    "htpasswd": 'htpasswd -b .htpasswd bob {s}',
    "chpasswd": "echo 'bob:{s}' | chpasswd",
    "ldap": 'ldapsearch -x -D cn=admin -w {s} -b dc=x',
    "credentials csv": 'username,password\nbob,{s}\n',
    "credentials table": '| user | password |\n|---|---|\n| bob | {s} |',
}  # fmt: skip

# {s} behind a word that gives it away, in what people and agents say. {t} is what the secret is for.
PROSE_PLACES: dict[str, str] = {
    "is": "the {t} password is {s}",
    "is, sentence": "The {t} password is {s}. Please don't share it.",
    "colon": "{t} password: {s}",
    "token for": "my token for {t} is {s}",
    "key for": "the API key for {t} is {s}, it expires in May",
    "here is": "Here's the {t} API key: {s}",
    "next line": "here is the access token for {t}:\n\n{s}\n\ncan you try it?",
    "quoted": 'the password for {t} is "{s}"',
    "backticks": "use the secret `{s}` for {t}",
    "to": "I changed the {t} password to {s} this morning",
    "set to": "the {t} passphrase is set to {s}",
    "now": "client secret is now {s}",
    "pw": "pw: {s}",
    "user and password": "log in to {t} with user admin and password {s}",
    "user, slash": "{t} credentials: admin / {s}",
    "pair": "login for {t} is admin:{s}",
    "as": "use {s} as the {t} password",
    "arrow": "{t} password -> {s}",
    "equals": "password = {s}",
    "brackets": "password ({t}): {s}",
    "of": "the password of the {t} account is {s}",
    "you should use": "the token you should use for {t} is {s}",
    "should be": "the {t} password should be {s} now",
    "bold": "**Password:** {s}",
    "list": "- host: {t}\n- user: admin\n- password: {s}",
    "remember": "remember: {t} api key = {s}",
    "was": "the old {t} token was {s}",
    "german": "das Passwort für {t} lautet {s}",
    "german is": "Das {t}-Passwort ist {s}.",
    "german colon": "Kennwort: {s}",
    "german key": "der API-Schlüssel für {t} ist {s}",
    "french": "le mot de passe de {t} est {s}",
    "spanish": "la contraseña de {t} es {s}",
    "portuguese": "a senha do {t} é {s}",
    "italian": "la password di {t} è {s}",
    "dutch": "het wachtwoord voor {t} is {s}",
    "polish": "hasło do {t} to {s}",
    "swedish": "lösenordet är {s}",
    "russian": "пароль от {t}: {s}",
    "chinese": "{t}的密码是{s}",
    "japanese": "パスワードは {s} です",
    "korean": "비밀번호는 {s} 입니다",
    "wifi": "btw the {t} password is {s} :)",
    "possessive": "the {t} password's {s}",
    "my pw": "my pw is {s}",
    "ssh": "ssh password {s}",
    "login with": "login with bob / {s}",
    "creds": "creds: bob:{s}",
    "comma": "username: bob, password: {s}",
    "user pass": "user=bob pass={s}",
    "block": "Here are the credentials\nuser: bob\npassword: {s}",
    "reset": "I've reset your {t} password to {s}.",
    "temporary": "Your temporary password is: {s}",
    "dash": "{t} api key - {s}",
    "stripe": "the stripe key is {s}",
    "signing": "The secret we use for signing is {s}.",
    "parenthesis": "(password: {s})",
    "question": "The {t} password? {s}",
    "it's": "What is the password? It's {s}",
    "store": "please remember our {t} DB password is {s}",
    "aws": "AWS secret access key is {s}",
    "has been": "The {t} password has been changed to {s}",
    "ssh key": "the passphrase for my ssh key is {s}",
    "unlock": "unlock {t} with passphrase '{s}'",
    "tight": "password:{s}",
    "german my": "mein Passwort ist {s}",
    "german pair": "Zugangsdaten: bob / {s}",
    "french my": "mon mot de passe est {s}",
    "french short": "le mdp de {t} est {s}",
    "spanish my": "mi contraseña es {s}",
    "portuguese my": "minha senha é {s}",
    "danish": "adgangskode: {s}",
    "norwegian": "passord: {s}",
    "finnish": "salasana on {s}",
    "czech": "heslo je {s}",
    "hungarian": "jelszó: {s}",
    "turkish": "şifre: {s}",
    "russian my": "мой пароль {s}",
    "chinese colon": "{t} 密码：{s}，请保密",
    "japanese tight": "パスワードは{s}です",
    "vietnamese": "mật khẩu là {s}",
    "indonesian": "kata sandi: {s}",
    "arabic": "كلمة المرور: {s}",
    "hebrew": "סיסמה: {s}",
}  # fmt: skip

THINGS = "staging production the-db grafana wifi jenkins the-vpn mailserver our-nas backup-box demo".split()


def shaped(seed: int, names: frozenset[str] | None = None, per_shape: int = 60) -> Iterator[Sample]:
    """Keys with a shape of their own, in places that say nothing and in places that do."""
    rng = Random(seed)
    for name, make in SHAPES.items():
        if names is not None and name not in names:
            continue
        bare = rng.choices(list(BARE_PLACES.items()), k=per_shape // 2)
        told = rng.choices(list(FILE_PLACES.items()), k=per_shape - per_shape // 2)
        for place, template in bare + told:
            secret = make(rng)
            if ("://" in secret and "://" in template) or ("$" in secret and "url" in place):
                continue
            yield Sample(template.format(s=secret), secret, name, place)


def shapeless(seed: int, per_shape: int = 60) -> Iterator[Sample]:
    """Random values that only the words or the syntax around them give away, in files and in prose."""
    rng = Random(seed)
    for name, make in SHAPELESS.items():
        for place, template in rng.choices(list(FILE_PLACES.items()), k=per_shape // 2):
            secret = make(rng)
            if "://" in template or "-u" in template:  # in a URL these would have to be encoded
                secret = (
                    secret.replace("/", "_").replace("#", "_").replace("?", "_").replace("+", "_").replace("@", "_")
                )
            yield Sample(template.format(s=secret), secret, name, place)
        for place, template in rng.choices(list(PROSE_PLACES.items()), k=per_shape - per_shape // 2):
            secret = make(rng)
            yield Sample(template.format(s=secret, t=rng.choice(THINGS)), secret, name, place)


def prose(seed: int, count: int = 1500) -> Iterator[Sample]:
    """Random values behind a cue in what people say."""
    rng = Random(seed)
    for _ in range(count):
        name, make = rng.choice(list(SHAPELESS.items()))
        place, template = rng.choice(list(PROSE_PLACES.items()))
        secret = make(rng)
        yield Sample(template.format(s=secret, t=rng.choice(THINGS)), secret, name, place)


def human(seed: int, count: int = 1500) -> Iterator[Sample]:
    """Passwords that people make up, behind a cue that speaks of a password."""
    rng = Random(seed)
    said = {
        k: v
        for k, v in PROSE_PLACES.items()
        if not any(w in v.lower() for w in ("token", "key", "secret", "schlüssel"))
    }
    filed = {k: v for k, v in FILE_PLACES.items() if any(w in v.lower() for w in ("passw", "pwd"))}
    for _ in range(count):
        secret = rng.choice(HUMAN)
        place, template = rng.choice(list((said if rng.random() < 0.6 or " " in secret else filed).items()))
        yield Sample(template.format(s=secret, t=rng.choice(THINGS)), secret, "human", place)


# ---- what must survive ----

ABOUT_SECRETS = """\
the password policy is strict
password must be at least 12 characters
the password field is required and must not be empty
token budget is 1500
we spend about 3500 tokens per request
the token count is 128000 and the limit is 200000
max_tokens=4096, temperature=0.2
password = os.environ["DB_PASSWORD"]
password = getpass.getpass("Password: ")
token = request.headers.get("X-Token")
def set_password(self, password: str) -> None:
def verify(token: str, secret: bytes) -> bool:
secret_key: SecretKey
api_key: str | None = None
api_key: Optional[str] = Field(default=None)
token: Token = lexer.next_token()
const token = await getToken();
const { password, token } = req.body;
password: ${DB_PASSWORD}
password: {{ .Values.db.password }}
API_KEY=YOUR_API_KEY
API_KEY=<your-api-key>
api_key = "your-api-key-here"
password: ***
password=********
token: [redacted]
export TOKEN=$(vault read -field=token secret/app)
export GITHUB_TOKEN=$GITHUB_TOKEN
process.env.API_KEY || config.apiKey
getPassword()
user.password_hash
passwordPolicy.minLength
the secret is stored in the keychain
the key insight is that caching the token saves a request
secrets are never written to disk
a secret manager holds all credentials
password reset emails are sent by the worker
the password was changed last week
the token expires after 15 minutes
the API key is missing from the request
the password is wrong
the password is hashed with bcrypt
invalid password for user root
Please enter your password:
<input type="password" name="password" placeholder="Password">
<label for="password">Password</label>
primary key (id), foreign key (user_id)
public key authentication is enabled
the cache key is user:42:profile
pass the value through the pipeline
all tests pass: 120 passed, 3 skipped
the pin layout is on page 4
--password-file /run/secrets/db
password_file: /etc/app/password.txt
secretName: app-credentials
tokenizer = Tokenizer(vocab_size=32000)
"token_type": "bearer", "expires_in": 3600
Authorization: Bearer $TOKEN
Authorization: Bearer <token>
the Authorization header carries a bearer token
headers = {"Authorization": f"Bearer {token}"}
postgres://user:${PASSWORD}@localhost/db
postgresql://localhost:5432/app
https://example.test/path?page=2&sort=asc
das Passwort ist falsch
das Passwort muss mindestens zwölf Zeichen lang sein
le mot de passe est obligatoire
la contraseña es obligatoria
パスワードは必須です
密码不能为空
if password == confirm_password:
assert token is not None
raise ValueError("password too short")
SECRET_KEY = config("SECRET_KEY")
secret: !vault |
aws_secret_access_key = var.aws_secret_access_key
api_token = data.vault_generic_secret.app.data["token"]
client_secret = local.client_secret
DB_PASSWORD: ${{ secrets.DB_PASSWORD }}
token: op://vault/item/field
passwordless login is the default
tokens per second: 87
the session token id is stored server-side
see docs/password-reset.md for details
git@github.com:org/repo.git
icon@2x.png 12 KB
lodash@4.17.21 and react@18.2.0
@dataclass(frozen=True)
""".splitlines()

WORDS = (
    "the build parser cache index memory worker queue deploy test branch merge review schema table column user session "
    "request response client server error warning retry timeout config setting module package import export function "
    "class method field value list map tree node edge graph path file folder line word page screen button green slow "
    "fast after before while because when should could moved fixed broke added removed renamed needs uses keeps"
).split()


def benign(seed: int, count: int = 24000) -> Iterator[str]:
    """Lines without a secret: the standard library's own source, paths, hashes, UUIDs, versions, prose."""
    rng = Random(seed)
    yield from ABOUT_SECRETS
    source = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    source += sorted(Path(sysconfig.get_paths()["stdlib"]).glob("[a-l]*/*.py"))
    lines: list[str] = []
    for path in rng.sample(source, len(source)):
        if "site-packages" in path.parts or "test" in path.parts or "idlelib" in path.parts:
            continue
        lines += [line for line in path.read_text("utf-8", "replace").splitlines() if line.strip()]
        if len(lines) >= count * 2 // 3:
            break
    yield from lines[: count * 2 // 3]
    for number in range(count - len(lines[: count * 2 // 3])):
        yield LOOKALIKES[number % len(LOOKALIKES)](rng)


def installed_lines(count: int, seed: int) -> Iterator[str]:
    """Lines of the source and the documents of the packages that are installed here, file by file."""
    files = sorted(Path(sysconfig.get_paths()["purelib"]).rglob("*"))
    suffixes = {".py", ".pyi", ".md", ".rst", ".txt"}
    known = [path for path in files if path.suffix in suffixes and path.stat().st_size < 200_000]
    for path in Random(seed).sample(known, len(known)):
        for line in path.read_text("utf-8", "replace").splitlines():
            if line.strip():
                yield line
                count -= 1
                if not count:
                    return


def _sentence(rng: Random, low: int = 5, high: int = 14) -> str:
    words = rng.choices(WORDS, k=rng.randint(low, high))
    return " ".join(words).capitalize() + rng.choice([".", ".", "?", ":"])


def _path(rng: Random) -> str:
    parts = [rng.choice(WORDS) + rng.choice(["", "", "_v2", "-2024", "3"]) for _ in range(rng.randint(2, 6))]
    return (
        rng.choice(["/", "./", "src/", "~/", "/usr/lib/"])
        + "/".join(parts)
        + rng.choice([".py", ".ts", ".json", "/", ".md", ""])
    )


LOOKALIKES: tuple[Callable[[Random], str], ...] = (
    _sentence,
    _path,
    lambda rng: f"commit {_pick(rng, HEX, 40)}",
    lambda rng: f"{_pick(rng, HEX, 7)} {_sentence(rng)}",
    lambda rng: f"see {_path(rng)}:{rng.randint(1, 900)} in {_pick(rng, HEX, 40)[:12]}",
    lambda rng: f"id: {_uuid(rng)}",
    lambda rng: f'{{"uuid": "{_uuid(rng)}", "parentUuid": "{_uuid(rng)}", "sessionId": "{_uuid(rng)}"}}',
    lambda rng: f'"integrity": "sha512-{_b64(rng, 64)}"',
    lambda rng: f"image: registry.test/app@sha256:{_pick(rng, HEX, 64)}",
    lambda rng: f"    --hash=sha256:{_pick(rng, HEX, 64)} \\",
    lambda rng: f"{_pick(rng, HEX, 32)}  {_path(rng)}",
    lambda rng: f"github.com/x/y v{rng.randint(0, 9)}.{rng.randint(0, 40)}.0 h1:{_b64(rng, 32)}",
    lambda rng: f"{rng.choice(WORDS)}=={rng.randint(0, 9)}.{rng.randint(0, 40)}.{rng.randint(0, 20)}rc1",
    lambda rng: f"data:image/png;base64,{_b64(rng, 90)}",
    lambda rng: f"ETag: W/\"{_pick(rng, HEX, 32)}\"",
    lambda rng: f"trace_id={_pick(rng, HEX, 32)} span_id={_pick(rng, HEX, 16)} duration_ms={rng.randint(1, 900)}",
    lambda rng: f"{rng.randint(10**12, 2 * 10**12)} {rng.choice(WORDS)}_{rng.choice(WORDS)}_{rng.randint(1, 99)}",
    lambda rng: f"toolu_01{_pick(rng, ALNUM, 22)} msg_01{_pick(rng, ALNUM, 22)}",
    lambda rng: f"call_{_pick(rng, ALNUM, 24)} done in {rng.randint(1, 99)} ms",
    lambda rng: f"{''.join(w.capitalize() for w in rng.choices(WORDS, k=4))}.{rng.choice(WORDS)}_{rng.choice(WORDS)}()",
    lambda rng: f"the token limit for {rng.choice(WORDS)} is {rng.randint(1000, 200000)}",
    lambda rng: f"password {rng.choice(WORDS)} {_sentence(rng)}",
    lambda rng: f"The {rng.choice(['secret', 'token', 'key', 'password'])} {_sentence(rng).lower()}",
    lambda rng: f"{rng.choice(WORDS)}_token = {rng.choice(WORDS)}.{rng.choice(WORDS)}_token",
    lambda rng: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{_b64(rng, 30)} deploy",
    lambda rng: f"{rng.randint(1, 255)}.{rng.randint(0, 255)}.{rng.randint(0, 255)}.1:{rng.randint(1024, 65000)}",
    lambda rng: f"chunk-{_pick(rng, UPPER + DIGITS, 8)}.js  {rng.randint(1, 900)}.{rng.randint(10, 99)} kB",
    lambda rng: f"{rng.choice(WORDS)}-{_pick(rng, HEX, 10)}-{_pick(rng, LOWER + DIGITS, 5)}   1/1   Running   0   9d",
    lambda rng: f"https://internal.test/{rng.choice(WORDS)}/{_uuid(rng)}?v={_pick(rng, HEX, 8)}",
    lambda rng: f"order {rng.randint(10**9, 10**12)} shipped, snowflake {rng.randint(10**17, 10**18)}",
)  # fmt: skip
