"""Pairs of memories that contradict each other, and pairs that only look so. Written before the rules.

Two lines are a pair; both are decisions unless a mark such as `[warning src/api.ts]` names kind and file.
"""

from typing import NamedTuple


class Statement(NamedTuple):
    content: str
    kind: str = "decision"
    files: tuple[str, ...] = ()


Pair = tuple[Statement, Statement]

_CONTRADICTIONS = """
Use Fastify, not Express
Use Express, not Fastify

Use tabs for indentation
Don't use tabs for indentation

Always run the linter before committing
Never run the linter before committing

Enable caching in the booking service
Disable caching in the booking service

Add the X-Request-Id header to all responses
Remove the X-Request-Id header from all responses

API handlers should validate their input
API handlers shouldn't validate their input

Invoices must be signed before printing
Invoices must not be signed before printing

Prefer composition over inheritance
Prefer inheritance over composition

[convention] Prefer named exports in component files
[convention] Avoid named exports in component files

Allow force pushes to feature branches
Forbid force pushes to feature branches

Use pnpm instead of npm for this repository
Use npm instead of pnpm for this repository

The API timeout is 30 s
The API timeout is 60 s

The metrics endpoint listens on port 8080
The metrics endpoint listens on port 9090

We deploy on Fridays
We never deploy on Fridays

Store timestamps in UTC
Don't store timestamps in UTC

We use Redux for client state in the admin panel
We no longer use Redux for client state in the admin panel

We use Jest for unit tests
We switched from Jest to Vitest for unit tests

[pattern] Mock the database in integration tests
[pattern] Do not mock the database in integration tests

Generated API client files are committed
Generated API client files must not be committed

Feature flags are enabled by default in staging
Feature flags are disabled by default in staging

The retry limit for webhooks is 3
The retry limit for webhooks is 5

Python 3.11 is the minimum version of the tide service
Python 3.12 is the minimum version of the tide service

[preference] Always squash commits when merging a branch
[preference] Never squash commits when merging a branch

Dark mode is the default theme of the board
Dark mode must not be the default theme of the board

The owner of the billing module is Ingrid
The owner of the billing module is Jonas

Keep guest sessions in Redis
Don't keep guest sessions in Redis

[warning] Never call the payment API from the browser
[warning] Call the payment API directly from the browser

Run migrations automatically at start-up
Do not run migrations automatically at start-up

[convention] Avoid default exports
[convention] Use default exports

Availability results are cached in the browser
Availability results must never be cached in the browser

Log request bodies in staging
Request bodies must not be logged in staging

Prefer async/await over promise chains
Prefer promise chains over async/await

Tests should hit the real database
Tests should not hit the real database

Soft-delete customer records
Never soft-delete customer records

The worker may write to the ledger table
The worker must not write to the ledger table

Access tokens expire after 15 minutes
Access tokens expire after 60 minutes

The upload limit for photos is 10 MB
The upload limit for photos is 25 MB

Don't retry failed payments
Retry failed payments twice, with backoff

Generate the OpenAPI file in CI
Stop generating the OpenAPI file in CI

[convention] Dates should be shown in the user's time zone
[convention] Dates should never be shown in the user's time zone

Use REST rather than GraphQL for partner APIs
Use GraphQL rather than REST for partner APIs

[pattern] Use the repository pattern for database access
[pattern] Don't use the repository pattern for database access

Pin dependency versions exactly
Don't pin dependency versions exactly

Include source maps in the production bundle
Exclude source maps from the production bundle

Allow anonymous access to the status page
Deny anonymous access to the status page

Admins can delete invoices
Admins cannot delete invoices

[convention] Commits need a ticket number in the subject
[convention] Commits don't need a ticket number in the subject

[warning src/generated.ts] Never edit generated.ts by hand
[convention src/generated.ts] Edit generated.ts by hand when the API changes

The build requires Docker on the runner
The build does not require Docker on the runner

[preference] You should use the mock server for payment tests
[preference] You shouldn't use the mock server for payment tests

[convention] Use feature flags for risky changes, not long-lived branches
[convention] Use long-lived branches for risky changes, not feature flags

[discovery] Turbo caches test results between branches
[discovery] Turbo does not cache test results between branches

[preference] I prefer spaces over tabs in Python files
[preference] I prefer tabs over spaces in Python files

[convention] Use double quotes in TypeScript
[convention] Use single quotes in TypeScript
"""

