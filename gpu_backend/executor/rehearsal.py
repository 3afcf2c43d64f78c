"""The last question asked again where nobody hears it, so that the way to its answer stays in the processor's caches.

After a few milliseconds in which nothing comes, all that a question runs through has left them, be the process awake or
asleep, and its answer takes several times as long as at once; see decision 76 for figures. Who has nothing to do can
go that way now and then meanwhile: `loop` says when.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gpu_backend.executor.answer import Answer
from gpu_backend.executor.conversation import Conversation, QueuedBatch
from gpu_backend.executor.outbox import Message
from gpu_backend.executor.verbs import SAME
from gpu_backend.wire.codec import encode
from gpu_backend.wire.messages import Batch, Hello, Op, Want, Welcome
from gpu_backend.wire.values import Buffer

__all__ = ["Rehearsal"]

_CONTENTS: Final = Want.CONTENTS
_SESSION: Final = "rehearsal"
_PEER: Final = b"nobody"
_MOST_OPS: Final = 4
_MOST_BYTES: Final = 1 << 16
#: A complex number has so many bytes, and a record may have any number of them.
_MOST_NUMBER_BYTES: Final = 16


class Rehearsal:
    """Asks what the notebook asked last, in a conversation of its own.

    Only a read can be asked again, which changes nothing; one of a single number, for that is what is read often and in
    a hurry, and it takes no memory; one that had waited for all before it; and only as long as it was the last op: so
    what it reads is there, nothing is in flight, and nothing can have failed since.

    Parameters
    ----------
    run
        Runs the op of a batch; see `OpStream.rehearse`.
    """

    def __init__(self, run: Callable[[QueuedBatch], tuple[int, Answer | None]]) -> None:
        self._run = run
        self._op: Op | None = None
        self._asked = 0
        self._talk = Conversation(Welcome(0, 0, _MOST_OPS, _MOST_BYTES, 0, {}), _SESSION)
        self._talk.receive(_PEER, encode(Hello(_SESSION, 0, _SESSION, 1, 0)))
        self._talk.outbox.send(_unheard)
        #: Whether one is under way.
        self.is_on = False

    @property
    def has_question(self) -> bool:
        """Whether there is anything to ask again."""
        return self._op is not None

    def note(self, op: Op, answer: Answer | None) -> None:
        """Note that ``op`` was the last to run, and what it had to say."""
        is_read = op.name == SAME and op.want is _CONTENTS and not op.stream
        self._op = op if is_read and answer is not None and _is_number(answer) else None

    def forget(self) -> None:
        """Ask nothing again until the next read."""
        self._op = None

    def hold(self) -> None:
        """Ask once more, and encode the answer; what fails is not asked again."""
        op, talk, answer = self._op, self._talk, None
        if op is None:
            return
        self._asked += 1
        question = Op(SAME, 0, op.args, None, _CONTENTS, op.kwargs)
        self.is_on = True
        try:
            talk.receive(_PEER, encode(Batch(self._asked, self._asked - 1, (question,))))
            if (batch := talk.front()) is not None:
                place, answer = self._run(batch)
                talk.advance(batch, place)
            if answer is None or answer.error is not None:
                self._op = None
            else:
                talk.answer(answer)
        finally:
            self.is_on = False
            talk.outbox.send(_unheard)


def _is_number(answer: Answer) -> bool:
    """Tell whether an answer is one number, and the device had nothing left to do when it was made."""
    value = answer.value
    if not isinstance(value, Buffer) or value.frame >= 0 or value.shape != ():
        return False
    return len(value.data) <= _MOST_NUMBER_BYTES and answer.is_synchronized


def _unheard(peer: bytes, message: Message) -> bool:
    return True
