"""The commands: each parses its flags, calls the pipeline, and says what came of it.

Exit codes: 0 done, 1 unexpected, 2 usage or settings, 3 repository, 4 model, 5 engine, 6 storage, 130 interrupted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from carbon_mind import __version__
from carbon_mind.cli import console
from carbon_mind.cli.common import place_and_settings, print_json, settings_only

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Local coding agents that start knowing the repository and answer at once.\n\n"
    "  carbon mind            distil this repository into a digest\n\n"
    "  carbon hook install    keep the digest current after every commit, switch and merge\n\n"
    "  carbon warm            prefill the digest once; later starts restore it\n\n"
    '  carbon ask "..."       ask from the warmed prefix\n\n'
    "  carbon serve           stand before llama-server: an agent's head is restored, not evaluated\n\n"
    "  carbon why             why the last start was a hit or a miss\n\n"
    "stdout is data, stderr is talk. Exit codes: 0 done, 1 unexpected, 2 usage or settings, 3 repository, 4 model, "
    "5 engine, 6 storage, 130 interrupted.",
)
models_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="GGUF models: list, pull, path.")
app.add_typer(models_app, name="models")
hook_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="git hooks that refresh the digest in the background."
)
app.add_typer(hook_app, name="hook")

bench_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Benchmarks on a repository of yours; raw numbers with --json."
)
app.add_typer(bench_app, name="bench")

store_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The stored states: list, verify, gc, purge.")
app.add_typer(store_app, name="store")

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


class _WithDefault(TyperGroup):
    """A group of which one command runs when none is named, so that `carbon mind` and `carbon mind PATH` build."""

    default = "build"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = [self.default, *args]
        return super().parse_args(ctx, args)


class _Serving(_WithDefault):
    """The same for `carbon mcp ROOT`, which is what clients are told to start."""

    default = "serve"


mind_app = typer.Typer(
    cls=_WithDefault,
    rich_markup_mode=None,
    help="Distil the repository into a digest and notes, and ask for them. Without a command: build.",
    epilog="Example: carbon mind   |   carbon mind ~/src/flask   |   carbon mind lookup src/flask/app.py",
)
app.add_typer(mind_app, name="mind")


@mind_app.command(
    name="build", epilog="Example: carbon mind --print   |   carbon mind ~/src/flask --json   |   carbon mind --check"
)
def mind_build(
    where: Where = Path(),
    show: Annotated[bool, typer.Option("--print", help="Print the digest as Markdown.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the digest, or the result of --check, as JSON.")] = False,
    budget: Budget = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Count tokens with this model's tokenizer instead of the bound.")
    ] = None,
    write_agents: Annotated[
        bool, typer.Option("--write-agents", help="Put the digest into the managed block of AGENTS.md.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Rebuild, and parse every file again.")] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Only say whether the digest is current; nothing is parsed or written. "
            "Exit code 0: current, 1: stale (or not made yet), 2: switched off or impossible.",
        ),
    ] = False,
    enrich: Annotated[
        bool,
        typer.Option(
            "--enrich",
            help="Ask a local model (--model) for a few words on the repository and each changed directory; checked, marked, kept.",
        ),
    ] = False,
    no_words: Annotated[bool, typer.Option("--no-words", help="Take a model's words out again.")] = False,
) -> None:
    """Distil the repository into .carbon/mind/: the digest (mind.json, mind.md), the notes (dirs/) and their list (overview.md).

    Nothing is parsed when nothing changed, and a note is written only when it says something new.
    """
    from carbon_mind.cli.mind import Request, run

    run(Request(where, show, json, budget, model, write_agents, full, check, enrich, no_words))


@mind_app.command(name="status", epilog="Example: carbon mind status   |   carbon mind status --json")
def mind_status(where: Where = Path(), json: Json = False) -> None:
    """Say what there is: directories with a note, which of them are stale or gone, sizes. Nothing is built."""
    from carbon_mind.cli.recall import run_status

    run_status(where, json=json)


@mind_app.command(name="show", epilog="Example: carbon mind show")
def mind_show(where: Where = Path(), json: Json = False) -> None:
    """Print exactly the block that goes into a prompt."""
    from carbon_mind.cli.recall import run_show

    run_show(where, json=json)


@mind_app.command(name="lookup", epilog="Example: carbon mind lookup src/flask/app.py")
def mind_lookup(
    path: Annotated[str, typer.Argument(help="A file or directory of the repository, whether it exists or not.")],
    where: Annotated[Path, typer.Option("--repository", help="The repository, or a directory in it.")] = Path(),
    json: Json = False,
) -> None:
    """Print the note of the nearest directory that has one; every path gets an answer."""
    from carbon_mind.cli.recall import run_lookup

    run_lookup(path, where, json=json)


@mind_app.command(name="list", epilog="Example: carbon mind list   |   carbon mind list --json")
def mind_list(where: Where = Path(), json: Json = False) -> None:
    """Print one line for every directory that has a note."""
    from carbon_mind.cli.recall import run_list

    run_list(where, json=json)


mcp_app = typer.Typer(
    cls=_Serving,
    rich_markup_mode=None,
    help="The mind over MCP, for any client that speaks it. `carbon mcp ROOT` serves on standard input and output.",
    epilog="Example: carbon mcp ~/src/flask   |   carbon mcp install --client opencode",
)
app.add_typer(mcp_app, name="mcp")


@mcp_app.command(name="serve", epilog="Example: carbon mcp ~/src/flask")
def mcp_serve(
    root: Annotated[Path, typer.Argument(help="The repository; nothing outside of it is read.")],
) -> None:
    """Answer mind_lookup, mind_list, mind_symbol and mind_search, read-only, until the client goes."""
    from carbon_mind.cli.mcp import run_serve

    run_serve(root)


Client = Annotated[str, typer.Option("--client", help="opencode, pi, codex, claude, cursor or vscode.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print what would change.")]


@mcp_app.command(name="install", epilog="Example: carbon mcp install --client opencode --dry-run")
def mcp_install(client: Client, where: Where = Path(), dry_run: DryRun = False, json: Json = False) -> None:
    """Put `carbon mcp` into a client's own configuration; the file as it was is kept beside it."""
    from carbon_mind.cli.mcp import run_install

    run_install(client, where, dry_run=dry_run, json=json)


