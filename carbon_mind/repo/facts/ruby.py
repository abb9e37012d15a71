"""Ruby: Gemfile, Rakefile tasks, RSpec and RuboCop by their settings files."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, Wants, join
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.kinds import ranked
from carbon_mind.repo.facts.text import numbered, version, word, words
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(names=("Gemfile", "Rakefile", ".rspec", ".rubocop.yml"), limit=8)

FRAMEWORKS = words("rails sinatra hanami rspec rspec-rails minitest sidekiq grape sequel rubocop puma jekyll")
_RUBY = re.compile(r"""\s*ruby\s+["']([^"']{1,40})["']""")
_GEM = re.compile(r"""^\s*gem\s+["']([\w-]{1,60})["']""")
_TASK = re.compile(r"""\s*(?:task|multitask)\s*\(?\s*(?::|["'])?([A-Za-z_]\w*)""")
_TASK_CLASS = re.compile(
    r"""\s*(?:RSpec::Core::RakeTask|Rake::TestTask|RuboCop::RakeTask|Minitest::TestTask)"""
    r"""\.(?:new|create)(?:\s*\(?\s*:?["']?([a-z][\w:]*))?"""
)
_ONE = {"Rake": "TEST=path/to/test.rb TESTOPTS=--name=test_name", "Minitest": "N=test_name"}
_CLASS_DEFAULT = {"RSpec": "spec", "Rake": "test", "Minitest": "test", "RuboCop": "rubocop"}


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Everything of one such file."""
    found = Found(path)
    name = path.rpartition("/")[2]
    call = "bundle exec " if context.has(join(found.directory, "Gemfile")) else ""
    if name == ".rspec":
        _rspec(found, call, 0)
    elif name == ".rubocop.yml":
        found.command("lint", f"{call}rubocop", 0)
    elif name == "Rakefile":
        for kind, task in ranked(tasks := _tasks(text)):
            found.command(kind, f"{call}rake {task}", tasks[task])
        for number, row in numbered(text):
            # What the two libraries' tasks read to run one file and one test of it.
            if (match := _TASK_CLASS.match(row)) and (one := _ONE.get(row.strip().partition(":")[0])):
                found.command("test-one", f"{call}rake {match.group(1) or 'test'} {one}", number)
                break
    else:
        _gemfile(found, text, context, call)
    return found.done()


def _rspec(found: Found, call: str, line: int) -> None:
    found.command("test", f"{call}rspec", line)
    found.command("test-one", f"{call}rspec path/to/file_spec.rb:LINE", line)


def _tasks(text: str) -> dict[str, int]:
    names: dict[str, int] = {}
    for number, row in numbered(text):
        if match := _TASK_CLASS.match(row):
            owner = row.strip().partition(":")[0]
            names.setdefault(match.group(1) or _CLASS_DEFAULT.get(owner, "test"), number)
        elif (
            (match := _TASK.match(row))
            and word(match.group(1))
            and (match.group(1) != "spec" or "rspec" in text.lower())
        ):
            names.setdefault(match.group(1), number)
    return names


def _gemfile(found: Found, text: str, context: Context, call: str) -> None:
    gems: dict[str, int] = {}
    for number, row in numbered(text):
        if match := _GEM.match(row):
            gems.setdefault(match.group(1), number)
        elif (match := _RUBY.match(row)) and (spec := version(match.group(1))):
            found.constraint(f"Ruby {spec}", number, where=True)
    line = gems.get("rspec", gems.get("rspec-rails", 0))
    if line and not context.has(join(found.directory, ".rspec")):
        _rspec(found, call, line)
    rails = join(found.directory, "bin/rails")
    if "rails" in gems and context.has(rails):
        if any(path.endswith("_test.rb") for path in context.below(join(found.directory, "test"))):
            found.command("test", "bin/rails test", gems["rails"])
            found.command("test-one", "bin/rails test path/to/file_test.rb:LINE", gems["rails"])
        found.command("run", "bin/rails server", gems["rails"])
    lock = join(found.directory, "Gemfile.lock")
    if context.has(lock):
        found.constraint("package manager: bundler", 0, lock, where=True)
    for name in gems:
        if name in FRAMEWORKS:
            found.framework(name)
