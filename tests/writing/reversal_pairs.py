"""Reversals: what a user said in one conversation, and what took its place in a later one. Written before the rules.

Two lines are a pair, the older first. Ten shapes, and short corrections as an eleventh.
"""

from tests.writing.conflict_pairs import Pair, Statement

_REVERSALS = {
    "decision replaced": """
We decided to use Postgres for the order database.
We decided to use MySQL for the order database.

Let's go with GraphQL for the public API.
I thought about it again: let's go with REST for the public API.

We'll deploy the worker on Fly.
We'll deploy the worker on Railway after all.

The plan is to write the importer in Rust.
The plan changed, we write the importer in Go.

We settled on a monorepo for the frontend packages.
We settled on separate repos for the frontend packages.

Authentication will be done with server sessions.
On second thought, authentication will be done with JWTs.
""",
    "number corrected": """
The dev server listens on port 3000.
The dev server listens on port 3100, not 3000.

The upload limit is 10 MB.
Actually the upload limit is 25 MB.

Retry failed webhooks three times.
Retry failed webhooks five times.

The session cookie expires after 30 minutes.
Correction: the session cookie expires after 2 hours.

We keep backups for 14 days.
We keep backups for 30 days now.

The rate limit of the search endpoint is 60 requests per minute.
Sorry, the rate limit of the search endpoint is 600 requests per minute.
""",
    "tool replaced": """
We run the unit tests with Jest.
We run the unit tests with Vitest now.

Use Poetry to manage the dependencies.
Please use uv to manage the dependencies.

Linting is done with ESLint and Prettier.
We replaced ESLint with Biome for linting.

The docs are built with Sphinx.
We build the docs with MkDocs these days.

Feature flags live in LaunchDarkly.
Feature flags live in Unleash, we left LaunchDarkly.

Errors are reported to Sentry.
Errors are reported to GlitchTip from now on.
""",
    "no longer": """
We support Node 16 in the CLI.
We no longer support Node 16 in the CLI.

The nightly job writes a CSV report to the shared drive.
The nightly job no longer writes a CSV report to the shared drive.

Every pull request needs two approvals.
Pull requests no longer need two approvals, one is enough.

The staging environment is reset every night.
The staging environment isn't reset every night anymore.

I want you to ask before you run the migrations.
You no longer have to ask before you run the migrations.

Images are resized on the server.
Images are no longer resized on the server, the CDN does it.
""",
    "instead of": """
Use axios for HTTP calls in the web client.
Use fetch instead of axios for HTTP calls in the web client.

Write the changelog entries by hand.
Generate the changelog entries from commits instead of writing them by hand.

The scheduler stores its jobs in Redis.
The scheduler should store its jobs in Postgres instead of Redis.

Build the container images with Docker.
Build the container images with Podman instead.

Name the branches after the ticket number.
Name the branches after the feature instead of the ticket number.

Log to stdout in plain text.
Log to stdout as JSON instead of plain text.
""",
    "moved from to": """
The avatars are stored in S3.
We moved the avatars from S3 to R2.

CI runs on Jenkins.
CI moved from Jenkins to GitHub Actions.

The payment code lives in src/billing.
The payment code moved from src/billing to packages/payments.

The marketing site is hosted on Netlify.
We migrated the marketing site from Netlify to Cloudflare Pages.

Our issues are in Jira.
Our issues have moved from Jira to Linear.

The API speaks XML to the warehouse system.
The API switched from XML to JSON for the warehouse system.
""",
    "preference flipped": """
I prefer long commit messages with bullet points.
I prefer short commit messages without bullet points.

Please answer in German.
Please answer in English from now on.

I like detailed explanations before the code.
I don't like detailed explanations before the code, just show the code.

Always use dark mode in the screenshots.
Use light mode in the screenshots please.

I'd rather have one big pull request.
I'd rather have several small pull requests than one big pull request.

I prefer tabs for indentation.
I prefer spaces for indentation.
""",
    "owner changed": """
Anna owns the billing service.
Ben owns the billing service now.

Ask Marta about anything in the data pipeline.
Ask Tomasz about anything in the data pipeline, Marta has left.

The release manager is Chris.
The release manager is Dana since May.

Questions about the design system go to Yuki.
Questions about the design system go to Priya.

The platform team maintains the Terraform modules.
The infra team maintains the Terraform modules.

Olga reviews all database migrations.
Peter reviews all database migrations from now on.
""",
    "convention changed": """
Test files end in _test.py.
Test files start with test_ and don't end in _test.py.

Use snake_case for the JSON fields of the API.
Use camelCase for the JSON fields of the API.

Components go into src/components.
New rule: components go into src/ui.

Indent YAML files with four spaces.
Indent YAML files with two spaces.

Commit messages are written in the past tense.
Commit messages are written in the imperative.

Put the types next to the implementation.
Put the types into a types folder, not next to the implementation.
""",
    "not needed any more": """
We need a VPN connection to reach the staging database.
We don't need a VPN connection to reach the staging database any more.

Keep the polyfill for Safari 13.
We don't need the polyfill for Safari 13 any more.

The exporter must support Excel 2003 files.
Drop the support for Excel 2003 files in the exporter.

Run the seed script before the integration tests.
You don't need to run the seed script before the integration tests.

Add the legacy header to each response.
Remove the legacy header from each response, nobody reads it.

The mobile app needs an offline mode.
Forget the offline mode of the mobile app, it's out of scope.
""",
    "short correction": """
The port is 4000.
The port is 1100, not 4000.

Use npm.
Use pnpm, not npm.

The default branch is master.
No, the default branch is main.

It's Python 3.10.
It's Python 3.12, not 3.10.

The bucket is called media-prod.
The bucket is called assets-prod.

Run make test.
Run just test, not make test.
""",
}