_NEAR_MISSES = """
Use Fastify for the public API
Use Express for the legacy admin

[convention] Never use console.log in production code
[convention] Use console.log in scripts under tools/

[convention] Use tabs in Makefiles
[convention] Don't use tabs in YAML files

Always run the linter before committing
Never run the seeder before committing

Enable caching for map tiles
Disable caching for invoices

Use Fastify for new services
Use Fastify 5 with TypeBox for new services

Never skip the integration tests
Always run the integration tests

Don't forget to run migrations before deploying
Run migrations before deploying

Should we use Redis for guest sessions?
Don't use Redis for guest sessions

Use Redis for guest sessions
Why not use Redis for guest sessions?

Prefer composition over inheritance
Prefer composition over mixins

Use pnpm instead of npm
Use pnpm instead of yarn

The API timeout is 30 s
The database timeout is 60 s

Metrics are served on port 9464
The API listens on port 8080

We deploy on Tuesdays
We never deploy on Fridays

Remove the unused index on bookings
Add an index on bookings.arrival

Add retries to the mail job
Remove retries from the payment job

[pattern] Tests should use the fake clock
[pattern] Tests shouldn't use sleep

Access tokens expire after 15 minutes
Refresh tokens expire after 30 days

[convention] Never edit migrations after they have reached main
[convention] Edit migrations freely before they have reached main

[pattern] Don't mock the database in integration tests
[pattern] Mock the payment provider in integration tests

Python 3.12 is the minimum version for the tide service
Node 22 is the minimum version for the API

The retry limit for mails is 3
The retry limit for exports is 5

[convention] Use UUIDv7 for primary keys
[convention] Don't use sequential integers for primary keys

[warning] Never store passwords in plain text
[warning] Store passwords with argon2id

Feature flags are disabled by default in production
Feature flags are enabled by default in staging

[progress] Release 3.18.0 fixed the refund bug
[progress] Release 3.19.0 fixed the gate bug

[error] On 2026-02-01 the nightly closing ran twice
[error] On 2026-03-01 the nightly closing ran three times

[convention] Do not use default exports
[convention] Avoid default exports

[warning] Never commit secrets
[warning] Always encrypt secrets before you commit them

Use Fastify, not Express
Don't use Express

[convention] Use the dark theme in screenshots for the docs
[convention] Don't use the dark theme on invoices

We no longer support Node 18
We support Node 22

[discovery] The p95 of berth search is 190 ms
[discovery] The p95 of checkout is 420 ms

[fact] Kappeln has 340 berths
[fact] Heiligenhafen has 1,038 berths

[progress] Test coverage of the billing package is 71 %
[progress] Test coverage of the billing package is 78 %

Don't run the end-to-end suite on every push
Run the unit tests on every push

[convention] Use single quotes in TypeScript
[convention] Use double quotes for SQL identifiers

[preference] Always ask before pushing to main
[preference] Never push to main without asking

[convention] Never deploy without a green build
[convention] Deploy only with a green build

[convention] Avoid lodash in apps/web
[convention] Use lodash in the scripts of tools/

[warning] Do not disable row-level security on bookings
[warning] Enable row-level security on every new table

Don't remove the legacy endpoint before June
Remove the legacy endpoint after June

Guests can book two berths
Guests cannot book the same berth twice

If Redis is down, disable the queue dashboard
Enable the queue dashboard in development

It is not necessary to restart the worker after a flag change
Restart the worker after a config change

[pattern] Don't only test the happy path
[pattern] Test the happy path first

Use SSE rather than WebSockets for the boards
Use WebSockets for the chat, not for the boards

[warning] Do not enable debug logging in production
[warning] Enable debug logging with HARBOR_DEBUG=1 on staging

[convention] The invoice export must not exceed 99,999 lines
[convention] The invoice export must contain every line

[convention] The berth id should not be confused with the booking id
[convention] The berth id should be part of the booking id

[convention] Always use parameterised queries
[convention] Never build queries by string concatenation

[convention] Use the staging key for tests
[convention] Don't use the production key for tests

Add tests for the parser
Remove the flaky tests of the parser's user interface

[convention] We must not block the event loop in handlers
[convention] We must close the event stream in handlers

[preference] Prefer fakes over mocks
[preference] Prefer fakes, not mocks, in new tests

[fact] Die Tests laufen nicht unter Windows
[fact] Die Tests laufen unter Linux

[convention] 不要在生产环境使用调试模式
[convention] 在测试环境使用调试模式

[discovery] The importer doesn't fail when the owner's e-mail is missing
[discovery] The importer fails when the boat registration is missing

[error] The nightly export failed because the bucket was not writable
[error] The nightly export failed because the disk was full

Turn off e-mail notifications for test marinas
Turn on SMS notifications for test marinas

[fact] HRB-481 is about gate codes
[fact] HRB-702 is about gate codes
"""

