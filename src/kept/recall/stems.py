"""Word lists and aliases in the form that an index holds.

Written by docs/stems.py. Change word_lists.py, vocabulary.py or english.py, then run `python docs/stems.py`.
"""

# ruff: noqa: E501


def _table(entries: str) -> dict[str, str]:
    return dict(entry.split(": ") for entry in entries.strip().replace("\n", " | ").split(" | "))


# The fillers of a question about a conversation.
FILLERS = frozenset(
    """
    a about also am an and ani are as at be been but by can could did do doe done ever for from get got had has have he
    her here him his how i if in into is it kind like long mani may me might mine much must my myself no not of often on
    or our peopl person shall she should so some sort than that the their them then there these they thing this those to
    type us was we were what when where whi which who whom whose will with would you your
    """.split()
)

# Words that never make a hit on their own.
WORTHLESS = frozenset(
    """
    a aber abl about abov after again al alreadi also alway am an and ani anyth are as at au auch auf aus aux avec be
    becaus been befor bei below betwe both but by can cannot ce ces cett comment como con could couldn cual cuando dan
    das de del dem den der des did didn die do doe doesn don dond done down du dure each ein einem einen einer el ell en
    er es est esta et even ever everi everyth few for from fuer fur further get got haben had has hat have he her here
    him his how i ich if il im in into is isn ist it just kann kein kind la las le les let like ll lo long los ma man
    mani may me mein mes mi might mine mit mon more most much muss must my myself nach ne need never nicht no noch nor
    nos not noth notr nous nuestra nuestro nur o oder of off often on onc onli or other ou our out over own par para pas
    peopl per person pleas por pour pourquoi quand que quel quell qui quien quoi re realli s sa same se ses shall she
    should shouldn sie sind so soll some someth son sont sort still su such sur sus t tell than that the their them then
    there these they thing this those through to too type un una und under une uno unser until up us use ve veri via von
    vous wann want war waren warum was we welch welcher wer werden were what when where whi which while who whom whose
    wie will wir wird with wo won would wouldn wurd y yet you your zu zum zur
    """.split()
)

# Words in many memories of any project.
COMMON = frozenset(
    """
    across actual add allow answer appli ask avail back bad base becom begin best better big bring bug build call care
    case caus certain chang check choos code come common complet consid contain continu correct cours creat current day
    deal decid default differ earli easi els end enough error exampl exist expect explain fact far featur file find
    first fix follow full general give good great group half handl happen hard help high hold hour idea implement improv
    includ inform issu keep know larg last late least leav left less level line list littl live look lot low main make
    manag matter mean mention minut month move name near new next now number old one open option order part past place
    plan point possibl prefer probabl problem project provid put question quick rather read real reason receiv recent
    relat remain rememb remov result right run save say second see seem send set sever short show side similar simpl
    singl small soon special specif start stop support sure system take talk task test thank think three time today
    togeth tomorrow tonight tool total tri turn two understand updat user usual valu various version way week whole wish
    within without wonder word work world write wrong year yes yesterday
    """.split()
)

# Words of daily life: each is a word, and no slip of the keyboard.
EVERYDAY = frozenset(
    """
    abl abroad accomplish achiev acquir across activ actual add advic afraid afternoon again ago allow amazon america
    analyst ancient angel angri anim ankl anniversari answer anxieti anxious apart app appl appli appoint april art
    artist artwork ask assist asthma ate august aunt author autumn avail award babi bachelor back bad bake baker bakeri
    banana band barcelona base basebal basil basketbal bass beach bear becam becom bed beer began begin begun belief
    believ best better big bike biolog bird birth birthday black blue blueberri bmw book bookshelf born boston both
    bought boutiqu boyfriend brand bread break breakfast bring broccoli broke broken brother brought brown browni brunch
    buddi bug build built burger bus busi buy cafe cake california call calm came camera camp canada cancer car cardio
    care career carrot case cat catch caught caus celebr cello certain chair challeng championship chang chariti chat
    cheap check chees cheesecak chef chess chicago chick child childhood childr china chines chocol choic choos chose
    chosen christma church cinema citi clarinet class classic clinic cloth club coach cocktail code coffe colleg color
    colorado come comedi common compani competit complet comput concert confer confirm consid consol construct consult
    contain contest continu convers cook cooki correct cost costco couch cough countri coupl cours cousin craft creat
    current curri cycl dad daisi danc date daughter day dead deal death decemb decid decis deer default degre depress
    design desk dessert develop devic diabet die differ difficult dinner discount discuss diseas dish dislik doctor dog
    dollar donat down dozen drama drank draw drawn dream dress drew drink drive driven drove drum drunk earli earliest
    easi easter eat eaten ebay econom educ eight eleph eleven els emot employ encount end engin england english enjoy
    enough error etsi evening event exampl excit exercis exhaust exist expect explain facebook fact faith fall fallen
    famili fan fantasi far father favorit fear featur februari fed feed feel feet fell felt festiv fever fiction fight
    file film find finish firm first fish fit five fix flew fli flight florida flower flown flu flute folk follow food
    foot footbal ford forest forget forgot forgott fought found four fractur franc francisco french friday friend fruit
    frustrat full fundrais funer furnitur game garden gave general genr german germani get getaway gift gig girlfriend
    give given go goal golf gone good got gotten graduat grandfath grandma grandmoth grandpa grandpar grape grate gray
    great green grew group grow grown guitar gym half hallowe hamster handl happen happi hard hat hate headach headphon
    health hear heard held help herb hid hidden hide high hike hill histori hobbi hockey hold holiday home honda hope
    horror hors hospit hour hous huge hundr hurt husband idea ikea ill imag implement improv includ india inform injur
    injuri inspir instagram instructor instrument intend interest internet introduc ireland issu itali italian jacket
    januari japan japanes jazz jean job jog journey joy juic juli june keep kept keyboard kid kitten knee knew knit know
    known lake languag laptop larg last late latest launch lawyer lead learn least leav led left lend lent less lesson
    level librari life like lili line lion list littl live london look lose loss lost lot love low lunch mad made main
    major make man manag mango mapl marathon march marri marriag master math matter meal mean media meet men mention met
    metal mexico mice michigan minnesota minut mobil model mom monday money month morn mother motiv motorcycl mountain
    mous move movi mum museum music musician mysteri name nation natur nausea near nervous netflix new next nicknam
    night nine nintendo nonprofit novel novemb now number nurs oak occup ocean octob often old onc one onion onlin open
    opinion option orang orchid order oregon organiz paid pain paint painter pal parad parent pari park parrot part
    parti partner pass passion past pasta pay payment pc peac peach peak pepper perform pet phd phone photo photograph
    photographi physician piano pictur pie pilat pine pink pizza place plan plant play playstat point poker pop possibl
    potato potteri prefer present previous price prius prize probabl problem profess project proud provid psycholog pud
    pup puppi purchas purpl put question quick quit rabbit race rain ran rather read real reason receiv recent recip
    recommend red relat relationship relax religion reloc remain rememb remind remov repair resid resign restaur result
    rice ridden ride right river rock rode romanc rome rose run sad said salad sale sandwich sang sat saturday save saw
    saxophon say scare school scienc sculptur sea season seattl second see seek seem seen sell send sent septemb set
    seven sever sew shelf shirt shoe shoot shop short shot shoulder show shown sibl sick side similar simpl sinc sing
    singer singl sister sit six sketch ski skill sleep slept small smartphon smoothi snake snow soccer soda sofa sold
    son song soon sought soup spain spanish speak special specif speech spend spent spinach spiritu spoke spoken sport
    spotifi spous sprain spring squad stage stand start startup state steal stole stolen stood stop store storm strategi
    strawberri stress struggl studi subject succul suggest summer sun sunday sunflow sung support sure surf sushi suv
    swam sweater sweden swim swum symptom system tabl tablet taco take taken talent talk target task taught tea teach
    teacher team teeth tell ten tenni tesla test texa thank thanksgiv think third thirti thought three threw thrill
    thriller through throw thrown thursday tiktok time tini tire today toddler togeth tokyo told tomato tomorrow tonight
    took tool tooth total tournament town toyota track trail transform transit travel tree trek tri trip trophi troubl
    truck trumpet tuesday tulip turn turtl twelv twenti twice twitter two uber ukulel uncl understand understood
    universiti up updat upset usa use user usual vacat valu van various veget vehicl version vintag violin visit
    volleybal volunt waiter wake walmart want washington watch water way wear weather websit wed wednesday week weekend
    weight went white whole wife win wind wine winter wish within without wive woke woken wolf woman women won wonder
    wood woodwork word wore work workout workshop world worn worri wors worst wrist write writer writt wrong wrote xbox
    year yellow yes yesterday yoga york young youtub
    """.split()
)

