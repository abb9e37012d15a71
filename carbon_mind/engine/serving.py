"""The real llama-server in a process of its own: a binary of the user's, or the prebuilt wheel `xllamacpp`, for which nothing is compiled.

    python -m carbon_mind.engine.serving '{"model": "...", "n_ctx": 4096, ...}'

The process prints one line of JSON (where it listens) once it answers, and ends when its standard input does: so it
never outlives whoever started it, however that ended. A crash takes nobody along.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from carbon_mind.engine.base import FlashAttention, KvType
from carbon_mind.errors import EngineProblem, NoEngine
from carbon_mind.machine import usable_cores

INSTALL_HINT = "install it with `pip install 'carbon-mind[server]'` (prebuilt, nothing is compiled)"
START_S = 300.0
"""Seconds that a model may take to load."""
_ROOM = 4 << 30
_LINES = 40  # of the server's talk that are kept for an error


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the server is started with. Zero means: let llama.cpp decide."""

    model: str
    slots: str  # folder of slot files; private
    n_ctx: int = 0  # tokens of each slot
    n_slots: int = 1
    n_batch: int = 512
    threads: int = 0
    gpu_layers: int = -1
    type_k: KvType = "f16"
    type_v: KvType = "f16"
    flash_attention: FlashAttention = "auto"
    extra_buffers: bool = True
    binary: str = ""  # a llama-server; "": the prebuilt one


class Started(msgspec.Struct, frozen=True):
    """The line that the process prints."""

    url: str


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers."""

    url: str
    engine: str  # what it is, and its version
    build: str  # hash of its code
    slots: Path | None  # folder of its slot files; None: it is not ours to see
    context: dict[str, str]  # settings that decide what a state holds
    process: subprocess.Popen[bytes] | None = None  # None: somebody else's


@dataclass(frozen=True, slots=True)
class Source:
    """Where a llama-server comes from."""

    engine: str  # name and version
    build: str  # hash of its code
    binary: str  # path; "" for the prebuilt one


def find(binary: str | None, *, prebuilt: bool = False) -> Source:
    """The server that the user named, else the first `llama-server` on PATH, else the prebuilt one. Raises NoEngine.

    With `prebuilt`, PATH is not looked at.
    """
    if (binary or not prebuilt) and (chosen := shutil.which(binary or "llama-server")):
        found = Path(chosen).resolve()
        return Source(f"llama-server {found}", _hash_of((found, *_neighbours(found))), str(found))
    if binary:
        raise NoEngine(f"there is no llama-server {binary}", hint="correct the setting llama_server, or leave it out")
    version, library = installed()
    return Source(f"xllamacpp {version}", library_hash(library), "")


def _neighbours(binary: Path) -> list[Path]:
    """The libraries that a build of llama.cpp puts beside its binaries, or into lib/."""
    folders = binary.parent, binary.parent.parent / "lib"
    return sorted(
        path.resolve()
        for folder in folders
        for path in folder.glob("lib*")
        if re.match(r"lib(ggml|llama|mtmd)", path.name)
    )


@functools.cache
def _hash_of(files: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def installed() -> tuple[str, Path]:
    """Version and library of the prebuilt server, without importing it. Raises NoEngine."""
    found = importlib.util.find_spec("xllamacpp")
    folder = Path(found.origin).parent if found is not None and found.origin else None
    libraries = sorted(folder.glob("xllamacpp*.so") if folder else ()) or sorted(folder.glob("*.pyd") if folder else ())
    if not libraries:
        raise NoEngine("no server engine is installed: xllamacpp is missing", hint=INSTALL_HINT)
    return importlib.metadata.version("xllamacpp"), libraries[0]


@functools.cache
def library_hash(library: Path) -> str:
    """SHA-256 of the server's library."""
    return hashlib.sha256(library.read_bytes()).hexdigest()


