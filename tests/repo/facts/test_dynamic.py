from __future__ import annotations

from .helpers import commands, constraints, entries, facts_of


def test_ruby() -> None:
    files = {
        "Gemfile": 'source "x"\nruby "3.3.0"\ngem "rails", "~> 7"\n  gem "rspec"\n',
        "Gemfile.lock": "",
        ".rspec": "--color\n",
        ".rubocop.yml": "",
        "Rakefile": "task default: :spec\nRSpec::Core::RakeTask.new(:spec)\ntask :build do\nend\n",
        "bin/rails": "",
    }
    assert commands(files) == [
        ("build", "bundle exec rake build", "Rakefile:3"),
        ("test", "bundle exec rake spec", "Rakefile:2"),
        ("test", "bundle exec rspec", ".rspec"),
        ("test-one", "bundle exec rspec path/to/file_spec.rb:LINE", ".rspec"),
        ("lint", "bundle exec rubocop", ".rubocop.yml"),
        ("run", "bin/rails server", "Gemfile:3"),
    ]
    assert constraints(files) == [("Ruby 3.3.0", "Gemfile:2"), ("package manager: bundler", "Gemfile.lock")]
    assert facts_of(files).frameworks == ("rails", "rspec")


def test_php() -> None:
    files = {
        "composer.json": (
            '{\n"require": {"php": "^8.2", "laravel/framework": "^11"},\n"bin": ["bin/tool"],\n'
            '"scripts": {\n"lint": "x",\n"post-install-cmd": "y"}\n}'
        ),
        "phpunit.xml.dist": "",
        "phpstan.neon": "",
        "bin/tool": "",
    }
    assert commands(files) == [
        ("test", "vendor/bin/phpunit", "phpunit.xml.dist"),
        ("test-one", "vendor/bin/phpunit --filter NAME", "phpunit.xml.dist"),
        ("lint", "composer run lint", "composer.json:5"),
        ("typecheck", "vendor/bin/phpstan analyse", "phpstan.neon"),
    ]
    assert constraints(files) == [("PHP ^8.2", "composer.json:2")]
    assert entries(files) == [("tool", "bin/tool", "composer.json:3")]
    assert facts_of(files).frameworks == ("laravel",)


def test_elixir() -> None:
    files = {
        "mix.exs": (
            'defmodule X do\n  def project do\n    [elixir: "~> 1.15"]\n  end\n  defp deps do\n    [\n'
            '      {:phoenix, "~> 1.7"},\n      {:credo, "~> 1.7"}\n    ]\n'
        ),
        ".formatter.exs": "",
        "test/a_test.exs": "",
    }
    assert commands(files) == [
        ("build", "mix compile", "mix.exs:2"),
        ("test", "mix test", "mix.exs:2"),
        ("test-one", "mix test path/to/file_test.exs:LINE", "mix.exs:2"),
        ("lint", "mix credo", "mix.exs:8"),
        ("format", "mix format", ".formatter.exs"),
        ("run", "mix phx.server", "mix.exs:7"),
    ]
    assert constraints(files) == [("Elixir ~> 1.15", "mix.exs:3")]
    assert facts_of(files).frameworks == ("phoenix",)


def test_rake_tasks_say_how_one_test_is_chosen() -> None:
    classic = 'Rake::TestTask.new("test:regular") do |t|\nend\ntask spec: "SPEC.rdoc"\ntask test: "test:regular"\n'
    assert commands({"Rakefile": classic, "Gemfile": ""}) == [
        ("test", "bundle exec rake test", "Rakefile:4"),
        (
            "test-one",
            "bundle exec rake test:regular TEST=path/to/test.rb TESTOPTS=--name=test_name",
            "Rakefile:1",
        ),
    ]
    assert commands({"Rakefile": "Minitest::TestTask.create # default\n"}) == [
        ("test", "rake test", "Rakefile:1"),
        ("test-one", "rake test N=test_name", "Rakefile:1"),
    ]


def test_composer_scripts_stand_for_the_tools_they_call() -> None:
    text = '{"scripts": {"test": "phpunit", "phpstan": "phpstan analyse"}}'
    assert commands({"composer.json": text, "phpunit.xml": "", "phpunit.xml.dist": "", "phpstan.neon": ""}) == [
        ("test", "composer run test", "composer.json:1"),
        ("test-one", "vendor/bin/phpunit --filter NAME", "phpunit.xml"),
        ("typecheck", "composer run phpstan", "composer.json:1"),
    ]
    assert commands({"composer.json": '{"require-dev": {"pestphp/pest": "^3"}}', "phpunit.xml": ""}) == [
        ("test", "vendor/bin/pest", "composer.json:1"),
        ("test-one", "vendor/bin/pest --filter NAME", "composer.json:1"),
    ]
