"""The vocabulary of software work: words that stand for each other, and things of a kind.

The tables as people write the words, and the list of all aliases that `kept alias list` shows. `query.py` reads
`stems.py`, where `docs/stems.py` lists the same words by the stems that an index holds: run it after every change.
Words of one group stand for each other both ways, so a group holds only what another engineer would say for the same
thing; a word may be in several. Two words joined by `_` are said together.
Rule: a missing word costs a little, a wrong one brings wrong memories.
"""

from collections.abc import Iterable, Sequence

from kept import text
from kept.model import Alias
from kept.recall.query import default_lines, forms_in, is_asked, written_expansions

# Who is allowed in, and as whom.
_ACCOUNTS = """
    auth authentication login signin logon sso oauth sign_in log_in logged_in signed_in signing_in logging_in
    authorization permission perms access role privilege acl rbac right | password creds credential passphrase
    admin administrator backoffice back_office | staff employee colleague team | customer buyer shopper
    user account member profile | visitor guest anonymous | logout signout log_out sign_out
    signup registration register sign_up onboarding | 2fa mfa totp two_factor second_factor otp
    token secret key credential | session cookie | magic_link passwordless | ban block suspend
    owner responsible maintainer | approve approval allow permit sign_off | decide decision choose choice
    boss manager
"""

# Where data is.
_DATA = """
    db database sql datastore | pg postgres postgresql psql | mongo mongodb | schema migration ddl | table relation
    column field attribute | row record entry | query select statement | cache caching cached memoize
    store save persist write | delete remove drop erase purge destroy | backup snapshot dump
    restore recover recovery | replica replication standby | shard partition | transaction tx commit rollback
    constraint foreign_key fk | id identifier uuid key | duplicate dupe doubled | data dataset information
    time_series timeseries | measurement sample | aggregate rollup downsample average mean | retention retain lifetime
    archive archived cold_storage | blob bucket object_storage s3 | csv spreadsheet excel | export dump extract
    import ingest ingestion load | seed fixture sample_data test_data | pagination paging paginate cursor offset
    sort ordering | join merge combine aggregate | truncate clear wipe
"""

# What talks to what.
_SERVICES = """
    api endpoint route rest handler | request call req | response reply resp answer | backend server service back_end
    microservice service daemon | gateway proxy ingress | webhook callback hook | rpc grpc | json payload body
    url link address uri href | domain host hostname dns | port socket | websocket realtime | queue broker bus
    topic channel stream | publish emit send produce | subscribe listen consume receive | event message msg
    notification notify alert alarm | email mail e_mail smtp | sms text_message | push_notification notification
    rate_limit throttle throttling quota | timeout deadline | expiry expire ttl lifetime expiration expires
    retry backoff retries again | poll polling fetch | cdn edge | load_balancer lb nginx haproxy
    client consumer caller | protocol transport | communicate talk connect connection
    integration integrate connector | sdk client_library | upload uploading attach | download fetch pull
    encrypt encryption encrypted cipher | certificate cert tls ssl https | hash hashing hashed digest
    sign signing signature signed | proxy tunnel vpn
"""

# What people see.
_SCREENS = """
    frontend client_side front_end ui interface gui | webapp web_app website site | page screen view
    storefront shop store shop_front web_shop | mobile phone smartphone handset | app application
    ios iphone ipad apple | android google_play | desktop electron | browser webview | button cta | form input field
    picture image photo img | icon glyph symbol | logo emblem | css style styling stylesheet
    font typeface typography | colour color theme palette | dark_mode theme | layout design look appearance
    component widget element | modal dialog popup overlay | menu nav navigation sidebar | dropdown select picker
    chart graph plot diagram | dashboard overview panel | tooltip hint | toast snackbar notification
    keyboard shortcut hotkey | a11y accessibility screen_reader wcag aria | responsive breakpoint
    render rendering draw paint display show
    translation i18n l10n localisation localization locale translate language | date timestamp calendar
    animation transition | offline service_worker pwa | blank white empty | video clip movie
    search find lookup full_text | autocomplete typeahead suggestion | copy wording
"""

