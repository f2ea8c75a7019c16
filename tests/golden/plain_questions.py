"""Plain questions in other words than the facts that answer them, by topic.

Eight facts, eleven questions with the place of the fact that answers, and five questions that none of them answers. No
word of Kept was chosen by them, and one number, `floor.TERSE`; docs/recall.md says how.
"""

from msgspec import Struct


class Topic(Struct, frozen=True):
    """Facts, and questions about them."""

    facts: tuple[str, ...]
    answerable: tuple[tuple[str, int], ...]
    unanswerable: tuple[str, ...]


TOPICS = {
    "people": Topic(
        facts=(
            "I work as a nurse at the city hospital",
            "My sister Clara lives in Lisbon with her two kids",
            "I am allergic to peanuts and cashews",
            "We got married in June 2015 on the island of Crete",
            "My favourite band is Radiohead and I saw them twice live",
            "I run ten kilometres along the river every Sunday morning",
            "My mother tongue is Dutch but we speak English at home",
            "I drive a blue Skoda Octavia that is six years old",
        ),
        answerable=(
            ("What is my job?", 0),
            ("Where is my sister's home?", 1),
            ("Which food must I avoid?", 2),
            ("When is my wedding anniversary?", 3),
            ("What music do I like?", 4),
            ("What sport do I do?", 5),
            ("Which languages do I speak?", 6),
            ("What car do I have?", 7),
            ("Do I have nieces or nephews?", 1),
            ("How do I earn my living?", 0),
            ("What do I do at weekends?", 5),
        ),
        unanswerable=(
            "What is my shoe size?",
            "Which phone do I use?",
            "Who is my dentist?",
            "What is the name of my cat?",
            "When does my passport expire?",
        ),
    ),
    "projects": Topic(
        facts=(
            "The backend is written in Go and talks gRPC to the gateway",
            "We chose Fastify for the HTTP layer of the public API",
            "Releases are cut every second Thursday from the main branch",
            "All money amounts are stored as integer cents",
            "Unit tests live beside the code and end in _test.go",
            "Maria reviews every change to the database schema",
            "The mobile client is built with Flutter",
            "Feature flags are kept in LaunchDarkly and removed after one month",
        ),
        answerable=(
            ("Which web server framework do we use?", 1),
            ("What programming language is the server in?", 0),
            ("When do we ship?", 2),
            ("How are prices represented?", 3),
            ("Where do I put a new test?", 4),
            ("Who approves migrations?", 5),
            ("What is the app for phones made with?", 6),
            ("Where are toggles configured?", 7),
            ("How long may a flag stay?", 7),
            ("How do services call each other?", 0),
            ("From which branch do we release?", 2),
        ),
        unanswerable=(
            "Which bank do we use?",
            "Which colour is the logo?",
            "What licence do we use?",
            "Who designed the icons?",
            "How tall is the founder?",
        ),
    ),
    "ops": Topic(
        facts=(
            "Payroll runs on the 25th of each month at 06:00",
            "Backups of the database go to the bucket in Frankfurt every night",
            "The on-call rotation changes on Monday at noon",
            "Production runs on Kubernetes in three zones",
            "The VPN certificate is renewed by Ahmed every spring",
            "Log files are deleted after ninety days",
            "Alerts are sent to the channel #fire in Slack",
            "The status page is hosted by Atlassian at status.example.com",
        ),
        answerable=(
            ("salary payment day", 0),
            ("When do people get paid?", 0),
            ("Where are the database dumps stored?", 1),
            ("When is the shift handed over?", 2),
            ("What orchestrates our containers?", 3),
            ("Who takes care of the VPN?", 4),
            ("How long do we retain logs?", 5),
            ("Where do I see alarms?", 6),
            ("Where do customers check for outages?", 7),
            ("How many availability zones do we have?", 3),
            ("How often do we back up?", 1),
        ),
        unanswerable=(
            "What is the price of the office rent?",
            "Which monitor should I buy?",
            "Who waters the plants?",
            "How do I book a flight?",
            "What is the Wi-Fi name?",
        ),
    ),
    "home": Topic(
        facts=(
            "The dog is called Bruno and eats at seven in the evening",
            "The bins are collected on Wednesday, paper every other week",
            "The heating engineer is Mr Kowalski, he comes every October",
            "The spare key is with the neighbours on the second floor",
            "Our internet provider is Telekom, the contract ends in March",
            "The kids have piano lessons on Tuesday afternoon",
            "The washing machine is a Miele and still under warranty",
            "Grandma visits us each year over Christmas",
        ),
        answerable=(
            ("What is the name of our pet?", 0),
            ("When do we take the rubbish out?", 1),
            ("Who services the boiler?", 2),
            ("Where can I find another key?", 3),
            ("Who do we get broadband from?", 4),
            ("Which instrument do the children learn?", 5),
            ("What brand is the washer?", 6),
            ("Who comes for the holidays?", 7),
            ("When is the dog fed?", 0),
            ("When can we switch our internet contract?", 4),
            ("Is the washing machine still covered?", 6),
        ),
        unanswerable=(
            "How old is the roof?",
            "Which paint did we use in the hall?",
            "What does the gym cost?",
            "Who cuts the hedge?",
            "Where is the ladder?",
        ),
    ),
    "food": Topic(
        facts=(
            "I drink my coffee black, without sugar",
            "Tom is a vegetarian and does not eat fish either",
            "The bakery on Mill Street opens at half past six",
            "We order pizza from Da Mario on Fridays",
            "My grandmother's goulash needs three hours on low heat",
            "The freezer holds two loaves of rye bread",
            "We buy vegetables from a farm box that comes on Thursdays",
            "Lena cannot stand coriander",
        ),
        answerable=(
            ("How do I take my coffee?", 0),
            ("Can Tom have salmon?", 1),
            ("When can I get fresh rolls?", 2),
            ("Where do we get takeaway?", 3),
            ("How long does the stew cook?", 4),
            ("Is there any bread left?", 5),
            ("Where do our greens come from?", 6),
            ("Which herb does Lena dislike?", 7),
            ("What do we eat on Friday evening?", 3),
            ("Is Tom a meat eater?", 1),
            ("On which day is the farm box delivered?", 6),
        ),
        unanswerable=(
            "Which wine goes with it?",
            "How much is a kilo of flour?",
            "Where is the corkscrew?",
            "What is the oven's wattage?",
            "When is the tax due?",
        ),
    ),
}
