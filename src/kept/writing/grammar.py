"""Read a sentence of a user: its openers, what it does (states, asks, orders, reacts), and the words that weigh.

Used by extraction. The tables hold closed-class words and the few verbs of speech acts, for English, German, French,
Spanish, Portuguese and Japanese: single words, and phrases as regular expressions over lower case. Rule: no table names
a topic. A sentence in a language that no table knows is a statement.
"""

from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from kept.text import compiled
from kept.writing.speech import masked

MIN_LETTERS = 4  # that must be left behind an opener
MAX_REACTION_WORDS = 2  # beside words that only react: "thanks, perfect work"

# ---- openers: words before a statement that only connect it to the talk ----

_OPENERS = {
    "plain": "actually ok okay hm hmm so well also and but then btw hey uh ah oh please right true good great nice "
    "fine "
    "perfect cool "
    "thanks agreed alright sure yes yeah yep fyi plus again und aber also ach ja doch super gut genau bitte danke et "
    "mais bon "
    "alors donc oui merci y pero pues vale sí bueno perfecto gracias e mas então pois sim ótimo certo",
    "phrases": r"by the way|one (?:more|last|other) thing(?: first)?|(?:just )?so you know|just (?:to be clear|a note"
    r"|fyi)"
    r"|note(?: that)?|please note(?: that)?|for the record|for future reference|(?:as|like) i said(?: before)?"
    r"|(?:it )?turns out(?: that)?"
    r"|speaking of which"
    r"|before you start|(?:bad|good) news|heads up|quick note|reminder|you(?:'re| are) right|that's (?:right|outdated)"
    r"|sounds good|good idea|on second thought|change of plans?|small correction|wie gesagt|übrigens|ach so"
    r"|nebenbei(?: bemerkt)?"
    r"|noch (?:etwas|was)|(?:nur )?zur info|klingt gut|au fait|d'ailleurs|au passage|por cierto|otra cosa|además|aliás"
    r"|a propósito|já agora|mais uma coisa|boa dica",
    "warns": r"important|careful|caution|warning|attention|beware|gotcha|wichtig|achtung|vorsicht|ojo|cuidado"
    r"|importante"
    r"|aten[çc]i?[ãó]o?n?",
    "recalls": r"(?:and )?i(?:'ve)? (?:already )?told you(?: already| before)?(?: to)?|(?:please )?remember(?: that)?"
    r"|(?:keep|bear) in mind(?: that)?|don't forget(?: that)?|merk dir(?:,? dass)?|denk daran(?:,? dass)?"
    r"|rappelle-toi(?: que)?|n'oublie pas(?: que)?|recuerda(?: que)?|lembr[ae]-[st]e(?: de)?(?: que)?",
    "objects": r"no|nope|nah|wrong|incorrect|not quite|actually|wait|correction|never ?mind|that's (?:wrong"
    r"|not (?:right|true"
    r"|correct))|sorry|scratch that|nein|falsch|das stimmt nicht|non|en fait|en realidad|não|na verdade",
}
_END = r"[\s,.:;!—–-]"
_OPENER = (
    r"(?i)\W*(?:(?P<plain>{plain})(?={end})|(?P<phrases>{phrases})(?={end})|(?P<recalls>{recalls})(?=[\s,:])"
    r"|(?P<warns>{warns})\s?[,.:!—–-]|(?P<objects>{objects})[,.:;!—–-]){end}*"
).format(**{**_OPENERS, "plain": "|".join(_OPENERS["plain"].split())}, end=_END)
_WEIGHTY = frozenset({"warns", "recalls", "objects"})  # openers that say something about the statement
_BARE_OBJECTION = r"(?i)(?:nope|wrong|actually|falsch|doch)\b"

# ---- what a sentence does ----

