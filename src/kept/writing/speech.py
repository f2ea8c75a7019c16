"""Find the words of others in running text: what stands in quotation marks, and what "The page says:" introduces.

Used by `quotes`, to take them out of a user's words, and by extraction, whose rules must not fire on them. The words
for saying are data, by language. Rule: a quotation runs to the last mark that could close it, because the quoted text
may contain such marks; that costs a memory, while a miss lets a page speak as the user.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache

from msgspec import Struct

from kept.text import compiled

NAME_WORDS = 2  # a quotation of fewer words is a name, and rules may read it
CLAUSE_WORDS = 4  # from here on a quotation may be a statement: "never use npm here"
PROSE_WORDS, PROSE_SHARE = 4, 0.7  # that many words, most of them without signs, are no code
MAX_HEAD_CHARS = 160  # of "The page says", before its colon
MAX_REPORTER_WORDS = 3  # "Jonas from ops"

ELISION = "…"
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = rf"[{_CJK}]{{1,2}}|[^\W_{_CJK}][\w'’./:@#+-]*"
_CLOSES = {
    '"': '"',
    "＂": "＂",
    "'": "'",
    "“": "”",
    "”": "”",
    "„": "“”",
    "«": "»",
    "»": "«",
    "‹": "›",
    "›": "‹",
    "‘": "’",
    "‚": "‘’",
    "「": "」",
    "『": "』",
    "《": "》",
    "〈": "〉",
    "〝": "〟",
}
_MARK = "[" + "".join(sorted({*_CLOSES, *"".join(_CLOSES.values())})) + "]"
_BESIDE_LETTERS = "\"'＂”’»›"  # these open or close, by the letters beside them
_SINGLE = "'’‘‚"  # one that belongs to no other is an apostrophe
_SPACED_LETTER = rf"[^\W{_CJK}]"  # of a script with spaces: a mark between two of them is within a word
_PARAGRAPH_END = r"\n[ \t]*\n|\Z"
# Where a sentence ends, as a place in the text: `text.sentences` returns only its parts. A mark may close behind it.
_SENTENCE_END = r"[.!?](?=[\"'”’»)\]]*\s)|[。！？]|\n"
_CODE_SPAN = r"`[^`\n]{1,200}`"
# What stands between an introduction and its text; right after a verb of saying also other signs than a colon.
_COLON = r"(?P<plain>:(?=\s|$|[\"“„«»「『‘'*_`])|：)|:(?=[^\W\d_])|[;→…]|\.\.\.|[=-]>|(?<=\s)(?:[–—]|--?)(?=\s)|\n\s*"


class Span(Struct, frozen=True):
    """A quotation with its marks: where it begins and ends, and where its words do."""

    start: int
    end: int
    opens: int
    closes: int

    def words_in(self, text: str) -> int:
        return count_words(text[self.opens : self.closes])


def count_words(text: str) -> int:
    """Count the words of a text; two characters of Chinese, Japanese or Korean are about one."""
    return len(compiled(_WORD).findall(text))


def quotations(text: str) -> list[Span]:
    """Find what stands in quotation marks of any script, in order and without overlaps.

    Marks of the same kind nest. A quotation that is not closed runs to the last mark that closes something, else to the
    end of its paragraph; a mark that closes nothing ends the quotation before it, or the paragraph so far.
    """
    if compiled(_MARK).search(text) is None:
        return []
    text = _without_code(text)
    marks = [mark.start() for mark in compiled(_MARK).finditer(text)]
    spans: list[Span] = []
    never_closed: dict[str, int] = {}  # by closing mark: up to where none is to be found
    number = 0
    while number < len(marks):
        at = marks[number]
        number += 1
        sign = text[at]
        can_open, can_close = _directions(text, at)
        if can_open and sign in _CLOSES:
            if span := _opened_at(text, marks, number, never_closed):
                spans.append(span)
                number = bisect_left(marks, span.end, number)
        elif can_close and not text[at - 1 : at].isdigit():  # 24" is a size
            _extend(text, spans, at)
    return spans


def _opened_at(text: str, marks: Sequence[int], number: int, never_closed: dict[str, int]) -> Span | None:
    """Return the quotation that the mark before mark `number` opens; None for an apostrophe."""
    at = marks[number - 1]
    sign = text[at]
    closing = _CLOSES[sign]
    limit = paragraph_end(text, at) if sign == "'" else len(text)
    closed = -1 if never_closed.get(closing, 0) > at else _closed_at(text, marks, number, closing, limit)
    if closed >= 0:
        return Span(at, closed + 1, at + 1, closed)
    never_closed[closing] = limit
    if sign in _SINGLE:  # 'tis
        return None
    stop = paragraph_end(text, at)
    return Span(at, stop, at + 1, stop)


def quoted_prose(text: str) -> list[Span]:
    """Find what stands in quotation marks, and prose that is marked as code."""
    code = [found.span() for found in compiled(_CODE_SPAN).finditer(text) if _is_prose(found[0])] if "`" in text else []
    return [*quotations(text), *(Span(start, end, start + 1, end - 1) for start, end in code)]


def _without_code(text: str) -> str:
    """The text with the same places, and without the marks in its code."""
    return compiled(_CODE_SPAN).sub(lambda code: f"`{'x' * (len(code[0]) - 2)}`", text) if "`" in text else text


def _closed_at(text: str, marks: Sequence[int], number: int, closing: str, limit: int) -> int:
    """Where a quotation that was opened before mark `number` is closed; -1 if it is not."""
    depth, last = 1, -1
    for at in marks[number:]:
        if at >= limit:
            break
        can_open, can_close = _directions(text, at)
        if text[at] in closing and can_close:
            depth, last = depth - 1, at
            if not depth:
                break
        elif can_open and _CLOSES.get(text[at]) == closing:
            depth += 1
    return last


def _directions(text: str, at: int) -> tuple[bool, bool]:
    """Say whether the mark there can open and close a quotation."""
    sign, before, after = text[at], text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    if sign not in _BESIDE_LETTERS:
        return sign in _CLOSES, sign not in _CLOSES or sign in "“‘«‹"
    after_letter = compiled(_SPACED_LETTER).match(before) is not None
    before_letter = compiled(_SPACED_LETTER).match(after) is not None
    can_open = not after_letter and after.strip() != "" and sign != "’"
    can_close = not before_letter and (before.strip() != "" or sign in "»›")
    # "Alert"s: no word has such a mark within it, other than an apostrophe.
    return can_open, can_close or (after_letter and before_letter and sign not in _SINGLE)


def _extend(text: str, spans: list[Span], at: int) -> None:
    """Let the last quotation of the paragraph, or all of the paragraph so far, end at a mark that closes nothing."""
    paragraph = max(text.rfind("\n\n", 0, at), 0)
    is_single = text[at] in _SINGLE
    if spans and spans[-1].start >= paragraph and (not is_single or text[spans[-1].start] in _SINGLE):
        last = spans.pop()
        spans.append(Span(last.start, at + 1, last.opens, at))
    elif not is_single:  # such a one is an apostrophe: the users' data
        spans.append(Span(paragraph, at + 1, paragraph, at))


def masked(sentence: str) -> str:
    """The sentence as its speaker's own: with an x for the words in quotation marks, and for prose marked as code.

    Names of one word stay, because rules look at them.
    """
    return _replaced(sentence, NAME_WORDS, "x")


def elided(sentence: str) -> str:
    """The sentence without what may be a statement of others: so many words in quotation marks, prose as code."""
    return _replaced(sentence, CLAUSE_WORDS, ELISION)


def _replaced(sentence: str, least_words: int, sign: str) -> str:
    for span in reversed(quotations(sentence)):
        if span.words_in(sentence) >= least_words:
            sentence = f"{sentence[: span.opens]}{sign}{sentence[span.closes :]}"
    if "`" not in sentence:
        return sentence
    return compiled(_CODE_SPAN).sub(lambda code: f"`{sign}`" if _is_prose(code[0]) else code[0], sentence)


def _is_prose(code: str) -> bool:
    """Say whether a text that is marked as code is made of words: no command, path or name."""
    words = code.strip("`").split()
    plain = sum(word.strip(".,;:!?\"'").isalpha() for word in words)
    return len(words) >= PROSE_WORDS and plain >= PROSE_SHARE * len(words)


# ---- introductions ----

# Verbs of saying as they are used of others: no first person, no order, no noun ("reports:" is a heading).
_SAYS = {
    "en": "says said states stated tells told writes wrote reads claimed warns warned advises advised recommends "
    "recommended suggests suggested announces announced explains explained mentions mentioned shows "
    "showed displayed printed logged returned replies replied answered responds responded posted quoted asks "
    "asked demanded instructs instructed insists insisted commented reported complains complained declares "
    "declared reminds reminded emailed sends sent texted",
    "de": "sagt sagte sagten schreibt schrieb schrieben steht stand meint meinte behauptet "
    "behauptete erklärt erklärte empfiehlt empfahl warnt warnte meldet meldete antwortet antwortete erzählt "
    "erzählte besagt verlangt fordert verkündet gesagt geschrieben gemeint geantwortet gemeldet mitgeteilt "
    "schickt schickte geschickt",
    "fr": "dit disait disent écrit écrivent indique indiquent affirme déclare explique expliquent précise recommande "
    "recommandent prévient répond répondu annonce annonçait affiche conseille rapporte raconte signale demande "
    "envoie envoyé",
    "es": "dice decía dijo dicen dijeron pone escribe escribió escribieron escrito indica afirma afirmó explica "
    "explicó recomienda recomiendan advierte responde respondió contestó anuncia anunció muestra comenta "
    "comentó avisa avisó señala contó informa informó reza mandó envió",
    "pt": "diz disse dizia dizem disseram escreve escreveu escreveram indica indicou afirma afirmou explica explicou "
    "recomenda recomendam avisa avisou responde respondeu anuncia anunciou mostra comenta comentou informa "
    "informou contou consta mandou enviou",
    "it": "dice diceva disse detto dicono scrive scritto scrivono scriveva indica afferma spiega consiglia avverte "
    "risponde risposto annuncia mostra comunica riporta recita raccomanda segnala mandato inviato",
    "nl": "zegt zei zeiden zeggen schrijft schreef schrijven staat stond meldt meldde beweert waarschuwt adviseert "
    "antwoordt antwoordde vertelt vertelde toont geschreven",
    "sv da nb": "säger sade sa skriver skrev står stod siger sagde sier meddelar svarar svarade svarede svarte hävdar",
    "fi": "sanoo sanoi sanovat kirjoittaa kirjoitti lukee väittää vastasi kertoo kertoi",
    "pl": "mówi mówił mówiła powiedział powiedziała pisze napisał napisała napisano twierdzi informuje ostrzega "
    "zaleca odpowiedział odpowiedziała podaje głosi",
    "cs": "říká řekl řekla píše napsal napsala napsáno uvádí tvrdí odpověděl odpověděla",
    "ru": "говорит говорят говорится сказал сказала сказали сказано пишет пишут написал написала написали написано "
    "сообщает утверждает предупреждает рекомендует отвечает ответил ответила гласит указано",
    "uk": "каже кажуть сказав сказала пише пишуть написав написала написано повідомляє зазначено стверджує відповів",
    "tr": "diyor dedi dediler yazıyor yazdı yazılı söylüyor söyledi belirtiyor",
    "el": "λέει είπε γράφει έγραψε αναφέρει",
    "hu": "mondja mondta írja írta szerint",
    "ro": "spune spunea spus scrie scris afirmă",
    "id": "mengatakan berkata bilang menulis tertulis menyatakan",
    "vi": "nói viết ghi",
    "ar": "يقول تقول قال قالت كتب كتبت يذكر تذكر ذكر تنص",
    "he": "אומר אומרת אמר אמרה כתב כתבה כתוב",
    "hi": "कहता कहती कहा कहते लिखा",
}
# Scripts without spaces, or with endings: found anywhere in the clause.
_SAYS_WITHIN = (
    "言って|言った|言う|言い|言われ|書いて|書いた|書かれ|書き|述べ|曰く|とある|記載|記されて|表示され|説明して|说|說|写道|寫道|写着|寫著|表示|指出|显示|顯示|回复"
    "|回覆|告诉|告訴|提到|말했|말한|말합|말하|적혀|쓰여|써 있|적었|썼|답했|บอก|กล่าว|เขียน"
)
_ACCORDING = (
    "according to|as per|per the|laut|gemäß|selon|d['’]après|según|conforme|de acordo com|de acuerdo con"
    "|segundo (?:as?|os?)|secondo (?:il|la|lo|gli|le|l['’])|volgens|enligt|ifølge|według|zgodnie z|согласно|по словам"
    "|згідно|podle|göre|menurut|theo"
)
_ACCORDING_WITHIN = "によると|によれば|根据|根據|据|따르면"
# Of more than one word. What many say needs its subject, because the plain form alone is an order.
_SAYING_PHRASES = (
    r"\b(?:(?:is|was|it's|it’s) written|(?:heißt|hieß) es"
    r"|(?:they|people|users|customers|folks|docs|documents|guidelines|instructions|logs|notes|rules|terms|manuals|pages)"
    r" (?:all |also |clearly |only )?(?:say|write|state|warn|recommend|read|show|tell|claim|suggest))\b"
)
_SOURCES = (
    r"\b(?:pages?|websites?|site|wiki|docs?|documentation|readme|article|e-?mails?|message|tickets?|issue|comment|thread"
    r"|logs?|output|trace(?:back)?|manual|guide|transcript|post|blog|reply|response|chat|letter|contract|changelog|forum"
    r"|bot|slack|support|vendor|(?:web)?seite|doku|dokumentation|handbuch|anleitung|nachricht|artikel|ausgabe|zettel"
    r"|documentation|manuel|courriel|réponse|sitio|página|correo|mensaje|manual|documento|documentação|mensagem"
    r"|pagina|sito|messaggio|manuale|documentazione|handleiding|bericht|sida|strona"
    r"|страниц\w*|письм\w*|документаци\w*)\b"
)
_RECEIVED = (
    r"\b(?:here(?:'s|’s| is| are)|hier (?:ist|sind|kommt)|voici|voilà|aquí (?:está|va)|aqui (?:está|vai)|ecco|вот)\b"
    r"|\b(?:got|get|received|found|copied|pasted|read|saw|quoting|bekommen|gefunden|gelesen|kopiert|reçu|trouvé|lu"
    r"|copié|recibí|encontré|leí|copié|recebi|encontrei|li|copiei|ricevuto|trovato|letto)\b[^:]{0,40}"
    r"\b(?:from|on|in|at|aus|von|vom|auf|im|dans|sur|du|de|del|en|no|na|da|dal|dalla|nel|nella|sul)\b"
    r"|^\W*(?:from|aus|von|vom|du|de l[ae]|del?|d[ao]|dal(?:la)?|uit|из|från|fra)\b"
)
# A text of others by its name: "Quote", "I quote"; "reply from support"; "their answer was".
_LABELS = (
    r"(?:quot(?:e|ation)|verbatim|zitat|zitiere|citation|cite|cita|cito|citação|citazione|citaat|citeer|citat|citerar"
    r"|cytat|cytuję|цитата|цитирую|引用|引文)\W*$|\b(?:excerpt|auszug|extrait|extracto|trecho|estratto)\b"
)
_TEXTS = (
    r"(?:reply|answer|comment|message|e-?mail|mail|response|thread|letter|feedback|announcement|statement|post|antwort"
    r"|kommentar|nachricht|brief|rückmeldung|mitteilung|aussage|réponse|commentaire|courriel|lettre|annonce|respuesta"
    r"|comentario|mensaje|correo|carta|resposta|comentário|mensagem|risposta|commento|messaggio|antwoord|bericht|svar"
    r"|odpowiedź|wiadomość|ответ|комментарий|сообщение|письмо)"
)
_TEXT_OF_OTHERS = (
    rf"\b{_TEXTS} (?:\w+ )?(?:from|by|vom|von|aus|du|de|des|del|da|do|dal|dalla|van|från|fra|od|от)\b"
    rf"|\b(?:their|his|her|\w+['’]s|ihre|seine|deren|leur|sa|su|sua|hun|их|его) (?:\w+ )?{_TEXTS}\b"
    rf"|\b{_TEXTS} (?:was|war|lautete|était|era|fue|foi|luidde|var)\s*$"
    r"|(?:^|\s)@[\w.-]+\s*$"
)
# The user speaks: "I told you already:", "wie gesagt:", "that said:".
_BY_USER = (
    r"(?:\b(?:i|we|ich|wir|je|nous(?= avons)|yo|nosotros|eu|nós"
    r"|io|noi|ik|wij|jag|jeg|vi|я|мы|ми|ben|biz)|\b(?:i|we)['’]ve"
    r"|\bj['’]ai|\bho|\babbiamo|\bhe|\bhemos|我|我们|我們|私|私たち|僕|俺|제가|내가|저는|나는)"
    r"(?:[ ]?(?:have|had|did|do|already|just|also|always|only|again|clearly|before|never|really|habe|haben|hab|hatte|es"
    r"|dir|euch|ja|doch|schon|bereits|immer|nur|nie|ai|avons|l['’]ai|te|vous|déjà|toujours|bien|le|lo|ya|já|già|уже|всегда"
    r"|已经|は|が|も|heb|hebben|al|har|redan|allerede))*[ ]?$"
)
_ASIDE = (
    r"\b(?:that|this|having|simply|frankly|kurz|anders|ehrlich|besser|genau|offen|autrement"
    r"|as|like|wie|comme|como|come|zoals|som|jak|как)"
    r"(?: (?:being|already|before|schon|bereits|déjà|ya|já|già|oben|eben|gerade|уже))* $"
)
_NO_PERSON = (
    r"\b(?:the|an?|this|that|these|those|it|its?|their|his|her|he|she|they|there|here|you|what|which|who|as|if|when|and"
    r"|but|please|der|die|das|den|dem|ein|eine|es|er|sie|da|dort|hier|im|in|auf|was|l[ae]s?|un|une|ce|cette|il|elle|on"
    r"|dans|ça|el|los|una|en|ahí|aquí|o|os|uma|no|na|lo|gli|nel|nella|het|een|op|на|в|det|den)\b|\b[ld]['’]"
)


@cache
def _words_of_saying() -> frozenset[str]:
    return frozenset(word for words in _SAYS.values() for word in words.split())


@cache
def _according() -> str:
    return rf"(?:^|[\s,(])(?:{_ACCORDING})[ ]?(?!(?:me|moi|mir|mim|mí)\b)\w|(?:{_ACCORDING_WITHIN})"


def introduces(head: str) -> bool:
    """Say whether a clause before a colon introduces words of others: "The page says", "Laut Handbuch"."""
    said = head[-MAX_HEAD_CHARS:].lower()
    if any(compiled(way).search(said) for way in (_according(), _LABELS, _TEXT_OF_OTHERS)):
        return True
    if compiled(_SOURCES).search(said) and compiled(_RECEIVED).search(said):
        return True
    return next(_verbs_of_others(said), None) is not None


def _verbs_of_others(said: str) -> Iterator[tuple[int, int]]:
    """Find the verbs of saying whose subject is not the user."""
    for start, end in _verbs(said):
        before, after = said[:start], said[end:]
        is_aside = compiled(_ASIDE).search(before) is not None and not after.strip()
        by_user = compiled(_BY_USER).search(before) or compiled(r" (?:i|we|ich|wir|je|nous)\b").match(after)
        if before.strip(" ,;-*_") and not is_aside and not by_user and not after.startswith(" up"):
            yield start, end


def _verbs(said: str) -> Iterator[tuple[int, int]]:
    """Find the verbs of saying. A set of words is looked up: one pattern of them all is slow."""
    words = _words_of_saying()
    yield from (word.span() for word in compiled(r"[\w'’-]+").finditer(said) if word[0] in words)
    yield from (found.span() for found in compiled(_SAYING_PHRASES).finditer(said))
    if not said.isascii():
        yield from (found.span() for found in compiled(_SAYS_WITHIN).finditer(said))


def names_reporter(head: str) -> bool:
    """Say whether the clause names a person who said something to the user: "Mara says", "Jonas from ops told me"."""
    said = head.lower().strip(" *_-")
    verb = next(_verbs_of_others(said), None)
    if verb is None or compiled(_SOURCES).search(said):
        return False
    subject = said[: verb[0]]
    return 0 < count_words(subject) <= MAX_REPORTER_WORDS and compiled(_NO_PERSON).search(subject) is None


class Introduction(Struct, frozen=True):
    """A clause that introduces words of others, where it begins, and where those words begin."""

    start: int
    end: int


def introductions(text: str) -> Iterator[Introduction]:
    """Find the clauses that end with a colon or a dash and introduce words of others in the same line."""
    for colon in compiled(_COLON).finditer(_without_code(text)):
        start = _clause_start(text, colon.start())
        head = text[start : colon.start()]
        if (colon["plain"] and introduces(head)) or _ends_with_verb(head):
            yield Introduction(start, colon.end())


def _ends_with_verb(head: str) -> bool:
    """Say whether a verb of saying ends a clause: "the bot replied -", but not "it shows 3 - 4"."""
    said = head[-MAX_HEAD_CHARS:].lower().rstrip()
    return any(end == len(said) for _, end in _verbs_of_others(said))


def introduces_at_end(line: str) -> bool:
    """Say whether a line ends with a colon and introduces the lines below it: "Die Seite sagt:", "Review comment:"."""
    clause = line.rstrip(" \t*_")
    if not clause.endswith((":", "：")):
        return False
    head = clause[_clause_start(clause, len(clause) - 1) : -1]
    return introduces(head) or compiled(rf"\b{_TEXTS}$").search(head.lower().rstrip()) is not None


def is_introduced(text: str, span: Span) -> bool:
    """Say whether somebody else is said to have said a quotation, or a colon stands before it and nothing after it."""
    start = _clause_start(text, span.start)
    head = text[start : span.start].rstrip(" \t*_")
    if head.endswith((":", "：")):
        rest = compiled(_SENTENCE_END).split(text[span.end : span.end + MAX_HEAD_CHARS], maxsplit=1)[0]
        return not count_words(rest) or introduces(head[:-1])
    said = head[-MAX_HEAD_CHARS:].lower()
    return any(count_words(said[end:]) < CLAUSE_WORDS for _, end in _verbs_of_others(said))


def _clause_start(text: str, at: int) -> int:
    start = max(0, at - MAX_HEAD_CHARS)
    ends = [end.end() for end in compiled(_SENTENCE_END).finditer(text, start, at)]
    return ends[-1] if ends else start


def paragraph_end(text: str, at: int) -> int:
    """Where the paragraph around that place ends."""
    end = compiled(_PARAGRAPH_END).search(text, at)
    return end.start() if end else len(text)


def sentence_end(text: str, at: int) -> int:
    """Where the sentence or line around that place ends."""
    end = compiled(_SENTENCE_END).search(text, at)
    return end.end() if end else len(text)


def goes_on(text: str, span: Span) -> bool:
    """Say whether a sentence or line ends in a quotation, and the quotation or the sentence around it goes on."""
    inner = text[span.opens : span.closes]
    end = compiled(_SENTENCE_END).search(inner)
    if end is not None and inner[end.end() :].strip():
        return True
    if span.words_in(text) < NAME_WORDS or inner.rstrip()[-1:] not in ".!?。！？":
        return False
    return count_words(text[span.end : span.end + MAX_HEAD_CHARS].split("\n", 1)[0]) > 0
