"""What the tests of the notebook's and the terminal's side share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.transport import curve
from kernelproxy import settings
from kernelproxy.session import lease, waiting
from kernelproxy.settings import CONFIG_VARIABLE, ClientSettings
from tests.unit.workbench.scripted_gateway import ScriptedGateway

#: How long a farewell waits for its answer here, seconds: it is heard, however late the gateway's thread is.
_PATIENT_SECONDS = 90.0


@pytest.fixture
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedGateway]:
    """A scripted gateway that this process's settings point to, with a key that it admits."""
    served = ScriptedGateway()
    own = curve.generate()
    curve.save(own, tmp_path / "client.key")
    served.allowed.replace([own.public])
    for module, name in ((lease, "FAREWELL_SECONDS"), (waiting, "_FAREWELL_SECONDS")):
        monkeypatch.setattr(module, name, _PATIENT_SECONDS)
    config = tmp_path / "client.toml"
    monkeypatch.setenv(CONFIG_VARIABLE, str(config))
    settings.save(
        ClientSettings(gateway=served.endpoint, server_key=served.keys.public.decode(), key_file=Path("client.key")),
        config,
    )
    yield served
    served.close()