@contextlib.contextmanager
def running(settings: dict[str, Any], *, prebuilt: bool = False) -> Iterator[Running]:
    """A server of our own while the context lasts; `settings` are those of `Settings`, without the folder of slots.

    Which one, and what `prebuilt` means, is told at `find`.

    Raises NoEngine when the wheel is not installed, and EngineProblem when the server does not come up.
    """
    source = find(settings.get("binary") or None, prebuilt=prebuilt)
    with tempfile.TemporaryDirectory(prefix="carbon-slots-", dir=_fast_place()) as slots:
        chosen = msgspec.convert({**settings, "slots": slots, "binary": source.binary}, Settings)
        wanted = msgspec.json.encode(chosen)
        process = subprocess.Popen(
            [sys.executable, "-m", "carbon_mind.engine.serving", wanted.decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # The package that is running, wherever it was imported from.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "GGML_NO_BACKTRACE": "1"},
        )
        talk: list[str] = []
        pipes = [cast("IO[bytes]", pipe) for pipe in (process.stdin, process.stdout, process.stderr)]
        listener = threading.Thread(target=_listen, args=(pipes[2], talk), daemon=True)
        listener.start()
        try:
            line = _first_line(process, pipes[1])
            if not line:
                raise _failed(process, listener, talk)
            url = msgspec.json.decode(line, type=Started).url
            yield Running(url, source.engine, source.build, Path(slots), _deciding(chosen), process)
        finally:
            pipes[0].close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
            listener.join(5)
            pipes[1].close()
            pipes[2].close()


def _fast_place() -> str | None:
    """Slot files live for a moment: in memory where there is a place for that and room for some of them, else where temporary files are."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder that is made there is private
    if not (memory.is_dir() and os.access(memory, os.W_OK)) or shutil.disk_usage(memory).free < _ROOM:
        return None
    return str(memory)


def _deciding(settings: Settings) -> dict[str, str]:
    names = ("type_k", "type_v", "flash_attention", "gpu_layers", "extra_buffers")
    return {name: str(getattr(settings, name)) for name in names}


def _first_line(process: subprocess.Popen[bytes], pipe: IO[bytes]) -> bytes:
    """What the process says when it answers; nothing when it ends or takes too long."""
    timer = threading.Timer(START_S, process.kill)
    timer.start()
    try:
        return pipe.readline()
    finally:
        timer.cancel()


def _failed(process: subprocess.Popen[bytes], listener: threading.Thread, talk: list[str]) -> EngineProblem:
    status = process.wait()
    listener.join(5)
    told = talk[-1] if talk else "it said nothing"
    return EngineProblem(
        f"llama-server did not start (exit status {status}): {told}",
        hint="run `carbon doctor`, or try a smaller context",
    )


def _listen(pipe: IO[bytes], talk: list[str]) -> None:
    """The last lines of what the server says, for an error; nobody waits on a full pipe."""
    with contextlib.suppress(ValueError, OSError):
        for line in pipe:
            talk.append(line.decode("utf-8", "replace").rstrip())
            del talk[:-_LINES]


# --- in the process -----------------------------------------------------------------------------------------------


def _serve(settings: Settings) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings.model
    params.n_ctx = settings.n_ctx * settings.n_slots
    params.n_parallel = settings.n_slots
    params.n_batch = params.n_ubatch = settings.n_batch
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads or usable_cores()
    params.n_gpu_layers = settings.gpu_layers
    params.cache_type_k = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{settings.type_k.upper()}")
    params.cache_type_v = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{settings.type_v.upper()}")
    flash = {"auto": "AUTO", "on": "ENABLED", "off": "DISABLED"}[settings.flash_attention]
    params.flash_attn_type = getattr(xllamacpp.llama_flash_attn_type, f"LLAMA_FLASH_ATTN_TYPE_{flash}")
    params.no_extra_bufts = not settings.extra_buffers
    params.cache_ram_mib = 0  # a prompt cache of its own takes gigabytes, and our snapshots do its work
    params.slot_save_path = settings.slots + os.sep
    params.endpoint_slots = params.endpoint_props = params.endpoint_metrics = True
    params.use_jinja = True
    # One decode: a build that this CPU cannot run dies here, and is started again without the extra buffers.
    params.warmup = True
    params.port = 0
    server = xllamacpp.Server(params)
    line = msgspec.json.encode(Started(server.listening_address))
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
    sys.stdin.buffer.read()
    os._exit(0)  # the server's own threads have no end


def _serve_binary(settings: Settings) -> None:
    """Run the user's llama-server until our input ends; it dies with us where the system can see to that."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [settings.binary, *_flags(settings), "--host", "127.0.0.1", "--port", str(port)],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - this process has one thread
    )
    threading.Thread(target=_end_with_input, args=(process,), daemon=True).start()
    while process.poll() is None and not _healthy(url):
        time.sleep(0.05)
    if process.returncode is None:
        sys.stdout.buffer.write(msgspec.json.encode(Started(url)) + b"\n")
        sys.stdout.buffer.flush()
    os._exit(process.wait() & 0xFF)  # a thread that waits for our input has no end


def _end_with_input(process: subprocess.Popen[bytes]) -> None:
    sys.stdin.buffer.read()
    process.kill()


def _die_with_parent() -> None:
    import ctypes
    import signal

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _healthy(url: str) -> bool:
    import httpx

    try:
        return httpx.get(f"{url}/health", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def _flags(settings: Settings) -> list[str]:
    """Its command line, as `llama-server --help` has it."""
    threads = str(settings.threads or usable_cores())
    given = {
        "--model": settings.model,
        "--ctx-size": str(settings.n_ctx * settings.n_slots),
        "--parallel": str(settings.n_slots),
        "--batch-size": str(settings.n_batch),
        "--ubatch-size": str(settings.n_batch),
        "--threads": threads,
        "--threads-batch": threads,
        "--cache-type-k": settings.type_k,
        "--cache-type-v": settings.type_v,
        "--flash-attn": settings.flash_attention,
        "--slot-save-path": settings.slots + os.sep,
        "--cache-ram": "0",
    }
    if settings.gpu_layers >= 0:
        given["--n-gpu-layers"] = str(settings.gpu_layers)
    return [*(word for pair in given.items() for word in pair), "--slots", "--props", "--metrics", "--jinja"]


if __name__ == "__main__":
    chosen = msgspec.json.decode(sys.argv[1], type=Settings)
    if chosen.binary:
        _serve_binary(chosen)
    else:
        _serve(chosen)