# A second lot, written with the first and looked at only when the rules did well on that one.
_UNSEEN_CONTRADICTIONS = """
Use Ruff for linting, not Flake8
Use Flake8 for linting, not Ruff

Don't hoist hooks into the parent component
Hoist hooks into the parent component

Always rebase feature branches onto trunk
Never rebase feature branches onto trunk

Disable telemetry in the desktop client
Enable telemetry in the desktop client

Drop support for Postgres 13
Keep support for Postgres 13

Service accounts should rotate keys monthly
Service accounts shouldn't rotate keys monthly

The scheduler must hold the lease while compacting
The scheduler must not hold the lease while compacting

Avoid barrel files in the design system
Prefer barrel files in the design system

Webhook handlers may open database transactions
Webhook handlers may not open database transactions

Use Kotlin instead of Java for the Android module
Use Java instead of Kotlin for the Android module

The session cookie lives for 7 days
The session cookie lives for 30 days

The cache size is 512 MB
The cache size is 2 GB

The ingest worker runs with concurrency 4
The ingest worker runs with concurrency 16

We ship on Mondays
We don't ship on Mondays

The linter no longer checks generated code
The linter checks generated code

We migrated from Webpack to Vite in the dashboard
The dashboard is bundled with Webpack

[warning] Never restart the broker during ingestion
[warning] Restart the broker during ingestion

[preference] I like verbose commit messages
[preference] I don't like verbose commit messages

[pattern] Wrap repository calls in a circuit breaker
[pattern] Don't wrap repository calls in a circuit breaker

[convention] Public functions need docstrings
[convention] Public functions don't need docstrings

[convention] Prefer integration tests over unit tests for adapters
[convention] Prefer unit tests over integration tests for adapters

Show archived projects in the sidebar
Hide archived projects in the sidebar

Audit entries can be edited by support staff
Audit entries can't be edited by support staff

[discovery] The parser accepts trailing commas
[discovery] The parser doesn't accept trailing commas
"""

_UNSEEN_NEAR_MISSES = """
Use Ruff for linting Python
Don't use Flake8 for linting Python

Never use eval in templates
Use templates for e-mails

[convention] Don't log tokens in the gateway
[convention] Log request ids in the gateway

Enable compression for JSON answers
Disable compression for event streams

Always lock the row before updating the balance
Never lock the table before updating the balance

The session cookie lives for 7 days
The remember-me cookie lives for 90 days

Keep the staging cluster on Kubernetes 1.30
Drop the preview cluster on Kubernetes 1.28

Add a health check to the ingest worker
Remove the debug endpoint from the ingest worker

We don't ship on Mondays
We ship on Thursdays

[preference] I don't like emojis in commit messages
[preference] I like verbose commit messages

[warning] Don't restart the broker during ingestion
[warning] Restart the broker after a certificate change

[pattern] Never swallow exceptions in workers
[pattern] Always log exceptions in workers

[discovery] The parser doesn't accept trailing commas in arrays
[discovery] The parser accepts comments in arrays

[fact] The Berlin cluster has 12 nodes
[fact] The Dublin cluster has 9 nodes

[progress] 41 of 60 endpoints are documented
[progress] 52 of 60 endpoints are documented

[error] Build 1182 failed with exit code 137
[error] Build 1190 failed with exit code 1

Is Kotlin allowed in the Android module?
Don't allow Kotlin in the Android module

Avoid barrel files in the design system
Use index files in the icon package

Don't change the public API without a changelog line
Change the public API only with a changelog line

Use Postgres advisory locks for the scheduler
Use Redis locks for the rate limiter, not Postgres advisory locks

[convention] Buttons should not wrap their label
[convention] Buttons should have a label

[convention] A migration must not take more than 5 s
[convention] A migration must have a rollback

Prefer streaming over buffering for exports
Prefer buffering over polling for uploads

Hide archived projects in the sidebar
Show archived projects in the search results
"""


def _statement(line: str) -> Statement:
    if not line.startswith("["):
        return Statement(line)
    marks, _, content = line[1:].partition("] ")
    kind, *files = marks.split()
    return Statement(content, kind, tuple(files))


def _pairs(text: str) -> list[Pair]:
    lines = [line for line in text.splitlines() if line]
    return [(_statement(left), _statement(right)) for left, right in zip(lines[::2], lines[1::2], strict=True)]


CONTRADICTIONS = _pairs(_CONTRADICTIONS)
NEAR_MISSES = _pairs(_NEAR_MISSES)
UNSEEN_CONTRADICTIONS = _pairs(_UNSEEN_CONTRADICTIONS)
UNSEEN_NEAR_MISSES = _pairs(_UNSEEN_NEAR_MISSES)
