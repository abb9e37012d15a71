from __future__ import annotations

from .helpers import Command, Constraint, EntryPoint, ProjectFacts, commands, constraints, entries, facts_of


def test_cargo_package() -> None:
    text = (
        '[package]\nname = "tool"\nedition = "2021"\nrust-version = "1.75"\n'
        '[dependencies]\nclap = "4"\n[lints.clippy]\nall = "warn"\n'
    )
    files = {"Cargo.toml": text, "src/main.rs": "", "src/bin/extra.rs": "", "rustfmt.toml": ""}
    assert facts_of(files) == ProjectFacts(
        name="tool",
        commands=(
            Command("build", "cargo build", "Cargo.toml:1"),
            Command("test", "cargo test", "Cargo.toml:1"),
            Command("test-one", "cargo test NAME", "Cargo.toml:1"),
            Command("lint", "cargo clippy", "Cargo.toml:7"),
            Command("format", "cargo fmt", "rustfmt.toml"),
            Command("run", "cargo run --bin tool", "Cargo.toml:2"),
            Command("run", "cargo run --bin extra", "Cargo.toml:2"),
        ),
        constraints=(
            Constraint("Rust >=1.75", "Cargo.toml:4"),
            Constraint("Rust edition 2021", "Cargo.toml:3"),
        ),
        entry_points=(
            EntryPoint("tool", "src/main.rs", "Cargo.toml:2"),
            EntryPoint("extra", "src/bin/extra.rs", "Cargo.toml:2"),
        ),
        frameworks=("clap",),
    )


def test_cargo_workspace() -> None:
    files = {
        "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\n[workspace.package]\nedition = "2024"\n',
        "crates/a/Cargo.toml": (
            '[package]\nname = "a"\nedition.workspace = true\n[[bin]]\nname = "aa"\npath = "x/m.rs"\n'
        ),
        "crates/a/x/m.rs": "",
        "clippy.toml": "",
    }
    assert commands(files) == [
        ("build", "cargo build --workspace", "Cargo.toml:1"),
        ("test", "cargo test --workspace", "Cargo.toml:1"),
        ("test-one", "cargo test -p PACKAGE NAME", "Cargo.toml:1"),
        ("lint", "cargo clippy --workspace", "clippy.toml"),
        ("run", "cargo run -p a --bin aa", "crates/a/Cargo.toml:4"),
    ]
    assert constraints(files) == [
        ("workspace members: crates/: a", "Cargo.toml:2"),
        ("Rust edition 2024", "Cargo.toml:4"),
    ]
    assert entries(files) == [("aa", "crates/a/x/m.rs", "crates/a/Cargo.toml:4")]


def test_go_module() -> None:
    files = {
        "go.mod": (
            "// c\nmodule example.com/shop\n\ngo 1.22\ntoolchain go1.22.3\nrequire (\n\tgithub.com/spf13/cobra v1.8.0\n"
            "\tgithub.com/labstack/echo/v4 v4.1.0\n\tgo.uber.org/zap v1.2.3 // indirect\n)\n"
        ),
        "cmd/shop/main.go": "// doc\npackage main\nfunc main() {}\n",
        "cmd/shop/inner/main.go": "package main\nfunc main() {}\n",
        "cmd/lib/main.go": "package lib\n",
        "a_test.go": "",
        ".golangci.yml": "",
    }
    assert facts_of(files) == ProjectFacts(
        name="shop",
        commands=(
            Command("build", "go build ./...", "go.mod:2"),
            Command("test", "go test ./...", "go.mod:2"),
            Command("test-one", "go test ./path/to/package -run '^TestName$'", "go.mod:2"),
            Command("lint", "golangci-lint run", ".golangci.yml"),
            Command("run", "go run ./cmd/shop", "cmd/shop/main.go:2"),
        ),
        constraints=(Constraint("Go 1.22", "go.mod:4"), Constraint("Go toolchain 1.22.3", "go.mod:5")),
        entry_points=(EntryPoint("shop", "cmd/shop/main.go", "cmd/shop/main.go:2"),),
        frameworks=("cobra", "echo"),
    )


