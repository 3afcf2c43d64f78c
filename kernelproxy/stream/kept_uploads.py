"""Large uploads are sent from the user's memory; what the journal holds of them when the user has it back is ours."""

from __future__ import annotations

from kernelproxy.stream.pipeline import Pipeline

#: How long others may keep the connection before it is looked whether it was closed, seconds.
_TURN_SECONDS = 0.005


def own(pipeline: Pipeline) -> None:
    """Have nothing that ``pipeline`` may still send lie in the user's memory. An interrupt is heard when that is so."""
    interrupt = None
    while True:
        try:
            _own(pipeline)
            break
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        try:
            raise interrupt
        finally:
            del interrupt  # its traceback holds this frame


def _own(pipeline: Pipeline) -> None:
    with pipeline.recording:
        pipeline.open_batch.own()
    pipeline.journal.own()
    while not pipeline.connection.is_closed:  # one that is closed sends nothing, and its successor what is ours
        if pipeline.reading.acquire(timeout=_TURN_SECONDS):
            try:
                pipeline.connection.own()
                break
            finally:
                pipeline.reading.release()