_ASKS = (
    r"(?i)[?？]\W*$|^(?:what|why|how|when|where|which|who|whose|is|are|was|were|do(?! not)|does|did|can|could|would"
    r"|will|shall|should"
    r"|have|has|may|wie|was|warum|wo|wann|wer|welche\w*|kannst|könntest|peux-tu|tu peux|pourquoi|comment|quel\w*"
    r"|est-ce|puedes"
    r"|podrías|qué|cómo|por qué|podes|consegues)\b(?!.*[,;] )|(?:です|ます|でしょう)か"
)
_VERBS = (
    "add analyse analyze answer apply ask block bring build bump call change check choose clean close commit compare "
    "continue "
    "convert create debug delete deploy describe disable do draw drop enable ensure explain export extend fetch find "
    "finish fix "
    "follow format generate get give go hide implement import include install investigate keep leave let lets let's "
    "lint list "
    "load log look make mark merge move name open pick plan prepare print publish pull push put read rebase refactor "
    "release "
    "remind remove rename replace reply reset respond restart retry revert review rework run save see send set show "
    "skip sort "
    "split start stop store summarise summarize switch take tell test think translate treat try turn undo update use "
    "wait wire write "
    "benenn benenne erstelle erstell führe füg füge lösche lösch mach mache nimm prüf prüfe schau schreib schreibe "
    "starte such "
    "suche verschieb verschiebe zeig zeige ändere ajoute corrige crée fais lance mets montre regarde renomme "
    "supprime vérifie "
    "écris agrega arregla añade borra cambia crea ejecuta escribe haz mira muestra pon revisa adiciona adicione "
    "apaga corrija "
    "cria crie escreva escreve executa faz mostra mostra-me muda põe roda veja vê"
)
_ORDERS = (
    r"(?i)^(?:can|could|would|will) (?:you|we)\b|^i(?:'d| would)? (?:want|need|like) (?:you|to)\b|^i need\b"
    r"|\bplease (?:ensure|make|add)\b"
    r"|(?:実行して|直して|見て|考えて|作って|追加して)(?:ください)?[。.]?$"
)
_NOT_AN_ORDER = (
    r"(?i)^\w+ \w+s (?:in|are|is|must|have|with|as) "
    r"|^\w+ \w+s (?!for|to|in|of|and|or|with|the|an?|that|which|so|from|on|at|by|as|then|again|please|now|first|until"
    r"|below|above)\w+ "
    r"|^\w+ (?:is|are|was|were|has|have|must|should|goes|go|come|comes)\b"
)
_COURTESY = frozenset("please just now then next first and so bitte por favor s'il te plaît".split())
_REACTING = frozenset(
    "ok okay thanks thank you great nice perfect good yes no yep nope cool right done lgtm hi hello bye ha haha lol "
    "sounds got "
    "it looks to me go ahead do please on that's that all fine see exactly sure one back morning evening night danke "
    "merci "
    "gracias obrigado obrigada bitte hallo bonjour hola olá genau vale super "
    "ありがとう はい こんにちは いいですね".split()
)

# ---- the words that weigh ----


class Words(NamedTuple):
    """Single words, and phrases as a regular expression."""

    single: frozenset[str]
    phrases: str

    def are_in(self, words: frozenset[str], text: str) -> bool:
        return not self.single.isdisjoint(words) or bool(self.phrases and compiled(self.phrases).search(text))


def _words(single: str, phrases: str = "") -> Words:
    return Words(frozenset(single.split()), phrases)


