"""What people say in passing, for invented projects and households: orders, changes of mind, answers, requests, lives.

Written before the rules for proposals were run on it. `tests/writing/test_plain_talk.py` says how many passed at first.
"""

# (said, part of the memory): a rule that holds beyond the day. Told without a judge.
STANDING = [
    ("Important: the label printer must never get more than 40 jobs at once.", "never get more than 40 jobs"),
    ("by the way, always pull the translations before you build the app", "always pull the translations"),
    ("One more thing: no abbreviations in column names.", "no abbreviations in column names"),
    ("Careful: don't run the seeder against the shared database, it empties the orders table.", "seeder"),
    ("oh, and from now on every endpoint needs a rate limit", "every endpoint needs a rate limit"),
    ("Also, migrations must be reversible.", "migrations must be reversible"),
    ("Just so you know, we only support the last two versions of Safari.", "last two versions of safari"),
    ("never squash when you merge a release branch please", "never squash"),
    ("Remember that invoices are numbered per country.", "numbered per country"),
    ("please always answer in British English", "british english"),
    ("going forward, put feature flags into flags.yaml, not into code", "flags.yaml"),
    ("do not log phone numbers, not even the last digits", "phone numbers"),
    ("use cents everywhere, floats have bitten us twice", "cents everywhere"),
    ("all dates in the API are ISO strings with an offset, nothing else", "iso strings"),
    ("Bitte niemals direkt auf der Produktivdatenbank arbeiten.", "produktivdatenbank"),
    ("Wichtig: Rechnungen dürfen nach dem Versand nicht mehr geändert werden.", "rechnungen"),
    ("Übrigens, ab sofort schreiben wir alle Fehlertexte auf Englisch.", "fehlertexte"),
    ("Au fait, il faut toujours vider le cache avant de livrer.", "vider le cache"),
    ("Désormais, on n'utilise plus jQuery dans les nouvelles pages.", "jquery"),
    ("Attention : ne supprime jamais un dossier client.", "dossier client"),
    ("Por cierto, los precios siempre van sin IVA.", "precios"),
    ("A partir de ahora los commits van en inglés.", "commits"),
    ("Ojo: nunca toques el archivo de licencias.", "archivo de licencias"),
    ("Importante: as senhas nunca podem aparecer nos logs.", "senhas"),
    ("De agora em diante, usa sempre tabs neste projeto.", "tabs"),
    ("Aliás, todos os relatórios têm de estar em português.", "relatórios"),
]

# Said before any statement, they only connect it to the talk; each of OPENED is told with each of them before it.
OPENERS = [
    *(
        "Also",
        "Also,",
        "Oh, and",
        "By the way,",
        "btw",
        "Important:",
        "Careful:",
        "One more thing:",
        "Before I forget:",
    ),
    *("Quick reminder:", "Small correction:", "That's outdated:", "Heads up,", "Just so you know,", "Note:"),
]
OPENED = [
    "every parcel gets a second label",
    "never restart the scale during a shift",
    "the forms must be printed in black",
    "use litres in the reports, not gallons",
    "all recipes are written for four people",
]

# A fact that somebody mentions: at least proposed.
STATED = [
    ("the night job runs on the small machine in the basement", "small machine in the basement"),
    ("Okan owns the billing service, I only review it", "okan owns the billing service"),
    ("our customers upload scans from phones, so half of them are sideways", "sideways"),
    ("we keep two years of readings, the ministry asks for that", "two years of readings"),
    ("FYI the demo account is reset at noon", "demo account is reset at noon"),
    ("the mobile team pins our API to 2.3, they update once a quarter", "2.3"),
    ("article texts come from the newsroom as HTML with a broken encoding", "broken encoding"),
    ("we went with Kotlin for the new service because the app team knows it", "kotlin"),
    ("the test printer answers on 9100 but only inside the office network", "9100"),
    ("Die Lagerdaten kommen jede Nacht als CSV von der Spedition.", "spedition"),
    ("On garde les sauvegardes pendant dix jours, le disque est petit.", "dix jours"),
    ("Los informes los revisa Maribel antes de enviarlos.", "maribel"),
    ("O servidor de testes fica no escritório do Porto.", "porto"),
    ("在庫データは毎朝6時に本社から届きます。", "6時"),
    ("画像は必ずWebPで保存してください。", "webp"),
]

