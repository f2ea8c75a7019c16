"""Aliases: words that a query searches as well, because people say the same thing in different words.

Part of the first step of the read path. Kept brings groups of words of software work, by domain; a person adds lines of
their own or takes a word out (`kept alias`), and a line of their own stands in place of the default for its word.
Tables only, and how they are joined. Rule: a word brings in only what another engineer would say for the same thing;
a missing word costs a little, a wrong one brings wrong memories.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from kept import text
from kept.model import Alias

# Words that stand for each other, in groups. Two words joined by _ are said together: sign_in.
_GROUPS = """
    auth authentication authorization login signin logon sso oauth sign_in log_in logged_in signed_in signing_in
    permission perms access role privilege | password creds credential passphrase | admin administrator backoffice
    staff employee team | customer client buyer | account profile | logout signout log_out sign_out

    db database sql | pg postgres postgresql | schema migration | table relation | column field | row record
    query select | cache caching | store save persist | delete remove drop erase | index indexing
    backup snapshot | replica replication

    api endpoint rest route | request call | response reply | backend server service back_end
    frontend client_side front_end ui interface | page screen view | storefront shop store front | button control
    picture image photo | css style styling stylesheet | font typeface | colour color | layout design
    translation i18n l10n localisation localization locale | date time timestamp calendar
    cart basket | coupon voucher | checkout purchase buy order | price cost amount money | payment pay billing charge
    refund reimbursement chargeback | invoice bill | shipping delivery parcel shipment | label sticker
    accountant accounting bookkeeping | stock inventory | product item article | brand manufacturer vendor
    email mail e_mail smtp | search find lookup | upload uploading | download fetch

    config configuration settings options | env environment | flag toggle switch | secret token key
    param parameter argument arg | variable var | constant const | function fn method | dir directory folder
    file path | module package library lib | dependency deps packages | pkg package | class type | string text
    error err exception failure fail crash bug | warning caution | fix solution workaround | log logs logging
    slow performance perf speed latency | fast quick | memory ram leak | timeout deadline expiry expire ttl lifetime
    lock mutex deadlock | race concurrency concurrent simultaneous parallel | thread process worker
    async asynchronous background | sync synchronous | job task | queue broker | event message msg notification
    schedule cron timer nightly | retry backoff | reboot restart | large big

    repo repository | monorepo one_repository | branch ref | commit revision | pr pull_request merge_request
    review reviewer | ticket issue | support helpdesk | changelog release_notes
    ci pipeline build continuous_integration build_server | deploy deployment release rollout ship roll_out
    prod production live | staging preproduction | dev development | k8s kubernetes | infra infrastructure
    container docker | monitoring observability metrics telemetry uptime | version release
    test tests testing spec unit_test | e2e end_to_end playwright cypress | lint linter linting | format formatter
    typing typed types type_hints annotation | docs documentation readme | js javascript | ts typescript | py python
    convention rule policy guideline | style convention | prefer preference like want | naming name named called
    install installation setup | upgrade update bump | rename move
"""

# A kind of things, and things of that kind: asked for by the one, told by the other. One way only.
_KINDS = """
    database: postgresql mysql mariadb sqlite mongodb redis dynamodb cassandra clickhouse duckdb
    db: postgresql mysql mariadb sqlite mongodb redis dynamodb cassandra clickhouse duckdb
    framework: react vue svelte sveltekit angular nextjs next.js nuxt remix astro django flask fastapi rails laravel
    framework: express fastify hono nestjs spring phoenix
    orm: prisma drizzle sqlalchemy typeorm sequelize activerecord ecto | cdn: cloudfront cloudflare fastly akamai
    broker: rabbitmq kafka redis nats sqs | queue: rabbitmq kafka celery bullmq sidekiq sqs
    worker: celery sidekiq bullmq | cache: redis memcached varnish
    search: elasticsearch opensearch meilisearch typesense algolia solr lucene

    linter: eslint ruff flake8 pylint golangci biome clippy rubocop credo | formatter: prettier black ruff gofmt biome
    typechecker: mypy pyright tsc | typing: mypy pyright
    tests: pytest jest vitest playwright cypress mocha junit rspec exunit
    e2e: playwright cypress selenium puppeteer | browser: safari chrome firefox edge
    iphone: ios safari | ios: iphone safari swift xcode | android: kotlin gradle
    cloud: aws gcp azure hetzner digitalocean heroku | hosting: aws gcp azure hetzner vercel netlify heroku fly
    storage: s3 gcs bucket minio | payment: stripe paypal mollie adyen braintree klarna
    email: postmark sendgrid mailgun brevo ses smtp | monitoring: grafana prometheus datadog sentry loki
    observability: grafana prometheus datadog sentry loki opentelemetry | logging: loki elk kibana fluentd vector
    ci: github_actions jenkins gitlab circleci buildkite | container: docker podman kubernetes
    npm: pnpm yarn package.json node | package: npm pnpm yarn pip poetry uv cargo
    dependency: npm pnpm yarn pip poetry cargo | shell: bash zsh fish powershell nushell
    iac: terraform pulumi ansible | sso: keycloak auth0 okta saml oidc | css: tailwind sass scss bootstrap
    hash: argon2 argon2id bcrypt scrypt pbkdf2 | password: argon2 argon2id bcrypt scrypt
    carrier: dhl ups fedex dpd usps | language: english german french spanish python go rust typescript java
    german: locale translation | version_control: git