@mcp_app.command(name="remove", epilog="Example: carbon mcp remove --client opencode")
def mcp_remove(client: Client, where: Where = Path(), dry_run: DryRun = False, json: Json = False) -> None:
    """Take it out again; the file becomes what it was, byte for byte, when nothing else changed since."""
    from carbon_mind.cli.mcp import run_remove

    run_remove(client, where, dry_run=dry_run, json=json)


@app.command(epilog="Example: carbon trust   |   carbon trust --list   |   carbon trust --revoke ~/src/flask")
def trust(
    where: Where = Path(),
    list_all: Annotated[bool, typer.Option("--list", help="Show which repositories are trusted by name.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Do not trust this one any more.")] = False,
    json: Json = False,
) -> None:
    """Show what steers an agent in a repository (instructions, tools, hooks, a mind of its own), and trust it from then on.

    A repository that ships nothing of the kind needs no trust.
    """
    from carbon_mind.cli.trust import run

    run(where, list_all=list_all, revoke=revoke, json=json)


@app.command(epilog="Example: carbon watch   |   carbon watch ~/src/flask --json   |   carbon watch --debounce 2")
def watch(
    where: Where = Path(),
    debounce: Annotated[
        float, typer.Option("--debounce", min=0.01, max=60, help="Seconds without a change before the digest is made.")
    ] = 0.5,
    poll: Annotated[
        bool, typer.Option("--poll", help="Look every two seconds instead of asking the system (network drives).")
    ] = False,
    budget: Budget = None,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON for every digest.")] = False,
) -> None:
    """Keep the digest current while files change, until Ctrl-C (exit code 0)."""
    from carbon_mind.cli.triggers import watch as run

    run(where, debounce=debounce, poll=poll, budget=budget, json=json)


