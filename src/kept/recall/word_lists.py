"""Word lists: the words that hold a sentence together, those that are common everywhere, and those of sorts of work.

For the floor of recall, which must know how much a word says in a store of ten memories, where no word is common yet;
for questions about conversations; and for the rules that a briefing shows. Tables only, as people write the words.
`docs/stems.py` writes them to `stems.py` in the form that an index holds, and nothing else reads this
module: run it after every change. Rule: a word of the first four lists says little in any project.
"""

# Words that make a sentence a question, or hold it together: they tell next to nothing of what is asked for.
FILLERS = """
    what when where who whom whose which why how did does do doing done is was were are am be been being has have had
    having will would could can should may might must shall the a an of to in on at for with by from and or but if about
    into as that this these those it its i me my mine myself you your yours we our us they their them he she his her him
    hers there here not no than then so many much ever any some often long kind type sort thing person people like also
    get got"""
MORE_FILLERS = """
    please tell let lets want need use used uses using able via per yet too very just only even each every own such both
    few more most other same nor until while during before after again further once because between through up down out
    off over under above below still already always never really anything something everything nothing cannot didn isn
    doesn don won couldn wouldn shouldn t s ll ve re

    der die das den dem des ein eine einen einem einer und oder aber nicht ist sind war waren wird werden wurde wie was
    wer wo wann warum welche welcher welches mit auf von zu zum zur bei nach aus fur fuer im in am an als auch nur noch
    wir ich du er sie es uns unser unsere mein meine kein keine haben hat kann soll muss man

    le la les un une des du de et ou est sont que qui quoi quel quelle comment pourquoi quand dans sur pour par avec
    ce cette ces il elle nous vous ils elles notre nos mon ma mes pas ne au aux se sa son ses

    el los las unos unas del y o es son que quien cual como cuando donde por para con en su sus nuestro nuestra mi no se
    lo al este esta"""

# Said about everything, also in software: worth something, but less than a name.
COMMON = """
    able across actual add allow answer apply ask available back bad base become begin best better big bring
    bug build call care case cause certain change check choose code come common complete consider contain continue
    correct course create current day deal decide default different down early easy else end enough error example
    exist expect explain fact far feature file find first fix follow full general give good great group half handle
    happen hard help high hold hour idea implement improve include information issue keep know large last
    late least leave left less level line list little live look lot low main make manage matter mean mention minute
    month move name near new next now number often old one open option order part past place plan point possible
    prefer probably problem project provide provider put question quick rather read real reason receive recent
    relate remain remember remove result right run save say second see seem send set several short show side similar
    simple single small soon special specific start stop support sure system take talk task test thank think three time
    today together tomorrow tonight tool total try turn two understand update useful user usual value various version
    way week whole wish within without wonder word work world write wrong year yes yesterday"""

# The verbs of an order that say nothing of what it is about.
ORDERS = "add build change continue create extend finish fix handle implement improve make support update"

# The words of rules that concern every answer, and of those that concern a sort of work.
ANSWERS = "answer reply respond ask confirm approve approval explain explanation emoji praise summarise bullet table"
CODE = (
    "code test commit lint format build compile branch push pull merge rebase squash review changelog spec run check "
    "error fail fix edit update file folder directory workspace repository implement implementation change feature "
    "refactor plan type comment dependency migration script command function module naming doc"
)
# The words of rules about running it: whoever changes code needs them only if the prompt speaks of the same.
RUNNING = "deploy deployment release rollout staging stage production prod server hosting backup outage"
TEXTS = (
    "write writing text word wording doc document documentation readme markdown line wrap heading paragraph sentence "
    "language tone concise style translate render issue"
)
SCREENS = (
    "ui gui screen menu tab tooltip tip field label icon button style css layout colour theme form dialog keyboard"
)
# The words of a prompt that make it work on screens.
ON_SCREENS = "ui gui page screen view form button dialog css style layout header menu tab panel widget frontend"