# Verbs that begin a prompt which asks for work on anything.
ORDERS = frozenset(
    """
    add build chang continu creat extend finish fix handl implement improv make support updat
    """.split()
)

# Words of rules about every answer.
ANSWERS = frozenset(
    """
    answer approv ask bullet confirm emoji explain explan prais repli respond summaris tabl
    """.split()
)

# Words of rules about code.
CODE = frozenset(
    """
    branch build chang changelog check code command comment commit compil depend directori doc edit error fail featur
    file fix folder format function implement lint merg migrat modul name plan pull push rebas refactor repositori
    review run script spec squash test type updat workspac
    """.split()
)

# Words of rules about running it.
RUNNING = frozenset(
    """
    backup deploy host outag prod product releas rollout server stage
    """.split()
)

# Words of rules about texts.
TEXTS = frozenset(
    """
    concis doc document head issu languag line markdown paragraph readm render sentenc style text tone translat word
    wrap write
    """.split()
)

# Words of rules about screens.
SCREENS = frozenset(
    """
    button colour css dialog field form gui icon keyboard label layout menu screen style tab theme tip tooltip ui
    """.split()
)

# Words of prompts for work on screens.
ON_SCREENS = frozenset(
    """
    button css dialog form frontend gui header layout menu page panel screen style tab ui view widget
    """.split()
)

