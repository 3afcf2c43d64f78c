"""Random structures, drawn season by season.

CuPy compiles a kernel for each op on each kind of operand, which takes far longer than to run it a hundred times. So
what may come in a season is bounded: a few dtypes and ufuncs, and only so many phrases on operands of certain kinds.
They are tried out on the CPU device, which refuses what CuPy does, and compiles none of it.
"""

from __future__ import annotations

import random
import re
from contextlib import suppress
from typing import Any

from gpu_backend.devices import open_device
from gpu_backend.opstream.surface import Ufunc, load
from tests.conformance.in_process import mirrored, notebook_on
from tests.fuzz.given import DTYPES, FIXED, GIVEN
from tests.fuzz.phrases import CUTS, PHRASES, USUAL, WORDS
from tests.fuzz.recording import Recorder
from tests.fuzz.structure import Run, Structure, quiet

__all__ = ["Season"]

Words = dict[str, tuple[str, ...]]
#: Phrases on operands of certain kinds, by what comes out, and whether they are usual.
Known = dict[tuple[str | None, bool], dict[tuple[str, object], None]]

#: With which shape it is tried out whether a statement does anything.
_TRIED = (7, 5)
_SHAPES = [
    (7, 5), (5, 7), (1, 9), (2, 1), (33, 31), (100, 41), (64, 64), (3, 300), (257, 16), (1, 1), (300, 129), (0, 4),
    (1200, 37), (4, 4), (16, 2), (300, 300),
]  # fmt: skip
_CLASSES = {(7, 5): "nm", (5,): "m", (7,): "n", (7, 7): "nn", (): ""}
#: How likely each class of results is; and with how many phrases that are not usual.
_LIKELY: dict[str | None, int] = {"nm": 18, None: 15, "m": 5, "n": 5, "nn": 2, "": 5, "?": 5}
#: With how many usual ones each comes that has any.
_MOST_USUAL = 25
_PAIRS = ("modf", "frexp")
#: How much of what gives arrays of all rows and columns, and of what writes into one, is usual.
_USUAL = 0.65
#: How often what was made is taken on, rather than what was uploaded.
_TAKEN_ON = 0.6
#: How many structures are drawn until the phrases of a season are there.
_STRUCTURES_FOR_PHRASES = 40
_MOST_TEMPORARIES = 8
_TRIES = 40
_PLACE = re.compile(r"\{(\w+)\}")


class Season:
    """What structures are drawn from.

    Parameters
    ----------
    phrases
        Seed of the dtypes, ufuncs and phrases that may come: who has the same finds compiled what others came to.
    seed
        Of the structures.
    """

    def __init__(self, phrases: int, seed: int) -> None:
        self._random = random.Random(phrases)
        self._device = open_device("cpu")
        self._known: Known = {}
        ufuncs = {name: one for name, one in load().items() if isinstance(one, Ufunc)}
        names = {
            count: sorted(
                name.removeprefix("cupy.") for name, one in ufuncs.items()
                if name.startswith("cupy.") and (one.nin, one.nout) == (count, 1)
            )
            for count in (1, 2)
        }  # fmt: skip
        self._words = {
            **WORDS,
            "one": tuple(self._random.sample(names[1], 7)),
            "two": tuple(self._random.sample(names[2], 5)),
            "pair": _PAIRS,
            "small": ("1", "-2", "3"),
            "plain": ("0.5", "-1.25", "j"),
        }
        self._dtypes = self._random.sample(DTYPES, 3)
        self._words["dt"] = tuple(f"'{char}'" for char in self._dtypes)
        for _ in range(_STRUCTURES_FOR_PHRASES):
            self._structure()
        self._random = random.Random(seed)

    def structure(self) -> Structure:
        """Return the next structure."""
        while not (drawn := self._structure()).statements:
            pass
        return drawn

    def _structure(self) -> Structure:
        learns = self._random.random() < 0.7
        repeats = self._random.randint(4, 7) if learns else self._random.randint(18, 22)
        structure = Structure(
            seed=self._random.getrandbits(40),
            dtypes={name: self._random.choice(self._dtypes) for name in GIVEN if name not in FIXED},
            statements=[],
            shapes=[_TRIED],
            repeats=repeats,
            refreshed=sorted(self._random.sample(range(1, repeats), 2)),
            read=sorted(self._random.sample(range(repeats), 2)),
            learns=learns,
        )
        structure.dtypes["q"] = self._random.choice("fdFD")
        with quiet(), notebook_on(self._device, Recorder(self._device)), mirrored("off"):
            _Draft(structure, self._random, self._words, self._known).write()
        structure.shapes = self._random.sample(_SHAPES, 3)
        return structure


