"""A second lot of contradictions and neighbours, in the shapes of `contradiction_pairs.py`, but said more freely.

Written when the rules had been tuned on the first lot, and measured before they were changed again. In each shape two
pairs keep the sentence and two say it differently. `NEIGHBOURS` may all hold together.
"""

from tests.writing.contradiction_pairs import neighbours_of, pairs_of

_CONTRADICTIONS = {
    "service or store replaced": """
Webhooks are queued in NATS
Webhooks are queued in Pulsar

Feature flags come from LaunchDarkly
Feature flags come from Unleash

We keep the product embeddings in Pinecone
The product embeddings are in pgvector now

Crash reports of the mobile app are collected by Sentry
The mobile app sends its crash reports to Bugsnag
""",
    "framework or library replaced": """
The scheduler is written with Quartz
The scheduler is written with Hangfire

Charts in the report view are drawn with D3
Charts in the report view are drawn with ECharts

We test React hooks with Enzyme
React hooks are tested with Testing Library

HTTP calls in the crawler go through requests
The crawler makes its HTTP calls with httpx
""",
    "style and convention": """
Branch names start with the ticket number
Branch names start with the author's initials

SQL keywords are written in upper case
SQL keywords are written in lower case

Commit messages are written in the imperative
Write commit messages in the past tense

Tests live next to the file they test
Put tests into the tests folder, not next to the file they test
""",
    "owner": """
Marta reviews all changes to the tax engine
Oskar reviews all changes to the tax engine

The contact at the hosting company is Mrs. Lindqvist
The contact at the hosting company is Mr. Okafor

The data team is responsible for the events schema
The platform team is responsible for the events schema

Yusuf looks after the print server
The print server is looked after by Ingrid
""",
    "host and address": """
The artifact cache is at cache.internal:9000
The artifact cache is at cache-eu.internal:9000

The feature spec lives in docs/spec/booking.md
The feature spec lives in specs/booking/README.md

Grafana runs at http://10.0.4.12:3000
You find Grafana at https://grafana.example.net

The unix socket of the agent is /run/agent.sock
The agent listens on the unix socket /var/run/agent/main.sock
""",
    "removed or ended": """
The CLI prints a progress bar
The CLI no longer prints a progress bar

Avatars are fetched from Gravatar
We removed Gravatar; avatars are generated from initials

The billing page shows a PayPal button
The PayPal button was taken off the billing page

Every pull request gets a preview environment
Preview environments for pull requests have been switched off
""",
    "version": """
The plugin needs Gradle 7.6
The plugin needs Gradle 8.5

CI uses Ubuntu 20.04 runners
CI uses Ubuntu 24.04 runners

The lambda functions run on Node 16
Lambda functions were upgraded to Node 20

Our Elixir version is 1.14
We are on Elixir 1.17
""",
    "limit and number": """
The import accepts files up to 25 MB
The import accepts files up to 100 MB

A workspace can have 10 members
A workspace can have 25 members

Requests are retried up to 3 times with a delay of one second
Requests are retried up to 6 times with a delay of one second

The rate limit of the public API is 60 requests a minute
The public API allows 120 requests a minute
""",
    "region and environment": """
The vector index is hosted in Iowa
The vector index is hosted in Belgium

Smoke tests run on the canary environment
Smoke tests run on the staging environment

Our Kafka cluster is in Stockholm
The Kafka cluster was moved to Warsaw

Tenant data of Swiss customers is stored in Zurich
Swiss customers have their tenant data in Geneva
""",
    "schedule": """
The security scan runs on the first of every month
The security scan runs on the fifteenth of every month

Release notes are written on Friday afternoon
Release notes are written on Monday morning

The cleanup job starts at 23:15
The cleanup job starts at 05:45

Database statistics are refreshed every night
We refresh the database statistics every hour
""",
}

_TOPICS = """
The importer reads CSV files from the inbox folder
The importer writes rejected rows to errors.csv
The importer runs every fifteen minutes
The exporter runs once a night
The exporter reads from the replica
The importer stops after 100 bad rows

The mobile app is written in Kotlin and Swift
The mobile app talks to the gateway over gRPC
The mobile app keeps drafts in SQLite
The web app keeps drafts in IndexedDB
The web app is written in TypeScript
The mobile app supports Android 10 and newer

Nadia approves refunds above 200 euros
Nadia is on parental leave until June
Petr approves new suppliers
Petr maintains the price importer
Refunds below 20 euros are paid at once
Refunds are booked in the accounting system at night

Backups are taken at 02:00
Backups are encrypted with age
Backups are kept for 35 days
Backups are tested on the first Monday of a month
The restore takes about 40 minutes
Old backups are moved to Glacier

Use 4 spaces in Kotlin files
Use tabs in Go files
Use trailing commas in Kotlin
Use named arguments for booleans in Kotlin
Go files are formatted by gofumpt
Kotlin files are checked by detekt
"""

_ADDITIONS = """
The checkout page loads in 1.2 seconds
The search page loads in 0.8 seconds

The gateway runs on port 7000 in development
The gateway runs on port 443 in production

Alice owns the editor
Alice reviews the toolbar

Use Postgres for the ledger
Use ClickHouse for the click stream

The free plan has 2 projects
The team plan has 20 projects

Deploys to staging are automatic
Deploys to production are manual

Invoices are sent as PDF
Reminders are sent as plain text

The worker image is based on Alpine
The web image is based on Debian

Load fonts from the local folder
Load icons from the sprite

The API is versioned in the path
The API is described in openapi.yaml

The lock file is checked in
The build folder is not checked in

The German shop closes at 20:00
The Dutch shop closes at 18:00

Sessions are stored in Redis
Session ids have 32 bytes

Ask Tom about the firewall
Ask Tom about the backups

The parser is written in Rust
The formatter is written in Rust

Unit tests take 40 seconds
Integration tests take 6 minutes

The retry delay doubles each time
The number of retries is read from the config

The first migration creates the tables
The second migration fills them

Emails to customers are sent by Postmark
Emails to staff are sent by the mail server in the office

The map is centred on Vienna
The weather is fetched for Graz

Avoid default exports
Avoid side effects in modules

The cache is cleared on deploy
The cache is warmed by a cron job

PRs need one review
PRs to main need green checks

The sidebar lists projects
The header lists notifications

The audit log has one row per change
The audit log is partitioned by year
"""

CONTRADICTIONS = pairs_of(_CONTRADICTIONS)
NEIGHBOURS = neighbours_of(_TOPICS, _ADDITIONS)