MARKS = {
    # What holds beyond the moment: always or never, for all, by duty, up to a limit.
    "rule": _words(
        "always never every everything everyone everywhere everybody each all any only must mustn't cannot can't "
        "forbidden unless "
        "whenever nothing nobody stays stay rather prefer prefers immer nie niemals nur jede jeder "
        "jedes jedem jeden alle allen alles muss müssen soll sollen darf dürfen kein keine keinen keiner höchstens "
        "mindestens "
        "überall gar toujours jamais seulement uniquement chaque tous toutes tout partout doit doivent faut aucun "
        "aucune préfère "
        "siempre nunca sólo solo cada todos todas debe deben ninguno ninguna ningún prefiero sempre só apenas todo "
        "toda deve "
        "devem nenhum nenhuma nada",
        r"\b(?:make sure|(?:one|two|three|\d+) \w+ (?:per|for each)|ha(?:s|ve) to|not allowed|may not|do not"
        r"|at (?:most|least)|no more than|limited to|as always"
        r"|(?:under|below|above|within) \d"
        r"|max(?:imum)? \d|instead of|no one|hay que|tienen? que|t[eê]m (?:de|que)|no se|ne \w+ (?:pas|jamais|plus))\b"
        r"|(?:^|[,;:] )(?:and |so )?no (?!need|problem|idea|worries|one\b|rush|matter|longer|way|thanks|changes?"
        r"|that)[a-z]"
        r"|必ず|いつも|常に|すべて|全て|絶対|だけ|のみ|禁止|まで|てはいけ|でいい|お願いします|てください",
    ),
    # An order that says itself that it stands.
    "standing": _words(
        "always never must mustn't immer nie niemals künftig toujours jamais désormais dorénavant siempre nunca "
        "sempre doravante",
        r"\b(?:from (?:now|today|next \w+) on|going forward|in (?:the )?future|as always|ab (?:jetzt|sofort)"
        r"|von nun an|in zukunft"
        r"|à partir de maintenant|a partir de ahora|desde ahora|en adelante|de agora em diante|a partir de agora)\b"
        r"|今後|これから|必ず|常に|絶対",
    ),
    "prohibits": _words(
        "",
        r"^(?:(?:please|and|just|so) )*(?:do not|don't|dont|never|stop|avoid|no) (?!worr|mind|bother|forget|hesitate"
        r"|need|problem"
        r"|idea|rush|matter|way|thanks|know|think|stop|understand|do (?:that|it|this)|that\b|longer|one\b)\w"
        r"|\bne (?:\w+ ){1,2}(?:pas"
        r"|jamais|plus)\b"
        r"|^(?:não|nunca) \w|ないで(?:ください)?",
    ),
    # It is different from before.
    "change": _words(
        "now anymore instead actually moved switched migrated changed renamed replaced raised lowered upgraded "
        "dropped gone "
        "outdated forget scratch jetzt doch inzwischen mittlerweile umgestellt gewechselt geändert gezogen umgezogen "
        "statt "
        "finalement maintenant désormais plutôt changé déménagé ahora mejor cambiamos cambiado mudamos agora afinal "
        "mudei "
        "mudámo-nos mudou melhor",
        r"\b(?:no longer|any more|any longer|after all|from now on|these days|since (?:this|last|the|\w+(?:day|ary|ch"
        r"|il|ay|une|uly"
        r"|ust|ber))|as of|turns out|off the table|go(?:es)? back|back to|left the|is (?:off|out)|not \d|nicht mehr"
        r"|au lieu"
        r"|n'est plus|ne \w+ plus|n'\w+ plus|ya no|al final|en vez|já não|não é mais|em vez)\b"
        r"|やっぱり|やはり|変更|今は|もう|引っ越し",
    ),
    "warns": _words(
        "careful beware dangerous gotcha pitfall vorsicht achtung gefährlich attention dangereux cuidado ojo "
        "peligroso perigoso",
        r"\b(?:watch out|pass auf|be careful|(?:do not|don't|never) (?:touch|edit|delete|restart)\b.{1,80}\bwithout"
        r"|breaks (?:if|when))\b",
    ),
    "prefers": _words(
        "prefer prefers rather hate dislike lieber bevorzuge préfère prefiero prefiro",
        r"\b(?:don't|do not) (?:like|want)\b",
    ),
    # Something is named as not meant: "use pnpm, not npm".
    "contrasts": _words(
        "",
        r"(?:,|\b(?:and|but)) (?:not|nicht|pas|no|não) (?!yet|sure|only|just|even|so|really|too|mehr|nur|plus|seulement"
        r"|solo|só)[\w`/.-]+"
        r"(?: \S+){0,4}[.!]?$|,? sondern\b|, (?:sino|mais sim)\b",
    ),
    "names_self": _words(
        "heiße chamo-me",
        r"\b(?:call me|my name is|i(?:'m| am) called|nenn mich|je m'appelle|appelle-moi|me llamo|llámame|meu nome é"
        r"|me chamo)\b"
        r"|と呼んで|と申します",
    ),
    "undo": _words(
        "",
        r"\b(?:undo (?:that|it|the)|never ?mind|scratch that|forget (?:it|that)|go back to|revert (?:that|it)"
        r"|roll (?:that|it) back"
        r"|as it was|rückgängig|wie vorher|vergiss das|laisse tomber|annule|comme avant|olvídalo|como antes|deshaz"
        r"|esquece|desfaz"
        r")\b|元に戻",
    ),
    "guess": _words(
        "maybe perhaps might possibly probably vielleicht wahrscheinlich vermutlich peut-être quizá quizás talvez",
        r"\b(?:according to|not sure|i wonder|i guess|could be|we could|what if|tal vez|acho que)\b|かもしれ|と思い",
    ),
    "fleeting": _words(
        "today tonight tomorrow yet heute morgen gerade aujourd'hui demain hoy mañana hoje amanhã",
        r"\b(?:right now|for now|this time|one moment|in (?:\w+|a few) minutes|by \d{1,2}|at (?:one|two|three|noon)$"
        r"|(?:i'm|be) back)\b|今日|今夜|明日",
    ),
    "first_person": _words(
        "i i'm i'd i've my mine me we we're we've our us ich mein meine meinen meiner wir unser unsere mir je j'ai "
        "j'habite mon ma "
        "mes nous notre nos yo mi mis soy tengo vivo trabajo somos tenemos vivimos nuestro nuestra eu meu minha meus "
        "minhas sou "
        "tenho moro chamo-me nós nosso nossa temos moramos prefiro prefiero trabalho mudámo-nos",
        r"\bon (?:a|est|va|garde|utilise|part)\b"
        r"|私|僕|俺|うち|妻|夫|息子|娘|家族|(?:です|ました|ません|ます)[。.!！]?$",
    ),
    "objects": _words(
        "",
        r"\b(?:still|again) wrong\b|\bnot what i (?:asked|meant|wanted|said)|\bnicht gemeint\b|\b(?:is|was) (?:wrong"
        r"|not right)\b"
        r"|\b(?:look|try|check|think)(?: \w+){0,2} (?:again|harder|more)\b|\bare you sure\b",
    ),
    # Where the work stands, and what one sees: over tomorrow.
    "symptom": _words(
        "broken missing down red green flaky blank empty weird strange odd ugly slow stuck crash crashes crashed "
        "fails failed "
        "failing hangs hung "
        "seems looks feels error errors bug bugs kaputt fehlgeschlagen cassé roto quebrado pushed committed merged",
        r"\b(?:again|works now|(?:is|not|isn't) working|is (?:fine|ok|done|ready|back|out|gone|huge|waiting|here))\b"
        r"|\b\w+(?:error|exception):"
        r"|doesn't (?:work|show|open|load|start|compile|build)",
    ),
    "decides": _words(
        "decided agreed settled chose opted beschlossen entschieden vereinbart geeinigt décidé convenu decidido "
        "decidimos acordado "
        "acordamos hemos",
        r"\b(?:going with|went with|let's (?:use|go with|keep|stick|call|not)|we(?:'ll| will|'re| are) (?:use|take|keep"
        r"|dropping|switching|moving|using)|we (?:don't|do not) need|we no longer"
        r"|the plan is|it is then|vamos a"
        r"|vamos usar|on prend|wir nehmen|wir bleiben)\b"
        r"|^(?:please )?use (?!it\b|that\b|this\b|them\b|the (?:same|following|above|next|other|new))|^decision:"
        r"|^(?!do\b|go\b|run\b|let|tests?\b|it\b|that\b|what|\S+ \S+ here)[\w.-]+(?: [\w.-]+){0,2} (?:then"
        r"|it is)[.!]?$|にします"
        r"|を使います|に決め",
    ),
    # What somebody wants done in this session.
    "wish": _words(
        "",
        r"^(?:i'll|i will|i'm going|i just|i have to|i had to|i tried|ich will|ich möchte|je voudrais|quiero|quero)\b"
        r"|\b(?:i think|we should|we (?:also )?need to|i (?:want|need)|i(?:'d| would) (?:like|need)|be sure to"
        r"|we will also|to see)\b",
    ),
    "reason": _words(
        "because otherwise weil damit sonst denn car sinon porque pois senão",
        r"\b(?:so that|due to|that's why|parce que|si no|por isso)\b|\bso(?=,? (?:the|we|no|it|that|nothing|never"
        r"|don't|read|sort))"
        r"|, (?:\S+ ){1,4}(?:can't|needs?|wants?|got|has|have|is|are|was|were|takes?|do|does|don't)\b",
    ),
    "points_back": _words(
        "",
        r"^(?:because|weil|parce que|it|its|they|them|he|she|this|that|these|those|so|otherwise|both|neither|that's"
        r"|it's|they're|he's|she's"
        r"|there"
        r"|the (?:old|new|first|second|last|other) ones?|the same|the rest|das|es|sie|dies\w*|dort|sonst|c'est|ça"
        r"|cela|il|elle|ils"
        r"|eso|esto|así|isso|isto|ele|ela|assim)\b|^(?:それ|これ|あれ|そこ)",
    ),
}
_WORD = r"[\w'’-]+"


