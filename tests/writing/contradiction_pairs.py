"""Memories that give another value to the same thing, and neighbours that do not. Written before the rules.

In `CONTRADICTIONS` two lines are a pair, the older first, in ten shapes. `NEIGHBOURS` are pairs about the same topic
that may all hold: every two lines of a paragraph of `_TOPICS`, and the pairs of `_ADDITIONS`.
"""

from itertools import combinations

from tests.writing.conflict_pairs import Pair, Statement

_CONTRADICTIONS = {
    "service or store replaced": """
Attachments are stored in S3
Attachments are stored in R2

The job queue runs on RabbitMQ
The job queue runs on SQS

Search is served by Elasticsearch
Search is served by Meilisearch

We use Redis for the session store
We use Valkey for the session store

Invoices are kept in MongoDB
Invoices are kept in Postgres since the March migration

Metrics go to Datadog
Metrics go to Grafana Cloud

Transactional mail is sent through SendGrid
Transactional mail is sent through Postmark

User uploads land in Azure Blob Storage
User uploads land in Google Cloud Storage

Secrets are read from Vault
Secrets are read from AWS Secrets Manager

The audit trail is written to Kafka
The audit trail is written to Kinesis
""",
    "framework or library replaced": """
The gateway is built with Express
The gateway is built with Fastify

State management in the dashboard uses Redux
State management in the dashboard uses Zustand

The admin panel is a Vue application
The admin panel is a Svelte application

Use moment for date formatting
Use date-fns for date formatting

Forms are validated with Yup
Forms are validated with Zod

The ORM of the backend is Sequelize
The ORM of the backend is Prisma

PDF reports are rendered with wkhtmltopdf
PDF reports are rendered with WeasyPrint

The CLI parses its arguments with argparse
The CLI parses its arguments with click

End-to-end tests are written in Cypress
End-to-end tests are written in Playwright

Styling is done with styled-components
Styling is done with Tailwind
""",
    "style and convention": """
Indent Go templates with tabs
Indent Go templates with spaces

Line length is 80 characters in this repository
Line length is 120 characters in this repository

Python strings use single quotes
Python strings use double quotes

Database tables have plural names
Database tables have singular names

React components are written as classes
React components are written as functions

File names are in kebab-case
File names are in PascalCase

Constants are declared at the top of the module
Constants are declared at the bottom of the module

Merge feature branches with a merge commit
Squash feature branches when merging

Docstrings follow the NumPy style
Docstrings follow the Google style

Timestamps in the API are Unix seconds
Timestamps in the API are ISO 8601 strings
""",
    "owner": """
The owner of the checkout module is Anna
The owner of the checkout module is Ben

Karim maintains the Helm charts
Sofia maintains the Helm charts

Security reports go to Elena
Security reports go to Viktor

The on-call lead for payments is Jonas
The on-call lead for payments is Amira

Liam approves changes to the pricing rules
Noor approves changes to the pricing rules

The growth team owns the onboarding flow
The core team owns the onboarding flow

Contact Fatima about the ERP integration
Contact Diego about the ERP integration

Releases are signed by Mikael
Releases are signed by Hana

Code owner of packages/editor is @rhea
Code owner of packages/editor is @ivo

The translator for French texts is Camille
The translator for French texts is Luc
""",
    "host and address": """
The staging host is staging-1.example.com
The staging host is stage.example.org

The registry mirror is at registry.corp.local
The registry mirror is at mirror.corp.local

The CI dashboard is at https://ci.example.com/builds
The CI dashboard is at https://build.example.com

The read replica runs on db-replica-2
The read replica runs on db-replica-5

API docs are published at /docs
API docs are published at /reference

The health check is GET /healthz
The health check is GET /livez

SSH to the bastion goes through jump.example.net
SSH to the bastion goes through bastion.example.net

The webhook endpoint is /hooks/stripe
The webhook endpoint is /webhooks/payments

Config is read from config/app.yml
Config is read from settings/app.toml

The log directory is /var/log/harbor
The log directory is /srv/harbor/logs
""",
    "removed or ended": """
The web client uses Redux
Removed Redux from the web client

Nightly builds are published to the beta channel
Nightly builds are no longer published to the beta channel

The sync daemon supports SMB shares
Dropped support for SMB shares in the sync daemon

A cron job refreshes the currency rates
The cron job for the currency rates was removed

The editor loads plugins from the home directory
The editor doesn't load plugins from the home directory any more

Guest checkout is enabled in the shop
Guest checkout is disabled in the shop

The importer keeps a copy of each file
The importer stopped keeping a copy of each file

Service workers cache the shell of the app
Service workers were removed from the app

Releases need a sign-off from QA
Releases don't need a sign-off from QA

The public API has an XML format
The XML format of the public API is gone
""",
    "version": """
The service runs on Python 3.10
The service runs on Python 3.12

We build with Go 1.21
We build with Go 1.23

The cluster is on Kubernetes 1.28
The cluster is on Kubernetes 1.31

Node 18 is required for the build
Node 22 is required for the build

Postgres 14 is used in production
Postgres 17 is used in production

The minimum iOS version is 15
The minimum iOS version is 17

TypeScript is pinned to 5.2
TypeScript is pinned to 5.6

The SDK targets Java 11
The SDK targets Java 21

The protobuf compiler must be version 3.21
The protobuf compiler must be version 25.1

Terraform 1.5 is installed on the runners
Terraform 1.9 is installed on the runners
""",
    "limit and number": """
The API timeout is 15 seconds
The API timeout is 45 seconds

Batches have at most 500 rows
Batches have at most 2,000 rows

The connection pool has 20 connections
The connection pool has 50 connections

Thumbnails are 200 pixels wide
Thumbnails are 320 pixels wide

A password needs at least 8 characters
A password needs at least 12 characters

The cache TTL of product pages is 5 minutes
The cache TTL of product pages is 60 minutes

Uploads are limited to 50 MB
Uploads are limited to 200 MB

The worker retries three times
The worker retries seven times

The free plan includes 3 seats
The free plan includes 5 seats

The debounce of the search field is 150 ms
The debounce of the search field is 300 ms
""",
    "region and environment": """
Production runs in eu-west-1
Production runs in eu-central-1

Customer data is stored in Frankfurt
Customer data is stored in Dublin

The CDN origin is in us-east-1
The CDN origin is in ap-south-1

Backups are replicated to Oregon
Backups are replicated to Ohio

Preview deployments use the sandbox account
Preview deployments use the development account

Load tests run against staging
Load tests run against the perf environment

The demo tenant is on cluster blue
The demo tenant is on cluster green

Logs of the gateway are in the project acme-prod
Logs of the gateway are in the project acme-observability

The database of the forum is in the Paris region
The database of the forum is in the Milan region

Analytics events are processed in the US
Analytics events are processed in the EU
""",
    "schedule": """
We deploy on Tuesdays
We deploy on Thursdays

The nightly backup starts at 02:00
The nightly backup starts at 04:30

Dependency updates are merged every Monday
Dependency updates are merged every Friday

The report is generated weekly
The report is generated daily

Sprint planning is on Wednesday morning
Sprint planning is on Monday morning

Certificates are rotated every 90 days
Certificates are rotated every 30 days

The code freeze begins on December 15
The code freeze begins on December 20

The index is rebuilt on Sundays
The index is rebuilt on Saturdays

Stand-up is at 9:30
Stand-up is at 10:15

Old logs are purged monthly
Old logs are purged weekly
""",
}