# What is sold.
_TRADE = """
    cart basket trolley | coupon voucher discount promo | checkout purchase buy buying order
    price cost amount fee tariff | pay payment billing charge paid | money currency cents euro dollar
    refund reimbursement chargeback money_back return | invoice bill receipt | tax vat gst
    subscription plan tier licence license membership | trial free_period demo
    shipping delivery parcel shipment package | label sticker | carrier courier | warehouse depot stockroom
    stock inventory supply | product item article good sku | brand manufacturer vendor maker supplier
    accountant accounting bookkeeping ledger finance | support helpdesk customer_service | ticket issue case
    contract agreement | rating feedback | salary wage | booking reservation reserve appointment
    catalogue catalog assortment
"""

# The code itself.
_CODE = """
    config configuration settings options preferences cfg | env environment environment_variable dotenv
    flag toggle switch feature_flag | param parameter argument arg | variable var | constant const
    function fn method func procedure routine | class type struct | interface protocol trait | dir directory folder
    file path | module package library lib | dependency deps packages dependencies | string text
    number integer int numeric float | boolean bool flag | list array sequence | map dict dictionary hash_map
    object instance | enum enumeration | generic template | async asynchronous await coroutine
    sync synchronous blocking | background async job | job task cron_job
    schedule cron timer nightly periodic scheduled | thread process worker | lock mutex semaphore
    race concurrency concurrent simultaneous parallel race_condition | deadlock lock | loop iterate iteration
    parse parser parsing | serialise serialize encode | deserialise deserialize decode
    validate validation check verify sanitise sanitize | convert conversion transform
    regex regexp pattern regular_expression | comment docstring doc_comment | naming name named called names
    rename move | refactor refactoring restructure rewrite cleanup clean_up | legacy old deprecated obsolete outdated
    unused dead stale | monorepo mono_repo single_repository | snippet example sample demo | feature functionality
    architecture structure design layout | layer tier | convention rule policy guideline standard practice
    style convention formatting | prefer preference like want favour favor
    typing typed types type_hints annotation static_typing | default fallback | limit maximum max cap ceiling
    minimum min least | size dimension | version release | compile build compiler compilation | script command cli cmd
    shell terminal console bash | code source codebase code_base | template boilerplate scaffold
    generate generated generator codegen
"""

# What goes wrong.
_TROUBLE = """
    error err exception failure fault | fail failing failed broken breaks fails break
    crash crashed segfault panic abort | bug defect issue problem
    hang hanging stuck freeze frozen unresponsive freezes hangs | warning caution
    danger dangerous risky unsafe safe careful | flaky intermittent unstable unreliable random
    wrong incorrect false bad | fix fixed solution workaround resolve repair remedy | cause reason root_cause culprit
    debug debugging troubleshoot diagnose | log logs logging
    trace tracing stacktrace stack_trace traceback backtrace
    slow performance perf speed latency lag sluggish slowness | fast quick speedy | optimise optimize tune speed_up
    memory ram leak heap | cpu processor | disk storage | oom out_of_memory | overflow overrun
    missing lost vanish disappear gone lose | corrupt corrupted damaged broken | conflict clash collision mismatch
    reject rejected refuse denied forbidden | large big huge too_large | incident outage downtime postmortem
    regression broke | reproduce repro | avoid forbid | restart reboot reload relaunch | kill terminate stop abort
    leak leaking | vulnerability cve security exploit | null nil none undefined | rollback revert undo back_out
"""

# How it is made and run.
_WORK = """
    repo repository | branch ref | commit revision changeset | pr pull_request merge_request mr patch
    merge merging rebase squash | review reviewer code_review | changelog release_notes history | tag label
    git version_control vcs | workflow process procedure flow
    ci pipeline build continuous_integration build_server cd
    deploy deployment release rollout ship roll_out publish launch go_live | prod production
    staging preproduction preprod stage | dev development local | test_environment sandbox staging
    k8s kubernetes cluster | infra infrastructure | container docker image | vm virtual_machine instance
    host hosting hosted | region zone datacentre datacenter | monitoring observability metrics telemetry uptime
    alerting pager on_call oncall rota | health healthcheck probe heartbeat | scale scaling autoscaling
    test tests testing spec specs unit_test test_suite suite | e2e end_to_end integration_test acceptance
    mock stub fake | coverage covered | benchmark load_test stress_test | lint linter linting static_analysis
    format formatter formatting | typecheck type_check type_checker typechecker
    docs documentation readme guide manual | execute run launch start invoke | install installation setup set_up
    upgrade update bump migrate | uninstall remove | build make compile | roadmap milestone | meeting standup
    deadline due | todo open unfinished remaining pending | ticket issue story | estimate effort
    release_train release_cycle cadence | hardware machine device equipment | firmware embedded
    sensor probe detector | update ota over_the_air flash | battery power energy | buy purchase procurement order
    explanation explain describe description | answer reply respond response | short brief concise terse
    js javascript | ts typescript | py python | rb ruby | golang go | cs c# csharp | ml machine_learning ai
    llm language_model gpt model
"""