def test_go_without_tests_has_no_test_command() -> None:
    assert commands({"api/go.mod": "module x\n", "vendor/y/y_test.go": ""}) == [
        ("build", "cd api && go build ./...", "api/go.mod:1")
    ]


def test_cmake() -> None:
    files = {
        "CMakeLists.txt": (
            "cmake_minimum_required(VERSION 3.20)\nproject(x)\nset(CMAKE_CXX_STANDARD 20)\nenable_testing()\n"
            "add_subdirectory(src)\nadd_executable(gone missing.cpp)\n"
        ),
        "src/CMakeLists.txt": "project(inner)\nadd_executable(app main.cpp)\n",
        "src/main.cpp": "",
    }
    assert commands(files) == [
        ("build", "cmake -S . -B build && cmake --build build", "CMakeLists.txt:2"),
        ("test", "ctest --test-dir build", "CMakeLists.txt:4"),
        ("test-one", "ctest --test-dir build -R NAME", "CMakeLists.txt:4"),
    ]
    assert constraints(files) == [("CMake >=3.20", "CMakeLists.txt:1"), ("C++20", "CMakeLists.txt:3")]
    assert entries(files) == [("app", "src/main.cpp", "src/CMakeLists.txt:2")]


def test_cmake_presets_take_the_place_of_the_plain_commands() -> None:
    presets = (
        '{\n"configurePresets": [{"name": "base", "hidden": true}, {"name": "dev"}],\n'
        '"buildPresets": [{"name": "dev", "configurePreset": "dev"}],\n"testPresets": [{"name": "t"}]\n}'
    )
    assert commands({"CMakeLists.txt": "project(x)\nenable_testing()\n", "CMakePresets.json": presets}) == [
        ("build", "cmake --preset dev && cmake --build --preset dev", "CMakePresets.json:3"),
        ("test", "ctest --preset t", "CMakePresets.json:4"),
        ("test-one", "ctest --preset t -R NAME", "CMakePresets.json:4"),
    ]


def test_meson() -> None:
    files = {
        "meson.build": "project('x', 'c', meson_version: '>=1.0')\nexecutable('app', 'main.c')\n",
        "lib/meson.build": "\ntest('a', exe)\n",
        "main.c": "",
    }
    assert commands(files) == [
        ("build", "meson setup build && meson compile -C build", "meson.build:1"),
        ("test", "meson test -C build", "lib/meson.build:2"),
        ("test-one", "meson test -C build NAME", "lib/meson.build:2"),
    ]
    assert constraints(files) == [("Meson >=1.0", "meson.build:1")]
    assert entries(files) == [("app", "main.c", "meson.build:2")]


def test_maven() -> None:
    pom = (
        "<project>\n<java.version>17</java.version>\n<modules>\n<module>core</module>\n<module>web</module>\n</modules>\n"
        "<artifactId>spotless-maven-plugin</artifactId>\n<artifactId>junit-jupiter</artifactId>\n</project>\n"
    )
    files = {"pom.xml": pom, "core/pom.xml": "<project>\n", "mvnw": "", "core/src/test/java/ATest.java": ""}
    assert commands(files) == [
        ("build", "./mvnw compile", "pom.xml:1"),
        ("test", "./mvnw test", "pom.xml:1"),
        (
            "test-one",
            "./mvnw test -pl MODULE -am -Dsurefire.failIfNoSpecifiedTests=false -Dtest=Class#method",
            "pom.xml:1",
        ),
        ("format", "./mvnw spotless:apply", "pom.xml:7"),
    ]
    assert constraints(files) == [("Java 17", "pom.xml:2"), ("modules: core, web", "pom.xml:4")]
    assert facts_of(files).frameworks == ("junit-jupiter",)


