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
    print(json.dumps({"error": f"{type(error).__name__}: {error}".splitlines()[0]}))
"""
_SECONDS = 60.0


@dataclass(frozen=True)
class LocalGpu:
    """The first GPU of this machine; without one ``reason`` and ``remedy`` say why not."""

    name: str = ""
    library: str = ""
    reason: str = ""
    remedy: str = ""


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
    return LocalGpu(reason=f"CuPy cannot use one ({answer['error']})", remedy="A pool's GPU is not affected.")
