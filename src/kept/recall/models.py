"""Models that turn texts into vectors: the one that Kept brings along, and any sentence model in ONNX form.

Both are Embedders, as one that a host gives to `kept.open` is. An embedder may say more about itself than its name:

    unrelated    a cosine up to here is no evidence in this model; else it is measured with a dozen sentences
    is_static    a text is the mean of its words: quick, but a message means no more together with those around it
    load()       everything that takes long, before the first text

`MiniLM` is a sentence model whose weights come with the extra `vector`. `SentenceModel` runs one that the user points
to (extra `onnx`), which takes a hook too long to load. Rule: nothing is downloaded, and nothing is loaded before the
first text. The name of a model tells its files apart, because vectors of two models cannot be compared.
"""

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from msgspec import DecodeError, Struct, json

from kept import vectors
from kept.errors import SettingsError, not_installed
from kept.ports import Embedder
from kept.recall import minilm

MOST_UNRELATED = 0.95
_TYPICAL_SHARE = 1 / 3  # of the cosine that is no evidence, where an embedder tells only that
UNRELATED = (  # different things, said of one project: memories of a store have at least that in common
    "Deploys go out on Tuesdays after the smoke tests pass",
    "The API returns dates in UTC and never in local time",
    "Use pnpm and not npm for the web client",
    "The worker retries a failed job three times",
    "Passwords are hashed with argon2",
    "The staging database is reset every night",
    "Feature flags live in a table that support can edit",
    "Logs are kept for thirty days",
    "Errors are reported to Sentry with the release name",
    "The mobile app caches pictures on the device",
    "Migrations must be reversible",
    "Only Anna can approve changes to billing",
)

Rows = Any  # of numbers, one for each text


def model_named(name: str | None) -> Embedder:
    """The model of that name, or in the folder with that absolute path; None: the one of Kept. Raises SettingsError."""
    if name in (None, minilm.NAME):
        return minilm.MiniLM()
    folder = Path(str(name)).expanduser()
    if folder.is_absolute():
        return SentenceModel(folder)
    raise SettingsError(
        f"Unknown vector model {name!r}.",
        hint=f"Run `kept vectors on --model {minilm.NAME}`, or name the folder of a sentence model.",
    )


def full_name(model: str | Path) -> str:
    """The name of a model as settings have it: that of the one that Kept brings along, or an absolute path."""
    return minilm.NAME if str(model) == minilm.NAME else str(Path(model).expanduser().resolve())


def is_static(embedder: Embedder) -> bool:
    """Whether a text means to it no more than its words do one by one."""
    return bool(getattr(embedder, "is_static", False))


def is_slow(embedder: Embedder) -> bool:
    """Return True if it takes some milliseconds for a text."""
    return isinstance(embedder, SentenceModel | minilm.MiniLM)


def fits_hooks(embedder: Embedder) -> bool:
    """Return True if it is loaded in the time that a hook has."""
    return not isinstance(embedder, SentenceModel)


def load(embedder: Embedder) -> None:
    """Load what takes long, if it does. Raises SettingsError."""
    if isinstance(embedder, SentenceModel):
        embedder.load()


def check(embedder: Embedder) -> None:
    """Embed a text, to see that it works. Raises SettingsError."""
    if isinstance(embedder, minilm.MiniLM):
        embedder.check()
    load(embedder)
    embedder.embed([""])


# How near two texts are that have nothing to do with each other


def unrelated_cosine(embedder: Embedder) -> float:
    """A cosine up to here is no evidence: hardly any two texts about different things come as near in this model."""
    known = getattr(embedder, "unrelated", None)
    return float(known) if known is not None else _measured(embedder.embed)[1]


def typical_cosine(embedder: Embedder) -> float:
    """The mean cosine of two texts about different things. What is above it tells which of two memories is nearer."""
    known = getattr(embedder, "unrelated", None)
    return _TYPICAL_SHARE * float(known) if known is not None else _measured(embedder.embed)[0]


def likeness(cosine: float, unrelated: float) -> float:
    """A cosine as a share: 0 for texts that have nothing to do with each other, 1 for the same."""
    return max(0.0, (cosine - unrelated) / (1 - unrelated))


