"""The written form of a word decides: inflections of the word asked for are found, other words of its stem are not."""

from collections.abc import Iterator

import pytest

import kept
from tests.builders import FakeClock

BESIDE = (
    "Nora waters the plants on Mondays",
    "Umbrellas are lent out at the reception",
    "Lunch is at noon in the yellow kitchen",
)

# query, memory: found
FOUND = (
    # plurals
    ("invoice", "Invoices are numbered by year"),
    ("invoices", "An invoice gets its number from the ledger"),
    ("query", "Slow queries are logged to pg_stat"),
    ("queries", "One query joins five relations"),
    ("branch", "Feature branches live for two days"),
    ("caches", "The cache is warmed at night"),
    ("policy", "Retention policies differ by tenant"),
    ("index", "Partial indexes cover the hot rows"),
    ("dependency", "Dependencies are pinned by hash"),
    ("customers", "Every customer has a number of eight digits"),
    ("authors", "The author of a commit signs it"),
    ("terminals", "The terminal in the warehouse prints labels"),
    ("settings", "A setting without a reader is deleted"),
    ("suites", "The suite takes nine minutes"),
    # tenses
    ("rename", "Renamed columns keep a view for a month"),
    ("rename columns", "Renaming columns needs a view in between"),
    ("ship", "Orders over 50 euro are shipped free"),
    ("plan", "We planned the cutover for June"),
    ("planning", "The plan of the cutover is in Notion"),
    ("compress", "Responses are compressed with zstd"),
    ("parse", "Dates are parsed as UTC"),
    ("parsing", "We parse dates as UTC"),
    ("import", "Prices are imported on Sundays"),
    ("importing", "The import of prices runs on Sundays"),
    ("log", "Payments are logged without card numbers"),
    ("commit", "Generated files are committed"),
    ("paste", "Pasted images are resized"),
    ("copied", "The fixture copies the template"),
    # nouns of verbs, and the like
    ("validate", "Validation happens at the edge"),
    ("validation", "The edge validates every body"),
    ("deployment", "We deploy from main"),
    ("compiler", "It compiles with clang only"),
    ("removal", "Flags are removed after a quarter"),
    ("secure", "Security headers come from the proxy"),
    ("configure", "Configuration is read once"),
    ("recursion", "A recursive walk overflows on deep trees"),
    ("availability", "The search must be available in every region"),
    ("optional", "Each option has a default"),
    ("renderer", "Charts are rendered on the server"),
    ("persist", "Persistence of drafts is local"),
    ("weekly", "Backups run every week"),
    # parts of compounds and identifiers
    ("user", "get_user_by_id raises KeyError"),
    ("user id", "getUserById raises KeyError"),
    ("users", "The table user_accounts is partitioned"),
    ("feature flag", "feature-flags.yaml is generated"),
    ("getUserById", "get_user_by_id raises KeyError"),
    ("max_retries", "maxRetries is three"),
    ("retry", "The constant MAX_RETRIES is three"),
    ("order-service", "OrderService owns the numbers"),
    ("parser", "src/app/date_parser.py reads ISO dates"),
    ("importer", "The class PriceImporter runs on Sundays"),
    ("sha256", "SHA-256 is used for names"),
    ("nodejs", "Node.js 20 is required"),
    # aliases, in their forms
    ("auth", "Authentication goes through Keycloak"),
    ("auth", "Only admins authorise refunds"),
    ("login", "Growers log in with a magic link"),
    ("login", "Who has logged in sees the prices"),
    ("shell", "The terminal needs a dark background"),
    ("customer", "Buyers get a mail"),
    ("kill", "Workers are terminated after a minute"),
    ("db", "Databases are backed up hourly"),
    ("register", "Registrations need a confirmed address"),
    # other languages
    ("Datenbank", "Die Datenbanken liegen in Frankfurt"),
    ("Entscheidungen", "Die Entscheidung fiel im Mai"),
    ("Paket", "Pakete werden nachts gepackt"),
    ("Pakete", "Das Paket geht an den Nachbarn"),
    ("Termin", "Termine vergibt nur das Sekretariat"),
    ("Rechnung", "Rechnungen gehen am Monatsende hinaus"),
    ("Größe", "Groesse und Gewicht stehen auf dem Etikett"),
    ("archivo", "Los archivos se guardan por un mes"),
    ("commande", "Les commandes partent le soir"),
    ("订单", "订单由客服确认"),
)