# Word → words said for it.
ALIASES = _table(
    """
2fa: mfa, totp, two factor, second factor, otp | a11y: accessibility, screen reader, wcag, aria
abort: crash, crashed, segfault, panic, kill, terminate, stop | accept: acceptance > e2e, end to end, integration test
access: authorization, permission, perms, role, privilege, acl, rbac, right; accessibility > a11y, screen reader, wcag, aria
account: account, accounting > user, member, profile, accountant, bookkeeping, ledger, finance; accountant > accounting, bookkeeping, ledger, finance
acl: authorization, permission, perms, access, role, privilege, rbac, right | address: url, link, uri, href
admin: administrator, backoffice, back office, administration
administr: administrator, administration > admin, backoffice, back office | again: retry, backoff, retries
aggreg: aggregate > rollup, downsample, average, mean, join, merge, combine | agreement: contract
ai: ml, machine learning | alarm: notification, notify, alert
alert: alert, alerting > notification, notify, alarm, pager, on call, oncall, rota
allow: approve, approval, permit, sign off | alter: edit, modify, change, amend | amend: edit, modify, alter, change
amount: price, cost, fee, tariff | analys: analyse > analyze, analysis | analysi: analysis > analyse, analyze
analyz: analyze > analyse, analysis | android: google play, kotlin, gradle, apk | anim: animation > transition
annot: annotation > typing, typed, types, type hints, static typing | anonym: anonymous > visitor, guest
answer: response, reply, resp, respond | api: endpoint, route, rest, handler, graphql, grpc, openapi
app: app, apps > application | appear: appearance > layout, design, look | appl: apple > ios, iphone, ipad
applic: application > app, apps | appoint: appointment > booking, reservation, reserve
approv: approve, approval > allow, permit, sign off | architectur: architecture > structure, design, layout
archiv: archive, archived > cold storage | arg: param, parameter, argument | argument: param, parameter, arg
aria: a11y, accessibility, screen reader, wcag | array: list, sequence | articl: article > product, item, good, sku
assort: assortment > catalogue, catalog | async: asynchronous, await, coroutine, background, job
asynchron: asynchronous > async, await, coroutine | attach: upload, uploading | attr: attribute
attribut: attribute > column, field, attr
auth: authentication, login, signin, logon, sso, oauth, sign in, log in, logged in, signed in, signing in, logging in, authenticate, authorise, authorize, passkey, magic link, keycloak
authent: authentication, authenticate > auth, login, signin, logon, sso, oauth, sign in, log in, logged in, signed in, signing in, logging in, authorise, authorize
author: authorization, authorize > permission, perms, access, role, privilege, acl, rbac, right, auth, authenticate, authorise; write, written
authoris: authorise > auth, authenticate, authorize | autocomplet: autocomplete > typeahead, suggestion
autosc: autoscaling > scale, scaling | averag: average > aggregate, rollup, downsample, mean, avg | avg: average
avoid: forbid, prevent, guard, protect | await: async, asynchronous, coroutine
back end: back end > backend, server, service | back offic: back office > admin, administrator, backoffice
back out: back out > rollback, revert, undo | backend: server, service, back end | background: async, job
backoff: retry, retries, again | backoffic: backoffice > admin, administrator, back office
backtrac: backtrace > trace, tracing, stacktrace, stack trace, traceback | backup: snapshot, dump
bad: wrong, incorrect, false | ban: block, suspend | bash: shell, terminal, console | basket: cart, trolley
batteri: battery > power, energy | began: begin | begin: began | behavior: behaviour | behaviour: behavior
benchmark: load test, stress test | big: large, huge, too large
bill: billing, bill > pay, payment, charge, paid, invoice, receipt | blank: white, empty
blob: bucket, object storage, s3 | block: block, blocking > ban, suspend, sync, synchronous | bodi: body > json, payload
boilerpl: boilerplate > template, scaffold | book: booking > reservation, reserve, appointment
bookkeep: bookkeeping > accountant, accounting, ledger, finance | bool: boolean, flag | boolean: bool, flag
boss: manager | bought: buy | branch: ref | brand: manufacturer, vendor, maker, supplier
break: breaks, break > fail, failing, failed, broken, fails, broke | breakpoint: responsive
brief: short, concise, terse | broke: regression, break, broken
broken: fail, failing, failed, breaks, fails, break, corrupt, corrupted, damaged, broke
broker: queue, bus, rabbitmq, kafka, redis, nats, sqs, mqtt, emqx, mosquitto
browser: webview, safari, chrome, firefox, edge | bucket: blob, object storage, s3 | bug: defect, issue, problem
build: compile, compiler, compilation, ci, pipeline, continuous integration, build server, cd, make, built, webpack, vite, esbuild, gradle, maven, cargo, bazel
build server: build server > ci, pipeline, build, continuous integration, cd | built: build
bump: upgrade, update, migrate | bus: queue, broker, kafka, rabbitmq, nats, mqtt | button: cta
buy: buy, buying > checkout, purchase, order, procurement, bought | buyer: customer, shopper
cach: cache, caching, cached > memoize, redis, memcached, varnish | cadenc: cadence > release train, release cycle
calc: calculate, calculation, compute | calcul: calculate, calculation > calc, compute
calendar: date, timestamp, schedule, timetable | call: call, called > request, req, naming, name, named, names
callback: webhook, hook | caller: client, consumer | cap: limit, maximum, max, ceiling
care: careful > danger, dangerous, risky, unsafe, safe | carrier: courier, dhl, ups, fedex, dpd, usps
cart: basket, trolley | case: ticket, issue | catalog: catalogue, assortment | catalogu: catalogue > catalog, assortment
caus: cause > reason, root cause, culprit | caution: warning
cd: ci, pipeline, build, continuous integration, build server | cdn: edge, cloudfront, cloudflare, fastly, akamai
ceil: ceiling > limit, maximum, max, cap | cent: cents > money, currency, euro, dollar | center: centre
centr: centre > center | cert: certificate, tls, ssl, https | certif: certificate > cert, tls, ssl, https
cfg: config, configuration, settings, options, preferences | chang: change > edit, modify, alter, amend
changelog: release notes, history | changeset: commit, revision | channel: topic, stream
charg: charge > pay, payment, billing, paid | chargeback: refund, reimbursement, money back, return
chart: graph, plot, diagram | chat: slack, discord, teams, mattermost
check: validate, validation, verify, sanitise, sanitize | checkout: purchase, buy, buying, order
choic: choice > decide, decision, choose | choos: choose > decide, decision, choice, chose, chosen
chose: choose, chosen | chosen: choose, chose
ci: pipeline, build, continuous integration, build server, cd, github actions, jenkins, gitlab, circleci, buildkite
cipher: encrypt, encryption, encrypted | clash: conflict, collision, mismatch | class: type, struct
clean up: clean up > refactor, refactoring, restructure, rewrite, cleanup
cleanup: refactor, refactoring, restructure, rewrite, clean up | clear: truncate, wipe | cli: script, command, cmd
client: consumer, caller | client librari: client library > sdk
client side: client side > frontend, front end, ui, interface, gui | clip: video, movie
cloud: aws, gcp, azure, hetzner, digitalocean, heroku | cluster: k8s, kubernetes | cmd: script, command, cli
code: source, codebase, code base | code base: code base > code, source, codebase
code review: code review > review, reviewer | codebas: codebase > code, source, code base
codeg: codegen > generate, generated, generator | cold storag: cold storage > archive, archived
colleagu: colleague > staff, employee, team | collis: collision > conflict, clash, mismatch
color: colour, theme, palette | colour: color, theme, palette | column: field, attribute
combin: combine > join, merge, aggregate | command: script, cli, cmd | comment: docstring, doc comment
commit: transaction, tx, rollback, revision, changeset | communic: communicate > talk, connect, connection
compil: compile, compiler, compilation > build, make | compon: component > widget, element
comput: compute, computer > calc, calculate, calculation, pc, desktop, laptop | conceal: hide
concis: concise > short, brief, terse | concurr: concurrency, concurrent > race, simultaneous, parallel, race condition
confidenti: confidential > private, personal, privacy | config: configuration, settings, options, preferences, cfg
configur: configuration, configure > config, settings, options, preferences, cfg | conflict: clash, collision, mismatch
connect: connect, connection > communicate, talk | connector: integration, integrate
consol: console > shell, terminal, bash | const: constant | constant: const | constraint: foreign key, fk
consum: consume, consumer > subscribe, listen, receive, client, caller
contain: container > docker, image, podman, kubernetes
continu integr: continuous integration > ci, pipeline, build, build server, cd | contract: agreement
convent: convention > rule, policy, guideline, standard, practice, style, formatting
convers: conversion > convert, transform | convert: conversion, transform | cooki: cookie > session
copi: copy > wording | coroutin: coroutine > async, asynchronous, await | correspond: correspondence > letter
corrupt: corrupt, corrupted > damaged, broken | cost: price, amount, fee, tariff, euro, dollar, cents
coupon: voucher, discount, promo | courier: carrier | cover: covered > coverage | coverag: coverage > covered
cpu: processor | crash: crash, crashed > segfault, panic, abort | cred: creds > password, credential, passphrase
credenti: credential > password, creds, passphrase, token, secret, key
cron: schedule, timer, nightly, periodic, scheduled | cron job: cron job > job, task | cs: c#, csharp
csharp: c# > cs, csharp; cs, c# | css: style, styling, stylesheet, tailwind, sass, scss, bootstrap
csv: spreadsheet, excel | cta: button | culprit: cause, reason, root cause
currenc: currency > money, cents, euro, dollar | cursor: pagination, paging, paginate, offset
custom: customer > buyer, shopper | custom servic: customer service > support, helpdesk
cve: vulnerability, security, exploit | daemon: microservice, service | damag: damaged > corrupt, corrupted, broken
danger: dangerous, risky, unsafe, safe, careful; dangerous > danger, risky, unsafe, safe, careful
dark mode: dark mode > theme | dashboard: overview, panel | data: dataset, information
databas: database > db, sql, datastore, postgresql, mysql, mariadb, sqlite, mongodb, redis, dynamodb, cassandra, clickhouse, duckdb, timescaledb, influxdb, cockroachdb, oracle, firestore, supabase, neo4j, snowflake, bigquery
datacent: datacenter > region, zone, datacentre | datacentr: datacentre > region, zone, datacenter
dataset: data, information | datastor: datastore > db, database, sql | date: timestamp, calendar
db: database, sql, datastore | ddl: schema, migration | dead: unused, stale | deadlin: deadline > timeout, due
deadlock: lock | debug: debug, debugging > troubleshoot, diagnose | decid: decide > decision, choose, choice
decis: decision > decide, choose, choice | decod: decode > deserialise, deserialize | default: fallback
defect: bug, issue, problem | delay: delay, delayed > late
delet: delete, deletion > remove, drop, erase, purge, destroy | deliveri: delivery > shipping, parcel, shipment, package
demo: trial, free period, snippet, example, sample | deni: denied > reject, rejected, refuse, forbidden
dep: deps > dependency, packages, dependencies
depend: dependency, dependencies, depend > deps, packages, npm, pnpm, yarn, pip, poetry, cargo
deploy: deploy, deployment > release, rollout, ship, roll out, publish, launch, go live | depot: warehouse, stockroom
deprec: deprecated > legacy, old, obsolete, outdated | describ: describe > explanation, explain, description
descript: description > explanation, explain, describe | deseri: deserialize > deserialise, decode
deserialis: deserialise > deserialize, decode | design: layout, look, appearance, architecture, structure
desktop: electron, computer, pc, laptop | destroy: delete, remove, drop, erase, purge | detector: sensor, probe
dev: development, local, develop, developer | develop: development, develop, developer > dev, local
devic: device > hardware, machine, equipment | diagnos: diagnose > debug, debugging, troubleshoot
diagram: chart, graph, plot | dialog: modal, popup, overlay | dict: map, dictionary, hash map
dictionari: dictionary > map, dict, hash map | digest: hash, hashing, hashed | dimens: dimension > size
dir: directory, folder | directori: directory > dir, folder | disappear: missing, lost, vanish, gone, lose
disconnect: drop, reconnect | discount: coupon, voucher, promo, reduction, rebate | disk: storage
dislik: dislike > opinion, preference, prefer | display: render, rendering, draw, paint, show, present, screen, monitor
dns: domain, host, hostname | doc: docs, doc > documentation, readme, guide, manual, document
doc comment: doc comment > comment, docstring | docker: container, image | docstr: docstring > comment, doc comment
document: documentation, document > docs, readme, guide, manual, doc | dollar: money, currency, cents, euro
domain: host, hostname, dns | dotenv: env, environment, environment variable
doubl: doubled, double > duplicate, dupe, twice | download: fetch, pull
downsampl: downsample > aggregate, rollup, average, mean | downtim: downtime > incident, outage, postmortem
draw: render, rendering, paint, display, show | drop: delete, remove, erase, purge, destroy, disconnect, reconnect
dropdown: select, picker | due: deadline | dump: backup, snapshot, export, extract | dupe: duplicate, doubled
duplic: duplicate > dupe, doubled, twice, double | e mail: e mail > email, mail, smtp
e2e: end to end, integration test, acceptance, playwright, cypress, selenium, puppeteer | edg: edge > cdn
edit: modify, alter, change, amend | editor: vscode, vim, neovim, emacs, jetbrains | effort: estimate
electron: desktop | element: component, widget | email: mail, e mail, smtp, postmark, sendgrid, mailgun, brevo, ses
embed: embedded > firmware | emblem: logo | emit: publish, send, produce | employe: employee > staff, colleague, team
empti: empty > blank, white | encod: encode > serialise, serialize | encrypt: encrypt, encryption, encrypted > cipher
end to end: end to end > e2e, integration test, acceptance | endpoint: api, route, rest, handler
energi: energy > battery, power | entri: entry > row, record | enum: enumeration | enumer: enumeration > enum
env: environment, environment variable, dotenv | environ: environment > env, environment variable, dotenv
environ variabl: environment variable > env, environment, dotenv | equip: equipment > hardware, machine, device
eras: erase > delete, remove, drop, purge, destroy | err: error, exception, failure, fault
error: err, exception, failure, fault | estim: estimate > effort | euro: money, currency, cents, dollar
event: message, msg | exampl: example > snippet, sample, demo | excel: csv, spreadsheet
except: exception > error, err, failure, fault | execut: execute > run, launch, start, invoke
expir: expire, expiration, expires > expiry, ttl, lifetime | expiri: expiry > expire, ttl, lifetime, expiration, expires
explain: explanation, describe, description | explan: explanation > explain, describe, description
exploit: vulnerability, cve, security | export: dump, extract | extract: export, dump
fail: fail, failing, failed, fails > broken, breaks, break, failure
failur: failure > error, err, exception, fault, fail | fake: mock, stub | fallback: default
fals: false > wrong, incorrect, bad | fast: quick, speedy | fault: error, err, exception, failure
favor: prefer, preference, like, want, favour | favour: prefer, preference, like, want, favor
featur: feature > functionality | featur flag: feature flag > flag, toggle, switch | fee: price, cost, amount, tariff
feedback: rating | fetch: poll, polling, download, pull | field: column, attribute, form, input | file: path
file system: file system > fs, filesystem | filesystem: fs, file system
financ: finance > accountant, accounting, bookkeeping, ledger | find: search, lookup, full text, found
firmwar: firmware > embedded | fix: fix, fixed > solution, workaround, resolve, repair, remedy
fixtur: fixture > seed, sample data, test data | fk: constraint, foreign key
flag: toggle, switch, feature flag, boolean, bool, unleash, launchdarkly
flaki: flaky > intermittent, unstable, unreliable, random | flash: update, ota, over the air
float: number, integer, int, numeric | flow: workflow, process, procedure
fn: function, method, func, procedure, routine | folder: dir, directory | font: typeface, typography | forbid: avoid
forbidd: forbidden > reject, rejected, refuse, denied | foreign key: foreign key > constraint, fk | form: input, field
format: formatting, format > style, convention, formatter
formatt: formatter > format, formatting, prettier, black, ruff, gofmt, biome, rustfmt | found: find
framework: react, vue, svelte, sveltekit, angular, nextjs, next.js, nuxt, remix, astro, django, flask, fastapi, rails, laravel, express, fastify, hono, nestjs, spring, phoenix, flutter, electron, tauri, qt, actix, axum, gin
free period: free period > trial, demo | freez: freeze, freezes > hang, hanging, stuck, frozen, unresponsive, hangs
front end: front end > frontend, client side, ui, interface, gui
frontend: client side, front end, ui, interface, gui, react, vue, svelte, angular
frozen: hang, hanging, stuck, freeze, unresponsive, freezes, hangs | fs: filesystem, file system
full text: full text > search, find, lookup | func: function, fn, method, procedure, routine
function: fn, method, func, procedure, routine; functionality > feature | gateway: proxy, ingress | gen: generate
generat: generate, generated, generator > codegen, gen | generic: template
git: version control, vcs, squash, rebase, branch, commit, merge | glyph: icon, symbol | go: golang
go live: go live > deploy, deployment, release, rollout, ship, roll out, publish, launch | golang: go
gone: missing, lost, vanish, disappear, lose | good: product, item, article, sku | googl play: google play > android
gpt: llm, language model, model | graph: chart, plot, diagram | grow: growth | growth: grow | grpc: rpc | gst: tax, vat
guard: prevent, avoid, protect | guest: visitor, anonymous | gui: frontend, client side, front end, ui, interface
guid: guide > docs, documentation, readme, manual | guidelin: guideline > convention, rule, policy, standard, practice
handler: api, endpoint, route, rest | handset: mobile, phone, smartphone
hang: hang, hanging, hangs > stuck, freeze, frozen, unresponsive, freezes | haproxi: haproxy > load balancer, lb, nginx
hardwar: hardware > machine, device, equipment
hash: hash, hashing, hashed > digest, argon2, argon2id, bcrypt, scrypt, pbkdf2
hash map: hash map > map, dict, dictionary | health: healthcheck, probe, heartbeat
healthcheck: health, probe, heartbeat | heap: memory, ram, leak | heartbeat: health, healthcheck, probe | held: hold
helpdesk: support, customer service | hide: conceal | hint: tooltip | histori: history > changelog, release notes
hold: held | hook: webhook, callback
host: host, hosting, hosted > domain, hostname, dns, aws, gcp, azure, hetzner, vercel, netlify, heroku, fly
hostnam: hostname > domain, host, dns | hotkey: keyboard, shortcut | href: url, link, address, uri
https: certificate, cert, tls, ssl | huge: large, big, too large
i18n: translation, l10n, localisation, localization, locale, translate, language, internationalisation, internationalization
iac: terraform, pulumi, ansible | icon: glyph, symbol | id: identifier, uuid, key | identifi: identifier > id, uuid, key
imag: image > picture, photo, img, container, docker | img: picture, image, photo | impl: implementation, implement
implement: implementation, implement > impl | import: ingest, ingestion, load
incid: incident > outage, downtime, postmortem | incorrect: wrong, false, bad | info: information
inform: information > data, dataset, info | infra: infrastructure | infrastructur: infrastructure > infra
ingest: ingest, ingestion > import, load | ingress: gateway, proxy
init: initialise, initialize, initialisation, initialization
initi: initialize, initialization > init, initialise, initialisation
initialis: initialise, initialisation > init, initialize, initialization | input: form, field
instal: install, installation > setup, set up | instanc: instance > object, vm, virtual machine
int: number, integer, numeric, float | integ: integer > number, int, numeric, float
integr: integration, integrate > connector | integr test: integration test > e2e, end to end, acceptance
interfac: interface > frontend, client side, front end, ui, gui, protocol, trait
intermitt: intermittent > flaky, unstable, unreliable, random
internation: internationalization > i18n, internationalisation
internationalis: internationalisation > i18n, internationalization | intro: introduction
introduct: introduction > intro | inventori: inventory > stock, supply | invoic: invoice > bill, receipt
invok: invoke > execute, run, launch, start | io: ios > iphone, ipad, apple, swift, xcode, ipa, testflight, safari
ipad: ios, iphone, apple | iphon: iphone > ios, ipad, apple, safari, swift, xcode, ipa
issu: issue > ticket, case, bug, defect, problem, story | item: product, article, good, sku
iter: iterate, iteration > loop | javascript: js | job: background, async, task, cron job
join: merge, combine, aggregate | js: javascript | json: payload, body | k8s: kubernetes, cluster | keep: kept
kept: keep | key: token, secret, credential, id, identifier, uuid | keyboard: shortcut, hotkey
kill: terminate, stop, abort | know: knowledge, known | knowledg: knowledge > know, known | known: know, knowledge
kubernet: kubernetes > k8s, cluster | l10n: translation, i18n, localisation, localization, locale, translate, language
label: sticker, tag | lack: lacks > unfinished, open, missing
lag: slow, performance, perf, speed, latency, sluggish, slowness
languag: language > translation, i18n, l10n, localisation, localization, locale, translate, english, german, french, spanish, python, go, rust, typescript, java
languag model: language model > llm, gpt, model | laptop: computer, pc, desktop | larg: large > big, huge, too large
last: stay, remain | late: delay, delayed | latenc: latency > slow, performance, perf, speed, lag, sluggish, slowness
launch: deploy, deployment, release, rollout, ship, roll out, publish, go live, execute, run, start, invoke
layer: tier | layout: design, look, appearance, architecture, structure | lb: load balancer, nginx, haproxy
leak: leak, leaking > memory, ram, heap | least: minimum, min | ledger: accountant, accounting, bookkeeping, finance
legaci: legacy > old, deprecated, obsolete, outdated | letter: correspondence | lib: module, package, library
librari: library > module, package, lib | licenc: licence > subscription, plan, tier, license, membership
licens: license > subscription, plan, tier, licence, membership
lifetim: lifetime > retention, retain, expiry, expire, ttl, expiration, expires
like: prefer, preference, want, favour, favor | limit: maximum, max, cap, ceiling | link: url, address, uri, href
lint: lint, linting > linter, static analysis
linter: lint, linting, static analysis, eslint, ruff, flake8, pylint, golangci, biome, clippy, rubocop, credo
list: array, sequence | listen: subscribe, consume, receive | llm: language model, gpt, model
load: import, ingest, ingestion | load balanc: load balancer > lb, nginx, haproxy
load test: load test > benchmark, stress test
local: localization > translation, i18n, l10n, localisation, locale, translate, language; locale > translation, i18n, l10n, localisation, localization, translate, language; dev, development
localis: localisation > translation, i18n, l10n, localization, locale, translate, language
lock: mutex, semaphore, deadlock | log: log, logs, logging > loki, elk, kibana, fluentd
log in: log in > auth, authentication, login, signin, logon, sso, oauth, sign in, logged in, signed in, signing in, logging in; logged in > auth, authentication, login, signin, logon, sso, oauth, sign in, log in, signed in, signing in, logging in; logging in > auth, authentication, login, signin, logon, sso, oauth, sign in, log in, logged in, signed in, signing in
log out: log out > logout, signout, sign out
login: auth, authentication, signin, logon, sso, oauth, sign in, log in, logged in, signed in, signing in, logging in
logo: emblem
logon: auth, authentication, login, signin, sso, oauth, sign in, log in, logged in, signed in, signing in, logging in
logout: signout, log out, sign out | look: layout, design, appearance | lookup: search, find, full text
loop: iterate, iteration | lose: missing, lost, vanish, disappear, gone | lost: missing, vanish, disappear, gone, lose
machin: machine > hardware, device, equipment | machin learn: machine learning > ml, ai | made: make
magic link: magic link > passwordless | mail: email, e mail, smtp | maintain: maintainer > owner, responsible
make: build, compile, made | maker: brand, manufacturer, vendor, supplier | manag: manager > boss
manual: docs, documentation, readme, guide | manufactur: manufacturer > brand, vendor, maker, supplier
map: dict, dictionary, hash map | max: limit, maximum, cap, ceiling | maximum: limit, max, cap, ceiling
mean: aggregate, rollup, downsample, average | measur: measurement > sample, measure; measure > measurement
meet: meeting > standup | member: user, account, profile | membership: subscription, plan, tier, licence, license
memoiz: memoize > cache, caching, cached | memori: memory > ram, leak, heap | menu: nav, navigation, sidebar
merg: merge, merging > join, combine, aggregate, rebase, squash
merg request: merge request > pr, pull request, mr, patch | messag: message > event, msg
method: function, fn, func, procedure, routine | metric: metrics > monitoring, observability, telemetry, uptime
mfa: 2fa, totp, two factor, second factor, otp | microservic: microservice > service, daemon
migrat: migration, migrate > schema, ddl, upgrade, update, bump | mileston: milestone > roadmap | min: minimum, least
minimum: min, least | mismatch: conflict, clash, collision
miss: missing > lost, vanish, disappear, gone, lose, unfinished, open, lacks | ml: machine learning, ai
mobil: mobile > phone, smartphone, handset, ios, android, flutter, swift, kotlin, react native | mock: stub, fake
modal: dialog, popup, overlay | model: llm, language model, gpt | modifi: modify > edit, alter, change, amend
modul: module > package, library, lib | money: currency, cents, euro, dollar
money back: money back > refund, reimbursement, chargeback, return | mongo: mongodb | mongodb: mongo
monitor: monitoring, monitor > observability, metrics, telemetry, uptime, grafana, prometheus, datadog, sentry, loki, screen, display
mono repo: mono repo > monorepo, single repository | monorepo: mono repo, single repository | move: rename
movi: movie > video, clip | mr: pr, pull request, merge request, patch | msg: event, message | mutex: lock, semaphore
name: naming, name, named, names > called | nav: menu, navigation, sidebar | navig: navigation > menu, nav, sidebar
nginx: load balancer, lb, haproxy | night: nightly > schedule, cron, timer, periodic, scheduled
nil: null, none, undefined | none: null, nil, undefined
notif: notification > notify, alert, alarm, push notification, toast, snackbar, sms, email, twilio, push
notifi: notify > notification, alert, alarm | npm: pnpm, yarn, package.json, node | null: nil, none, undefined
num: number | number: integer, int, numeric, float, num | numer: numeric > number, integer, int, float
o11y: observability
oauth: auth, authentication, login, signin, logon, sso, sign in, log in, logged in, signed in, signing in, logging in
object: instance | object storag: object storage > blob, bucket, s3
observ: observability > monitoring, metrics, telemetry, uptime, o11y, grafana, prometheus, datadog, sentry, loki, opentelemetry
obsolet: obsolete > legacy, old, deprecated, outdated | offlin: offline > service worker, pwa
offset: pagination, paging, paginate, cursor | old: legacy, deprecated, obsolete, outdated
on call: on call > alerting, pager, oncall, rota | onboard: onboarding > signup, registration, register, sign up
oncal: oncall > alerting, pager, on call, rota | oom: out of memory
open: todo, unfinished, remaining, pending, lacks, missing | oper system: operating system > os
opinion: preference, prefer, dislike | optim: optimize > optimise, tune, speed up
optimis: optimise > optimize, tune, speed up | option: options > config, configuration, settings, preferences, cfg
order: ordering, order > sort, checkout, purchase, buy, buying, procurement
organis: organise, organisation > organize, organization | organiz: organize, organization > organise, organisation
orm: prisma, drizzle, sqlalchemy, typeorm, sequelize, activerecord, ecto, diesel, hibernate | os: operating system
ota: update, over the air, flash | otp: 2fa, mfa, totp, two factor, second factor | out of memori: out of memory > oom
outag: outage > incident, downtime, postmortem | outdat: outdated > legacy, old, deprecated, obsolete
over the air: over the air > update, ota, flash | overflow: overrun | overlay: modal, dialog, popup | overrun: overflow
overview: dashboard, panel | owner: responsible, maintainer
packag: package, packages > shipping, delivery, parcel, shipment, module, library, lib, npm, pnpm, yarn, pip, poetry, uv, cargo, dependency, deps, dependencies
page: paging, page > pagination, paginate, cursor, offset, screen, view | pager: alerting, on call, oncall, rota
pagin: pagination, paginate > paging, cursor, offset | paid: pay, payment, billing, charge
paint: render, rendering, draw, display, show | palett: palette > colour, color, theme | panel: dashboard, overview
panic: crash, crashed, segfault, abort | parallel: race, concurrency, concurrent, simultaneous, race condition
param: parameter, argument, arg | paramet: parameter > param, argument, arg
parcel: shipping, delivery, shipment, package | pars: parse, parsing > parser | parser: parse, parsing
partit: partition > shard | passphras: passphrase > password, creds, credential
password: creds, credential, passphrase, argon2, argon2id, bcrypt, scrypt | passwordless: magic link
patch: pr, pull request, merge request, mr | path: file | pattern: regex, regexp, regular expression
pay: payment, billing, charge, paid | payload: json, body
payment: pay, billing, charge, paid, stripe, paypal, mollie, adyen, braintree, klarna, iban, card
pc: computer, desktop, laptop | pend: pending > todo, open, unfinished, remaining
perf: slow, performance, speed, latency, lag, sluggish, slowness
perform: performance > slow, perf, speed, latency, lag, sluggish, slowness
period: periodic > schedule, cron, timer, nightly, scheduled
perm: perms > authorization, permission, access, role, privilege, acl, rbac, right
permiss: permission > authorization, perms, access, role, privilege, acl, rbac, right, permit
permit: approve, approval, allow, sign off, permission | persist: store, save, write
person: personal > private, privacy, confidential | pg: postgres, postgresql, psql | phone: mobile, smartphone, handset
photo: picture, image, img | picker: dropdown, select | pictur: picture > image, photo, img
pipelin: pipeline > ci, build, continuous integration, build server, cd
plan: subscription, tier, licence, license, membership | plot: chart, graph, diagram
polici: policy > convention, rule, guideline, standard, practice | poll: poll, polling > fetch
popup: modal, dialog, overlay | port: socket | postgr: postgres > pg, postgresql, psql | postgresql: pg, postgres, psql
postmortem: incident, outage, downtime | power: battery, energy | pr: pull request, merge request, mr, patch
practic: practice > convention, rule, policy, guideline, standard
prefer: preferences, prefer, preference > config, configuration, settings, options, cfg, like, want, favour, favor, opinion, dislike
preprod: staging, preproduction, stage | preproduct: preproduction > staging, preprod, stage | present: show, display
prev: previous | prevent: avoid, guard, protect | previous: prev | price: cost, amount, fee, tariff, euro, dollar, cents
print: print, printing > printer | printer: print, printing | privaci: privacy > private, personal, confidential
privat: private > personal, privacy, confidential
privileg: privilege > authorization, permission, perms, access, role, acl, rbac, right
probe: health, healthcheck, heartbeat, sensor, detector | problem: bug, defect, issue
procedur: procedure > function, fn, method, func, routine, workflow, process, flow
process: thread, worker, workflow, procedure, flow | processor: cpu | procur: procurement > buy, purchase, order
prod: production | produc: produce > publish, emit, send | product: item, article, good, sku; production > prod
profil: profile > user, account, member | promo: coupon, voucher, discount
protect: prevent, avoid, guard, secure, security, safeguard
protocol: transport, interface, trait, http, mqtt, grpc, amqp, websocket, tcp, udp
proxi: proxy > gateway, ingress, tunnel, vpn, nginx, envoy, traefik, haproxy, caddy | psql: pg, postgres, postgresql
publish: emit, send, produce, deploy, deployment, release, rollout, ship, roll out, launch, go live
pull: download, fetch | pull request: pull request > pr, merge request, mr, patch
purchas: purchase > checkout, buy, buying, order, procurement | purg: purge > delete, remove, drop, erase, destroy
push notif: push notification > notification | pwa: offline, service worker | py: python | python: py
queri: query > select, statement | queue: broker, bus, rabbitmq, kafka, celery, bullmq, sidekiq, sqs
quick: fast, speedy | quota: rate limit, throttle, throttling
race: concurrency, concurrent, simultaneous, parallel, race condition
race condit: race condition > race, concurrency, concurrent, simultaneous, parallel | ram: memory, leak, heap
ran: run, running | random: flaky, intermittent, unstable, unreliable | rate: rating > feedback
rate limit: rate limit > throttle, throttling, quota | rb: ruby
rbac: authorization, permission, perms, access, role, privilege, acl, right | reader: scanner, scan
readm: readme > docs, documentation, guide, manual | realtim: realtime > websocket | reason: cause, root cause, culprit
rebas: rebase > merge, merging, squash | rebat: rebate > discount, reduction | reboot: restart, reload, relaunch
receipt: invoice, bill | receiv: receive > subscribe, listen, consume | reconnect: disconnect, drop | record: row, entry
recov: recover > restore, recovery | recoveri: recovery > restore, recover | reduct: reduction > discount, rebate
ref: branch, reference | refactor: refactor, refactoring > restructure, rewrite, cleanup, clean up
refer: reference > ref | refund: reimbursement, chargeback, money back, return
refus: refuse > reject, rejected, denied, forbidden | regex: regexp, pattern, regular expression
regexp: regex, pattern, regular expression | region: zone, datacentre, datacenter
regist: register > signup, registration, sign up, onboarding
registr: registration > signup, register, sign up, onboarding | regress: regression > broke
regular express: regular expression > regex, regexp, pattern
reimburs: reimbursement > refund, chargeback, money back, return | reject: reject, rejected > refuse, denied, forbidden
relat: relation > table | relaunch: restart, reboot, reload
releas: release > version, deploy, deployment, rollout, ship, roll out, publish, launch, go live
releas cycl: release cycle > release train, cadence | releas note: release notes > changelog, history
releas train: release train > release cycle, cadence | reload: restart, reboot, relaunch
remain: remaining, remain > todo, open, unfinished, pending, stay, last
remedi: remedy > fix, fixed, solution, workaround, resolve, repair
remov: remove, removal > delete, drop, erase, purge, destroy, uninstall | renam: rename > move
render: render, rendering > draw, paint, display, show | repair: fix, fixed, solution, workaround, resolve, remedy
repli: reply > response, resp, answer, respond | replic: replication > replica, standby | replica: replication, standby
repo: repository | report: statistics, stats | repositori: repository > repo | repro: reproduce
reproduc: reproduce > repro | req: request, call, requirement | request: call, req, requirement
requir: requirement > req, request, require; require > requirement | reserv: reservation, reserve > booking, appointment
resolut: resolution > resolve | resolv: resolve > fix, fixed, solution, workaround, repair, remedy, resolution
resp: response, reply, answer | respond: answer, reply, response
respons: responsible > owner, maintainer; response > reply, resp, answer, respond; responsive > breakpoint
rest: api, endpoint, route, handler | restart: reboot, reload, relaunch | restor: restore > recover, recovery
restructur: restructure > refactor, refactoring, rewrite, cleanup, clean up | retain: retention, lifetime
retent: retention > retain, lifetime | retri: retry, retries > backoff, again
return: refund, reimbursement, chargeback, money back | revers: reversible > revert, undo, rollback
revert: rollback, undo, back out, reversible | review: review, reviewer > code review
revis: revision > commit, changeset | rewrit: rewrite > refactor, refactoring, restructure, cleanup, clean up
right: authorization, permission, perms, access, role, privilege, acl, rbac
riski: risky > danger, dangerous, unsafe, safe, careful | roadmap: milestone
role: authorization, permission, perms, access, privilege, acl, rbac, right
roll out: roll out > deploy, deployment, release, rollout, ship, publish, launch, go live
rollback: transaction, tx, commit, revert, undo, back out, reversible
rollout: deploy, deployment, release, ship, roll out, publish, launch, go live
rollup: aggregate, downsample, average, mean | root caus: root cause > cause, reason, culprit
rota: alerting, pager, on call, oncall | rout: route > api, endpoint, rest, handler
routin: routine > function, fn, method, func, procedure | row: record, entry | rpc: grpc | rubi: ruby > rb
rule: convention, policy, guideline, standard, practice | run: run, running > execute, launch, start, invoke, ran
runtim: runtime > node, deno, bun, python | s3: blob, bucket, object storage
safe: danger, dangerous, risky, unsafe, careful | safeguard: protect, secure, security | salari: salary > wage
sampl: sample > measurement, snippet, example, demo | sampl data: sample data > seed, fixture, test data
sandbox: test environment, staging | sanit: sanitize > validate, validation, check, verify, sanitise
sanitis: sanitise > validate, validation, check, verify, sanitize | save: store, persist, write
scaffold: template, boilerplate | scale: scale, scaling > autoscaling | scan: scanner, reader | scanner: scan, reader
schedul: schedule, scheduled > cron, timer, nightly, periodic, timetable, calendar | schema: migration, ddl
screen: page, view, monitor, display | screen reader: screen reader > a11y, accessibility, wcag, aria
script: command, cli, cmd | sdk: client library
search: find, lookup, full text, elasticsearch, opensearch, meilisearch, typesense, algolia, solr, lucene
second factor: second factor > 2fa, mfa, totp, two factor, otp | secret: token, key, credential, vault, sops, dotenv
secur: security, secure > vulnerability, cve, exploit, protect, safeguard | seed: fixture, sample data, test data
segfault: crash, crashed, panic, abort | select: query, statement, dropdown, picker | sell: sold
semaphor: semaphore > lock, mutex | send: publish, emit, produce, sent | sensor: probe, detector | sent: send
sequenc: sequence > list, array | serial: serialize > serialise, encode | serialis: serialise > serialize, encode
server: backend, service, back end | servic: service > backend, server, back end, microservice, daemon
servic worker: service worker > offline, pwa | session: cookie
set: settings > config, configuration, options, preferences, cfg | set up: set up > install, installation, setup
setup: install, installation, set up | shard: partition | shell: terminal, console, bash, zsh, fish, powershell, nushell
ship: shipping, ship > delivery, parcel, shipment, package, deploy, deployment, release, rollout, roll out, publish, launch, go live
shipment: shipping, delivery, parcel, package | shop: storefront, store, shop front, web shop
shop front: shop front > storefront, shop, store, web shop | shopper: customer, buyer | short: brief, concise, terse
shortcut: keyboard, hotkey | show: render, rendering, draw, paint, display, present | sidebar: menu, nav, navigation
sign: sign, signing, signed > signature
sign in: sign in > auth, authentication, login, signin, logon, sso, oauth, log in, logged in, signed in, signing in, logging in; signed in > auth, authentication, login, signin, logon, sso, oauth, sign in, log in, logged in, signing in, logging in; signing in > auth, authentication, login, signin, logon, sso, oauth, sign in, log in, logged in, signed in, logging in
sign off: sign off > approve, approval, allow, permit | sign out: sign out > logout, signout, log out
sign up: sign up > signup, registration, register, onboarding | signatur: signature > sign, signing, signed
signin: auth, authentication, login, logon, sso, oauth, sign in, log in, logged in, signed in, signing in, logging in
signout: logout, log out, sign out | signup: registration, register, sign up, onboarding
simultan: simultaneous > race, concurrency, concurrent, parallel, race condition
singl repositori: single repository > monorepo, mono repo | site: webapp, web app, website | size: dimension
sku: product, item, article, good | slow: slow, slowness > performance, perf, speed, latency, lag, sluggish
sluggish: slow, performance, perf, speed, latency, lag, slowness | smartphon: smartphone > mobile, phone, handset
sms: text message, twilio, vonage | smtp: email, mail, e mail | snackbar: toast, notification | snapshot: backup, dump
snippet: example, sample, demo | socket: port | sold: sell
solut: solution > fix, fixed, workaround, resolve, repair, remedy | sort: ordering
sourc: source > code, codebase, code base
spec: spec, specs > test, tests, testing, unit test, test suite, suite, specification | specif: specification > spec
speed: slow, performance, perf, latency, lag, sluggish, slowness | speed up: speed up > optimise, optimize, tune
speedi: speedy > fast, quick | spreadsheet: csv, excel | sql: db, database, datastore | squash: merge, merging, rebase
ssl: certificate, cert, tls, https
sso: auth, authentication, login, signin, logon, oauth, sign in, log in, logged in, signed in, signing in, logging in, keycloak, auth0, okta, saml, oidc
stack trace: stack trace > trace, tracing, stacktrace, traceback, backtrace
stacktrac: stacktrace > trace, tracing, stack trace, traceback, backtrace | staff: employee, colleague, team
stage: staging, stage > preproduction, preprod, test environment, sandbox | stale: unused, dead
standard: convention, rule, policy, guideline, practice | standbi: standby > replica, replication | standup: meeting
start: execute, run, launch, invoke | stat: stats > report, statistics | statement: query, select
static analysi: static analysis > lint, linter, linting
static type: static typing > typing, typed, types, type hints, annotation | statist: statistics > report, stats
stay: last, remain | sticker: label | stock: inventory, supply | stockroom: warehouse, depot
stop: kill, terminate, abort | storag: storage > disk, store, stored, s3, gcs, bucket, minio
store: store, stored > save, persist, write, storefront, shop, shop front, web shop, storage
storefront: shop, store, shop front, web shop | stori: story > ticket, issue | str: string | stream: topic, channel
stress test: stress test > benchmark, load test | string: text, str | struct: class, type
structur: structure > architecture, design, layout | stub: mock, fake
stuck: hang, hanging, freeze, frozen, unresponsive, freezes, hangs
style: style, styling > css, stylesheet, convention, formatting | stylesheet: css, style, styling
subscrib: subscribe > listen, consume, receive | subscript: subscription > plan, tier, licence, license, membership
suggest: suggestion > autocomplete, typeahead | suit: suite > test, tests, testing, spec, specs, unit test, test suite
suppli: supply > stock, inventory | supplier: brand, manufacturer, vendor, maker | support: helpdesk, customer service
suspend: ban, block | switch: flag, toggle, feature flag | symbol: icon, glyph
sync: synchronous, blocking, synchronisation, synchronization
synchron: synchronous > sync, blocking; synchronization > synchronisation, sync
synchronis: synchronisation > synchronization, sync | tabl: table > relation | tag: label
talk: communicate, connect, connection | tariff: price, cost, amount, fee | task: job, cron job | tax: vat, gst
team: staff, employee, colleague | telemetri: telemetry > monitoring, observability, metrics, uptime | tell: told
temp: temporary, tmp | temperatur: temperature > celsius, kelvin, fahrenheit
templat: template > generic, boilerplate, scaffold | temporari: temporary > temp, tmp
termin: terminal > shell, console, bash; terminate > kill, stop, abort | ters: terse > short, brief, concise
test: test, tests, testing > spec, specs, unit test, test suite, suite, pytest, jest, vitest, playwright, cypress, mocha, junit, rspec, exunit, nextest
test data: test data > seed, fixture, sample data | test environ: test environment > sandbox, staging
test suit: test suite > test, tests, testing, spec, specs, unit test, suite | text: string
text messag: text message > sms | theme: colour, color, palette, dark mode | thread: process, worker
throttl: throttle, throttling > rate limit, quota | ticket: issue, case, story
tier: subscription, plan, licence, license, membership, layer | time seri: time series > timeseries
time zone: time zone > tz, timezone | timeout: deadline | timer: schedule, cron, nightly, periodic, scheduled
timeseri: timeseries > time series | timestamp: date, calendar | timet: timetable > schedule, calendar
timezon: timezone > tz, time zone | tls: certificate, cert, ssl, https | tmp: temp, temporary
toast: snackbar, notification | todo: open, unfinished, remaining, pending | toggl: toggle > flag, switch, feature flag
token: secret, key, credential | told: tell | too larg: too large > large, big, huge | tooltip: hint
topic: channel, stream | totp: 2fa, mfa, two factor, second factor, otp
trace: trace, tracing > stacktrace, stack trace, traceback, backtrace
traceback: trace, tracing, stacktrace, stack trace, backtrace | tracker: jira, linear, github, trello
trait: interface, protocol | transact: transaction > tx, commit, rollback | transform: convert, conversion
transit: transition > animation
translat: translation, translate > i18n, l10n, localisation, localization, locale, language | transport: protocol
trial: free period, demo | trolley: cart, basket | troubleshoot: debug, debugging, diagnose
truncat: truncate > clear, wipe | ts: typescript | ttl: expiry, expire, lifetime, expiration, expires
tune: optimise, optimize, speed up | tunnel: proxy, vpn | twice: duplicate, double
two factor: two factor > 2fa, mfa, totp, second factor, otp | tx: transaction, commit, rollback
type: type, typing, typed, types > class, struct, type hints, annotation, static typing, mypy, pyright, tsc, strict
type check: type check > typecheck, type checker, typechecker
type checker: type checker > typecheck, type check, typechecker
type hint: type hints > typing, typed, types, annotation, static typing | typeahead: autocomplete, suggestion
typecheck: typecheck, typechecker > type check, type checker, mypy, pyright, tsc | typefac: typeface > font, typography
typescript: ts | typographi: typography > font, typeface | tz: timezone, time zone
ui: frontend, client side, front end, interface, gui, user interface | undefin: undefined > null, nil, none
undo: rollback, revert, back out, reversible | unfinish: unfinished > todo, open, remaining, pending, lacks, missing
uninstal: uninstall > remove | unit: celsius, kelvin, metre, meter, gram, percent, pixel
unit test: unit test > test, tests, testing, spec, specs, test suite, suite
unreli: unreliable > flaky, intermittent, unstable, random
unrespons: unresponsive > hang, hanging, stuck, freeze, frozen, freezes, hangs
unsaf: unsafe > danger, dangerous, risky, safe, careful | unstabl: unstable > flaky, intermittent, unreliable, random
unus: unused > dead, stale | updat: update > upgrade, bump, migrate, ota, over the air, flash
upgrad: upgrade > update, bump, migrate | upload: upload, uploading > attach
uptim: uptime > monitoring, observability, metrics, telemetry | uri: url, link, address, href
url: link, address, uri, href | usag: usage > use | use: usage | user: account, member, profile
user experi: user experience > ux | user interfac: user interface > ui | uuid: id, identifier, key | ux: user experience
valid: validate, validation > check, verify, sanitise, sanitize | vanish: missing, lost, disappear, gone, lose
var: variable | variabl: variable > var | vat: tax, gst | vcs: git, version control
vendor: brand, manufacturer, maker, supplier | verif: verification > verify
verifi: verify > validate, validation, check, sanitise, sanitize, verification | version: release
version control: version control > git, vcs | video: clip, movie | view: page, screen
virtual machin: virtual machine > vm, instance | visitor: guest, anonymous | vm: virtual machine, instance
voucher: coupon, discount, promo | vpn: proxy, tunnel | vulner: vulnerability > cve, security, exploit | wage: salary
want: prefer, preference, like, favour, favor | warehous: warehouse > depot, stockroom | warn: warning > caution
wcag: a11y, accessibility, screen reader, aria | web app: web app > webapp, website, site
web shop: web shop > storefront, shop, store, shop front | webapp: web app, website, site | webhook: callback, hook
websit: website > webapp, web app, site | websocket: realtime | webview: browser | white: blank, empty
widget: component, element | wipe: truncate, clear | word: wording > copy
workaround: fix, fixed, solution, resolve, repair, remedy | worker: thread, process, celery, sidekiq, bullmq
workflow: process, procedure, flow | write: store, save, persist, written, wrote, author
writt: written > write, wrote, author | wrong: incorrect, false, bad | wrote: write, written
zone: region, datacentre, datacenter
"""
)