class _Draft:
    """A structure in the making: each statement is tried at once."""

    def __init__(self, structure: Structure, drawn: random.Random, words: Words, known: Known) -> None:
        self._structure, self._random, self._words, self._known = structure, drawn, words, known
        structure.statements = [" ".join((*GIVEN, "raw scaled doubled squares rng cp.random"))]  # so that all is there
        self._run = Run(structure)
        structure.statements = []
        self._scope = self._run.scope
        #: What the statement that is drawn writes into.
        self._into = ""
        self._classes = {name: _CLASSES.get(eval(shape, {"n": 7, "m": 5}), "?") for name, shape in GIVEN.items()}
        self._classes.update(k="mask", l="mask", i="places")

    def write(self) -> None:
        """Write the statements."""
        self._scope.update(zip("nmj", (*_TRIED, 0), strict=True))
        structure = self._structure
        structure.statements = [*GIVEN]
        self._run.refresh(*_TRIED, 0)
        structure.statements = []
        for _ in range(self._random.randint(2, 30)):
            made = self._random.choices([*_LIKELY], [*_LIKELY.values()])[0]
            is_usual = made in USUAL and self._random.random() < _USUAL
            any(self._add(made, is_usual) for _ in range(_TRIES))
        self._scope.clear()

    def _add(self, made: str | None, is_usual: bool) -> bool:
        known = self._known.setdefault((made, is_usual), {})
        operands: list[str] = []
        is_full = len(known) >= (_MOST_USUAL if is_usual else _LIKELY[made])
        phrases = [phrase for phrase, _ in known] if is_full else (USUAL if is_usual else PHRASES)[made]
        phrase = self._random.choice(phrases)
        cuts = self._random.sample(self._random.choice(CUTS), 2)
        try:
            self._into = ""
            written = _PLACE.sub(lambda place: self._filled(place[1], cuts, operands), phrase)
            kind = phrase, tuple(map(self._kind, operands))
        except Exception:  # an operand that is none: nothing has happened
            return False
        if is_full and kind not in known:
            return False
        target = None if made is None else self._target(made)
        statement = written if target is None else f"{target} = {written}"
        if not self._run.attempt(lambda: self._try(statement)):
            return False
        known[kind] = None
        self._structure.statements.append(statement)
        if target is not None and made is not None:
            self._classes[target] = made
        for gone in [name for name in self._classes if name not in self._scope]:
            del self._classes[gone]
        return True

    def _try(self, statement: str) -> None:
        exec(compile(statement, "<tried>", "exec"), self._scope)
        self._scope["held"][0].get()  # by now it has failed, if it has

    def _target(self, made: str) -> str:
        same = self._named(made, temporary=True)
        if same and self._random.random() < 0.35:
            return self._random.choice(same)
        free = [f"t{number}" for number in range(1, _MOST_TEMPORARIES + 1) if f"t{number}" not in self._classes]
        return self._random.choice(free or same or ["t0"])

    def _named(self, made: str, temporary: bool = False) -> list[str]:
        return [name for name, one in self._classes.items() if one == made and (name[0] == "t" or not temporary)]

    def _kind(self, operand: str) -> object:
        value: Any = eval(operand, self._scope)
        if not hasattr(value, "dtype") or isinstance(value, complex | float | int):
            return type(value)
        flags = value.flags if hasattr(value, "strides") else None
        contiguous = None
        with suppress(AttributeError):
            contiguous = flags.c_contiguous, flags.f_contiguous  # type: ignore[union-attr]
        return value.dtype.char, value.ndim, contiguous

    def _filled(self, place: str, cuts: list[str], operands: list[str]) -> str:
        if place in ("CUT", "CUT2"):
            return cuts[place == "CUT2"]
        if place in self._words and place != "num":
            return self._random.choice(self._words[place])
        operands.append(found := self._operand(place))
        return found

    def _operand(self, place: str) -> str:
        drawn = self._random.random()
        choice = self._random.choice
        if place == "num":
            return choice(self._words["num"])
        if place == "y" and drawn < 0.5:
            spread = choice(self._named("m")), f"{choice(self._named('n'))}[:, None]", choice(self._named(""))
            return choice([*spread, *self._random.sample(self._words["num"], 2)])
        if place in "kl":
            return place if drawn < 0.7 else f"~{place}"
        if place == "temporary":
            return choice([name for name in self._classes if name[0] == "t"])
        if place == "any":
            return choice(self._named("?"))
        made = {"r": "m", "w": "n"}.get(place, "nm")
        taken_on = self._named(made, temporary=True) if self._random.random() < _TAKEN_ON else []
        name = choice([one for one in taken_on or self._named(made) if place != "o" or one != self._into])
        if place == "t":
            self._into = name
        if place in "xy" and drawn > 0.85:
            return name + choice(("[::-1]", "[:, ::-1]", ".T.copy().T"))
        return name
