"""Large uploads are sent from the user's memory; what the journal holds of them when the user has it back is ours."""

from __future__ import annotations

from gpu_backend.transport.interrupts import heard_at_end
from kernelproxy.stream.pipeline import Pipeline

#: How long others may keep the connection before it is looked whether it was closed, seconds.
_TURN_SECONDS = 0.005


@heard_at_end
def own(pipeline: Pipeline) -> None:
    """Have nothing that ``pipeline`` may still send lie in the user's memory. An interrupt is heard when that is so."""
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