class Reading(Struct, frozen=True):
    """A sentence without its openers, and what it does."""

    text: str
    act: str = "states"  # or asks, orders, reacts
    marks: frozenset[str] = frozenset()

    def has(self, *names: str) -> bool:
        """Return True if the sentence has one of these marks."""
        return not self.marks.isdisjoint(names)


def without_openers(sentence: str) -> tuple[str, list[str]]:
    """Remove the openers of a sentence, unless nothing else is left. Return the rest and the sorts of openers."""
    rest, sorts = sentence.strip(), list[str]()
    while found := compiled(_OPENER).match(rest):
        left = rest[found.end() :]
        if sum(map(str.isalnum, left)) < MIN_LETTERS:
            break
        sorts.append(found.lastgroup or "")
        rest = left
    return rest, sorts


@lru_cache(maxsize=2048)  # a sentence is read when it is found, compared and judged
def read(sentence: str) -> Reading:
    """Read one sentence."""
    sentence = sentence.replace("’", "'")
    rest, openers = without_openers(sentence)
    own = masked(rest).lower()
    words = compiled(_WORD).findall(own)
    marks = {name for name, table in MARKS.items() if table.are_in(frozenset(words), own)}
    marks |= _WEIGHTY & set(openers)
    if compiled(_BARE_OBJECTION).match(sentence):
        marks.add("objects")
    alone = compiled(_OPENER).fullmatch(f"{rest} ")
    if alone is not None:
        return Reading(rest, "reacts", frozenset(marks | ({alone.lastgroup or ""} & _WEIGHTY)))
    return Reading(rest, _act(rest, own, words, marks), frozenset(marks))


def _only_reacts(rest: str, own: str, words: list[str], marks: set[str]) -> bool:
    """Match thanks, greetings and agreement, with a word or two beside them."""
    has_name = compiled(r"(?<=\w )[A-Z][a-z]").search(rest) is not None
    if has_name or marks & {"rule", "change", "recalls", "warns", "standing"} or any(map(str.isdigit, own)):
        return False
    return len([word for word in words if word not in _REACTING]) < min(MAX_REACTION_WORDS + 1, len(words))


def _act(rest: str, own: str, words: list[str], marks: set[str]) -> str:
    if _only_reacts(rest, own, words, marks):
        return "reacts"
    if "undo" in marks and len(words) <= MAX_REACTION_WORDS:
        return "reacts"
    if compiled(_ASKS).search(own):
        return "asks"
    spoken = (word.strip(",.:;!") for word in own.split())
    verb = next((word for word in spoken if word not in _COURTESY), "")
    is_order = verb in _VERB_SET and not compiled(_NOT_AN_ORDER).match(own)
    return "orders" if is_order or compiled(_ORDERS).search(own) else "states"


_VERB_SET = frozenset(_VERBS.split())