# Forms of one word that stemming does not bring together.
_FORMS = """
    app application apps | admin administration | spec specification | doc document documentation | repo repository
    perf performance | prod production | dev develop development developer | env environment | arg argument
    param parameter | lib library | dir directory | msg message | req request requirement | resp response | err error
    impl implementation implement | init initialise initialize initialisation initialization
    auth authenticate authorise authorize | synchronisation synchronization sync | async asynchronous | ref reference
    attr attribute | num number | str string | temp temporary tmp | prev previous | max maximum | min minimum
    avg average | info information | intro introduction | k8s kubernetes
    i18n internationalisation internationalization | l10n localisation localization | a11y accessibility
    o11y observability | e2e end_to_end | tz timezone time_zone | ui user_interface | ux user_experience
    os operating_system | db database | fs filesystem file_system | regex regexp | calc calculate calculation compute
    gen generate | analyse analyze analysis | colour color | behaviour behavior | licence license | centre center
    catalogue catalog | organise organize organisation organization | send sent | buy bought | build built
    write written wrote | run ran running | choose chose chosen | break broke broken | keep kept | hold held
    make made | begin began | lose lost | find found | tell told | pay paid | sell sold | fail failure
    decide decision | delete deletion | expire expiry expiration | deploy deployment | migrate migration
    retain retention | approve approval | remove removal | require requirement | authenticate authentication
    depend dependency | configure configuration | install installation | verify verification | store stored storage
    encrypt encryption | resolve resolution | permit permission | notify notification | use usage
    know knowledge known | grow growth | measure measurement | convert conversion | translate translation
"""

# Everyday words that stand for each other in any project.
_EVERYDAY = """
    edit modify alter change amend | show display present | screen monitor display | hide conceal
    prevent avoid guard protect | protect secure security safeguard | private personal privacy confidential
    schedule timetable calendar | late delay delayed | computer pc desktop laptop | printer print printing
    scanner scan reader | letter correspondence | report statistics stats | reversible revert undo rollback
    disconnect drop reconnect | discount reduction rebate | opinion preference prefer dislike | author write written
    combine join merge | duplicate twice double | unfinished open lacks missing | stay last remain
"""

_GROUPS = (_ACCOUNTS, _DATA, _SERVICES, _SCREENS, _TRADE, _CODE, _TROUBLE, _WORK, _FORMS, _EVERYDAY)

