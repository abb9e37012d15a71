"""The commands: each parses its flags, calls the pipeline, and says what came of it.

Exit codes: 0 done, 1 unexpected, 2 usage or settings, 3 repository, 4 model, 5 engine, 6 storage, 130 interrupted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from carbon_mind import __version__
from carbon_mind.cli import console

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Local coding agents that start knowing the repository and answer at once.\n\n"
    "  carbon mind            distil this repository into a digest\n\n"
    "  carbon warm            prefill the digest once; later starts restore it\n\n"
    '  carbon ask "..."       ask from the warmed prefix\n\n'
    "stdout is data, stderr is talk. Exit codes: 0 done, 1 unexpected, 2 usage or settings, 3 repository, 4 model, "
    "5 engine, 6 storage, 130 interrupted.",
)
models_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="GGUF models: list, pull, path.")
app.add_typer(models_app, name="models")

Where = Annotated[
    Path, typer.Argument(help="The repository, or a directory in it.", show_default="the current directory")
]
Model = Annotated[str | None, typer.Option("--model", "-m", help="Registry name or path of a GGUF file.")]
Budget = Annotated[int | None, typer.Option("--budget", help="Tokens that the digest may have (100 to 2000).")]
Context = Annotated[int | None, typer.Option("--ctx", help="Context in tokens; 0: the model's own, at most 8192.")]
Threads = Annotated[int | None, typer.Option("--threads", help="Threads; 0: all cores.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]


def _version(value: bool) -> None:
    if value:
        from carbon_mind.repo.pagerank import ranker_name

        console.data(f"carbon {__version__} (ranker: {ranker_name()})\n")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Version, and the ranker in use.")
    ] = False,
) -> None:
    """Options before the command."""


def _settings(where: Path | None, **flags: Any) -> Any:
    from carbon_mind import settings

    root = None
    if where is not None:
        from carbon_mind.repo.scan import find_root

        root = find_root(where)[0]
    return settings.load(root, flags)


def _json(value: Any) -> None:
    import msgspec

    console.data(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


@app.command(
    epilog="Example: carbon mind --print   |   carbon mind ~/src/flask --json   |   carbon mind --write-agents"
)
def mind(
    where: Where = Path(),
    show: Annotated[bool, typer.Option("--print", help="Print the digest as Markdown.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the digest as JSON.")] = False,
    budget: Budget = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Count tokens with this model's tokenizer instead of the bound.")
    ] = None,
    write_agents: Annotated[
        bool, typer.Option("--write-agents", help="Put the digest into the managed block of AGENTS.md.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Rebuild, and parse every file again.")] = False,
) -> None:
    """Distil the repository into a digest in .carbon/mind/ (mind.json, mind.md); nothing is parsed when nothing changed."""
    from carbon_mind import pipeline
    from carbon_mind.errors import UsageProblem

    if show and json:
        raise UsageProblem(
            "--print and --json exclude each other", hint="mind.json and mind.md are both in .carbon/mind/"
        )
    settings = _settings(where, budget=budget, model=model)
    talk = console.Talk()
    counting = None
    if model is not None:
        opened = pipeline.open_engine(settings, talk)
        counting = pipeline.model_counting(opened)
    found = pipeline.build(where, settings, talk, counting=counting, full=full)
    state = "built" if found.built else "current"
    line = f"mind: {state} ({found.files:,} files, {found.parsed:,} parsed, {found.seconds:.2f} s)"
    if show or json:
        console.step(line)
        console.data(found.json.decode() if json else found.markdown)
    else:
        console.data(line + "\n")
    if write_agents:
        from carbon_mind.digest.agents import write_block

        console.step(f"AGENTS.md: {write_block(found.root, found.markdown)}")


@app.command(epilog="Example: carbon warm   |   carbon warm ~/src/flask --model smollm2-135m --json")
def warm(
    where: Where = Path(),
    model: Model = None,
    budget: Budget = None,
    ctx: Context = None,
    threads: Threads = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Prefill and store again, whatever is stored.")] = False,
    json: Json = False,
) -> None:
    """Prefill the prefix (system message with the digest) once and store its KV state; later runs restore and prove it."""
    from carbon_mind import pipeline

    settings = _settings(where, model=model, budget=budget, n_ctx=ctx, threads=threads)
    talk = console.Talk()
    try:
        warmed = pipeline.warm(where, settings, talk, fresh=fresh)
    finally:
        talk.close()
    result = warmed.result
    if json:
        _json(result)
        return
    clocks = result.clocks
    if result.state == "restored":
        console.data(
            f"warm: restored {result.restored:,} tokens, evaluated {result.evaluated} "
            f"(read {clocks.read_s * 1000:.1f} ms, restore {clocks.restore_s * 1000:.1f} ms, 0 bytes written)\n"
        )
    else:
        console.step(f"not restored: {result.reason}")
        console.data(
            f"warm: prefilled {result.evaluated:,} tokens in {clocks.prefill_s:.2f} s, "
            f"stored {result.bytes_written:,} bytes in {clocks.save_s * 1000:.1f} ms\n"
        )


@app.command(
    epilog='Example: carbon ask "How do I run one test?"   |   carbon ask "Where does it start?" --max-tokens 64'
)
def ask(
    question: Annotated[str, typer.Argument(help="What to ask about the repository.", show_default=False)],
    where: Annotated[
        Path, typer.Option("--repo", "-C", help="The repository.", show_default="the current directory")
    ] = Path(),
    model: Model = None,
    budget: Budget = None,
    ctx: Context = None,
    threads: Threads = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Longest answer.")] = 256,
    json: Json = False,
) -> None:
    """Answer from the warmed prefix, streaming (greedy, so the same question gives the same answer)."""
    from carbon_mind import pipeline
    from carbon_mind.errors import UsageProblem

    if not question.strip():
        raise UsageProblem("the question is empty", hint='try: carbon ask "How do I run the tests?"')
    settings = _settings(where, model=model, budget=budget, n_ctx=ctx, threads=threads)
    talk = console.Talk()
    try:
        warmed = pipeline.warm(where, settings, talk)
    finally:
        talk.close()
    answer, pieces = pipeline.ask(warmed, question.strip(), max_tokens)
    for piece in pieces:
        if not json:
            console.data(piece)
    result = warmed.result
    ready_s = result.clocks.read_s + result.clocks.restore_s + result.clocks.prefill_s
    if json:
        counts = {name: getattr(answer, name) for name in ("reused", "evaluated", "generated", "ttft_s", "seconds")}
        _json({"answer": answer.text, "prefix": result, **counts})
    else:
        console.data("\n")
    console.step(
        f"prefix: {result.state} {result.tokens:,} tokens in {ready_s:.3f} s; TTFT {ready_s + answer.ttft_s:.3f} s "
        f"(engine opened in {warmed.opened.seconds:.2f} s); prompt tokens evaluated {answer.evaluated + result.evaluated}, "
        f"reused {answer.reused if result.state == 'restored' else 0}; {answer.generated} generated"
    )


@app.command(epilog="Example: carbon doctor   |   carbon doctor --probe --model smollm2-135m")
def doctor(
    model: Model = None,
    probe: Annotated[
        bool, typer.Option("--probe", help="Run the engine probe now, also when a verdict is cached.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what carbon runs on: versions, CPU, engine and its probe verdict, model, cache folder and its size."""
    from carbon_mind.cli import health

    report = health.examine(_settings(None, model=model), probe=probe)
    if json:
        _json(report)
    else:
        console.data(health.render(report))