@lru_cache(maxsize=8)
def _measured(embed: Callable[[Sequence[str]], Any]) -> tuple[float, float]:
    """The same by a dozen sentences that have nothing to do with each other: the mean, and three deviations more."""
    packed = vectors.pack(embed(UNRELATED))
    found = [cosine for at, own in enumerate(packed) for cosine in vectors.cosines(own, packed[at + 1 :])]
    mean = max(0.0, fmean(found))
    return min(MOST_UNRELATED, mean), min(MOST_UNRELATED, mean + 3 * pstdev(found))


# A model that the user points to

FOLDER = "Name a folder with model.onnx (or onnx/model.onnx) and tokenizer.json: kept vectors on --model DIR."
MOST_TOKENS = 256  # of a text: what takes longer to say is said twice
_AT_ONCE = 8  # texts: more of them gain little, and padding costs
MOST_THREADS = 4  # others work on this machine as well
_TAKES = ("input_ids", "attention_mask", "token_type_ids")
_SENTENCE = ("sentence_embedding", "sentence_embeddings", "text_embeds")  # outputs, one row for each text
_TOKENS = ("last_hidden_state", "token_embeddings", "output", "hidden_states")  # outputs, one row for each token
_SAMPLES, _SAMPLE_BYTES = 64, 4_096  # of a file: training changes every part of it