@hook_app.command(name="install", epilog="Example: carbon hook install   |   carbon hook install ~/src/flask")
def hook_install(
    where: Where = Path(),
    tracked: Annotated[
        bool,
        typer.Option("--tracked", help="Also change hooks that git tracks (.githooks, .husky): you will commit them."),
    ] = False,
    outside: Annotated[
        bool,
        typer.Option(
            "--outside", help="Also use a core.hooksPath outside of the repository: it serves all repositories."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Refresh the digest in the background after every commit, switch, merge, pull, rebase and amend."""
    from carbon_mind.cli.triggers import hook_install as run

    run(where, tracked=tracked, outside=outside, json=json)


@hook_app.command(name="remove", epilog="Example: carbon hook remove")
def hook_remove(where: Where = Path(), json: Json = False) -> None:
    """Take the hooks out again; what was there before is there again, byte for byte."""
    from carbon_mind.cli.triggers import hook_remove as run

    run(where, json=json)


@hook_app.command(name="status", epilog="Example: carbon hook status --json")
def hook_status(where: Where = Path(), json: Json = False) -> None:
    """Show which hooks are there, and what they did last."""
    from carbon_mind.cli.triggers import hook_status as run

    run(where, json=json)


@hook_app.command(name="run", hidden=True, epilog="Example: carbon hook run post-commit")
def hook_run(name: Annotated[str, typer.Argument(help="The hook that fired.")]) -> None:
    """What a hook starts: one refresh of the current directory, with its outcome in .carbon/refresh.log."""
    from carbon_mind.cli.triggers import hook_run as run

    run(name)


@app.command(
    epilog="Example: carbon serve --model qwen2.5-coder-1.5b   |   carbon serve --normalize --warm   |   "
    "carbon serve --upstream http://127.0.0.1:8080"
)
def serve(
    model: Model = None,
    host: Annotated[
        str, typer.Option("--host", help="Where to listen; anything but this machine needs --api-key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: a free one.")] = 8137,
    ctx: Annotated[
        int | None, typer.Option("--ctx", help="Tokens of each slot; 0: the model's own, at most 16384.")
    ] = None,
    slots: Annotated[int | None, typer.Option("--slots", help="Agents that are hot at once.")] = None,
    threads: Threads = None,
    normalize: Annotated[
        bool | None,
        typer.Option(
            "--normalize/--as-they-come",
            help="Move dates, nonces, the managed block of an AGENTS.md and the like behind what stays the same.",
        ),
    ] = None,
    mind: Annotated[
        bool | None,
        typer.Option("--mind/--no-mind", help="Tell an agent the digest of the repository it works in, if it has one."),
    ] = None,
    repo: Annotated[
        Path | None,
        typer.Option("--repo", help="The repository whose digest is told to agents that name no directory."),
    ] = None,
    rescue: Annotated[
        bool | None,
        typer.Option("--rescue/--no-rescue", help="Deliver a tool call that a model wrote as text."),
    ] = None,
    warm_first: Annotated[
        bool, typer.Option("--warm", help="Warm all known heads at the start, in the background.")
    ] = False,
    upstream: Annotated[
        str | None,
        typer.Option("--upstream", metavar="URL", help="A server that runs already, instead of one of our own."),
    ] = None,
    upstream_key: Annotated[
        str | None, typer.Option("--upstream-key", envvar="CARBON_UPSTREAM_KEY", help="Its API key.")
    ] = None,
    slots_dir: Annotated[
        Path | None,
        typer.Option("--slots-dir", help="The folder that llama-server at --upstream was given as --slot-save-path."),
    ] = None,
    api_key: Annotated[
        str, typer.Option("--api-key", envvar="CARBON_API_KEY", help="What clients have to show.", show_default=False)
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Say as JSON on stdout where it listens.")] = False,
) -> None:
    """Stand between agents and llama-server, and make an agent's head (system text and tools) cost nothing.

    Point the agent to http://127.0.0.1:8137/v1. Its head is evaluated once, stored, and restored after every restart.
    """
    from carbon_mind.cli.serve import Wanted, run_serve

    rescued = None if rescue is None else "auto" if rescue else "off"
    settings = settings_only(
        model=model,
        n_ctx=ctx,
        slots=slots,
        threads=threads,
        normalize=normalize,
        inject_mind=mind,
        rescue_tool_calls=rescued,
    )
    run_serve(
        Wanted(
            settings=settings,
            repo=repo,
            host=host,
            port=port,
            key=api_key,
            upstream=upstream,
            upstream_key=upstream_key,
            slots_dir=slots_dir,
            warm=warm_first,
            json=json,
        )
    )


@app.command(epilog="Example: carbon status   |   carbon status --json")
def status(json: Json = False) -> None:
    """Show what the gateway (`carbon serve`) does and did: server, slots, heads, hit rate, tokens and seconds saved."""
    from carbon_mind.cli.serve import run_status

    run_status(json=json)


@app.command(epilog="Example: carbon warm   |   carbon warm ~/src/flask --json   |   carbon warm --client opencode")
def warm(
    where: Where = Path(),
    model: Model = None,
    budget: Budget = None,
    ctx: Context = None,
    threads: Threads = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Prefill and store again, whatever is stored.")] = False,
    prove: Annotated[
        bool, typer.Option("--prove", help="Load the model and restore the state, although nothing changed.")
    ] = False,
    client: Annotated[
        str | None,
        typer.Option(
            "--client",
            metavar="NAME",
            help="Warm the heads that `carbon serve` has seen from this client (opencode, pi, ... or all), as it would send them now.",
        ),
    ] = None,
    mode: Annotated[
        str | None, typer.Option("--mode", help="Only heads of this mode of the client: run, tui or plan.")
    ] = None,
    normalize: Annotated[
        bool | None,
        typer.Option(
            "--normalize/--as-they-come", help="With --client: whether `carbon serve` will move dates and the like."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Prefill the prefix (system message with the digest) once and store its KV state, layer by layer.

    Later runs evaluate only the layers that changed; where nothing did, the stored state is verified and no model is loaded.
    """
    if client is not None:
        from carbon_mind.cli.serve import run_warm as run_warm_client

        given = {"model": model, "n_ctx": ctx, "threads": threads, "normalize": normalize}
        run_warm_client(client, mode, given, json=json)
        return
    from carbon_mind.cli.states import Start, run_warm

    run_warm(Start(where, model, budget, ctx, threads), fresh=fresh, prove=prove, json=json)


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
    from carbon_mind.cli.states import Start, run_ask

    run_ask(Start(where, model, budget, ctx, threads), question, max_tokens=max_tokens, json=json)


@app.command(epilog="Example: carbon why   |   carbon why --json   |   carbon why --tokens 3f2a 9c41")
def why(
    where: Where = Path(),
    tokens: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--tokens",
            metavar="A B",
            help="Compare two prefixes: names of snapshots (their beginning is enough), or JSON files with token ids.",
        ),
    ] = None,
    model: Model = None,
    json: Json = False,
) -> None:
    """Say why the last warm start was a hit or a miss: what differs, in which layer, and what it cost."""
    from carbon_mind.cli.why import run

    run(where, tokens, model=model, json=json)


@store_app.command(name="list", epilog="Example: carbon store list --json")
def store_list(json: Json = False) -> None:
    """Show what is stored: model, layer, tokens, size, hits, and the room that is left."""
    from carbon_mind.cli.store import run_list

    run_list(json=json)


@store_app.command(name="verify", epilog="Example: carbon store verify")
def store_verify(json: Json = False) -> None:
    """Check every byte of every snapshot; what is damaged is set aside (exit code 6 then)."""
    from carbon_mind.cli.store import run_verify

    run_verify(json=json)


@store_app.command(name="gc", epilog="Example: carbon store gc")
def store_gc(json: Json = False) -> None:
    """Remove what is of no use (set aside, unfinished, without its base, of an old format), then what is over budget."""
    from carbon_mind.cli.store import run_gc

    run_gc(json=json)


@store_app.command(name="purge", epilog="Example: carbon store purge   |   carbon store purge --model smollm2")
def store_purge(
    model: Annotated[
        str | None, typer.Option("--model", help="Only snapshots of models whose file name contains this.")
    ] = None,
    repository: Annotated[
        str | None, typer.Option("--repository", help="Only layers of repositories of exactly this name.")
    ] = None,
    json: Json = False,
) -> None:
    """Remove snapshots: they hold the text of repositories in a form that can be read back."""
    from carbon_mind.cli.store import run_purge

    run_purge(model=model, repository=repository, json=json)


@bench_app.command(
    name="ttft",
    epilog="Example: carbon bench ttft --quick   |   carbon bench ttft --model qwen2.5-coder-1.5b --lengths 1024,4096 --repeat 5",
)
def bench_ttft(
    model: Model = None,
    engine: Annotated[
        str | None,
        typer.Option("--engine", help="llama, server, or both separated by a comma; those that are installed."),
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option("--lengths", help="Tokens of the prefixes, separated by commas (256 to 8192 by powers)."),
    ] = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Rounds over all of them.")] = 3,
    quick: Annotated[
        bool, typer.Option("--quick", help="Prefixes of 256 and 1024 tokens: under three minutes.")
    ] = False,
    threads: Threads = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw FILE.svg and FILE.png (needs matplotlib).")
    ] = None,
    json: Json = False,
) -> None:
    """Measure the first token cold, restored and hot, by length of the prefix, for each engine; and what a state takes on disk.

    Exit code 1 when a restore was none, or the answers differ: then the figures prove nothing.
    """
    from carbon_mind.cli.bench import AskedTtft, run_ttft

    run_ttft(AskedTtft(model, engine, lengths, repeat, quick, threads, plot), json=json)