# query, memory: not found
NOT_FOUND = (
    # the ones that were reported
    ("auth", "The author of the style guide is Priya"),
    ("import", "It is important to water the plants"),
    ("customer", "The custom theme is called Harbour"),
    ("shell", "Workers terminate after a minute"),
    ("login", "Logs are written as one JSON object per line"),
    ("login", "Logs in JSON are shipped to Loki"),
    # one stem, two meanings
    ("important", "Prices are imported on Sundays"),
    ("importance", "The import runs on Sundays"),
    ("custom", "Every customer has a number"),
    ("author", "Only admins authorise refunds"),
    ("authority", "The author of a page is shown below it"),
    ("terminal", "The contract terminates in May"),
    ("terminate", "The terminal needs a dark background"),
    ("internal", "International orders need a customs form"),
    ("intern", "The internal wiki moved to Outline"),
    ("organ", "The organization pays for two seats"),
    ("university", "A universal binary runs on both chips"),
    ("general", "Fixtures are generated by a script"),
    ("generic", "The generator writes Go"),
    ("production", "The product page shows three photos"),
    ("product", "Production runs in Frankfurt"),
    ("community", "Services communicate over NATS"),
    ("executive", "Jobs are executed at night"),
    ("objective", "An object holds its own lock"),
    ("projection", "The project began in March"),
    ("react", "Emoji reactions are stored as rows"),
    ("commit", "Our commitment to uptime is 99.9"),
    ("department", "Ferries depart at noon"),
    ("conversion", "Conversations are archived monthly"),
    ("exception", "All cities except Rome are served"),
    ("responsible", "The response is cached for an hour"),
    ("digital", "The code has six digits"),
    ("integrity", "Integration with Stripe is done"),
    ("accessibility", "Access to the vault is logged"),
    ("engine", "Engineers are on duty in pairs"),
    ("container", "The box contains a cable"),
    ("suite", "The hero image suits the page"),
    ("past", "Images are pasted into the editor"),
    ("locale", "The local build needs Go"),
    ("formation", "The format of dates is ISO"),
    ("positive", "The position of the cursor is saved"),
    ("originate", "The original photo is kept for a year"),
    ("familiar", "The font family is Inter"),
    ("goods", "Good names are short"),
    ("majority", "The major version is bumped by hand"),
    ("utility", "We utilise both cores"),
    # beginnings of words that the vocabulary knows
    ("auth", "Authors get a byline"),
    ("port", "The portal opens in May"),
    ("form", "The formula for shipping is in the wiki"),
)


SLIPPED = (
    "deployment migrations configuration validation replication dependency permissions scheduling partitioned "
    "authentication retention invoices caching middleware telemetry kubernetes pagination serializer webhooks "
    "throttling queries rollback checkout inventory encryption"
).split()


def slips(word: str) -> Iterator[str]:
    """Yield the word with one slip in its last four letters: left out, swapped, doubled, wrong."""
    for at in range(len(word) - 4, len(word)):
        before, letter, after = word[:at], word[at], word[at + 1 :]
        yield before + after
        yield before + after[:1] + letter + after[1:]
        yield before + letter + letter + after
        yield before + ("q" if letter == "x" else "x") + after


@pytest.fixture
def memory() -> Iterator[kept.Kept]:
    with kept.open(":memory:", clock=FakeClock(), settings=kept.Settings()) as opened:
        opened.remember_many([*BESIDE])
        yield opened


def found(memory: kept.Kept, query: str) -> list[str]:
    return [hit.memory.content for hit in memory.recall(query)]


@pytest.mark.parametrize(("query", "content"), FOUND)
def test_a_form_of_the_word_is_found(memory: kept.Kept, query: str, content: str) -> None:
    memory.remember(content)
    assert found(memory, query) == [content]


@pytest.mark.parametrize(("query", "content"), NOT_FOUND)
def test_another_word_of_the_same_stem_is_not_found(memory: kept.Kept, query: str, content: str) -> None:
    memory.remember(content)
    assert found(memory, query) == []


@pytest.mark.parametrize("word", SLIPPED)
def test_a_slip_near_the_end_of_a_word_is_found(memory: kept.Kept, word: str) -> None:
    """It is compared with words as they are written: a slip in "deployment" is far from its stem."""
    content = f"The {word} are done by Petra on Fridays"
    memory.remember(content)
    assert [slip for slip in slips(word) if found(memory, slip) != [content]] == []


def test_a_memory_that_says_the_word_ranks_above_many_that_say_another_of_its_stem(memory: kept.Kept) -> None:
    """Also where the others are more than a search considers at first."""
    memory.remember_many([f"It is important that room {number} stays locked" for number in range(80)])
    memory.remember("A long note about the warehouse of the north, its gates and keys, and the import of prices")
    assert found(memory, "import") == [
        "A long note about the warehouse of the north, its gates and keys, and the import of prices"
    ]


def test_profiles_of_other_designs_find_every_word_of_a_stem(memory: kept.Kept) -> None:
    memory.remember("It is important to water the plants")
    assert [len(memory.recall("import", profile=name).hits) for name in ("kept", "koshi", "praxis")] == [0, 1, 1]


def test_a_line_of_a_persons_own_concerns_its_word_and_not_another_of_its_stem(memory: kept.Kept) -> None:
    memory.remember("Buyers get a mail")
    memory.aliases.add("custom", "bespoke")
    assert memory.aliases.list()["custom"] == ("bespoke",)
    assert "buyer" in memory.aliases.list()["customer"]
    assert found(memory, "customers") == ["Buyers get a mail"]
    memory.aliases.remove("customer")
    assert found(memory, "customers") == []
    assert memory.aliases.list()["custom"] == ("bespoke",)
    with pytest.raises(kept.NotFound):
        memory.aliases.remove("customs officer")


@pytest.mark.parametrize("word", ["_", "!", "c#", "größe", "k8s", "sign_in"])
def test_an_alias_of_any_characters_can_be_asked_for(memory: kept.Kept, word: str) -> None:
    memory.remember("Umbrellas dry in the hall")
    memory.aliases.add(word, "umbrella", "-", "__")
    assert memory.recall(word).words or word in "_!"
    assert "umbrella" in memory.aliases.list()[word.replace("_", " ")]
