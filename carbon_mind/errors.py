"""Every way carbon can fail, as a tree; each class is one situation.

    CarbonError                 exit  code
    |- UsageProblem               2   usage
    |  |- SettingsProblem         2   settings
    |  |- Disabled                2   disabled
    |  `- HooksElsewhere          2   hooks-elsewhere
    |- RepositoryProblem          3   repository
    |  |- NotARepository          3   repository-missing
    |  `- EmptyRepository         3   repository-empty
    |- ModelProblem               4   model
    |  |- NoModel                 4   model-none
    |  |- ModelDamaged            4   model-damaged
    |  `- DownloadFailed          4   model-download
    |- EngineProblem              5   engine
    |  |- NoEngine                5   engine-missing
    |  |- EngineCrashes           5   engine-crashes
    |  `- PrefixTooLong           5   prefix-too-long
    `- StorageProblem             6   storage
       `- SnapshotRejected        6   snapshot-rejected

Code below the command line raises; `cli` prints the message, the hint on a line of its own, and exits with the class's
exit code. `code` is stable and appears in `--json` output; messages may change between versions.
"""

from __future__ import annotations

from typing import ClassVar


class CarbonError(Exception):
    """A situation that the user can act on: what happened, and what to do next."""

    exit_code: ClassVar[int] = 1
    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageProblem(CarbonError):
    """The command line asks for something that cannot be."""

    exit_code = 2
    code = "usage"


class SettingsProblem(UsageProblem):
    """A settings file or a CARBON_* variable holds a value that cannot be used."""

    code = "settings"


class Disabled(UsageProblem):
    """The setting `enabled` is false."""

    code = "disabled"


class HooksElsewhere(UsageProblem):
    """git's hooks lie where a change would reach further than this clone."""

    code = "hooks-elsewhere"


class RepositoryProblem(CarbonError):
    """The repository cannot be read as asked."""

    exit_code = 3
    code = "repository"


class NotARepository(RepositoryProblem):
    """The given path is missing, not a directory, or has no working tree."""

    code = "repository-missing"


class EmptyRepository(RepositoryProblem):
    """There is no file to learn from."""

    code = "repository-empty"


class ModelProblem(CarbonError):
    """The model cannot be found, read or trusted."""

    exit_code = 4
    code = "model"


class NoModel(ModelProblem):
    """No model was named and none is pulled, or the named one is not there."""

    code = "model-none"


class ModelDamaged(ModelProblem):
    """The file is not a GGUF model, is cut short, or does not match its checksum."""

    code = "model-damaged"


class DownloadFailed(ModelProblem):
    """A source did not deliver the bytes that the registry promises."""

    code = "model-download"


class EngineProblem(CarbonError):
    """llama.cpp refused or failed."""

    exit_code = 5
    code = "engine"


class NoEngine(EngineProblem):
    """No engine is installed."""

    code = "engine-missing"


class EngineCrashes(EngineProblem):
    """The engine's own process dies on this machine, in every mode that was tried."""

    code = "engine-crashes"


class PrefixTooLong(EngineProblem):
    """The prefix does not fit into the context."""

    code = "prefix-too-long"


class StorageProblem(CarbonError):
    """A file of ours cannot be written or read."""

    exit_code = 6
    code = "storage"


class SnapshotRejected(StorageProblem):
    """A stored state is damaged or belongs to something else; it is never handed to the engine."""

    code = "snapshot-rejected"
