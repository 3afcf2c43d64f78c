"""Contents that are kept: what the notebook takes for kept is kept, whatever came between."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend.opstream.contents import LEAST_BYTES, KeptContents, KnownContents, digest_of
from gpu_backend.wire.errors import ProtocolError

ALL = [bytes([number]) * (LEAST_BYTES * (1 + number % 3)) for number in range(8)]
DIGESTS = [digest_of(content) for content in ALL]
MOST = 5 * LEAST_BYTES


def kept(*contents: bytes, most: int = MOST) -> KeptContents:
    made = KeptContents(most)
    for content in contents:
        made.keep(digest_of(content), content, ())
    return made


def test_what_is_kept_is_given_back() -> None:
    both = kept(ALL[0], ALL[1])
    assert [both.get(digest) for digest in DIGESTS[:2]] == ALL[:2]
    assert both.bytes == len(ALL[0]) + len(ALL[1])


def test_kept_again_it_counts_once() -> None:
    again = kept(ALL[1], ALL[1], ALL[1], ALL[1])
    assert again.bytes == len(ALL[1])
    again.clear()
    assert again.bytes == 0
    with pytest.raises(ProtocolError):
        again.get(DIGESTS[1])


def test_what_was_not_kept_is_told() -> None:
    with pytest.raises(ProtocolError, match=r"nothing was written\. Run the cell again"):
        kept().get(DIGESTS[0])


def test_contents_under_anothers_name_are_never_given() -> None:
    wrong = KeptContents(MOST)
    wrong.keep(DIGESTS[0], ALL[1], None)
    for message in ("not those by whose digest", "does not keep"):  # and gone afterwards
        with pytest.raises(ProtocolError, match=message):
            wrong.get(DIGESTS[0])
    assert wrong.bytes == 0


def test_no_more_is_kept_than_may_be() -> None:
    full = kept(ALL[1], ALL[2])
    with pytest.raises(ProtocolError, match="do not fit"):
        full.keep(DIGESTS[0], ALL[0], ())
    assert full.bytes == MOST
    full.keep(DIGESTS[0], ALL[0], (DIGESTS[1],))
    assert full.bytes == len(ALL[0]) + len(ALL[2])
    full.keep(DIGESTS[3], ALL[3], None)
    assert full.bytes == len(ALL[3])


@pytest.mark.parametrize(("digest", "content"), [(b"short", ALL[0]), (DIGESTS[0] * 9, ALL[0]), (DIGESTS[0], b"little")])
def test_their_number_is_bounded_as_well(digest: bytes, content: bytes) -> None:
    with pytest.raises(ProtocolError, match="not kept"):
        kept().keep(digest, content, None)


def test_what_was_not_used_for_longest_goes_first() -> None:
    known = KnownContents()
    for number in (1, 0, 3):
        with known.keeping(DIGESTS[number], len(ALL[number]), MOST) as gone:
            assert not gone
    assert known.use(DIGESTS[1])
    with known.keeping(DIGESTS[4], len(ALL[4]), MOST) as gone:
        assert gone == [DIGESTS[0]]
    assert [known.use(digest) for digest in DIGESTS[:5]] == [False, True, False, True, True]


def test_what_is_raised_while_it_is_recorded_has_all_forgotten() -> None:
    known = KnownContents()
    with known.keeping(DIGESTS[0], len(ALL[0]), MOST):
        pass
    with pytest.raises(KeyboardInterrupt), known.keeping(DIGESTS[1], len(ALL[1]), MOST):
        raise KeyboardInterrupt
    assert not known.use(DIGESTS[0])
    with known.keeping(DIGESTS[0], len(ALL[0]), MOST) as gone:
        assert gone is None


def test_what_is_forgotten_while_it_is_recorded_stays_forgotten() -> None:
    known = KnownContents()
    with known.keeping(DIGESTS[0], len(ALL[0]), MOST):
        known.forget()  # as a thread does that hears of a failure
    assert not known.use(DIGESTS[0])


Step = tuple[str, int]
STEPS = st.lists(st.tuples(st.sampled_from(["upload", "upload", "upload", "run", "cancel", "lose"]), st.integers(0, 7)))


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_both_sides_agree_whatever_comes(steps: list[Step]) -> None:
    """Ops wait, and run in order, a few at a time; what waits may be dropped; the executor may begin with nothing."""
    known, there = KnownContents(), KeptContents(MOST)
    waiting: list[tuple[int, Sequence[bytes] | None, bool]] = []

    def run(count: int) -> None:
        for number, gone, is_kept in waiting[:count]:
            if is_kept:
                assert there.get(DIGESTS[number]) == ALL[number]
            else:
                there.keep(DIGESTS[number], ALL[number], gone)
            assert there.bytes <= MOST
        del waiting[:count]

    for what, number in steps:
        if what == "upload":
            if known.use(DIGESTS[number]):
                waiting.append((number, (), True))
            else:
                with known.keeping(DIGESTS[number], len(ALL[number]), MOST) as gone:
                    waiting.append((number, gone, False))
            assert known.bytes <= MOST
        elif what == "run":
            run(number)
        else:
            known.forget()
            waiting.clear()
            if what == "lose":
                there = KeptContents(MOST)
    run(len(waiting))
