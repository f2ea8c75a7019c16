"""Word lists and aliases in the form that an index holds.

Written by docs/stems.py. Change word_lists.py or vocabulary.py, then run `python docs/stems.py`.
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
2fa: mfa, totp, two factor, second factor, otp | a11y: access, screen reader, wcag, aria
abort: crash, segfault, panic, kill, termin, stop | accept: e2e, end to end, integr test
access: author, permiss, perm, role, privileg, acl, rbac, right, a11y, screen reader, wcag, aria
account: user, member, profil, bookkeep, ledger, financ
acl: author, permiss, perm, access, role, privileg, rbac, right | address: url, link, uri, href
admin: administr, backoffic, back offic | administr: admin, backoffic, back offic | again: retri, backoff
aggreg: rollup, downsampl, averag, mean, join, merg, combin | agreement: contract | ai: ml, machin learn
alarm: notif, notifi, alert | alert: notif, notifi, alarm, pager, on call, oncal, rota | allow: approv, permit, sign off
alter: edit, modifi, chang, amend | amend: edit, modifi, alter, chang | amount: price, cost, fee, tariff
analys: analyz, analysi | analysi: analys, analyz | analyz: analys, analysi | android: googl play, kotlin, gradl, apk
anim: transit | annot: type, type hint, static type | anonym: visitor, guest | answer: respons, repli, resp, respond
api: endpoint, rout, rest, handler, graphql, grpc, openapi | app: applic | appear: layout, design, look
appl: io, iphon, ipad | applic: app | appoint: book, reserv | approv: allow, permit, sign off
architectur: structur, design, layout | archiv: cold storag | arg: param, paramet, argument
argument: param, paramet, arg | aria: a11y, access, screen reader, wcag | array: list, sequenc
articl: product, item, good, sku | assort: catalogu, catalog | async: asynchron, await, coroutin, background, job
asynchron: async, await, coroutin | attach: upload | attr: attribut | attribut: column, field, attr
auth: authent, login, signin, logon, sso, oauth, sign in, log in, authoris, author, passkey, magic link, keycloak
authent: auth, login, signin, logon, sso, oauth, sign in, log in, authoris, author
author: permiss, perm, access, role, privileg, acl, rbac, right, auth, authent, authoris, write, writt
authoris: auth, authent, author | autocomplet: typeahead, suggest | autosc: scale
averag: aggreg, rollup, downsampl, mean, avg | avg: averag | avoid: forbid, prevent, guard, protect
await: async, asynchron, coroutin | back end: backend, server, servic | back offic: admin, administr, backoffic
back out: rollback, revert, undo | backend: server, servic, back end | background: async, job | backoff: retri, again
backoffic: admin, administr, back offic | backtrac: trace, stacktrac, stack trace, traceback | backup: snapshot, dump
bad: wrong, incorrect, fals | ban: block, suspend | bash: shell, termin, consol | basket: cart, trolley
batteri: power, energi | began: begin | begin: began | behavior: behaviour | behaviour: behavior
benchmark: load test, stress test | big: larg, huge, too larg | bill: pay, payment, charg, paid, invoic, receipt
blank: white, empti | blob: bucket, object storag, s3 | block: ban, suspend, sync, synchron | bodi: json, payload
boilerpl: templat, scaffold | book: reserv, appoint | bookkeep: account, ledger, financ | bool: boolean, flag
boolean: bool, flag | boss: manag | bought: buy | branch: ref | brand: manufactur, vendor, maker, supplier
break: fail, broken, broke | breakpoint: respons | brief: short, concis, ters | broke: regress, break, broken
broken: fail, break, corrupt, damag, broke | broker: queue, bus, rabbitmq, kafka, redi, nat, sqs, mqtt, emqx, mosquitto
browser: webview, safari, chrome, firefox, edg | bucket: blob, object storag, s3 | bug: defect, issu, problem
build: compil, ci, pipelin, continu integr, build server, cd, make, built, webpack, vite, esbuild, gradl, maven, cargo, bazel
build server: ci, pipelin, build, continu integr, cd | built: build | bump: upgrad, updat, migrat
bus: queue, broker, kafka, rabbitmq, nat, mqtt | button: cta | buy: checkout, purchas, order, procur, bought
buyer: custom, shopper | cach: memoiz, redi, memcach, varnish | cadenc: releas train, releas cycl | calc: calcul, comput
calcul: calc, comput | calendar: date, timestamp, schedul, timet | call: request, req, name | callback: webhook, hook
caller: client, consum | cap: limit, maximum, max, ceil | care: danger, riski, unsaf, safe
carrier: courier, dhl, up, fedex, dpd, usp | cart: basket, trolley | case: ticket, issu | catalog: catalogu, assort
catalogu: catalog, assort | caus: reason, root caus, culprit | caution: warn
cd: ci, pipelin, build, continu integr, build server | cdn: edg, cloudfront, cloudflar, fast, akamai
ceil: limit, maximum, max, cap | cent: money, currenc, euro, dollar | center: centr | centr: center
cert: certif, tls, ssl, https | certif: cert, tls, ssl, https | cfg: config, configur, set, option, prefer
chang: edit, modifi, alter, amend | changelog: releas note, histori | changeset: commit, revis | channel: topic, stream
charg: pay, payment, bill, paid | chargeback: refund, reimburs, money back, return | chart: graph, plot, diagram
chat: slack, discord, team, mattermost | check: valid, verifi, sanitis, sanit | checkout: purchas, buy, order
choic: decid, decis, choos | choos: decid, decis, choic, chose, chosen | chose: choos, chosen | chosen: choos, chose
ci: pipelin, build, continu integr, build server, cd, github action, jenkin, gitlab, circleci, buildkit
cipher: encrypt | clash: conflict, collis, mismatch | class: type, struct
clean up: refactor, restructur, rewrit, cleanup | cleanup: refactor, restructur, rewrit, clean up | clear: truncat, wipe
cli: script, command, cmd | client: consum, caller | client librari: sdk
client side: frontend, front end, ui, interfac, gui | clip: video, movi
cloud: aw, gcp, azur, hetzner, digitalocean, heroku | cluster: k8s, kubernet | cmd: script, command, cli
code: sourc, codebas, code base | code base: code, sourc, codebas | code review: review
codebas: code, sourc, code base | codeg: generat | cold storag: archiv | colleagu: staff, employe, team
collis: conflict, clash, mismatch | color: colour, theme, palett | colour: color, theme, palett
column: field, attribut | combin: join, merg, aggreg | command: script, cli, cmd | comment: docstr, doc comment
commit: transact, tx, rollback, revis, changeset | communic: talk, connect | compil: build, make
compon: widget, element | comput: calc, calcul, pc, desktop, laptop | conceal: hide | concis: short, brief, ters
concurr: race, simultan, parallel, race condit | confidenti: privat, person, privaci
config: configur, set, option, prefer, cfg | configur: config, set, option, prefer, cfg
conflict: clash, collis, mismatch | connect: communic, talk | connector: integr | consol: shell, termin, bash
const: constant | constant: const | constraint: foreign key, fk | consum: subscrib, listen, receiv, client, caller
contain: docker, imag, podman, kubernet | continu integr: ci, pipelin, build, build server, cd | contract: agreement
convent: rule, polici, guidelin, standard, practic, style, format | convers: convert, transform
convert: convers, transform | cooki: session | copi: word | coroutin: async, asynchron, await | correspond: letter
corrupt: damag, broken | cost: price, amount, fee, tariff, euro, dollar, cent | coupon: voucher, discount, promo
courier: carrier | cover: coverag | coverag: cover | cpu: processor | crash: segfault, panic, abort
cred: password, credenti, passphras | credenti: password, cred, passphras, token, secret, key
cron: schedul, timer, night, period | cron job: job, task | cs: csharp | csharp: cs
css: style, stylesheet, tailwind, sass, scss, bootstrap | csv: spreadsheet, excel | cta: button
culprit: caus, reason, root caus | currenc: money, cent, euro, dollar | cursor: pagin, page, offset
custom: buyer, shopper | custom servic: support, helpdesk | cve: vulner, secur, exploit | daemon: microservic, servic
damag: corrupt, broken | danger: riski, unsaf, safe, care | dark mode: theme | dashboard: overview, panel
data: dataset, inform
databas: db, sql, datastor, postgresql, mysql, mariadb, sqlite, mongodb, redi, dynamodb, cassandra, clickhous, duckdb, timescaledb, influxdb, cockroachdb, oracl, firestor, supabas, neo4j, snowflak, bigqueri
datacent: region, zone, datacentr | datacentr: region, zone, datacent | dataset: data, inform
datastor: db, databas, sql | date: timestamp, calendar | db: databas, sql, datastor | ddl: schema, migrat
dead: unus, stale | deadlin: timeout, due | deadlock: lock | debug: troubleshoot, diagnos | decid: decis, choos, choic
decis: decid, choos, choic | decod: deserialis, deseri | default: fallback | defect: bug, issu, problem | delay: late
delet: remov, drop, eras, purg, destroy | deliveri: ship, parcel, shipment, packag
demo: trial, free period, snippet, exampl, sampl | deni: reject, refus, forbidd | dep: depend, packag
depend: dep, packag, npm, pnpm, yarn, pip, poetri, cargo
deploy: releas, rollout, ship, roll out, publish, launch, go live | depot: warehous, stockroom
deprec: legaci, old, obsolet, outdat | describ: explan, explain, descript | descript: explan, explain, describ
deseri: deserialis, decod | deserialis: deseri, decod | design: layout, look, appear, architectur, structur
desktop: electron, comput, pc, laptop | destroy: delet, remov, drop, eras, purg | detector: sensor, probe
dev: develop, local | develop: dev, local | devic: hardwar, machin, equip | diagnos: debug, troubleshoot
diagram: chart, graph, plot | dialog: modal, popup, overlay | dict: map, dictionari, hash map
dictionari: map, dict, hash map | digest: hash | dimens: size | dir: directori, folder | directori: dir, folder
disappear: miss, lost, vanish, gone, lose | disconnect: drop, reconnect
discount: coupon, voucher, promo, reduct, rebat | disk: storag | dislik: opinion, prefer
display: render, draw, paint, show, present, screen, monitor | dns: domain, host, hostnam
doc: document, readm, guid, manual | doc comment: comment, docstr | docker: contain, imag | docstr: comment, doc comment
document: doc, readm, guid, manual | dollar: money, currenc, cent, euro | domain: host, hostnam, dns
dotenv: env, environ, environ variabl | doubl: duplic, dupe, twice | download: fetch, pull
downsampl: aggreg, rollup, averag, mean | downtim: incid, outag, postmortem | draw: render, paint, display, show
drop: delet, remov, eras, purg, destroy, disconnect, reconnect | dropdown: select, picker | due: deadlin
dump: backup, snapshot, export, extract | dupe: duplic, doubl | duplic: dupe, doubl, twice | e mail: email, mail, smtp
e2e: end to end, integr test, accept, playwright, cypress, selenium, puppet | edg: cdn
edit: modifi, alter, chang, amend | editor: vscode, vim, neovim, emac, jetbrain | effort: estim | electron: desktop
element: compon, widget | email: mail, e mail, smtp, postmark, sendgrid, mailgun, brevo, ses | embed: firmwar
emblem: logo | emit: publish, send, produc | employe: staff, colleagu, team | empti: blank, white
encod: serialis, serial | encrypt: cipher | end to end: e2e, integr test, accept | endpoint: api, rout, rest, handler
energi: batteri, power | entri: row, record | enum: enumer | enumer: enum | env: environ, environ variabl, dotenv
environ: env, environ variabl, dotenv | environ variabl: env, environ, dotenv | equip: hardwar, machin, devic
eras: delet, remov, drop, purg, destroy | err: error, except, failur, fault | error: err, except, failur, fault
estim: effort | euro: money, currenc, cent, dollar | event: messag, msg | exampl: snippet, sampl, demo
excel: csv, spreadsheet | except: error, err, failur, fault | execut: run, launch, start, invok
expir: expiri, ttl, lifetim | expiri: expir, ttl, lifetim | explain: explan, describ, descript
explan: explain, describ, descript | exploit: vulner, cve, secur | export: dump, extract | extract: export, dump
fail: broken, break, failur | failur: error, err, except, fault, fail | fake: mock, stub | fallback: default
fals: wrong, incorrect, bad | fast: quick, speedi | fault: error, err, except, failur
favor: prefer, like, want, favour | favour: prefer, like, want, favor | featur: function
featur flag: flag, toggl, switch | fee: price, cost, amount, tariff | feedback: rate | fetch: poll, download, pull
field: column, attribut, form, input | file: path | file system: fs, filesystem | filesystem: fs, file system
financ: account, bookkeep, ledger | find: search, lookup, full text, found | firmwar: embed
fix: solut, workaround, resolv, repair, remedi | fixtur: seed, sampl data, test data | fk: constraint, foreign key
flag: toggl, switch, featur flag, boolean, bool, unleash, launchdark | flaki: intermitt, unstabl, unreli, random
flash: updat, ota, over the air | float: number, integ, int, numer | flow: workflow, process, procedur
fn: function, method, func, procedur, routin | folder: dir, directori | font: typefac, typographi | forbid: avoid
forbidd: reject, refus, deni | foreign key: constraint, fk | form: input, field | format: style, convent, formatt
formatt: format, prettier, black, ruff, gofmt, biom, rustfmt | found: find
framework: react, vue, svelt, sveltekit, angular, nextj, nuxt, remix, astro, django, flask, fastapi, rail, laravel, express, fastifi, hono, nestj, spring, phoenix, flutter, electron, tauri, qt, actix, axum, gin
free period: trial, demo | freez: hang, stuck, frozen, unrespons | front end: frontend, client side, ui, interfac, gui
frontend: client side, front end, ui, interfac, gui, react, vue, svelt, angular | frozen: hang, stuck, freez, unrespons
fs: filesystem, file system | full text: search, find, lookup | func: function, fn, method, procedur, routin
function: fn, method, func, procedur, routin, featur | gateway: proxi, ingress | gen: generat | generat: codeg, gen
generic: templat | git: version control, vcs, squash, rebas, branch, commit, merg | glyph: icon, symbol | go: golang
go live: deploy, releas, rollout, ship, roll out, publish, launch | golang: go
gone: miss, lost, vanish, disappear, lose | good: product, item, articl, sku | googl play: android
gpt: llm, languag model, model | graph: chart, plot, diagram | grow: growth | growth: grow | grpc: rpc | gst: tax, vat
guard: prevent, avoid, protect | guest: visitor, anonym | gui: frontend, client side, front end, ui, interfac
guid: doc, document, readm, manual | guidelin: convent, rule, polici, standard, practic
handler: api, endpoint, rout, rest | handset: mobil, phone, smartphon | hang: stuck, freez, frozen, unrespons
haproxi: load balanc, lb, nginx | hardwar: machin, devic, equip | hash: digest, argon2, argon2id, bcrypt, scrypt, pbkdf2
hash map: map, dict, dictionari | health: healthcheck, probe, heartbeat | healthcheck: health, probe, heartbeat
heap: memori, ram, leak | heartbeat: health, healthcheck, probe | held: hold | helpdesk: support, custom servic
hide: conceal | hint: tooltip | histori: changelog, releas note | hold: held | hook: webhook, callback
host: domain, hostnam, dns, aw, gcp, azur, hetzner, vercel, netlifi, heroku, fli | hostnam: domain, host, dns
hotkey: keyboard, shortcut | href: url, link, address, uri | https: certif, cert, tls, ssl | huge: larg, big, too larg
i18n: translat, l10n, localis, local, languag, internationalis, internation | iac: terraform, pulumi, ansibl
icon: glyph, symbol | id: identifi, uuid, key | identifi: id, uuid, key | imag: pictur, photo, img, contain, docker
img: pictur, imag, photo | impl: implement | implement: impl | import: ingest, load | incid: outag, downtim, postmortem
incorrect: wrong, fals, bad | info: inform | inform: data, dataset, info | infra: infrastructur | infrastructur: infra
ingest: import, load | ingress: gateway, proxi | init: initialis, initi | initi: init, initialis
initialis: init, initi | input: form, field | instal: setup, set up | instanc: object, vm, virtual machin
int: number, integ, numer, float | integ: number, int, numer, float | integr: connector
integr test: e2e, end to end, accept | interfac: frontend, client side, front end, ui, gui, protocol, trait
intermitt: flaki, unstabl, unreli, random | internation: i18n, internationalis | internationalis: i18n, internation
intro: introduct | introduct: intro | inventori: stock, suppli | invoic: bill, receipt
invok: execut, run, launch, start | io: iphon, ipad, appl, swift, xcode, ipa, testflight, safari | ipad: io, iphon, appl
iphon: io, ipad, appl, safari, swift, xcode, ipa | issu: ticket, case, bug, defect, problem, stori
item: product, articl, good, sku | iter: loop | javascript: js | job: background, async, task, cron job
join: merg, combin, aggreg | js: javascript | json: payload, bodi | k8s: kubernet, cluster | keep: kept | kept: keep
key: token, secret, credenti, id, identifi, uuid | keyboard: shortcut, hotkey | kill: termin, stop, abort
know: knowledg, known | knowledg: know, known | known: know, knowledg | kubernet: k8s, cluster
l10n: translat, i18n, localis, local, languag | label: sticker, tag | lack: unfinish, open, miss
lag: slow, perform, perf, speed, latenc, sluggish
languag: translat, i18n, l10n, localis, local, english, german, french, spanish, python, go, rust, typescript, java
languag model: llm, gpt, model | laptop: comput, pc, desktop | larg: big, huge, too larg | last: stay, remain
late: delay | latenc: slow, perform, perf, speed, lag, sluggish
launch: deploy, releas, rollout, ship, roll out, publish, go live, execut, run, start, invok | layer: tier
layout: design, look, appear, architectur, structur | lb: load balanc, nginx, haproxi | leak: memori, ram, heap
least: minimum, min | ledger: account, bookkeep, financ | legaci: old, deprec, obsolet, outdat | letter: correspond
lib: modul, packag, librari | librari: modul, packag, lib | licenc: subscript, plan, tier, licens, membership
licens: subscript, plan, tier, licenc, membership | lifetim: retent, retain, expiri, expir, ttl
like: prefer, want, favour, favor | limit: maximum, max, cap, ceil | link: url, address, uri, href
lint: linter, static analysi
linter: lint, static analysi, eslint, ruff, flake8, pylint, golangci, biom, clippi, rubocop, credo
list: array, sequenc | listen: subscrib, consum, receiv | llm: languag model, gpt, model | load: import, ingest
load balanc: lb, nginx, haproxi | load test: benchmark, stress test
local: translat, i18n, l10n, localis, languag, dev, develop | localis: translat, i18n, l10n, local, languag
lock: mutex, semaphor, deadlock | log: loki, elk, kibana, fluentd
log in: auth, authent, login, signin, logon, sso, oauth, sign in | log out: logout, signout, sign out
login: auth, authent, signin, logon, sso, oauth, sign in, log in | logo: emblem
logon: auth, authent, login, signin, sso, oauth, sign in, log in | logout: signout, log out, sign out
look: layout, design, appear | lookup: search, find, full text | loop: iter | lose: miss, lost, vanish, disappear, gone
lost: miss, vanish, disappear, gone, lose | machin: hardwar, devic, equip | machin learn: ml, ai | made: make
magic link: passwordless | mail: email, e mail, smtp | maintain: owner, respons | make: build, compil, made
maker: brand, manufactur, vendor, supplier | manag: boss | manual: doc, document, readm, guid
manufactur: brand, vendor, maker, supplier | map: dict, dictionari, hash map | max: limit, maximum, cap, ceil
maximum: limit, max, cap, ceil | mean: aggreg, rollup, downsampl, averag | measur: sampl | meet: standup
member: user, account, profil | membership: subscript, plan, tier, licenc, licens | memoiz: cach
memori: ram, leak, heap | menu: nav, navig, sidebar | merg: join, combin, aggreg, rebas, squash
merg request: pr, pull request, mr, patch | messag: event, msg | method: function, fn, func, procedur, routin
metric: monitor, observ, telemetri, uptim | mfa: 2fa, totp, two factor, second factor, otp | microservic: servic, daemon
migrat: schema, ddl, upgrad, updat, bump | mileston: roadmap | min: minimum, least | minimum: min, least
mismatch: conflict, clash, collis | miss: lost, vanish, disappear, gone, lose, unfinish, open, lack
ml: machin learn, ai | mobil: phone, smartphon, handset, io, android, flutter, swift, kotlin, react nativ
mock: stub, fake | modal: dialog, popup, overlay | model: llm, languag model, gpt | modifi: edit, alter, chang, amend
modul: packag, librari, lib | money: currenc, cent, euro, dollar | money back: refund, reimburs, chargeback, return
mongo: mongodb | mongodb: mongo
monitor: observ, metric, telemetri, uptim, grafana, prometheus, datadog, sentri, loki, screen, display
mono repo: monorepo, singl repositori | monorepo: mono repo, singl repositori | move: renam | movi: video, clip
mr: pr, pull request, merg request, patch | msg: event, messag | mutex: lock, semaphor | name: call
nav: menu, navig, sidebar | navig: menu, nav, sidebar | nginx: load balanc, lb, haproxi
night: schedul, cron, timer, period | nil: null, none, undefin | none: null, nil, undefin
notif: notifi, alert, alarm, push notif, toast, snackbar, sms, email, twilio, push | notifi: notif, alert, alarm
npm: pnpm, yarn, packagejson, node | null: nil, none, undefin | num: number | number: integ, int, numer, float, num
numer: number, integ, int, float | o11y: observ | oauth: auth, authent, login, signin, logon, sso, sign in, log in
object: instanc | object storag: blob, bucket, s3
observ: monitor, metric, telemetri, uptim, o11y, grafana, prometheus, datadog, sentri, loki, opentelemetri
obsolet: legaci, old, deprec, outdat | offlin: servic worker, pwa | offset: pagin, page, cursor
old: legaci, deprec, obsolet, outdat | on call: alert, pager, oncal, rota | onboard: signup, registr, regist, sign up
oncal: alert, pager, on call, rota | oom: out of memori | open: todo, unfinish, remain, pend, lack, miss
oper system: os | opinion: prefer, dislik | optim: optimis, tune, speed up | optimis: optim, tune, speed up
option: config, configur, set, prefer, cfg | order: sort, checkout, purchas, buy, procur | organis: organiz
organiz: organis | orm: prisma, drizzl, sqlalchemi, typeorm, sequel, activerecord, ecto, diesel, hibern
os: oper system | ota: updat, over the air, flash | otp: 2fa, mfa, totp, two factor, second factor | out of memori: oom
outag: incid, downtim, postmortem | outdat: legaci, old, deprec, obsolet | over the air: updat, ota, flash
overflow: overrun | overlay: modal, dialog, popup | overrun: overflow | overview: dashboard, panel
owner: respons, maintain
packag: ship, deliveri, parcel, shipment, modul, librari, lib, npm, pnpm, yarn, pip, poetri, uv, cargo, depend, dep
page: pagin, cursor, offset, screen, view | pager: alert, on call, oncal, rota | pagin: page, cursor, offset
paid: pay, payment, bill, charg | paint: render, draw, display, show | palett: colour, color, theme
panel: dashboard, overview | panic: crash, segfault, abort | parallel: race, concurr, simultan, race condit
param: paramet, argument, arg | paramet: param, argument, arg | parcel: ship, deliveri, shipment, packag | pars: parser
parser: pars | partit: shard | passphras: password, cred, credenti
password: cred, credenti, passphras, argon2, argon2id, bcrypt, scrypt | passwordless: magic link
patch: pr, pull request, merg request, mr | path: file | pattern: regex, regexp, regular express
pay: payment, bill, charg, paid | payload: json, bodi
payment: pay, bill, charg, paid, stripe, paypal, molli, adyen, braintre, klarna, iban, card
pc: comput, desktop, laptop | pend: todo, open, unfinish, remain | perf: slow, perform, speed, latenc, lag, sluggish
perform: slow, perf, speed, latenc, lag, sluggish | period: schedul, cron, timer, night
perm: author, permiss, access, role, privileg, acl, rbac, right
permiss: author, perm, access, role, privileg, acl, rbac, right, permit | permit: approv, allow, sign off, permiss
persist: store, save, write | person: privat, privaci, confidenti | pg: postgr, postgresql, psql
phone: mobil, smartphon, handset | photo: pictur, imag, img | picker: dropdown, select | pictur: imag, photo, img
pipelin: ci, build, continu integr, build server, cd | plan: subscript, tier, licenc, licens, membership
plot: chart, graph, diagram | polici: convent, rule, guidelin, standard, practic | poll: fetch
popup: modal, dialog, overlay | port: socket | postgr: pg, postgresql, psql | postgresql: pg, postgr, psql
postmortem: incid, outag, downtim | power: batteri, energi | pr: pull request, merg request, mr, patch
practic: convent, rule, polici, guidelin, standard
prefer: config, configur, set, option, cfg, like, want, favour, favor, opinion, dislik | preprod: stage, preproduct
preproduct: stage, preprod | present: show, display | prev: previous | prevent: avoid, guard, protect | previous: prev
price: cost, amount, fee, tariff, euro, dollar, cent | print: printer | printer: print
privaci: privat, person, confidenti | privat: person, privaci, confidenti
privileg: author, permiss, perm, access, role, acl, rbac, right
probe: health, healthcheck, heartbeat, sensor, detector | problem: bug, defect, issu
procedur: function, fn, method, func, routin, workflow, process, flow
process: thread, worker, workflow, procedur, flow | processor: cpu | procur: buy, purchas, order | prod: product
produc: publish, emit, send | product: item, articl, good, sku, prod | profil: user, account, member
promo: coupon, voucher, discount | protect: prevent, avoid, guard, secur, safeguard
protocol: transport, interfac, trait, http, mqtt, grpc, amqp, websocket, tcp, udp
proxi: gateway, ingress, tunnel, vpn, nginx, envoy, traefik, haproxi, caddi | psql: pg, postgr, postgresql
publish: emit, send, produc, deploy, releas, rollout, ship, roll out, launch, go live | pull: download, fetch
pull request: pr, merg request, mr, patch | purchas: checkout, buy, order, procur
purg: delet, remov, drop, eras, destroy | push notif: notif | pwa: offlin, servic worker | py: python | python: py
queri: select, statement | queue: broker, bus, rabbitmq, kafka, celeri, bullmq, sidekiq, sqs | quick: fast, speedi
quota: rate limit, throttl | race: concurr, simultan, parallel, race condit
race condit: race, concurr, simultan, parallel | ram: memori, leak, heap | ran: run
random: flaki, intermitt, unstabl, unreli | rate: feedback | rate limit: throttl, quota | rb: rubi
rbac: author, permiss, perm, access, role, privileg, acl, right | reader: scanner, scan
readm: doc, document, guid, manual | realtim: websocket | reason: caus, root caus, culprit | rebas: merg, squash
rebat: discount, reduct | reboot: restart, reload, relaunch | receipt: invoic, bill | receiv: subscrib, listen, consum
reconnect: disconnect, drop | record: row, entri | recov: restor, recoveri | recoveri: restor, recov
reduct: discount, rebat | ref: branch, refer | refactor: restructur, rewrit, cleanup, clean up | refer: ref
refund: reimburs, chargeback, money back, return | refus: reject, deni, forbidd
regex: regexp, pattern, regular express | regexp: regex, pattern, regular express | region: zone, datacentr, datacent
regist: signup, registr, sign up, onboard | registr: signup, regist, sign up, onboard | regress: broke
regular express: regex, regexp, pattern | reimburs: refund, chargeback, money back, return
reject: refus, deni, forbidd | relat: tabl | relaunch: restart, reboot, reload
releas: version, deploy, rollout, ship, roll out, publish, launch, go live | releas cycl: releas train, cadenc
releas note: changelog, histori | releas train: releas cycl, cadenc | reload: restart, reboot, relaunch
remain: todo, open, unfinish, pend, stay, last | remedi: fix, solut, workaround, resolv, repair
remov: delet, drop, eras, purg, destroy, uninstal | renam: move | render: draw, paint, display, show
repair: fix, solut, workaround, resolv, remedi | repli: respons, resp, answer, respond | replic: replica, standbi
replica: replic, standbi | repo: repositori | report: statist, stat | repositori: repo | repro: reproduc
reproduc: repro | req: request, call, requir | request: call, req, requir | requir: req, request | reserv: book, appoint
resolut: resolv | resolv: fix, solut, workaround, repair, remedi, resolut | resp: respons, repli, answer
respond: answer, repli, respons | respons: owner, maintain, repli, resp, answer, respond, breakpoint
rest: api, endpoint, rout, handler | restart: reboot, reload, relaunch | restor: recov, recoveri
restructur: refactor, rewrit, cleanup, clean up | retain: retent, lifetim | retent: retain, lifetim
retri: backoff, again | return: refund, reimburs, chargeback, money back | revers: revert, undo, rollback
revert: rollback, undo, back out, revers | review: code review | revis: commit, changeset
rewrit: refactor, restructur, cleanup, clean up | right: author, permiss, perm, access, role, privileg, acl, rbac
riski: danger, unsaf, safe, care | roadmap: mileston | role: author, permiss, perm, access, privileg, acl, rbac, right
roll out: deploy, releas, rollout, ship, publish, launch, go live
rollback: transact, tx, commit, revert, undo, back out, revers
rollout: deploy, releas, ship, roll out, publish, launch, go live | rollup: aggreg, downsampl, averag, mean
root caus: caus, reason, culprit | rota: alert, pager, on call, oncal | rout: api, endpoint, rest, handler
routin: function, fn, method, func, procedur | row: record, entri | rpc: grpc | rubi: rb
rule: convent, polici, guidelin, standard, practic | run: execut, launch, start, invok, ran
runtim: node, deno, bun, python | s3: blob, bucket, object storag | safe: danger, riski, unsaf, care
safeguard: protect, secur | salari: wage | sampl: measur, snippet, exampl, demo | sampl data: seed, fixtur, test data
sandbox: test environ, stage | sanit: valid, check, verifi, sanitis | sanitis: valid, check, verifi, sanit
save: store, persist, write | scaffold: templat, boilerpl | scale: autosc | scan: scanner, reader
scanner: scan, reader | schedul: cron, timer, night, period, timet, calendar | schema: migrat, ddl
screen: page, view, monitor, display | screen reader: a11y, access, wcag, aria | script: command, cli, cmd
sdk: client librari
search: find, lookup, full text, elasticsearch, opensearch, meilisearch, typesens, algolia, solr, lucen
second factor: 2fa, mfa, totp, two factor, otp | secret: token, key, credenti, vault, sop, dotenv
secur: vulner, cve, exploit, protect, safeguard | seed: fixtur, sampl data, test data | segfault: crash, panic, abort
select: queri, statement, dropdown, picker | sell: sold | semaphor: lock, mutex | send: publish, emit, produc, sent
sensor: probe, detector | sent: send | sequenc: list, array | serial: serialis, encod | serialis: serial, encod
server: backend, servic, back end | servic: backend, server, back end, microservic, daemon | servic worker: offlin, pwa
session: cooki | set: config, configur, option, prefer, cfg | set up: instal, setup | setup: instal, set up
shard: partit | shell: termin, consol, bash, zsh, fish, powershel, nushel
ship: deliveri, parcel, shipment, packag, deploy, releas, rollout, roll out, publish, launch, go live
shipment: ship, deliveri, parcel, packag | shop: storefront, store, shop front, web shop
shop front: storefront, shop, store, web shop | shopper: custom, buyer | short: brief, concis, ters
shortcut: keyboard, hotkey | show: render, draw, paint, display, present | sidebar: menu, nav, navig | sign: signatur
sign in: auth, authent, login, signin, logon, sso, oauth, log in | sign off: approv, allow, permit
sign out: logout, signout, log out | sign up: signup, registr, regist, onboard | signatur: sign
signin: auth, authent, login, logon, sso, oauth, sign in, log in | signout: logout, log out, sign out
signup: registr, regist, sign up, onboard | simultan: race, concurr, parallel, race condit
singl repositori: monorepo, mono repo | site: webapp, web app, websit | size: dimens | sku: product, item, articl, good
slow: perform, perf, speed, latenc, lag, sluggish | sluggish: slow, perform, perf, speed, latenc, lag
smartphon: mobil, phone, handset | sms: text messag, twilio, vonag | smtp: email, mail, e mail | snackbar: toast, notif
snapshot: backup, dump | snippet: exampl, sampl, demo | socket: port | sold: sell
solut: fix, workaround, resolv, repair, remedi | sort: order | sourc: code, codebas, code base
spec: test, unit test, test suit, suit, specif | specif: spec | speed: slow, perform, perf, latenc, lag, sluggish
speed up: optimis, optim, tune | speedi: fast, quick | spreadsheet: csv, excel | sql: db, databas, datastor
squash: merg, rebas | ssl: certif, cert, tls, https
sso: auth, authent, login, signin, logon, oauth, sign in, log in, keycloak, auth0, okta, saml, oidc
stack trace: trace, stacktrac, traceback, backtrac | stacktrac: trace, stack trace, traceback, backtrac
staff: employe, colleagu, team | stage: preproduct, preprod, test environ, sandbox | stale: unus, dead
standard: convent, rule, polici, guidelin, practic | standbi: replica, replic | standup: meet
start: execut, run, launch, invok | stat: report, statist | statement: queri, select | static analysi: lint, linter
static type: type, type hint, annot | statist: report, stat | stay: last, remain | sticker: label
stock: inventori, suppli | stockroom: warehous, depot | stop: kill, termin, abort
storag: disk, store, s3, gcs, bucket, minio
store: save, persist, write, storefront, shop, shop front, web shop, storag
storefront: shop, store, shop front, web shop | stori: ticket, issu | str: string | stream: topic, channel
stress test: benchmark, load test | string: text, str | struct: class, type | structur: architectur, design, layout
stub: mock, fake | stuck: hang, freez, frozen, unrespons | style: css, stylesheet, convent, format
stylesheet: css, style | subscrib: listen, consum, receiv | subscript: plan, tier, licenc, licens, membership
suggest: autocomplet, typeahead | suit: test, spec, unit test, test suit | suppli: stock, inventori
supplier: brand, manufactur, vendor, maker | support: helpdesk, custom servic | suspend: ban, block
switch: flag, toggl, featur flag | symbol: icon, glyph | sync: synchron, block, synchronis
synchron: sync, block, synchronis | synchronis: synchron, sync | tabl: relat | tag: label | talk: communic, connect
tariff: price, cost, amount, fee | task: job, cron job | tax: vat, gst | team: staff, employe, colleagu
telemetri: monitor, observ, metric, uptim | tell: told | temp: temporari, tmp | temperatur: celsius, kelvin, fahr
templat: generic, boilerpl, scaffold | temporari: temp, tmp | termin: shell, consol, bash, kill, stop, abort
ters: short, brief, concis
test: spec, unit test, test suit, suit, pytest, jest, vitest, playwright, cypress, mocha, junit, rspec, exunit, nextest
test data: seed, fixtur, sampl data | test environ: sandbox, stage | test suit: test, spec, unit test, suit
text: string | text messag: sms | theme: colour, color, palett, dark mode | thread: process, worker
throttl: rate limit, quota | ticket: issu, case, stori | tier: subscript, plan, licenc, licens, membership, layer
time seri: timeseri | time zone: tz, timezon | timeout: deadlin | timer: schedul, cron, night, period
timeseri: time seri | timestamp: date, calendar | timet: schedul, calendar | timezon: tz, time zone
tls: certif, cert, ssl, https | tmp: temp, temporari | toast: snackbar, notif | todo: open, unfinish, remain, pend
toggl: flag, switch, featur flag | token: secret, key, credenti | told: tell | too larg: larg, big, huge | tooltip: hint
topic: channel, stream | totp: 2fa, mfa, two factor, second factor, otp
trace: stacktrac, stack trace, traceback, backtrac | traceback: trace, stacktrac, stack trace, backtrac
tracker: jira, linear, github, trello | trait: interfac, protocol | transact: tx, commit, rollback
transform: convert, convers | transit: anim | translat: i18n, l10n, localis, local, languag | transport: protocol
trial: free period, demo | trolley: cart, basket | troubleshoot: debug, diagnos | truncat: clear, wipe | ts: typescript
ttl: expiri, expir, lifetim | tune: optimis, optim, speed up | tunnel: proxi, vpn | twice: duplic, doubl
two factor: 2fa, mfa, totp, second factor, otp | tx: transact, commit, rollback
type: class, struct, type hint, annot, static type, mypi, pyright, tsc, strict | type check: typecheck, type checker
type checker: typecheck, type check | type hint: type, annot, static type | typeahead: autocomplet, suggest
typecheck: type check, type checker, mypi, pyright, tsc | typefac: font, typographi | typescript: ts
typographi: font, typefac | tz: timezon, time zone | ui: frontend, client side, front end, interfac, gui, user interfac
undefin: null, nil, none | undo: rollback, revert, back out, revers | unfinish: todo, open, remain, pend, lack, miss
uninstal: remov | unit: celsius, kelvin, metr, meter, gram, percent, pixel | unit test: test, spec, test suit, suit
unreli: flaki, intermitt, unstabl, random | unrespons: hang, stuck, freez, frozen | unsaf: danger, riski, safe, care
unstabl: flaki, intermitt, unreli, random | unus: dead, stale | updat: upgrad, bump, migrat, ota, over the air, flash
upgrad: updat, bump, migrat | upload: attach | uptim: monitor, observ, metric, telemetri | uri: url, link, address, href
url: link, address, uri, href | usag: use | use: usag | user: account, member, profil | user experi: ux
user interfac: ui | uuid: id, identifi, key | ux: user experi | valid: check, verifi, sanitis, sanit
vanish: miss, lost, disappear, gone, lose | var: variabl | variabl: var | vat: tax, gst | vcs: git, version control
vendor: brand, manufactur, maker, supplier | verif: verifi | verifi: valid, check, sanitis, sanit, verif
version: releas | version control: git, vcs | video: clip, movi | view: page, screen | virtual machin: vm, instanc
visitor: guest, anonym | vm: virtual machin, instanc | voucher: coupon, discount, promo | vpn: proxi, tunnel
vulner: cve, secur, exploit | wage: salari | want: prefer, like, favour, favor | warehous: depot, stockroom
warn: caution | wcag: a11y, access, screen reader, aria | web app: webapp, websit, site
web shop: storefront, shop, store, shop front | webapp: web app, websit, site | webhook: callback, hook
websit: webapp, web app, site | websocket: realtim | webview: browser | white: blank, empti | widget: compon, element
wipe: truncat, clear | word: copi | workaround: fix, solut, resolv, repair, remedi
worker: thread, process, celeri, sidekiq, bullmq | workflow: process, procedur, flow
write: store, save, persist, writt, wrote, author | writt: write, wrote, author | wrong: incorrect, fals, bad
wrote: write, writt | zone: region, datacentr, datacent
"""
)
