"""JavaScript's and TypeScript's imports, from source text to files."""

from __future__ import annotations

import json

import pytest

from tests.repo.imports.helpers import named, visible

WORKSPACE = {
    "package.json": json.dumps({"name": "root", "private": True, "workspaces": ["packages/*"]}),
    "packages/shared/package.json": json.dumps(
        {"name": "@acme/shared", "main": "dist/index.cjs", "types": "dist/index.d.ts"}
    ),
    "packages/shared/src/index.ts": "export * from './general'\nexport * from './more'\n",
    "packages/shared/src/general.ts": "export const isThing = (x: unknown): boolean => !!x\n",
    "packages/shared/src/more/index.ts": "export * from './deep'\n",
    "packages/shared/src/more/deep.ts": "export function deep(): void {}\n",
    "packages/core/package.json": json.dumps(
        {
            "name": "core",
            "exports": {".": {"import": "./build/main.js"}, "./part": "./dist/part.mjs", "./x/*": "./src/x/*.ts"},
            "imports": {"#inner/*": "./src/inner/*.ts"},
        }
    ),
    "packages/core/src/main.ts": "",
    "packages/core/src/part.ts": "",
    "packages/core/src/x/y.ts": "",
    "packages/core/src/inner/secret.ts": "",
    "app/tsconfig.json": '{\n  // settings\n  "extends": "./base.json", /* and */ "compilerOptions": {"strict": true,},\n}',
    "app/base.json": '{"compilerOptions": {"baseUrl": ".", "paths": {"~/*": ["src/*"], "exact": ["src/one.ts"]}}}',
    "app/src/one.ts": "",
    "app/src/Two.tsx": "",
    "site/vite.config.ts": "export default {\n  resolve: { alias: {\n"
    "    '@': fileURLToPath(new URL('./source', import.meta.url)),\n  } },\n}\n",
    "site/source/store/index.js": "",
    "site/source/api.js": "",
    "plain/lib.js": "",
}

IMPORTS = [
    ("app/src/a.ts", "import {x} from './one'", ["app/src/one.ts"]),
    ("app/src/a.ts", "import {x} from './one.js'", ["app/src/one.ts"]),
    ("app/src/a.ts", "import T from './Two'", ["app/src/Two.tsx"]),
    ("app/src/a.ts", "import {x} from '~/one'", ["app/src/one.ts"]),
    ("app/src/a.ts", "import {x} from 'exact'", ["app/src/one.ts"]),
    ("app/src/a.ts", "import {x} from 'src/one'", ["app/src/one.ts"]),
    ("app/src/a.ts", "const x = await import('./one')", ["app/src/one.ts"]),
    ("app/src/a.ts", "import {isThing} from '@acme/shared'", ["packages/shared/src/index.ts"]),
    ("app/src/a.ts", "import {x} from '@acme/shared/src/general'", ["packages/shared/src/general.ts"]),
    ("app/src/a.ts", "import 'core'", ["packages/core/src/main.ts"]),
    ("app/src/a.ts", "import 'core/part'", ["packages/core/src/part.ts"]),
    ("app/src/a.ts", "import 'core/x/y'", ["packages/core/src/x/y.ts"]),
    ("packages/core/src/a.ts", "import '#inner/secret'", ["packages/core/src/inner/secret.ts"]),
    ("site/source/a.js", "import s from '@/store'", ["site/source/store/index.js"]),
    ("site/source/a.js", "const api = require('@/api')", ["site/source/api.js"]),
    ("plain/a.js", "const lib = require('./lib')", ["plain/lib.js"]),
    ("plain/a.js", "export { x } from './lib?raw'", ["plain/lib.js"]),
    # Somebody else's, and aliases where no settings show them.
    ("plain/a.js", "import 'lib'", []),
    ("plain/a.js", "import '@/lib'", []),
    ("plain/a.js", "import '~/one'", []),
    ("plain/a.js", "import '../../plain/lib'", []),
    ("plain/a.js", "import '@acme/other'\nimport 'react'", []),
]


@pytest.mark.parametrize(("path", "text", "targets"), IMPORTS)
def test_an_import_names_files(path: str, text: str, targets: list[str]) -> None:
    assert named({**WORKSPACE, path: f"{text}\n"}, path) == targets


def test_what_an_index_gathers_is_visible() -> None:
    files = {**WORKSPACE, "app/src/a.ts": "import {deep} from '@acme/shared'\n"}
    assert visible(files, "app/src/a.ts") == [
        "packages/shared/src/general.ts",
        "packages/shared/src/more/deep.ts",
        "packages/shared/src/more/index.ts",
    ]


def test_a_project_that_refers_to_its_settings() -> None:
    files = {
        "tsconfig.json": '{"files": [], "references": [{"path": "./tsconfig.node.json"}, {"path": "./tsconfig.app.json"}]}',
        "tsconfig.node.json": "{}",
        "tsconfig.app.json": '{"compilerOptions": {"paths": {"@/*": ["./src/*"]}}}',
        "src/a.ts": "import './b'\n",
        "src/b.ts": "import '@/a'\n",
    }
    assert named(files, "src/b.ts") == ["src/a.ts"]


@pytest.mark.parametrize("text", ["{", "[]", '{"compilerOptions": 3}', '{"extends": "./tsconfig.json"}', "/*" * 50_000])
def test_settings_that_are_none_are_nothing(text: str) -> None:
    files = {"tsconfig.json": text, "package.json": text, "a.ts": "import '~/b'\nimport '#b'\n", "b.ts": ""}
    assert named(files, "a.ts") == []