# A kind of things, and things of that kind: asked for by the one, told by the other. One way only.
_KINDS = """
    database: postgresql mysql mariadb sqlite mongodb redis dynamodb cassandra clickhouse duckdb timescaledb influxdb
    database: cockroachdb oracle firestore supabase neo4j snowflake bigquery
    framework: react vue svelte sveltekit angular nextjs next.js nuxt remix astro django flask fastapi rails laravel
    framework: express fastify hono nestjs spring phoenix flutter electron tauri qt actix axum gin
    frontend: react vue svelte angular | mobile: ios android flutter swift kotlin react_native
    orm: prisma drizzle sqlalchemy typeorm sequelize activerecord ecto diesel hibernate
    cdn: cloudfront cloudflare fastly akamai | broker: rabbitmq kafka redis nats sqs mqtt emqx mosquitto
    queue: rabbitmq kafka celery bullmq sidekiq sqs | bus: kafka rabbitmq nats mqtt | worker: celery sidekiq bullmq
    cache: redis memcached varnish | search: elasticsearch opensearch meilisearch typesense algolia solr lucene
    protocol: http mqtt grpc amqp websocket tcp udp | api: graphql rest grpc openapi
    proxy: nginx envoy traefik haproxy caddy

    linter: eslint ruff flake8 pylint golangci biome clippy rubocop credo
    formatter: prettier black ruff gofmt biome rustfmt | typechecker: mypy pyright tsc
    typing: mypy pyright tsc strict | test: pytest jest vitest playwright cypress mocha junit rspec exunit nextest
    e2e: playwright cypress selenium puppeteer | browser: safari chrome firefox edge | iphone: safari swift xcode ipa
    ios: swift xcode ipa testflight safari | android: kotlin gradle apk
    cloud: aws gcp azure hetzner digitalocean heroku | hosting: aws gcp azure hetzner vercel netlify heroku fly
    storage: s3 gcs bucket minio | payment: stripe paypal mollie adyen braintree klarna iban card
    email: postmark sendgrid mailgun brevo ses smtp | sms: twilio vonage | notification: sms email twilio push
    monitoring: grafana prometheus datadog sentry loki
    observability: grafana prometheus datadog sentry loki opentelemetry | logging: loki elk kibana fluentd
    ci: github_actions jenkins gitlab circleci buildkite | container: docker podman kubernetes
    npm: pnpm yarn package.json node | package: npm pnpm yarn pip poetry uv cargo
    dependency: npm pnpm yarn pip poetry cargo | shell: bash zsh fish powershell nushell
    iac: terraform pulumi ansible | sso: keycloak auth0 okta saml oidc | auth: passkey magic_link oauth keycloak
    css: tailwind sass scss bootstrap | hash: argon2 argon2id bcrypt scrypt pbkdf2
    password: argon2 argon2id bcrypt scrypt | carrier: dhl ups fedex dpd usps
    language: english german french spanish python go rust typescript java | price: euro dollar cents
    cost: euro dollar cents | unit: celsius kelvin metre meter gram percent pixel
    temperature: celsius kelvin fahrenheit | build: webpack vite esbuild make gradle maven cargo bazel
    runtime: node deno bun python | editor: vscode vim neovim emacs jetbrains | chat: slack discord teams mattermost
    tracker: jira linear github trello | flag: unleash launchdarkly | secret: vault sops dotenv
    git: squash rebase branch commit merge
"""


def as_mapping(own: Iterable[Alias]) -> dict[str, tuple[str, ...]]:
    """Return the aliases in force, as people write them: the defaults, and a person's own lines in place of theirs.

    A line that expands to nothing takes its word out, in all forms that are searched alike.
    """
    lines = {alias.word: alias.expands_to for alias in own}
    defaults = {word: others_of(word, groups) for word, groups in groups_by_word().items()}
    kept = {word: others for word, others in defaults.items() if not any(is_same_phrase(word, own) for own in lines)}
    joined = kept | lines
    shown = {word: tuple(other.replace("_", " ") for other in others) for word, others in joined.items() if others}
    return {word.replace("_", " "): others for word, others in shown.items()}


def is_default(word: str) -> bool:
    """Return True if Kept itself brings aliases of this word, in any of its forms."""
    return any(is_same_phrase(word, own) for words, _ in default_lines(text.phrase(word)) for own in words)


def is_same_phrase(word: str, other: str) -> bool:
    """Return True if two words, or words said together, are forms of the same."""
    return text.phrase(word) == text.phrase(other) and is_asked(word, forms_in(other))


def is_expanded(word: str, other: str, own: Sequence[Alias]) -> bool:
    """Return True if a query for the word also searches for the other one, or a person took the word out."""
    if any(not alias.expands_to and is_same_phrase(word, alias.word) for alias in own):
        return True
    key = text.phrase(word)
    return text.phrase(other) in map(text.phrase, written_expansions((key,), own, forms_in(word)).get(key, ()))


def groups_by_word() -> dict[str, list[tuple[str, ...]]]:
    """Map each word to the groups that it brings in."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for group in "|".join(_GROUPS).replace("\n", "|").split("|"):
        words = tuple(group.split())
        for word in words:
            found.setdefault(word, []).append(words)
    for line in filter(str.strip, _KINDS.replace("\n", "|").split("|")):
        word, _, things = line.partition(":")
        found.setdefault(word.strip(), []).append(tuple(things.split()))
    return found


def others_of(word: str, groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the other words of its groups, each once."""
    return tuple(dict.fromkeys(other for group in groups for other in group if other != word))