def _pairs(text: str) -> list[Pair]:
    lines = [Statement(line) for line in text.splitlines() if line]
    return list(zip(lines[::2], lines[1::2], strict=True))


REVERSALS: dict[str, list[Pair]] = {shape: _pairs(text) for shape, text in _REVERSALS.items()}


# As people write them into a conversation, between other things. Written before the rules for whole conversations, and
# not used to tune them.
_SPOKEN = """
The API runs on Fly.io and the workers on Hetzner. Can you check the health endpoint?
We left Fly.io last week, the API is on Render now. Please update the deploy script.

Staging is at staging.acme.dev, the login is in 1Password.
heads up: staging moved, it's at stage.acme.io now

Deploys happen on Tuesdays. Add that to the release notes template.
we deploy on Thursdays now, can you change the template?

Our CI uses Node 20.
We're on Node 22 now.

I'm working on the checkout, Lena takes care of the invoices.
Lena switched teams. Invoices are Omar's job now.

All prices in the database are in cents.
Prices in the database aren't cents anymore, they are decimals since the migration.

The mobile client talks to /api/v1.
Let's have the mobile client talk to /api/v2 instead.

Our customers are all in the EU, so keep the data in Frankfurt.
Legal says we can use any region, the data doesn't have to stay in Frankfurt anymore.

Background jobs go through Celery.
We got rid of Celery, background jobs go through Dramatiq.

For now the search is plain SQL, that's fine.
The search uses Meilisearch, we don't do plain SQL anymore.

The feature branch is called feat/pricing.
I renamed the feature branch to feat/plans.

Please keep the answers short and don't explain the diff.
I changed my mind: do explain the diff, short answers are still fine.

Migrations are applied by hand on production.
From today on migrations are applied by the pipeline, nobody does that by hand any more.

The timeout for the payment provider is 5 seconds.
Five seconds was too short, the timeout for the payment provider is 20 seconds now.

Mails go out via SendGrid.
btw mails don't go out via SendGrid any longer, it's Postmark

We ship the desktop app as an AppImage.
Scratch the AppImage, we ship the desktop app as a Flatpak.

The frontend is written in Vue 2.
The frontend is Vue 3 since the rewrite.

Only Karim is allowed to merge into main.
Everybody on the team may merge into main now, not only Karim.

Test data comes from fixtures/users.json.
Test data no longer comes from fixtures/users.json, use the factories in tests/factories.py.

Use British spelling in the UI texts.
Actually the UI texts should be in American spelling.
"""

SPOKEN: list[Pair] = _pairs(_SPOKEN)

# More of them, written after the rules; when they were written, 6 of the 20 were settled and 3 newer ones dropped.
_SPOKEN_LATER = """
Our staging database is Postgres 14.
We upgraded the staging database to Postgres 16.

The invoices are generated by a nightly cron job.
Invoices aren't generated by a cron job any more, a queue worker does it.

All timestamps are stored in local time.
Timestamps are stored in UTC now.

The design tokens live in tokens.json.
I moved the design tokens to packages/theme.

Marta approves the releases.
Releases are approved by Jonas now.

Our API docs are on Readme.io.
The API docs moved to docs.acme.dev.

We use feature branches and squash merges.
We stopped using squash merges, please do merge commits.

The default locale is en-US.
The default locale should be de-DE from now on.

The cache expires after 10 minutes.
Set the cache to 60 minutes, 10 was too short.

Only admins can delete a workspace.
Owners can delete a workspace too now.

We're targeting iOS 15.
We dropped iOS 15, the minimum is iOS 17.

The CLI is published to npm.
The CLI isn't on npm anymore, it's on JSR.

I want the tests in the same folder as the code.
Put the tests into a top-level tests folder instead, not next to the code.

Logs go to Datadog.
We switched from Datadog to Grafana Loki for logs.

The weekly sync is on Monday.
The weekly sync is on Wednesday this quarter.

Please write the commit messages in English.
Commit messages in German please, the customer reads them.

The worker needs 2 GB of memory.
The worker needs 4 GB of memory since the last release.

Our main customer is Northwind.
Northwind left, our main customer is Contoso.

The password reset link is valid for a day.
The reset link is only valid for an hour now.

Use the old checkout flow for guests.
Guests get the new checkout flow as of today, the old one is off.
"""

SPOKEN_LATER: list[Pair] = _pairs(_SPOKEN_LATER)
