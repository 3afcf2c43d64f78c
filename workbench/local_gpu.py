"""Whether this machine itself has a GPU that CuPy can use.

Asked in another process: a broken driver may end it, and here ``cupy`` may be the remote one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass

#: Imports the real CuPy and has it compute; prints one line of JSON.
_PROBE = """
import json
try:
    import cupy
    with cupy.cuda.Device(0) as device:
        assert int(cupy.arange(3).sum()) == 3
        name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(json.dumps({"name": name, "library": f"CuPy {cupy.__version__}"}))
except ImportError:
    print(json.dumps({"missing": True}))
except Exception as error:  # whatever a broken driver raises
    found = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
    try:
        runtime = cupy.cuda.runtime
        found |= {"driver": runtime.driverGetVersion(), "runtime": runtime.runtimeGetVersion()}
    except Exception:  # and again: then the versions are not known
        pass
    print(json.dumps(found))
"""
_SECONDS = 60.0


@dataclass(frozen=True)
class LocalGpu:
    """The first GPU of this machine; without one ``reason`` and ``remedy`` say why not."""

    name: str = ""
    library: str = ""
    reason: str = ""
    remedy: str = ""
    #: Whether there is a driver, and CuPy needs a later one.
    is_outdated: bool = False


def probe() -> LocalGpu:
    """Try the GPU of this machine. Takes about a second where there is CuPy."""
    try:
        tried = subprocess.run(
            [sys.executable, "-c", _PROBE], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        answer = json.loads(tried.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return LocalGpu(reason=f"CuPy did not answer within {_SECONDS:.0f} s", remedy="Look at `nvidia-smi`.")
    except (ValueError, IndexError):  # the interpreter died before it could print
        return LocalGpu(reason=f"CuPy ended its process with status {tried.returncode}", remedy="Look at `nvidia-smi`.")
    if "name" in answer:
        return LocalGpu(answer["name"], answer["library"])
    if "missing" in answer:
        return LocalGpu(
            reason="CuPy is not installed in this environment",
            remedy="Only a machine that offers its own GPU needs it: `pip install 'gpu-workbench[cuda13]'`.",
        )
    return _unusable(answer["error"], answer.get("driver", 0), answer.get("runtime", 0))


def _unusable(error: str, driver: int, runtime: int) -> LocalGpu:
    """Say why CuPy can use no GPU. ``driver`` and ``runtime`` are versions of CUDA as CUDA counts, 12040 for 12.4."""
    if not 0 < driver // 1000 < runtime // 1000:  # a driver serves all of its own major version, and what is before it
        return LocalGpu(reason=f"CuPy cannot use one ({error})", remedy="A pool's GPU is not affected.")
    return LocalGpu(
        reason=f"the driver is too old: it serves CUDA {_words(driver)}, and CuPy here is for CUDA {_words(runtime)}",
        remedy="Install a newer NVIDIA driver, or the CuPy for this one: `pip install "
        f"'gpu-workbench[cuda{driver // 1000}]'`.",
        is_outdated=True,
    )


def _words(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
