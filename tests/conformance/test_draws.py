"""Random numbers drawn by methods of a state or a generator: as by functions, without a wait, and in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpu_backend.executor.surface_names import SurfaceNames
from gpu_backend.opstream.draws import GENERATOR, STATE, is_draw, most_operands
from gpu_backend.opstream.surface import load
from kernelproxy.calls import repeats
from kernelproxy.client import current
from tests.conformance.in_process import InProcess, cost, trips

_OF_STATE: dict[str, tuple[Any, ...]] = {
    "beta": (2.0, 3.0, 50), "exponential": (2.0, 50), "gamma": (2.0, 1.0, 50), "laplace": (0.0, 1.0, 50),
    "normal": (1.0, 2.0, 50), "poisson": (3.0, 50), "rand": (5, 10), "randint": (0, 9, 50), "randn": (50,),
    "random_sample": (50,), "standard_normal": (50,), "standard_exponential": (50,), "uniform": (-1.0, 1.0, 50),
}  # fmt: skip
_OF_GENERATOR: dict[str, tuple[Any, ...]] = {
    "random": (50,), "standard_normal": (50,), "uniform": (0.0, 2.0, 50), "integers": (0, 9, 50),
    "exponential": (1.0, 50), "gamma": (2.0, 1.0, 50),
}  # fmt: skip
#: Parameters of all that is called a draw.
_PARAMETERS: dict[str, tuple[Any, ...]] = {
    "beta": (2.0, 3.0), "binomial": (10, 0.5), "chisquare": (3.0,), "exponential": (1.0,), "f": (2.0, 3.0),
    "gamma": (2.0,), "geometric": (0.5,), "gumbel": (), "hypergeometric": (5, 5, 3), "integers": (0, 9),
    "laplace": (), "logistic": (), "lognormal": (), "logseries": (0.5,), "negative_binomial": (5, 0.5),
    "noncentral_chisquare": (3.0, 1.0), "noncentral_f": (3.0, 3.0, 1.0), "normal": (), "pareto": (2.0,),
    "poisson": (3.0,), "power": (2.0,), "randint": (0, 9), "random": (), "random_sample": (), "rayleigh": (1.0,),
    "standard_cauchy": (), "standard_exponential": (), "standard_gamma": (2.0,), "standard_normal": (),
    "standard_t": (3.0,), "tomaxint": (), "triangular": (0.0, 1.0, 2.0), "uniform": (), "vonmises": (0.0, 1.0),
    "wald": (1.0, 1.0), "weibull": (2.0,), "zipf": (2.0,), "dirichlet": (np.ones(3),),
}  # fmt: skip
DRAWS = [name for name in load() if is_draw(name)]


def state(cp: Callable[[str], Any], seed: int) -> Any:
    return cp("random.RandomState")(seed)


def generator(cp: Callable[[str], Any], seed: int) -> Any:
    return cp("random.default_rng")(seed)


@pytest.mark.parametrize(
    ("make_one", "name", "given"),
    [
        *((state, name, given) for name, given in _OF_STATE.items()),
        *((generator, name, given) for name, given in _OF_GENERATOR.items()),
    ],
)
def test_a_draw_waits_for_nothing_and_goes_on_where_the_last_one_ended(
    cp: Callable[[str], Any], make_one: Callable[..., Any], name: str, given: tuple[Any, ...]
) -> None:
    one, other, drawn = make_one(cp, 7), make_one(cp, 7), []
    assert cost(lambda: drawn.extend(getattr(one, name)(*given) for _ in range(4))) == 0
    again = [getattr(other, name)(*given) for _ in range(4)]
    for first, second in zip(drawn, again, strict=True):
        np.testing.assert_array_equal(first.get(), second.get())
    assert len({one.get().tobytes() for one in drawn}) == len(drawn)


def test_what_is_drawn_is_what_functions_draw_of_the_same_seed(cp: Callable[[str], Any]) -> None:
    cp("random.seed")(11)
    one = state(cp, 11)
    for name in ("standard_normal", "random_sample", "standard_exponential"):
        np.testing.assert_array_equal(getattr(one, name)(9).get(), cp(f"random.{name}")(9).get())


def test_each_state_draws_its_own(cp: Callable[[str], Any]) -> None:
    alone = [state(cp, seed).normal(0.0, 1.0, 5).get() for seed in (1, 2)]
    states = [state(cp, seed) for seed in (1, 2)]
    for _ in range(3):  # calls that are found again, of another state each time
        found = [one.normal(0.0, 1.0, 5) for one in states]
    states = [state(cp, seed) for seed in (1, 2)]
    found = [one.normal(0.0, 1.0, 5) for one in states]
    for first, second in zip(found, alone, strict=True):
        np.testing.assert_array_equal(first.get(), second)


def test_keywords_and_refusals_are_as_ever(cp: Callable[[str], Any]) -> None:
    one = state(cp, 3)
    assert one.normal(loc=2.0, size=(2, 3), dtype="f4").dtype == np.float32
    assert one.normal(cp("zeros")(4), 1.0).shape == (4,)
    with pytest.raises(TypeError):
        one.standard_normal(3, dtype="i4").get()
    with pytest.raises(TypeError):
        one.normal(nothing=3)
    assert float(one.uniform()) < 1.0


def test_what_is_known_stays_known_beside_draws(cp: Callable[[str], Any]) -> None:
    x, one = cp("asarray")(np.arange(5.0)), state(cp, 3)
    assert float(x[2]) == 2.0

    def draw() -> None:
        cp("random.rand")(20_000)
        one.standard_normal(20_000)
        assert float(x[3]) == 3.0

    assert cost(draw) == 0


def test_into_an_array_is_no_draw_that_is_recorded(cp: Callable[[str], Any]) -> None:
    x, one = cp("asarray")(np.arange(5.0)), generator(cp, 3)
    assert float(x[2]) == 2.0
    try:
        drawn = one.random(5, np.float64, x)
    except (NotImplementedError, TypeError) as error:
        pytest.skip(f"not on this device: {error}")
    np.testing.assert_array_equal(drawn.get(), x.get())
    assert float(x[2]) != 2.0


@pytest.mark.parametrize("owner", [STATE, GENERATOR])
def test_other_objects_are_refused(executor: InProcess, owner: str) -> None:
    draw = SurfaceNames(executor.device).resolve(f"{owner}.standard_normal")
    array = executor.device.resolve("cupy.zeros")(3)  # type: ignore[operator]
    for other in (array, 3, None):
        with pytest.raises(TypeError, match="takes a"):
            draw(other, 3)


def test_what_is_called_a_draw_has_no_place_for_its_result(cp: Callable[[str], Any]) -> None:
    described = load()
    assert {name.rpartition(".")[0] for name in DRAWS} == {"cupy.random", STATE, GENERATOR}
    assert not is_draw("cupy.random.shuffle")
    assert not is_draw(f"{STATE}.seed")
    for name in DRAWS:
        signature = described[described.canonical(name)].signature  # type: ignore[union-attr]
        places = [one.partition("=")[0].strip() for one in signature.strip("()").split(",")]
        before = places.index("out") + 1 if "out" in places else 8  # the object, and all that stands before it
        assert most_operands(name) <= before, name


def test_the_method_of_another_class_is_refused_at_its_line(cp: Callable[[str], Any]) -> None:
    kind, other = cp("random.RandomState"), generator(cp, 3)
    for _ in range(2):
        with pytest.raises(AttributeError, match="normal"):
            kind.normal(other, 0.0, 1.0, 3)
    assert kind.normal(state(cp, 3), 0.0, 1.0, 4).shape == (4,)


def test_only_cupys_own_classes_are_known_by_their_class(cp: Callable[[str], Any]) -> None:
    mine = type("Mine", (cp("random.RandomState"),), {})
    one, other = mine(5), state(cp, 5)
    for _ in range(3):
        np.testing.assert_array_equal(one.standard_normal(6).get(), other.standard_normal(6).get())
    assert mine not in repeats.GENERATORS
    assert cp("random.RandomState") in repeats.GENERATORS


def test_small_draws_cost_nothing_of_what_is_computed_here(cp: Callable[[str], Any]) -> None:
    x, one, worth = cp("asarray")(np.arange(5.0)), state(cp, 3), current().pipeline.mirror.worth
    assert float(cp("sin")(cp("arange")(100.0))[0]) == 0.0  # behind a trip something may be computed here
    budget = worth.budget
    for _ in range(70):
        cp("random.rand")(4)
        one.standard_normal(4)
    assert budget > 0
    assert worth.budget == budget
    assert float((x + 1)[2]) == 3.0


@pytest.mark.parametrize("name", DRAWS)
def test_what_is_drawn_is_each_time_another_array(executor: InProcess, name: str) -> None:
    resolve: Any = SurfaceNames(executor.device).resolve
    owner, _, last = name.rpartition(".")
    own = {STATE: lambda: (resolve(STATE)(3),), GENERATOR: lambda: (resolve("cupy.random.default_rng")(3),)}
    objects = own.get(owner, tuple)()
    given = [executor.device.upload(one) if isinstance(one, np.ndarray) else one for one in _PARAMETERS.get(last, ())]
    sized = {} if last in ("rand", "randn") else {"size": 8}
    given = given or ([] if sized else [8])
    try:
        results = [resolve(name)(*objects, *given, **sized) for _ in range(2)]
    except (NotImplementedError, AttributeError) as error:
        pytest.skip(f"not on this device: {error}")
    arrays = [one for one in (*given, *results) if executor.device.is_array(one)]
    for place, one in enumerate(arrays):
        assert all(executor.device.shares_base(one, other) is None for other in arrays[:place])
    assert all(executor.device.owns_memory(one) for one in results)


@pytest.mark.parametrize("make_one", [state, generator])
def test_what_is_drawn_lies_in_new_memory(
    cp: Callable[[str], Any], executor: InProcess, make_one: Callable[..., Any]
) -> None:
    drawn = make_one(cp, 3).standard_normal(1_000)
    trips()
    assert drawn._ref.handle in executor.stream.heap.ownership.alone