@bench_app.command(
    name="mind",
    epilog="Example: carbon bench mind   |   carbon bench mind ~/src/flask --commits 100   |   "
    'carbon bench mind --peer "their map=their-tool ."',
)
def bench_mind(
    where: Where = Path(),
    commits: Annotated[int, typer.Option("--commits", min=1, help="How many commits to look at.")] = 50,
    budget: Budget = None,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            "--peer",
            metavar="NAME=COMMAND",
            help="A command that prints a map of the repository it is run in, with as many tokens as CARBON_TOKENS says.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of what is drawn at random.")] = 0,
    run_commands: Annotated[
        bool,
        typer.Option(
            "--run-commands",
            help="Also run each command that the digest prints, for a few seconds, in a clone without the network. "
            "They are the repository's: only where you trust it.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Ask the repository's history whether a digest made before a commit names the files that the commit changed.

    No model is needed. Beside it, with as many tokens: the files that changed most before, files at random, and --peer. And whether the
    commands that the digest prints exist.
    """
    from carbon_mind.cli.bench import Asked, run_mind

    run_mind(Asked(where, commits, budget, tuple(peer or ()), seed, run_commands), json=json)


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

    report = health.examine(settings_only(model=model), probe=probe)
    if json:
        print_json(report)
    else:
        console.data(health.render(report))


@app.command(name="settings", epilog="Example: carbon settings --json")
def show_settings(where: Where = Path(), json: Json = False) -> None:
    """Show every setting with its value here, and how to change it."""
    import msgspec

    from carbon_mind import settings as reference

    values = msgspec.to_builtins(place_and_settings(where)[1])
    if json:
        print_json(values)
        return
    rows = [
        (name, f"CARBON_{name.upper()}", "unset" if value is None else str(value)) for name, value in values.items()
    ]
    console.data(console.table(("setting", "environment", "value"), rows))
    console.step(
        f"user file: {reference.user_file()}; repository file: {reference.REPOSITORY_FILE} (budget, model, and enabled = false)"
    )


@models_app.command(name="list", epilog="Example: carbon models list --json")
def models_list(json: Json = False) -> None:
    """Models of the registry, and which of them are here."""
    from carbon_mind.models import load_registry, pulled

    settings = settings_only()
    entries = load_registry()
    if json:
        print_json(
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

    settings = settings_only()
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
        print_json({"name": name, "path": str(path)})
    else:
        console.data(f"{path}\n")


@models_app.command(name="path", epilog="Example: carbon models path smollm2-135m")
def models_path(
    name: Annotated[
        str | None, typer.Argument(help="A registry name or a path; without it, the default model.")
    ] = None,
) -> None:
    """Print the file that a model name means."""
    from carbon_mind import opening

    console.data(f"{opening.model_path(settings_only(model=name))}\n")