_TOPICS = """
We use Postgres for orders
We use Redis for the cache
We use SQLite for the local development database
The orders table is partitioned by month
Redis is also used for rate limiting
Postgres runs with logical replication enabled

The API timeout is 30 seconds
The database timeout is 5 seconds
The upload timeout is 120 seconds
The API returns 504 when a timeout is hit
The timeout of the API is configured in config/http.yml
The API gateway closes idle connections after 90 seconds

The gateway listens on port 8080
The metrics endpoint listens on port 9464
Postgres listens on port 5433 in docker-compose
The admin interface listens on port 8081
The gateway is started with make gateway
The gateway port can be changed with PORT

Unit tests run with Vitest
End-to-end tests run with Playwright
The load tests run with k6
Tests run in CI on every push
Unit tests must not touch the network
Vitest needs the flag --pool=forks because of the native module

Anna owns the billing service
Ben owns the search service
The billing service is written in Kotlin
The billing service sends invoices on the first of the month
Ask Anna before you change tax rates
Ben is on holiday until August

Production runs in eu-west-1
Staging runs in eu-central-1
The CDN serves from all regions
Production deploys need an approval
Staging deploys happen on every merge
Production has three replicas of the API

Attachments are stored in S3
Thumbnails are stored on the local disk
Attachments larger than 5 MB are uploaded in parts
S3 keys start with the tenant id
Attachments are scanned by ClamAV
The bucket of the attachments is versioned

Use tabs in Makefiles
Use two spaces in YAML files
Use four spaces in Python files
Use single quotes in TypeScript
Use double quotes in JSON fixtures
Makefiles use bash, not sh

The React app uses TanStack Query for server state
The React app uses Zustand for client state
The React app uses React Router 6
The React app is bundled with Vite
The React Native app uses Expo
React components are tested with Testing Library

The session cookie expires after 12 hours
The refresh token expires after 30 days
The password reset link expires after 1 hour
The session cookie is called sid
The session cookie is set with SameSite=Lax
Refresh tokens are rotated at every use

Run make lint before you commit
Run make test before you push
Run make e2e before a release
make lint calls ruff and mypy
make test needs Docker
make e2e takes about ten minutes

The search index is rebuilt every night
The search index uses the German analyzer
Search results are cached for 10 minutes
Search results show at most 50 products
The search service falls back to SQL when the index is down
Products without a price are not in the search index

Log messages are JSON in production
Log messages are coloured text in development
Logs are kept for 30 days
Audit logs are kept for 7 years
Never log e-mail addresses
The log level is set with LOG_LEVEL

The parser accepts trailing commas
The parser rejects duplicate keys
The parser reads at most 10 MB
The parser is generated from grammar.pest
The parser reports the line and the column of an error
The formatter keeps trailing commas

Releases are tagged with v and the version
Releases are built by the workflow release.yml
Hotfix releases are cut from the last tag
The release notes are generated with git-cliff
Releases are published to npm and to GitHub
Nightly releases carry the suffix -nightly
"""

