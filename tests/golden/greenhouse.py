"""Twenty memories of a made-up service for greenhouses, twenty questions in other words, twenty that nothing answers.

A second set beside the bicycle shop, written before the rules and tables were changed for paraphrases, and never used
to choose a word or a weight. `bench/floor.py` reports both.
"""

MEMORIES: tuple[tuple[str, str], ...] = (
    ("decision", "Sensor readings are written to TimescaleDB; InfluxDB lost writes under load."),
    ("decision", "The phone app is written in Flutter, one code base for both platforms."),
    ("decision", "Devices talk MQTT to an EMQX broker; HTTP polling drained the batteries."),
    ("decision", "Growers sign in with a magic link; there are no passwords at all."),
    ("architecture", "Alarms are raised in services/alerts/rules.rs and sent as SMS through Twilio."),
    ("architecture", "Raw measurements are thinned out to hourly means after 30 days by a nightly job."),
    ("architecture", "Firmware images are signed in CI and fetched by the devices from /ota."),
    ("architecture", "The GraphQL gateway lives in gateway/; it stitches climate, water and accounts together."),
    ("convention", "Run `cargo nextest run` before each push; clippy warnings are treated as errors."),
    ("convention", "Temperatures are stored in millikelvin and converted to Celsius only in the client."),
    ("convention", "Public functions need a doc comment with an example."),
    ("convention", "Use feature branches and squash when merging into main."),
    ("warning", "Never flash boards over the air while the pumps are running; two of them bricked."),
    ("warning", "Do not rename MQTT topics: devices in the field cannot be told about it."),
    ("error", "`flutter build ipa` fails with a provisioning profile mismatch; fix: renew it in match."),
    ("error", "The dashboard freezes with more than 40 charts; fix: draw them on canvas instead of SVG."),
    ("discovery", "Half of the false alarms come from sensors that stand in direct sun at noon."),
    ("fact", "Helga has the keys to the server room and decides about hardware purchases."),
    ("fact", "Customers get two weeks of trial, then 19 euros a month for each house."),
    ("preference", "The user wants commit messages in the imperative and short explanations."),
)

PARAPHRASES: tuple[tuple[str, str], ...] = (
    ("which database holds the time series?", "Sensor readings are written"),
    ("what is the mobile client built with?", "The phone app is written"),
    ("how does the hardware communicate with the backend?", "Devices talk MQTT"),
    ("authentication method for users", "Growers sign in"),
    ("where are notifications triggered?", "Alarms are raised"),
    ("how long is full resolution data retained?", "Raw measurements are thinned"),
    ("how do updates get onto the boards?", "Firmware images are signed"),
    ("api entry point that combines the microservices", "The GraphQL gateway lives"),
    ("how do I execute the test suite?", "Run `cargo nextest run`"),
    ("which unit do we persist heat values in?", "Temperatures are stored"),
    ("documentation requirements for exported methods", "Public functions need"),
    ("git workflow, rebase or merge commits?", "Use feature branches"),
    ("is it dangerous to update a device during irrigation?", "Never flash boards"),
    ("can I change the name of a channel in the message bus?", "Do not rename MQTT topics"),
    ("iOS build broken, signing certificate", "`flutter build ipa` fails"),
    ("UI hangs when there are many graphs", "The dashboard freezes"),
    ("why do we get so many spurious alerts?", "Half of the false alarms"),
    ("who approves buying new machines?", "Helga has the keys"),
    ("what does a subscription cost?", "Customers get two weeks"),
    ("style of git logs", "The user wants commit messages"),
)

UNANSWERABLE: tuple[str, ...] = (
    "how many moons does Jupiter have?",
    "what did grandma put in her apple cake?",
    "which gate does my flight leave from?",
    "who painted the Night Watch?",
    "how do I tie a bowline?",
    "what size are my running shoes?",
    "when does the pharmacy close?",
    "which novel won the prize last spring?",
    "how do I get to the airport by bus?",
    "what is the boiling point of ethanol?",
    "which Kafka version do we run?",
    "how is the web shop translated?",
    "what is our Terraform state bucket?",
    "who maintains the Windows installer?",
    "which colour is the company logo?",
    "how do we encrypt laptops?",
    "what is the refund process?",
    "which CAPTCHA protects the contact form?",
    "how often do we run penetration tests?",
    "where is the Helm chart for staging?",
)
