"""Common words: those that hold a sentence together, and those that are said everywhere.

For the floor of recall, which must know what a word is worth in a store of ten memories, where no word is common yet;
and for questions about conversations. Tables only, in plain letters, which are prepared a good deal faster.
Rule: what is listed here tells little in any project.
"""

from collections.abc import Iterable
from functools import cache

from kept import text

# Words that make a sentence a question, or hold it together: they tell next to nothing of what is asked for.
_FILLERS = """
    what when where who whom whose which why how did does do doing done is was were are am be been being has have had
    having will would could can should may might must shall the a an of to in on at for with by from and or but if about
    into as that this these those it its i me my mine myself you your yours we our us they their them he she his her him
    hers there here not no than then so many much ever any some often long kind type sort thing person people like also
    get got"""
_MORE_FILLERS = """
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
_COMMON = """
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
_ORDERS = "add build change continue create extend finish fix handle implement improve make support update"


@cache
def fillers() -> frozenset[str]:
    """The fillers of a question about a conversation."""
    return prepared(_FILLERS.split())


@cache
def worthless() -> frozenset[str]:
    """Words that alone never make a hit."""
    return fillers() | prepared(_MORE_FILLERS.split())


@cache
def common() -> frozenset[str]:
    """Words that many memories of any project hold."""
    return prepared(_COMMON.split()) - worthless()


@cache
def orders() -> frozenset[str]:
    """Verbs with which a prompt begins that asks for work on anything."""
    return prepared(_ORDERS.split())


def prepared(words: Iterable[str]) -> frozenset[str]:
    """The words as an index holds them."""
    return frozenset(text.words(" ".join(words)))