class SentenceModel:
    """An Embedder that runs the model in a folder. Raises SettingsError if there is none; `load`, if it fails."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise SettingsError(f"There is no folder {folder}.", hint=FOLDER)
        inside = [folder / "model.onnx", folder / "onnx" / "model.onnx"]
        self._weights = next((file for file in inside if file.is_file()), inside[0])
        beside = [
            self._weights.with_name("tokenizer.json"),
            folder / "tokenizer.json",
            folder.parent / "tokenizer.json",
        ]
        self._tokenizer = next((file for file in beside if file.is_file()), beside[1])
        for file in (self._weights, self._tokenizer):
            if not file.is_file():
                raise SettingsError(f"There is no {file.name} in {folder}.", hint=FOLDER)
        try:
            files = [*sorted(self._weights.parent.glob("model.onnx*")), self._tokenizer]
            self.model = f"{_shown(folder)}-{_fingerprint(files)}"
        except OSError as error:
            raise _useless(folder, error) from None

    def load(self) -> None:
        """Load it, and measure how near unrelated texts are. Raises SettingsError that names what does not fit."""
        try:
            _measured(self.embed)
        except SettingsError:
            raise
        except Exception as error:  # of code that runs a user's model
            raise _useless(self._weights, error) from None

    def embed(self, texts: Sequence[str]) -> Rows:
        """One row for each text."""
        return _running(self._weights, self._tokenizer, self.model).rows(texts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SentenceModel) and other.model == self.model

    def __hash__(self) -> int:
        return hash(self.model)


class _Running(Struct, frozen=True, eq=False):
    """A loaded model: which inputs it takes, with their types, and which output is the meaning."""

    session: Any
    tokenizer: Any
    takes: dict[str, str]
    output: str
    pooling: str  # of the tokens of a text: "none", if the model does that itself, "mean" or "first"

    def rows(self, texts: Sequence[str]) -> Rows:
        np = vectors.numpy_or_error()
        # One by one: a batch starts threads, after which a program cannot safely fork.
        ids = [self.tokenizer.encode(text[: MOST_TOKENS * 16]).ids for text in texts]
        found: list[Any] = [None] * len(ids)
        by_length = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        for start in range(0, len(by_length), _AT_ONCE):
            places = by_length[start : start + _AT_ONCE]
            for at, row in zip(places, self._run([ids[at] for at in places]), strict=True):
                found[at] = row
        return np.array(found)

    def _run(self, ids: Sequence[Sequence[int]]) -> Rows:
        np = vectors.numpy_or_error()
        width = max(1, *map(len, ids))
        mask = np.array([[int(at < len(own)) for at in range(width)] for own in ids])
        given = {
            "input_ids": np.array([[*own, *[0] * (width - len(own))] for own in ids]),
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(mask),
        }
        fed = {name: given[name].astype(type) for name, type in self.takes.items()}
        (made,) = self.session.run([self.output], fed)
        made = made.astype(np.float32)
        if self.pooling == "first":
            return made[:, 0]
        if self.pooling == "mean":
            return (made * mask[:, :, None]).sum(axis=1) / np.maximum(mask.sum(axis=1), 1)[:, None]
        return made


@lru_cache(maxsize=2)
def _running(weights: Path, tokenizer: Path, model: str) -> _Running:
    """Shared by all memories that this process has opened: a model is large."""
    try:
        import onnxruntime  # an optional package (extra `onnx`)
        from tokenizers import Tokenizer  # an optional package (extra `onnx`)
    except ImportError as error:
        raise not_installed(f"A sentence model needs the package {error.name}.", "onnx") from None
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = min(MOST_THREADS, os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting threads would burn a core
    options.log_severity_level = 4  # what goes wrong is raised as well
    try:
        session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a class of its own for each way a file can be wrong
        raise _useless(weights, error) from None
    try:
        pieces = Tokenizer.from_file(str(tokenizer))
    except Exception as error:  # tokenizers raises Exception itself
        raise _useless(tokenizer, error) from None
    known = pieces.truncation or {}
    pieces.no_padding()
    pieces.enable_truncation(min(MOST_TOKENS, known.get("max_length") or MOST_TOKENS))
    takes = {one.name: one.type.removeprefix("tensor(").removesuffix(")") for one in session.get_inputs()}
    if "input_ids" not in takes or not takes.keys() <= set(_TAKES):
        raise SettingsError(
            f"{weights} takes {_listed(takes)}, and a sentence model {_listed(_TAKES)}.",
            hint="Export the model for feature extraction: optimum-cli export onnx --task feature-extraction.",
        )
    return _Running(session, pieces, takes, *_output(session, weights))


def _output(session: Any, weights: Path) -> tuple[str, str]:
    """The output with the meaning of a text, and how its tokens make one row."""
    dimensions = {one.name: len(one.shape or ()) for one in session.get_outputs()}
    whole = [name for name in _SENTENCE if dimensions.get(name) == 2]
    if whole:
        return whole[0], "none"
    by_token = [name for name in (*_TOKENS, *dimensions) if dimensions.get(name) == 3]
    if not by_token:
        raise SettingsError(
            f"{weights} returns {_listed(dimensions)}, and no vectors of words or sentences.",
            hint="Export the model for feature extraction: optimum-cli export onnx --task feature-extraction.",
        )
    return by_token[0], _pooling(weights)


def _pooling(weights: Path) -> str:
    """As the file says that sentence-transformers puts beside a model; without it the mean."""
    for folder in (weights.parent, weights.parent.parent):
        try:
            told = json.decode((folder / "1_Pooling" / "config.json").read_bytes(), type=dict[str, Any])
        except (OSError, DecodeError):
            continue
        return "first" if told.get("pooling_mode_cls_token") is True else "mean"
    return "mean"


def _shown(folder: Path) -> str:
    name = folder.resolve().name
    return "".join(letter for letter in name if letter.isprintable())[:60] or "model"


def _fingerprint(files: Sequence[Path]) -> str:
    """Tells models apart by their sizes and by samples of their bytes: reading all of them would take too long."""
    digest = sha256()
    for file in files:
        size = file.stat().st_size
        digest.update(f"{file.name} {size} ".encode())
        with file.open("rb") as stream:
            for sample in range(_SAMPLES):
                stream.seek(max(0, size - _SAMPLE_BYTES) * sample // (_SAMPLES - 1))
                digest.update(stream.read(_SAMPLE_BYTES))
    return digest.hexdigest()[:8]


def _useless(file: Path, error: Exception) -> SettingsError:
    said = " ".join(str(error).split())[:200].rstrip(".")
    return SettingsError(f"{file} cannot be used: {said or type(error).__name__}.", hint=FOLDER)


def _listed(names: "Sequence[str] | dict[str, Any]") -> str:
    return ", ".join(names) or "nothing"