"""

BEGINNING = 2  # letters of a word that no stemmer changes

Table = Mapping[str, tuple[str, ...]]


def as_mapping(own: Iterable[Alias]) -> dict[str, tuple[str, ...]]:
    """The aliases in force, as people write them: the defaults, and a person's own lines in place of theirs.

    A line that expands to nothing takes its word out.
    """
    joined = {word.replace("_", " "): others for word, others in _defaults().items()}
    joined |= {alias.word: alias.expands_to for alias in own}
    return {word: tuple(other.replace("_", " ") for other in others) for word, others in joined.items() if others}


def is_default(word: str) -> bool:
    """Whether Kept itself brings aliases of this word."""
    return word.replace(" ", "_") in _defaults()


def expansions(words: Sequence[str], own: Sequence[Alias]) -> dict[str, tuple[str, ...]]:
    """Word of the query → the prepared words to look for as well. Words that are said together are found together."""
    own_table = _prepared((alias.word, alias.expands_to) for alias in own)
    found: dict[str, tuple[str, ...]] = {}
    for place, word in enumerate(words):
        for key in (word, *(f"{word} {after}" for after in words[place + 1 : place + 2])):
            others = own_table[key] if key in own_table else prepared_defaults(key[:BEGINNING]).get(key, ())
            if others:
                found[word] = tuple(dict.fromkeys((*found.get(word, ()), *others)))
    return found


@cache
def _defaults() -> dict[str, tuple[str, ...]]:
    """Word → the others of its groups, and the things of its kind."""
    groups = [group.split() for group in _GROUPS.replace("\n", "|").split("|")]
    table: dict[str, tuple[str, ...]] = {}
    for group in groups:
        for word in group:
            table[word] = tuple(dict.fromkeys((*table.get(word, ()), *(other for other in group if other != word))))
    for line in filter(str.strip, _KINDS.replace("\n", "|").split("|")):
        word, _, things = line.partition(":")
        table[word.strip()] = tuple(dict.fromkeys((*table.get(word.strip(), ()), *things.split())))
    return table


def _prepared(groups: Iterable[tuple[str, Iterable[str]]]) -> dict[str, tuple[str, ...]]:
    """The same table in the words that an index holds. Of two words said together, both stand in the key."""
    table: dict[str, tuple[str, ...]] = {}
    for word, others in groups:
        tokens = [token for other in others if "_" not in other and " " not in other for token in text.words(other)[:1]]
        key = " ".join(token for part in word.replace("_", " ").split() for token in text.words(part)[:1])
        table[key] = tuple(dict.fromkeys((*table.get(key, ()), *tokens)))
    return table


@cache
def prepared_defaults(beginning: str) -> Table:
    """The prepared defaults of the words that begin so. To prepare all of them takes as long as several recalls."""
    table = _prepared((word, _defaults()[word]) for word in _beginnings().get(beginning, ()))
    return {key: tuple(word for word in others if word != key) for key, others in table.items()}


@cache
def _beginnings() -> dict[str, list[str]]:
    """The words that have defaults, by how they begin."""
    found: dict[str, list[str]] = {}
    for word in _defaults():
        found.setdefault(word.replace("_", " ")[:BEGINNING], []).append(word)
    return found