def test_gradle() -> None:
    files = {
        "settings.gradle.kts": 'rootProject.name = "x"\ninclude(":app", ":lib")\n',
        "build.gradle.kts": "kotlin { jvmToolchain { JavaLanguageVersion.of(21) } }\n",
        "app/build.gradle.kts": 'application {\n    mainClass.set("com.x.Main")\n}\n',
        "app/src/test/java/A.java": "",
        "gradlew": "",
    }
    assert commands(files) == [
        ("build", "./gradlew build", "settings.gradle.kts:1"),
        ("test", "./gradlew test", "settings.gradle.kts:1"),
        ("test-one", "./gradlew :MODULE:test --tests Class.method", "settings.gradle.kts:1"),
    ]
    assert constraints(files) == [("modules: :app, :lib", "settings.gradle.kts:2"), ("Java 21", "build.gradle.kts:1")]
    assert entries(files) == [("Main", "com.x.Main", "app/build.gradle.kts:2")]


def test_dotnet() -> None:
    files = {
        "Shop.sln": "",
        "global.json": '{\n"sdk": {\n"version": "8.0.100"}}',
        "src/Shop/Shop.csproj": (
            '<Project Sdk="Microsoft.NET.Sdk">\n<OutputType>Exe</OutputType>\n<TargetFramework>net8.0</TargetFramework>'
        ),
        "src/Shop/Program.cs": "",
        "tests/T/T.csproj": (
            '<PackageReference Include="Microsoft.NET.Test.Sdk" />\n<PackageReference Include="xunit" />\n'
        ),
    }
    assert commands(files) == [
        ("build", "dotnet build Shop.sln", "Shop.sln"),
        ("test", "dotnet test Shop.sln", "Shop.sln"),
        ("test-one", "dotnet test Shop.sln --filter FullyQualifiedName~NAME", "Shop.sln"),
        ("run", "dotnet run --project src/Shop/Shop.csproj", "src/Shop/Shop.csproj:2"),
    ]
    assert constraints(files) == [
        (".NET SDK 8.0.100", "global.json:3"),
        ("target framework net8.0", "src/Shop/Shop.csproj:3"),
    ]
    assert entries(files) == [("Shop", "src/Shop/Program.cs", "src/Shop/Shop.csproj:2")]
    assert facts_of(files).frameworks == ("xunit",)


def test_go_program_of_any_file_name_and_mage_targets() -> None:
    files = {
        "go.mod": "module example.com/task/v3\n",
        "cmd/aux/aux.go": "package main\n\nfunc main() {}\n",
        "cmd/task/task.go": "package main\n\nfunc main() {}\n",
        "cmd/task/flags.go": "package main\n",
        "magefile.go": "//go:build mage\npackage main\n\nfunc Lint() error {\nfunc helper() {\n",
    }
    assert entries(files) == [
        ("task", "cmd/task/task.go", "cmd/task/task.go:1"),
        ("aux", "cmd/aux/aux.go", "cmd/aux/aux.go:1"),
    ]
    assert ("lint", "mage lint", "magefile.go:4") in commands(files)


def test_autotools() -> None:
    files = {"configure.ac": "AC_INIT([jq],[1])\n", "Makefile.am": "bin_PROGRAMS = jq\nTESTS = tests/a\n"}
    assert commands(files) == [
        ("build", "autoreconf -i && ./configure && make", "configure.ac:1"),
        ("test", "make check", "Makefile.am:2"),
        ("test-one", "make check TESTS=path/to/test", "Makefile.am:2"),
    ]


def test_projects_of_tests_and_benchmarks_are_no_programs_of_dotnet() -> None:
    project = (
        '<Project Sdk="Microsoft.NET.Sdk">\n<OutputType>Exe</OutputType>\n<TargetFramework>net9.0</TargetFramework>\n'
    )
    files = {"X.sln": ""}
    for place in ("src/X.Benchmarks", "test/AotTestApp", "src/X.Tests/TestApps/Y", "eng/common"):
        files |= {f"{place}/{place.rpartition('/')[2]}.csproj": project, f"{place}/Program.cs": ""}
    assert entries(files) == []
    assert [command for kind, command, _ in commands(files) if kind == "run"] == []
    assert facts_of(files).constraints == ()