@app.command(name="settings", epilog="Example: carbon settings --json")
def show_settings(where: Where = Path(), json: Json = False) -> None:
    """Show every setting with its value here, and how to change it."""
    import msgspec

    from carbon_mind import settings as reference

    values = msgspec.to_builtins(_settings(where))
    if json:
        _json(values)
        return
    rows = [
        (name, f"CARBON_{name.upper()}", "unset" if value is None else str(value)) for name, value in values.items()
    ]
    console.data(console.table(("setting", "environment", "value"), rows))
    console.step(
        f"user file: {reference.user_file()}; repository file: {reference.REPOSITORY_FILE} (budget and model only)"
    )


@models_app.command(name="list", epilog="Example: carbon models list --json")
def models_list(json: Json = False) -> None:
    """Models of the registry, and which of them are here."""
    from carbon_mind.models import load_registry, pulled

    settings = _settings(None)
    entries = load_registry()
    if json:
        _json(
            {
                name: {"entry": entry, "path": str(pulled(entry, settings.models) or "")}
                for name, entry in entries.items()
            }
        )
        return
    rows = [
        (
            name,
            f"{entry.size / 1e6:,.0f} MB" if entry.size else "?",
            f"{entry.context:,}",
            entry.licence,
            "yes" if pulled(entry, settings.models) else "no",
            entry.title,
        )
        for name, entry in entries.items()
    ]
    console.data(console.table(("name", "size", "context", "licence", "pulled", "title"), rows))


@models_app.command(name="pull", epilog="Example: carbon models pull smollm2-135m")
def models_pull(
    name: Annotated[str, typer.Argument(help="A name that `carbon models list` shows.")], json: Json = False
) -> None:
    """Download a model: resumed after an interruption, verified, never half there under its final name."""
    from carbon_mind.errors import NoModel
    from carbon_mind.models import load_registry, pull

    settings = _settings(None)
    entries = load_registry()
    if name not in entries:
        raise NoModel(f"there is no model named {name!r} in the registry", hint=f"known: {', '.join(entries)}")
    talk = console.Talk()
    bars: dict[str, Any] = {}

    def progress(label: str, done: int, total: int) -> None:
        if label not in bars:
            bars[label] = talk.progress(label)
        bars[label](done, total)

    try:
        path = pull(entries[name], settings.models, progress=progress)
    finally:
        talk.close()
    if json:
        _json({"name": name, "path": str(path)})
    else:
        console.data(f"{path}\n")


@models_app.command(name="path", epilog="Example: carbon models path smollm2-135m")
def models_path(
    name: Annotated[
        str | None, typer.Argument(help="A registry name or a path; without it, the default model.")
    ] = None,
) -> None:
    """Print the file that a model name means."""
    from carbon_mind import pipeline

    console.data(f"{pipeline.model_path(_settings(None, model=name))}\n")
