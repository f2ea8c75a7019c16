"""300 memories of one made-up software project, as its people and agents would have kept them.

Harbor is a web application for marinas: guests book berths, harbour masters run their harbour. The memories are of
every kind, some in German and Chinese, and no two say the same or contradict each other. They serve wherever a test
needs a realistic space: conflicts that must not be seen, rankings that must hold.
"""

from typing import Any

_TEXT = """
@@ decision #api #fastify apps/api/src/server.ts
The HTTP API is built on Fastify 5 with TypeBox schemas; Hono lost because its OpenAPI plugin was immature in 2025.

@@ decision #database #orm packages/db/src/schema.ts
Drizzle is our ORM for PostgreSQL, chosen over Prisma because migrations stay plain SQL and cold starts are 400 ms
faster.

@@ decision #maps #licensing apps/web/src/map/HarborMap.tsx
We render charts with MapLibre GL and self-hosted vector tiles, since the Mapbox contract would cost 1,900 EUR a
month.

@@ decision #auth #passkeys apps/api/src/auth/passkeys.ts
Guests sign in with passkeys first and a magic link as fallback; passwords are not offered to guests at all.

@@ decision #auth #sso
Harbour staff authenticate through Keycloak 24 by OIDC; each marina is its own realm.

@@ decision #queue #worker apps/worker/src/index.ts
Background jobs run on BullMQ with Redis 7; pg-boss was rejected because tide imports enqueue 40,000 jobs an hour.

@@ decision #payments #stripe
Deposits are charged with Stripe PaymentIntents and captured on arrival; Checkout Sessions cannot do late capture
per berth.

@@ decision #hosting #infra infra/terraform/hetzner
Production stays on Hetzner (Falkenstein and Nuremberg) until a customer contractually demands ISO 27001 on AWS.

@@ decision #monorepo #tooling pnpm-workspace.yaml
The repository is a pnpm workspace with Turborepo; Nx was tried for two weeks and dropped for its generator churn.

@@ decision #tides #python services/tides/pyproject.toml
Tide predictions live in a separate Python 3.12 service, because utide has no counterpart in JavaScript.

@@ decision #i18n apps/web/src/i18n
Translations are ICU messages in FormatJS, extracted at build time; German, English and Mandarin ship from day one.

@@ decision #email #postmark
Transactional mail goes through Postmark on the subdomain mail.harbor.example; marketing mail is somebody else's
problem.

@@ decision #pricing #domain packages/shared/src/pricing.ts
Prices are integers in the smallest currency unit, with an ISO 4217 code beside them, everywhere from form to ledger.

@@ decision #calendar #domain
A booking's night belongs to the harbour's local calendar day, so arrival and departure are stored as dates, not
instants.

@@ decision #feature-flags
Feature flags come from a self-hosted Unleash; LaunchDarkly's seat price made no sense for a team of six.

@@ decision #mobile #pwa apps/web/vite.config.ts
There will be no native apps in 2026: harbour masters get an installable PWA with offline check-in.

@@ decision #search #postgres
Berth search stays in PostgreSQL with PostGIS and pg_trgm until a harbour has more than 5,000 berths.

@@ decision #observability infra/helm/otel
Traces are exported with OpenTelemetry to Grafana Tempo; Datadog was priced at four times the whole cluster.

@@ decision #ci #github .github/workflows/ci.yml
CI runs on GitHub Actions with two self-hosted arm64 runners, because the Playwright suite took 31 minutes on hosted
ones.

@@ decision #deploy #argocd
Deployments are pulled by Argo CD from the harbor-deploy repository; nobody has kubectl write access to production.

@@ decision #frontend #state apps/web/src/api/queryClient.ts
Server state lives in TanStack Query and client state in Zustand; Redux Toolkit was removed in sprint 14.

@@ decision #ui #components packages/ui/src/index.ts
The component library builds on Radix primitives and vanilla-extract, after Tailwind classes became unreadable in
the booking wizard.

@@ decision #exports #billing apps/worker/src/jobs/datev.ts
Accounting export is DATEV format version 700, agreed with the tax adviser of Marina Kappeln on 2025-11-18.

@@ decision #gdpr #retention
Guest profiles are anonymised 24 months after the last stay; invoices remain ten years because German tax law
demands it.

@@ decision #versioning #api
Public endpoints are versioned by date header (Harbor-Version: 2026-01-15) instead of a path prefix.

@@ decision #realtime apps/api/src/live/sse.ts
Occupancy boards receive updates over server-sent events; WebSockets brought nothing but proxy trouble in the
Heiligenhafen pilot.

@@ decision #testing #playwright e2e/playwright.config.ts
End-to-end tests are written in Playwright with one seeded marina per worker, so they can run fully parallel.

@@ decision #files #storage
Contracts and photos are stored in an S3-compatible bucket at Hetzner with object lock of 90 days.

@@ decision #pdf apps/worker/src/pdf/invoice.tsx
Invoices are produced with react-pdf in the worker; headless Chromium needed 600 MB of memory per pod.

@@ decision #weather
Wind warnings come from the DWD open-data feed every ten minutes; OpenWeather had no gust values for the Baltic coast.

@@ decision #rate-limit apps/api/src/plugins/rateLimit.ts
Anonymous clients get 60 requests a minute per IP, signed-in guests 600, integrations whatever their contract says.

@@ decision #domain #waitlist
A waiting list is ordered by boat length class first and by request time second; harbour masters may override with a
reason.

@@ decision #docs #adr docs/adr
Architecture decisions are recorded as ADRs of at most one page, numbered, and reviewed like code.

@@ decision #runtime #node .nvmrc
We run Node 22 LTS in every JavaScript service and upgrade each October.

@@ decision #database #tenancy packages/db/src/rls.sql
Marinas share one database and are separated by row-level security on marina_id; a schema per tenant broke pooled
connections.

@@ decision #secrets #sops infra/secrets
Secrets are kept in Git, encrypted with SOPS and age; Vault was more operations than six people can carry.

@@ decision #accessibility
Guest-facing pages must meet WCAG 2.2 AA; the harbour-master board is exempt until the touch redesign.

@@ decision #analytics
Product analytics is Plausible, self-hosted and cookie-free, so that no consent banner is needed.

@@ decision #forms apps/web/src/forms
Forms use react-hook-form with zod resolvers shared from packages/shared, so that both sides validate the same.

@@ decision #branching #git
We work trunk-based with short branches and squash merges; release branches exist only for on-premise customers.

@@ architecture #overview
Harbor has five deployables: web, api, worker, tides and board; only api and worker may open connections to
PostgreSQL.

@@ architecture #api #layers apps/api/src/modules
Each API module has routes.ts, service.ts and repo.ts; a service never sees a Fastify request and a repo never sees
a DTO.

@@ architecture #auth #sessions apps/api/src/auth/session.ts
Sessions are opaque 32-byte tokens in an HttpOnly cookie named hb_sid, hashed with SHA-256 in the sessions table.

@@ architecture #events #outbox packages/db/src/outbox.ts
Domain events are written to the outbox table in the same transaction and relayed to BullMQ by the outbox-relay
worker every 500 ms.

@@ architecture #payments apps/api/src/modules/payments/webhook.ts
Stripe webhooks land in payment_events first, keyed by event id, and are applied by a worker; the endpoint itself
changes nothing.

@@ architecture #tides #cache services/tides/app/cache.py
Tide curves are computed once per station and year, stored as Parquet in the bucket, and memory-mapped by the tides
service.

@@ architecture #board #offline apps/board/src/sync
The harbour-master board keeps a replica of the next 14 days in IndexedDB and replays queued check-ins when it is
back online.

@@ architecture #database #geometry packages/db/src/berths.ts
Berths are polygons in EPSG:4326 with a generated centroid column; the GiST index berths_geom_idx answers the map
queries.

@@ architecture #billing #ledger packages/billing/src/ledger.ts
The ledger is double entry and append-only: corrections are reversing entries, and balances are a materialised view
refreshed hourly.

@@ architecture #permissions packages/shared/src/permissions.ts
Permissions are a static map from role to capability strings such as booking:refund; roles are guest, dockhand,
master, accountant, owner.

@@ architecture #worker #queues apps/worker/src/queues.ts
There are four queues (mail, billing, tides, exports), each with its own concurrency: 20, 4, 2 and 1.

@@ architecture #web #routing apps/web/src/routes
The web client uses file-based routing from TanStack Router; loaders prefetch queries so that a page never shows two
spinners.

@@ architecture #infra #kubernetes infra/helm/harbor
Production is a k3s cluster of three cx42 nodes; PostgreSQL runs outside of it on two dedicated servers with Patroni.

@@ architecture #images #cdn
Berth photos are resized on upload to 320, 960 and 1920 pixels as AVIF and served from bunny.net under
img.harbor.example.

@@ architecture #api #errors apps/api/src/errors.ts
Every API error is an RFC 9457 problem document with a stable code such as berth_taken; the client translates codes,
never messages.

@@ architecture #locking #bookings apps/api/src/modules/bookings/service.ts
Double bookings are prevented by an exclusion constraint on (berth_id, daterange), not by application locks.

@@ architecture #i18n #content
Marina descriptions are stored per locale in marina_texts with a fallback chain zh → en → de.

@@ architecture #tenancy #request apps/api/src/plugins/tenant.ts
The tenant plugin resolves the marina from the host name and runs SET LOCAL app.marina_id at the start of each
transaction.

@@ architecture #flags apps/api/src/plugins/flags.ts
Flag values are evaluated on the server once per request and sent to the browser in the bootstrap payload.

@@ architecture #metrics
Each service exposes /metrics for Prometheus on port 9464, separate from its public port.

@@ architecture #mail #templates packages/mail/src/templates
Mail templates are MJML compiled at build time; the mail queue stores only template name, locale and variables.

@@ architecture #search #query apps/api/src/modules/search/repo.ts
Availability search is one SQL statement: berths that fit length, beam and draught, minus a lateral join on
overlapping bookings.

@@ architecture #tests #database packages/db/test/template.ts
Integration tests clone the template database harbor_template per test file, which takes 90 ms instead of running
140 migrations.

@@ architecture #gateway #gate-codes apps/api/src/modules/gates
Gate codes are pulled by the pier controllers over mutual TLS every minute; the cloud never calls into a harbour's
network.

@@ architecture #audit packages/db/src/audit.ts
Every write goes to audit_log through a trigger with actor, marina and a JSON diff; the table is partitioned by month.

@@ architecture #web #design-tokens packages/ui/src/tokens.css.ts
Design tokens are generated from Figma variables into tokens.css.ts by the script tools/sync-tokens.mjs.

@@ architecture #import #legacy apps/worker/src/jobs/importHafenmeister.ts
Imports from the old Hafenmeister 3 software go through a staging schema and are matched on boat registration plus
owner e-mail.

@@ architecture #scheduler apps/worker/src/scheduler.ts
Recurring jobs are declared in scheduler.ts as repeatable BullMQ jobs; Kubernetes CronJobs exist only for backups.

@@ architecture #backup infra/backup
Backups are pgBackRest to a storage box: full on Sunday, differential daily, WAL continuously, restore drill on the
first Monday.

@@ architecture #board #printing
Berth tickets are printed through a local bridge on port 8631 that speaks ESC/POS to Epson TM-m30 printers.

@@ pattern #repository #transactions apps/api/src/db/withTx.ts
Wrap every use case in withTx(marinaId, fn); nested calls join the outer transaction through AsyncLocalStorage.

@@ pattern #idempotency apps/api/src/plugins/idempotency.ts
Mutating endpoints accept an Idempotency-Key header, store the response for 24 hours and replay it on repeat.

@@ pattern #react #forms apps/web/src/forms/useZodForm.ts
New forms start from useZodForm(schema) and the <Field> components, which carry labels, errors and aria attributes.

@@ pattern #react #tables packages/ui/src/DataTable.tsx
Lists longer than 50 rows are rendered with DataTable, which virtualises and keeps the selection across refetches.

@@ pattern #retry apps/worker/src/lib/retry.ts
Calls to third parties are wrapped in withRetry: three attempts, full jitter, base 250 ms, no retry on 4xx except 429.

@@ pattern #feature-modules
A new feature begins with its zod schema in packages/shared, then repo, service, routes, query hook and page, in
this order.

@@ pattern #sql #pagination apps/api/src/lib/keyset.ts
Pagination is keyset on (created_at, id) through keyset.ts; the cursor is base64url of both values.

@@ pattern #dates packages/shared/src/dates.ts
LocalDate from packages/shared wraps Temporal.PlainDate and is the only type for nights, arrivals and departures.

@@ pattern #testing #builders packages/testing/src/builders.ts
Tests build data with aBooking().in(marina).for(guest) builders, which insert only what the test names.

@@ pattern #mocking #stripe apps/api/test/stripe.ts
Stripe is replaced in tests by stripe-mock plus recorded webhooks under apps/api/test/fixtures/stripe.

@@ pattern #error-boundary apps/web/src/app/RouteError.tsx
Each route has its own error boundary that reports to Sentry with the problem code as fingerprint.

@@ pattern #optimistic-updates apps/board/src/checkin/useCheckIn.ts
Check-in updates the query cache optimistically and rolls back with a toast that names the berth.

@@ pattern #python #settings services/tides/app/settings.py
The tides service reads configuration once through pydantic-settings and passes the object down; modules do not look
at os.environ.

@@ pattern #logging packages/log/src/index.ts
Log lines are pino JSON with reqId, marinaId and a verb in past tense, for example "booking confirmed".

@@ pattern #sse apps/web/src/live/useLive.ts
useLive(topic) merges server-sent events into the query cache and falls back to a 30 second refetch when the stream
drops.

@@ pattern #jobs #payload apps/worker/src/jobs/defineJob.ts
A job payload holds ids, never rows; defineJob parses it with zod before the handler runs.

@@ pattern #csv #export apps/worker/src/lib/csv.ts
Exports are streamed with a PostgreSQL cursor in batches of 1,000 through csv.ts, so that memory stays flat.

@@ pattern #css packages/ui/src/recipes.css.ts
Variants are written as vanilla-extract recipes; conditional class strings are a review comment.

@@ pattern #permissions #ui apps/web/src/auth/Can.tsx
Buttons are wrapped in <Can do="booking:refund">, which hides them for roles without that capability.

@@ pattern #migrations packages/db/migrations
Column renames take three releases: add and dual-write, backfill and switch reads, drop.

@@ pattern #graph #tides services/tides/app/plot.py
Charts of tide curves are drawn on the server as SVG by plot.py and inlined, so that e-mails and pages share one
picture.

@@ pattern #suspense apps/web/src/routes/bookings.$id.tsx
Detail pages stream: the header awaits the booking, while history and invoices are deferred behind Suspense.

@@ pattern #seed packages/db/seed/marinas.ts
Seeds describe three marinas (Kappeln, Dragør, Qingdao) with fixed UUIDs, so that screenshots stay comparable.

@@ pattern #locks #cron apps/worker/src/lib/lease.ts
Work that may run only once at a time takes a row in leases with an expiry, renewed every 10 seconds.

@@ convention #typescript tsconfig.base.json
TypeScript runs in strict mode with noUncheckedIndexedAccess; any is allowed only with an eslint-disable and a reason.

@@ convention #naming #database
Tables are plural snake_case, primary keys are UUIDv7 columns called id, foreign keys end in _id.

@@ convention #commits
Commit subjects are imperative and at most 72 characters; the ticket goes into the trailer as Refs: HRB-123.

@@ convention #imports eslint.config.js
Imports between packages go through the package's index; deep imports fail the lint rule no-restricted-imports.

@@ convention #testing #names
Test names are full sentences about behaviour, such as "a guest cannot cancel after the deadline".

@@ convention #api #json
JSON fields are camelCase, timestamps are RFC 3339 in UTC, absent means null and never an empty string.

@@ convention #components
One component per file, named export, PascalCase file name; hooks live beside the component that owns them.

@@ convention #sql
Write SQL keywords in lower case and put one clause on each line, also inside template literals.

@@ convention #reviews
Every pull request needs one review; changes under packages/billing need Ingrid's.

@@ convention #env apps/api/src/config.ts
Environment variables are read in config.ts only, prefixed HARBOR_, and validated at start-up.

@@ convention #dependencies
A new runtime dependency needs a line in docs/dependencies.md that says why and who looks after it.

@@ convention #translations
Translation keys follow page.section.element; text with numbers uses ICU plural even if the German form is the same.

@@ convention #python #style services/tides
Python code is formatted with ruff at 100 columns and type-checked by pyright in strict mode.

@@ convention #branch-names
Branches are called <initials>/<ticket>-<slug>, for example mk/hrb-481-gate-codes.

@@ convention #changelog CHANGELOG.md
User-visible changes get a changelog fragment under .changes/ in the pull request itself.

@@ convention #money #display apps/web/src/lib/formatMoney.ts
Amounts are shown with formatMoney(amount, currency, locale); string concatenation with a euro sign fails the lint.

@@ convention #helm infra/helm/harbor/values.yaml
Resource requests are set for every container; limits only for memory.

@@ convention #adr #format
An ADR has the headings Context, Choice, Consequences, and a date; superseded ones stay in place with a link.

@@ convention #comments
Comments explain why; a comment that repeats the code is deleted in review.

@@ convention #icons packages/ui/src/icons
Icons come from Lucide at 1.5 px stroke and are imported one by one.

@@ convention #http #status
Validation problems answer 422, conflicts 409, and missing capabilities 403; 400 is reserved for malformed JSON.

@@ convention #on-call docs/runbooks
Each alert links to a runbook in docs/runbooks with the same slug as the alert name.

@@ convention #tests #location
Unit tests sit next to the source as *.test.ts, integration tests under test/ of their package.

@@ convention #release
Releases happen Tuesday and Thursday before noon; the release captain rotates by the calendar in Notion.

@@ convention #sentry
Sentry issues are assigned within one working day or muted with a comment.

@@ convention #types #domain packages/shared/src/brands.ts
Identifiers are branded types (BerthId, BookingId), so that a guest id cannot be handed to a booking function.

@@ convention #figma
Screens in Figma are named like their route, and a story in Storybook links back to the frame.

@@ convention #storybook packages/ui/.storybook
Each public component of packages/ui has a story in light, dark and right-to-left mode.

@@ convention #shell
Shell scripts begin with set -euo pipefail and pass shellcheck; anything beyond 50 lines becomes a Node script.

@@ convention #timezones
Users see times in the harbour's time zone with its abbreviation, whatever their browser says.

@@ convention #pull-requests
Keep pull requests below 400 changed lines; generated files are marked linguist-generated.

@@ convention #graphql
There is no GraphQL in this project; partner integrations receive REST and webhooks.

@@ convention #eslint
Lint warnings are treated as errors in CI, and new rules are introduced with a codemod.

@@ convention #license
Every source file of packages/ui carries the MPL-2.0 header, since that package is public.

@@ convention #docker
Images are built from distroless Node bases, run as uid 65532 and have a read-only root file system.

@@ warning #billing #ledger packages/billing/src/ledger.ts
Never update or delete rows in ledger_entries: the tax export recomputes hashes over the whole month and fails.

@@ warning #migrations packages/db/migrations
Do not edit a migration after it has reached main; staging compares checksums and refuses to start.

@@ warning #auth #middleware apps/api/src/auth/session.ts
Don't call touchSession from the SSE route: each heartbeat wrote a row and saturated the disk on 2026-01-09.

@@ warning #stripe #webhooks apps/api/src/modules/payments/webhook.ts
The webhook route needs the raw body; registering the JSON parser before it breaks signature verification silently.

@@ warning #postgis
ST_Distance on EPSG:4326 returns degrees; cast to geography, or berths 30 km away look near.

@@ warning #redis #eviction infra/helm/redis/values.yaml
The BullMQ Redis must keep maxmemory-policy noeviction; with allkeys-lru repeatable jobs vanish without a trace.

@@ warning #board #indexeddb apps/board/src/sync/store.ts
Raising the IndexedDB version while two tabs are open blocks the upgrade; the board must listen to onversionchange
and close.

@@ warning #keycloak #realms infra/keycloak
Importing a realm file overwrites its client secrets; export them first with tools/kc-secrets.sh.

@@ warning #dst #dates
Adding 24 hours to get the next night is wrong twice a year; use LocalDate.plusDays(1).

@@ warning #rls #connections apps/api/src/db/pool.ts
PgBouncer runs in transaction mode: session-level SET leaks the tenant into the next request.

@@ warning #i18n #chinese
Mandarin labels overflow the pier map legend below 360 px; check the board at 320 px before you ship a new legend
entry.

@@ warning #s3 #object-lock
Objects under contracts/ cannot be deleted for 90 days, not even by the root account; test uploads belong in the
scratch bucket.

@@ warning #terraform infra/terraform/hetzner
Renaming the hcloud_server resources recreates the database hosts; use moved blocks.

@@ warning #fastify #hooks
An async onRequest hook that also calls done() runs the handler twice.

@@ warning #playwright
The seeded clock in end-to-end tests is 2026-06-15T08:00Z; anything that compares with the real date turns flaky
after midnight.

@@ warning #gate-codes #hardware
Pier controllers with firmware below 2.4 crash on codes with a leading zero; generate codes from 100000 upwards.

@@ warning #drizzle packages/db/drizzle.config.ts
drizzle-kit push drops the exclusion constraint on bookings because it does not know about it; use generated SQL
files.

@@ warning #postmark
Postmark suspends the stream above 2 % hard bounces; imported guest addresses have to be verified before the season
mailing.

@@ warning #memory #tides services/tides/app/cache.py
Loading all 740 stations at once needs 11 GB; the cache must stay lazy per station.

@@ warning #argocd
Argo CD self-heal reverts manual scaling within three minutes, so change replicas in harbor-deploy.

@@ warning #caching #cdn
bunny.net caches 404 answers for an hour; upload the image before you publish its URL.

@@ warning #node #fetch apps/worker/src/lib/http.ts
Node's fetch keeps sockets of aborted requests; pass a fresh dispatcher to DWD calls or the worker runs out of file
descriptors.

@@ warning #datev apps/worker/src/jobs/datev.ts
DATEV rejects files with a byte order mark and with more than 99,999 lines; the exporter splits by fortnight.

@@ warning #safari #pwa
iOS Safari drops IndexedDB after seven days without a visit unless the app is installed on the home screen.

@@ warning #unleash
If Unleash is unreachable at start-up, all flags are off, including payments_v2; the readiness probe waits for the
first sync.

@@ warning #printing
The print bridge accepts plain HTTP from any page on the machine; keep its origin allow-list to board.harbor.example.

@@ warning #turborepo turbo.json
Turbo caches test results although DATABASE_URL differs, unless the variable is listed under env in turbo.json.

@@ warning #partitioning packages/db/src/audit.ts
audit_log partitions are created by a job one month ahead; when it fails, every write fails on the first of the month.

@@ warning #temporal-polyfill
The Temporal polyfill adds 56 kB to each bundle that imports it; only packages/shared may.

@@ warning #hono
The partner sandbox still runs the old Hono gateway on port 4010; its logs contain unmasked phone numbers.

@@ warning #sse #proxy infra/helm/ingress
Traefik buffers event streams behind the compress middleware; exclude /live from it.

@@ warning #ledger #rounding
VAT is rounded per invoice line and not per invoice; the auditors checked this with invoice 2025-004417.

@@ warning #keyset
A keyset cursor made with one sort order is silently wrong with another; the cursor carries the order and is refused
otherwise.

@@ warning #pnpm .npmrc
pnpm hoists @types/react twice when the board pins another minor version, and JSX types break with no useful message.

@@ warning #healthcheck
The readiness probe touches PostgreSQL, so a slow query storm takes every pod out of rotation at once; keep its
timeout at 2 s.

@@ discovery #performance #search apps/api/src/modules/search/repo.ts
The availability query spent 80 % of its time in the lateral join; a covering index on (berth_id, arrival,
departure) took it from 740 to 38 ms.

@@ discovery #stripe
It turns out that Stripe sends charge.refunded before the API call returns in about one of 300 refunds.

@@ discovery #tides #accuracy
Predictions for Kiel are off by up to 40 cm in easterly storms, since surge is not tidal; the board therefore shows
DWD water levels instead.

@@ discovery #bundle apps/web/vite.config.ts
Half of the web bundle was the country list of the phone input; loading it on focus saved 310 kB.

@@ discovery #postgres #vacuum
The sessions table bloated to 9 GB because a replication slot of the retired analytics replica held the xmin horizon.

@@ discovery #safari
Safari 17 ignores passkey autofill when the input lacks autocomplete="username webauthn" in exactly that order.

@@ discovery #usage
Harbour masters open the board on Windows tablets at 1280×800, 70 % of them in direct sunlight, hence the
high-contrast theme.

@@ discovery #bullmq
BullMQ's rate limiter counts per queue and not per worker, so two replicas share the 20 mails a second.

@@ discovery #drizzle
Drizzle batches relational queries into one lateral JSON query, which PostgreSQL plans badly above three levels.

@@ discovery #logs
A third of the Loki volume was the health check at info level.

@@ discovery #gdpr #mail
Postmark keeps message bodies for 45 days, longer than our privacy notice promised; retention is now set to 7 days.

@@ discovery #clock
Two pier controllers in Dragør drift by 90 seconds a day, which explains gate codes that open a minute early.

@@ discovery #ci
The slowest CI step was not the tests but pnpm install without the store cache: 4 min 20 s against 35 s.

@@ discovery #maplibre apps/web/src/map/HarborMap.tsx
MapLibre re-uploads all sprites when the style object changes identity; memoising the style removed the flicker.

@@ discovery #dwd
The DWD feed repeats the previous hour's file when a station is silent; compare the observation time, not the file
time.

@@ discovery #support
Most support mails in May ask how to change the boat's length after booking, since the wizard hides it behind the
berth step.

@@ discovery #keycloak
Keycloak caches role mappings for 60 seconds, so a revoked dockhand can still check in for a minute.

@@ discovery #autovacuum
Autovacuum never reached audit_log partitions of past months because they fall below the scale factor; a freeze job
now visits them.

@@ discovery #qingdao
The Qingdao pilot reaches our API at 380 ms round trip and loses 4 % of packets in the evening; the board's timeouts
were too short for it.

@@ discovery #invoice
The old system numbered invoices per pier and year, so two invoices of 2023 can have the same number.

@@ discovery #node #memory
The API's memory growth was a closure in the flags plugin that held every request's logger.

@@ discovery #accessibility
Screen readers announced each berth polygon as "graphic"; role="button" with a label such as "Berth B12, free" fixed
the audit finding.

@@ discovery #queries
Two thirds of all search requests ask for tonight and one boat length between 9 and 12 metres.

@@ discovery #traefik
Traefik's default read timeout of 60 s cut uploads from slow harbour Wi-Fi; photos above 8 MB were affected.

@@ discovery #vite
Vite's dependency optimiser ran again on each branch switch because pnpm-lock.yaml is part of its hash.

@@ error #booking #constraint apps/api/src/modules/bookings/repo.ts
"conflicting key value violates exclusion constraint bookings_no_overlap": arrives as 23P01; map it to 409
berth_taken in the repo.

@@ error #drizzle #types
"Type instantiation is excessively deep" in schema.ts: fixed by splitting relations into relations.ts per module.

@@ error #playwright #ci e2e/fixtures/auth.ts
Playwright timed out at storageState in CI: the passkey emulator needs
--enable-features=WebAuthenticationVirtualAuthenticator.

@@ error #pg #pool apps/api/src/db/pool.ts
"remaining connection slots are reserved": each worker replica opened 20 connections; fixed by pool size 5 and
PgBouncer in front.

@@ error #tides #numpy services/tides/app/predict.py
utide raised "SVD did not converge" for stations with gaps; fixed by interpolating holes shorter than three hours
before solving.

@@ error #stripe #signature
"No signatures found matching the expected signature for payload" on staging: the secret belonged to the live
endpoint.

@@ error #esm apps/worker/package.json
ERR_REQUIRE_ESM from file-type in the worker: solved by building the worker as ESM with tsup.

@@ error #helm
"cannot patch harbor-api: field is immutable" after changing selector labels: delete the Deployment with
--cascade=orphan and sync again.

@@ error #indexeddb #board apps/board/src/sync/store.ts
QuotaExceededError on 16 GB tablets: photos were cached in IndexedDB; they moved to the Cache API with a 50 MB cap.

@@ error #keycloak #redirect
"Invalid parameter: redirect_uri" after adding a marina: wildcard hosts must be listed per realm by
tools/kc-realm.mjs.

@@ error #vite #memory
"JavaScript heap out of memory" in the web build: source maps of maplibre-gl doubled the heap;
NODE_OPTIONS=--max-old-space-size=4096 in CI.

@@ error #bullmq apps/worker/src/index.ts
"Missing lock for job" during long DATEV exports: lockDuration raised to 120,000 ms and progress reported per batch.

@@ error #timezone packages/shared/src/dates.ts
RangeError "Invalid time value" for guests in Lord Howe: the half-hour DST broke the old offset parser; replaced by
Temporal.

@@ error #pdf
react-pdf printed empty umlauts: the Inter subset lacked U+00FC; the font is now embedded whole.

@@ error #terraform
"Error: server type cx41 is deprecated": types were renamed by Hetzner; cx42 is the successor with equal memory.

@@ error #rls #migrations
"permission denied for table outbox" after migration 0131: the grant to harbor_app was missing; the migration linter
checks for it now.

@@ error #sse #memory
MaxListenersExceededWarning on the live route: listeners were not removed on close; the fix is in the reply.raw
close handler.

@@ error #postgis #docker
"could not access file $libdir/postgis-3": the CI image was postgres:16 and not postgis/postgis:16-3.4.

@@ error #eslint
ESLint crashed with "Cannot read properties of undefined (reading 'getScope')": eslint-plugin-react was too old for
flat config.

@@ error #mail
Mails to t-online.de were deferred with 421: the PTR record of the dedicated IP was missing; Postmark support set it
on 2025-12-03.

@@ error #map #webgl
"Failed to initialize WebGL" on the harbour office PCs: hardware acceleration is disabled by policy, so the static
SVG plan is shown.

@@ error #python #uvicorn services/tides/Dockerfile
The tides pod was OOM-killed (exit 137) at start: four uvicorn workers each mapped the Parquet cache; one worker
with threads fits 512 MB.

@@ error #zod
"Expected string, received null" on old bookings: vesselName was nullable before 2024; the schema accepts null and
shows a dash.

@@ error #git-lfs
"smudge filter lfs failed" on the runners: git-lfs was not installed in the arm64 image.

@@ error #sentry
Source maps were missing in Sentry after the Vite 6 upgrade: the plugin must come last in the plugin list.

@@ error #leases apps/worker/src/lib/lease.ts
Two nightly closings ran at once on 2026-02-01: the lease was compared with the pod's clock; it now uses now() of
PostgreSQL.

@@ error #i18n #build
formatjs compile failed with EXPECT_ARGUMENT_CLOSING_BRACE: an apostrophe in a French message must be doubled.

@@ error #gates apps/api/src/modules/gates/mtls.ts
"certificate has expired" on all pier controllers on 2025-10-01: the intermediate was valid one year; renewal is a
monthly job now.

@@ error #dwd
"Unexpected end of zlib stream" on wind files: DWD rewrites files in place; download to a temporary name and retry
once.

@@ error #storybook
Storybook showed unstyled components: vanilla-extract's plugin must be added in main.ts as well, not just in
vite.config.ts.

@@ preference #maren #language
Maren wants short answers, the command first and the explanation after it.

@@ preference #diff
When showing a change, print only the changed hunk with three lines of context, not the whole file.

@@ preference #tests #workflow
Jonas prefers a failing test before any fix, in its own commit.

@@ preference #commit
Ask before committing; pushing is always done by a person.

@@ preference #naming
Prefer full words in identifiers: reservation, not rsv; departure, not dep.

@@ preference #libraries
We like small dependencies with few transitive ones; above 20 packages, propose to write it ourselves.

@@ preference #sql
Ingrid prefers raw SQL with a comment over clever query-builder chains for anything with a window function.

@@ preference #docs
Write documentation in British English; user interface texts come from the translators.

@@ preference #format
Tables beat bullet lists when comparing more than two options.

@@ preference #review
Review comments should say whether they block, with the prefix blocking: or nit:.

@@ preference #estimates
Give estimates in half days and name the biggest unknown.

@@ preference #screenshots
Attach before and after screenshots to every change of the board.

@@ preference #terminal
Use rg and fd in examples, since everyone has them installed.

@@ preference #meetings
No meetings on Wednesday; decisions that need one are prepared in writing.

@@ preference #errors
Error messages for harbour masters name the berth and the next step, in one sentence.

@@ preference #colors
The colour-blind-safe palette (blue, orange) stays; red and green never carry meaning alone.

@@ preference #editor
Wei works in Neovim and asks for patches that apply with git am.

@@ preference #functions
Early returns rather than nested conditions; at most three levels of indentation.

@@ preference #mocks
Fakes over mocks: a small in-memory class is better than jest-style spies.

@@ preference #release-notes
Release notes address harbour masters and avoid words like endpoint or payload.

@@ progress #gates
Gate-code rotation is finished and deployed to Kappeln; Dragør waits for the firmware update planned for 2026-03-16.

@@ progress #payments
payments_v2 is at 25 % of marinas; refunds reconcile to the cent since 2026-02-20.

@@ progress #board
Offline check-in passed the field test at Grömitz with 212 arrivals and no lost record.

@@ progress #migration
Hafenmeister 3 data of six out of nine marinas is imported; Travemünde is blocked by missing owner e-mails.

@@ progress #i18n
Mandarin strings are 94 % translated; the legal pages are with an external translator.

@@ progress #performance
The p95 of availability search fell from 1.2 s to 190 ms in the load test with 400 virtual users.

@@ progress #security
The penetration test of January closed with two medium findings, both fixed in 3.18.0.

@@ progress #tides
Station imports for the Danish coast are done; Sweden needs a licence agreement first.

@@ progress #design
The touch redesign of the board is at the prototype stage; usability sessions are booked for April.

@@ progress #infra
Cluster upgrade to Kubernetes 1.31 is complete on staging and scheduled for production on 2026-03-24.

@@ progress #docs
The partner API guide has drafts for bookings and webhooks; the section about gate controllers is missing.

@@ progress #billing
Reminder letters (dunning level 1 and 2) are implemented; level 3 waits for the lawyer's wording.

@@ progress #e2e
The end-to-end suite shrank from 31 to 9 minutes after sharding over six workers.

@@ progress #waitlist
Waiting-list offers expire after 48 hours now; notification by SMS is still open (HRB-702).

@@ progress #hiring
The second backend developer starts on 2026-04-01 and takes over the integrations.

@@ fact #customers
Nine marinas are live; the largest is Heiligenhafen with 1,038 berths.

@@ fact #team
Maren owns product, Ingrid billing, Jonas the API, Wei the board, Aylin design, Tomasz infrastructure.

@@ fact #staging
Staging is at https://staging.harbor.example and is reset from anonymised production every Monday at 03:00.

@@ fact #season
The season runs from 1 April to 31 October; no schema changes on bookings between 15 June and 31 August.

@@ fact #sla
The contract with Heiligenhafen promises 99.5 % availability between 6:00 and 22:00 local time.

@@ fact #support
Support answers within four working hours; the telephone is staffed on Saturdays during the season.

@@ fact #currencies
Supported currencies are EUR, DKK, SEK, PLN and CNY.

@@ fact #domains
The domains harbor.example and hafen.example are registered at INWX under Maren's account.

@@ fact #printers
Twelve Epson TM-m30 printers are in use; spare paper rolls are 80 mm wide.

@@ fact #sms
SMS are sent through seven.io with the sender name HARBOR; China needs a registered template instead.

@@ decision #sprache #ui
Die Anrede der Gäste ist auf Deutsch „Sie“, für Hafenmeister auf dem Board „du“.

@@ convention #commits #deutsch
Fachbegriffe wie Liegeplatz, Steg und Hafenmeister werden im Code englisch benannt: berth, pier, harbourMaster.

@@ warning #buchung #frist
Stornofristen rechnen ab 18 Uhr Ortszeit des Hafens; ein Vergleich in UTC verschiebt sie im Sommer um zwei Stunden.

@@ discovery #rechnung
Das Finanzamt akzeptiert die Sammelrechnung nur, wenn jede Nacht als eigene Position aufgeführt ist.

@@ architecture #kasse apps/api/src/modules/pos
Die Kassenanbindung läuft über eine TSE in der Cloud (fiskaly); jede Barzahlung wird vor dem Bon-Druck signiert.

@@ preference #ingrid
Ingrid möchte Beträge in Testdaten krumm haben, zum Beispiel 1.234,56 €, damit Rundungsfehler auffallen.

@@ error #umlaute apps/worker/src/jobs/importHafenmeister.ts
Umlaute aus Hafenmeister 3 kamen als „Ã¼“ an: Die Exportdatei ist Windows-1252, der Import nahm UTF-8 an.

@@ progress #schulung
Die Schulung der Hafenmeister in Grömitz ist abgeschlossen; elf Personen haben das Board ohne Hilfe bedient.

@@ fact #vertrag
Der Vertrag mit der Marina Kappeln läuft bis 30.09.2027 und verlängert sich um zwölf Monate.

@@ decision #backup
Sicherungen werden 35 Tage aufbewahrt; die Monatsstände bleiben ein Jahr im Tresor der Bank.

@@ warning #strom
Die Stromsäulen am Steg C melden Zählerstände doppelt, wenn das Gateway neu startet; doppelte Zeitstempel verwerfen.

@@ pattern #formulare
Pflichtfelder werden erst beim Verlassen geprüft, die Zusammenfassung der Fehler steht über dem Absenden-Knopf.

@@ convention #datum
Datumsangaben für deutsche Gäste stehen als 15.06.2026, in Dateinamen und Schnittstellen nach ISO 8601.

@@ discovery #gäste
Dänische Gäste buchen im Schnitt elf Tage früher als deutsche, deshalb gilt der Frühbucherpreis dort 30 Tage.

@@ fact #steg
Steg F in Heiligenhafen ist bis zum 30. Mai 2026 wegen Rammarbeiten gesperrt.

@@ architecture #zähler services/meters
Zählerstände kommen per LoRaWAN über The Things Stack und werden stündlich auf Plausibilität geprüft.

@@ preference #ton
Fehlermeldungen bitte ohne Ausrufezeichen und ohne „leider“.

@@ progress #barrierefreiheit
Der BITV-Test der Buchungsstrecke ergab 91 von 100 Punkten; offen ist der Kontrast im Kalender.

@@ error #druck
Der Bondrucker in Grömitz druckte Hieroglyphen: Codepage stand auf PC437, gebraucht wird WPC1252.

@@ decision #preise
Kinder unter sechs Jahren zählen nicht als Personen; die Kurtaxe wird getrennt ausgewiesen.

@@ decision #支付
青岛试点只接入微信支付和支付宝，信用卡在第二阶段再考虑。

@@ warning #网络
大陆用户无法访问 Google 字体，网页字体必须由我们自己的服务器提供。

@@ convention #翻译
中文界面统一使用“泊位”，不用“停泊位”或“船位”。

@@ discovery #短信
国内短信模板审核需要三个工作日，验证码模板编号是 SMS_48210。

@@ architecture #部署
青岛的看板通过香港节点访问接口，静态资源放在阿里云 OSS。

@@ error #编码
导出的 CSV 在 Excel 中出现乱码：中文版 Excel 需要带 BOM 的 UTF-8，仅对中文语言环境添加。

@@ preference #沟通
王伟希望代码评审用英文写，面向港口的说明用中文写。

@@ progress #试点
青岛港试点已录入 86 个泊位，计划五月一日开放预订。

@@ fact #法规
船舶登记号在中国为“鲁青渔”开头加五位数字，校验规则见 packages/shared/src/registration.ts。

@@ pattern #日期
中文日期显示为 2026年6月15日，星期用“周一”而不是“星期一”。

@@ convention #fetch apps/web/src/api/client.ts
Always go through apiClient in the browser: it adds the CSRF header and turns problem documents into ApiError.

@@ convention #enum packages/shared/src/enums.ts
Use string unions instead of TypeScript enums, so that values survive JSON unchanged.

@@ preference #logs
Never paste raw log output into a ticket; summarise it and link to the Loki query.

@@ warning #feature-flags
Disable the flag waitlist_auto_offer before you import old waiting lists, otherwise every guest receives an SMS at
once.

@@ decision #caching #redis
Session lookups are not cached in Redis; one indexed read takes 0.3 ms and revocation stays immediate.

@@ pattern #react #context
Avoid React context for values that change more than once a second; subscribe to a store instead.
"""


def _read(block: str) -> dict[str, Any]:
    header, _, content = block.strip().partition("\n")
    kind, *marks = header.split()
    return {
        "content": " ".join(content.split("\n")),
        "kind": kind,
        "tags": tuple(mark[1:] for mark in marks if mark.startswith("#")),
        "files": tuple(mark for mark in marks if not mark.startswith("#")),
    }


PROJECT_MEMORIES: list[dict[str, Any]] = [_read(block) for block in _TEXT.split("@@")[1:]]
