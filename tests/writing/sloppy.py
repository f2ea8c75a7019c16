"""What people type in a hurry: statements that hold beyond the day, and what does not.

Written before the rules that have to find them, for four invented projects. Each statement stands with a part of the
memory that has to be kept of it. The rules were made with the first half of both lists at hand; the second half was
only measured, once, at the end.
"""

STATED = [
    # a pipeline that loads orders of several shops
    ("ok we move from pandas to vaex then, for all importers. pandas is out", "from pandas to vaex"),
    ("everything in the lake is stored in central european time", "everything in the lake"),
    ("ok cron it is then. run it at 4:40 so the backups are through", "cron"),
    ("commit messages in english please, imperative mood", "commit messages in english"),
    ("for the refund rows: we keep them, with a negative amount", "refund rows"),
    ("the test bucket is called ord-test, not orders_test", "ord-test"),
    ("Mara says: the spanish shop sends prices with tax included", "the spanish shop sends prices"),
    ("and I told you already: no print statements in the loaders", "no print statements in the loaders"),
    # a small web shop
    ("stripe is out, accounting wants invoices via mollie", "stripe is out"),
    ("ok tailwind then", "tailwind"),
    ("fine, postgres 16 then, the hoster has nothing newer", "postgres 16"),
    ("all prices are net, vat comes on top at checkout", "prices are net"),
    ("branch names: ticket number first, then two or three words", "branch names"),
    ("the admin area is only reachable over the vpn", "only reachable over the vpn"),
    ("docs in german, code in english", "docs in german"),
    ("jonas from ops told me the certs renew themselves every 60 days", "certs renew themselves every 60 days"),
    # firmware of a sensor
    ("the old board has 64k ram, the new one 256k", "64k ram"),
    ("hm then let's do it without malloc. static buffers only", "static buffers only"),
    ("one pr per driver please", "one pr per driver"),
    ("tests on real hardware only run on the rig in lab 2", "lab 2"),
]

STATED_UNSEEN = [
    # an app for bookings
    ("alright so expo is gone, we do bare react native", "expo is gone"),
    ("ok then sqlite on the device and sync in the background", "sqlite on the device"),
    ("all times in the api are utc, the app converts", "times in the api are utc"),
    ("the play store account belongs to Nadia, only she can publish", "belongs to nadia"),
    ("error texts in plain language please, no codes", "error texts in plain language"),
    ("we go from weekly to daily releases then", "weekly to daily"),
    ("about the cancellations: free until 24h before, after that half the price", "24h before"),
    ("as I said before: no analytics in the free version", "no analytics in the free version"),
    ("legal told us we keep booking data for ten years", "ten years"),
    ("the design system is called pebble, figma has the truth", "called pebble"),
    # a service that sends mails
    ("sendgrid is dead to us, ses from now", "ses"),
    ("ok, kafka then, rabbit can't replay", "kafka"),
    ("every template has a plain text twin", "plain text twin"),
    ("variable names in the templates are snake case", "snake case"),
    ("Ilya: bounces over 3 percent and aws blocks the account", "3 percent"),
    ("max 50 recipients per call, that's a hard limit of the api", "50 recipients"),
    ("no lodash please", "no lodash"),
    ("two spaces in yaml, four in python", "two spaces in yaml"),
    # the firmware again
    ("flash is almost full on v1 boards so logs stay off there", "v1 boards"),
    ("we settled it: ota over https, no ble", "ota over https"),
]

PASSING = [
    "lol the printer is on fire again",
    "ok then go on",
    "ok do it then",
    "run it again please",
    "is everything in the lake in utc?",
    "the tests are red again",
    "hm the build is slow today",
    "can you check what the importer does with empty rows",
    "I'm out for lunch, back at two",
    "thanks, that was quick",
    "ok let's see what happens then",
    "the page is blank now",
    "add a test for the empty cart please",
    "everything is broken since your last change",
    "Mara says hi",
    "Jonas says it looks good",
    "everything is fine now",
    "show me the diff first",
    "fix the typo in the header please",
    "ok tests then",
]

PASSING_UNSEEN = [
    "my laptop is out of battery, one moment",
    "ok next one then",
    "fine, whatever then",
    "commit this please",
    "ok try again then",
    "what is the staging bucket called?",
    "the simulator is stuck",
    "all tests are green",
    "Nadia is out today",
    "the call with legal was a mess",
    "please explain that last part again",
    "everything in this file looks weird",
    "no idea, you tell me",
    "Ilya asks if you are done",
    "wow that's a lot of code",
    "open the log and look for timeouts",
    "we were at the office till midnight",
    "no worries, take your time",
    "ok one commit for all of that please",
    "the last run took forty minutes",
]