_ADDITIONS = """
The worker retries failed jobs three times
The mailer retries failed mails five times

We use Stripe for card payments
We use Adyen for bank transfers

Upgrade of the orders service to Java 21 is planned for May
Upgrade of the stock service to Java 21 is planned for June

The mobile app supports iOS 16
The mobile app supports Android 11

The export has a limit of 10,000 rows
The import has a limit of 50,000 rows

The frontend is deployed on Vercel
The backend is deployed on Fly

The dashboard shows revenue by month
The dashboard shows churn by week

Errors of the frontend are reported to Sentry
Errors of the backend are reported to Rollbar

Karim maintains the Helm charts
Karim maintains the Ansible roles

Call the pricing API with a tenant header
Call the stock API with a warehouse header

The invoices are rendered with WeasyPrint
The invoices are sent with Postmark

The importer reads CSV files
The importer reads Excel files with openpyxl

Use ULIDs for event ids
Use UUIDs for user ids

Feature flags are evaluated on the server
Feature flags are stored in Unleash

The linter is configured in ruff.toml
The type checker is configured in mypy.ini

The /users endpoint is paginated with cursors
The /orders endpoint is paginated with offsets

Cypress tests need the seed data of fixtures/shop.sql
Playwright tests need the seed data of fixtures/admin.sql

Migrations are written by hand
Migrations are reviewed by Olga

We deploy the API on Tuesdays
We deploy the website on Thursdays

The default theme is light
The default language is German

The free plan includes 3 seats
The team plan includes 20 seats

Images are converted to WebP
Videos are converted to HLS

The Berlin office uses VLAN 12
The Lisbon office uses VLAN 14

The staging host is staging.example.com
The production host is www.example.com

Build artifacts are uploaded to Artifactory
Test reports are uploaded to Allure

The cart is kept in local storage
The wish list is kept in the database

GitHub Actions runs the unit tests
Buildkite runs the GPU tests

The consumer group of the mailer is mail-v2
The consumer group of the indexer is index-v1

Rate limits are enforced by Envoy
TLS is terminated by Envoy

The primary key of customers is customer_id
The primary key of invoices is invoice_no

The CLI is written in Go
The SDK is written in TypeScript

Prices are stored in cents
Weights are stored in grams

Use Zod for request validation
Use Zod schemas to generate the OpenAPI document

Old sessions are purged daily
Old exports are purged weekly

The webhook of GitHub is handled in hooks/github.ts
The webhook of Stripe is handled in hooks/stripe.ts

Set NODE_ENV=production for the build
Set LOG_FORMAT=json for the server

The chat uses WebSockets
The notifications use server-sent events

The translations are in locales/de.json
The e-mail templates are in templates/de

The p95 of the checkout is 420 ms
The p95 of the product page is 180 ms

The tests of the parser take 3 seconds
The tests of the planner take 40 seconds

Port forwarding to the database needs the bastion
Port forwarding to Grafana needs the VPN

The German texts are reviewed by Jana
The French texts are reviewed by Camille

Use the factory for users in tests
Use the factory for orders in tests

The scheduler runs on a single node
The workers run on four nodes

Kafka topics have 12 partitions
Kafka topics are named after the aggregate

The nightly import starts at 01:00
The nightly export starts at 03:00

TypeScript is compiled with strict mode
JavaScript files are checked with checkJs

Ask before deleting branches
Ask before force-pushing

The landing page uses Astro
The blog uses Hugo

Python 3.12 is used in the services
Node 22 is used in the web app

The health check is GET /healthz
The readiness check is GET /readyz

The GPU pool has 4 nodes
The CPU pool has 16 nodes

Use the sandbox key of PayPal in tests
Use the live key of PayPal only in production

The tax module rounds half up
The discount module rounds down

The mobile team meets on Mondays
The platform team meets on Wednesdays

The index on orders.created_at speeds up the report
The index on orders.customer_id speeds up the search

Contact Diego about the ERP integration
Contact Elena about security reports

The avatar is 64 pixels wide
The banner is 1200 pixels wide

The pre-commit hook runs ruff
The pre-push hook runs pytest

Terraform state is stored in S3
Terraform modules are stored in GitHub

The archive job skips files newer than 7 days
The archive job writes its report to reports/archive.csv

The feature branch of the redesign is redesign/v2
The feature branch of the checkout is checkout/one-page

The editor uses CodeMirror 6
The terminal uses xterm.js 5

Tokens of the partner API have 40 characters
Tokens of the partner API are rotated each quarter

The Docker image is based on debian:bookworm-slim
The Docker image is published to ghcr.io

The map tiles come from MapTiler
The geocoder is Nominatim

The shop supports Klarna in Germany
The shop supports iDEAL in the Netherlands

Dates are shown in the time zone of the user
Dates are stored in UTC

The backup of the database is encrypted with age
The backup of the attachments is encrypted with KMS

Use pnpm in the web workspace
Use cargo in the engine workspace

The changelog is written for users
The changelog is checked in CI

The planner needs 2 GB of memory
The planner needs an index file in data/plan.idx

The beta channel is updated daily
The stable channel is updated monthly

The sidebar is 280 pixels wide on desktop
The sidebar is hidden on phones

The first column of the report is the order number
The last column of the report is the margin
"""


def _paragraphs(text: str) -> list[list[Statement]]:
    return [[Statement(line) for line in part.split("\n") if line] for part in text.strip().split("\n\n")]


def pairs_of(shapes: dict[str, str]) -> dict[str, list[Pair]]:
    """Shape → its pairs, the older statement first."""
    return {shape: [(older, newer) for older, newer in _paragraphs(text)] for shape, text in shapes.items()}


def neighbours_of(*topics: str) -> list[Pair]:
    """Every two statements of one paragraph."""
    return [pair for text in topics for topic in _paragraphs(text) for pair in combinations(topic, 2)]


CONTRADICTIONS = pairs_of(_CONTRADICTIONS)
NEIGHBOURS = neighbours_of(_TOPICS, _ADDITIONS)