# (first said, said later, of the first, of the later): afterwards only the later one may be told.
CHANGED = [
    ("sessions expire after 20 minutes", "let's make that 45 minutes after all, people complain", "20 minutes", "45"),
    ("we format with black", "we moved to ruff format on Friday, black is gone", "we format with black", "ruff"),
    ("the newsletter goes out on Mondays", "the newsletter goes out on Fridays now", "mondays", "fridays"),
    ("use Mapbox for the maps", "forget Mapbox, we take MapLibre, no key needed", "use mapbox", "maplibre"),
    (
        "retry failed payments five times",
        "actually no retries for payments, the bank counts them",
        "five",
        "no retries",
    ),
    ("Elif reviews the migrations", "Elif is on leave, Jonas reviews the migrations now", "elif reviews", "jonas"),
    ("the export has a limit of 500 rows", "we raised it: the export takes 2,000 rows now", "500", "2,000"),
    ("name the module ledger", "hm, call it journal instead, ledger is taken", "name the module ledger", "journal"),
    ("Wir veröffentlichen dienstags.", "Wir veröffentlichen jetzt doch donnerstags.", "dienstags", "donnerstags"),
    ("Les alertes partent par courriel.", "Finalement les alertes partent par SMS.", "courriel", "sms"),
    ("Guardamos los registros 30 días.", "Ahora guardamos los registros 90 días.", "30", "90"),
    ("Os backups ficam na AWS.", "Os backups já não ficam na AWS, agora ficam na Hetzner.", "ficam na aws.", "hetzner"),
]

# (question of the agent, answer, part of the memory)
ANSWERED = [
    ("Should I store the avatars A) on disk or B) in object storage?", "B, the disk is tiny", "object storage"),
    ("Two ways: 1. a cron job, 2. a queue with a worker. Which one?", "the second", "a queue with a worker"),
    ("Which timeout do you want for the geocoder?", "8 seconds", "timeout"),
    ("Do you prefer one big config file or one per service?", "the latter please", "one per service"),
    ("Shall I use SendGrid or Postmark for the mails?", "Postmark, we have an account there", "postmark"),
    ("Options: (a) keep the old URLs, (b) redirect them, (c) drop them. I would redirect.", "a", "keep the old urls"),
    ("What should happen with orders without an address?", "put them into the manual queue", "without an address"),
    ("Wie viele Tage soll der Link gültig sein?", "drei Tage", "gültig"),
]

# Carried out and over: never told.
REQUESTS = [
    "rename the column to shipped_at",
    "write a test for the parser",
    "now commit that with a short message",
    "move the helper below the class",
    "make the header a bit smaller",
    "run it again with the debug flag",
    "show me the last ten lines of the log",
    "open a pull request",
    "undo the last edit",
    "put a TODO there",
    "Starte den Server neu.",
    "Lance les tests une fois de plus.",
    "Borra ese archivo temporal.",
    "Mostra-me o ficheiro de novo.",
]

# In a chat: told without a judge.
PERSONAL = [
    ("I'm Petra by the way, I live in Ghent", "ghent"),
    ("my daughter Ines has asthma", "asthma"),
    ("we have two cats and a very old dog", "two cats"),
    ("I can't eat nuts", "nuts"),
    ("My brother works as a baker in Lyon.", "baker"),
    ("I play the cello in an amateur orchestra", "cello"),
    ("we got married in May", "married"),
    ("I'm retired since last year and read a lot", "retired"),
    ("I hate long phone calls", "phone calls"),
    ("Ich bin Vegetarierin und wohne in Bremen.", "vegetarierin"),
    ("J'ai deux fils, Hugo et Malo.", "hugo"),
    ("Soy profesora y vivo en Gijón.", "profesora"),
    ("Tenho 34 anos e trabalho num hospital.", "hospital"),
    ("来月から大阪で働きます。妻は医者です。", "医者"),
]

# In a chat: nothing to keep.
CHATTER = [
    "what's a good word for rain?",
    "thanks, that helped a lot!",
    "haha yes",
    "see you tomorrow",
    "can you make it shorter?",
    "tell me a joke",
]
