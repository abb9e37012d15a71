"""The bound against counts that real tokenizers gave, so that no model is needed here; and one test with a model."""

from __future__ import annotations

import random
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbon_mind.digest.bound import token_bound

# (text, most tokens that any of the vocabularies named in bound.py makes of it, without special tokens)
MEASURED = [
    (
        (
            "# Commands\n"
            "\n"
            "- build: `cargo build --release` (Cargo.toml:12)\n"
            "- test: `cargo test --all --features pcre2` (.github/workflows/ci.yml:141)\n"
            "- test one: `cargo test -p grep-printer json::tests::basic` (Cargo.toml:40)\n"
            "- lint: `cargo clippy -- -D warnings` (Makefile:9)\n"
        ),
        112,
    ),
    (
        (
            "- `src/flask/app.py`: 31 files import it, 412 references\n"
            "  - `class Flask(App)`\n"
            "  - `def url_for(self, /, endpoint: str, *, _anchor: str | None = None) -> s"
            "tr`\n"
            "  - `def full_dispatch_request(self, ctx: AppContext) -> Response`\n"
        ),
        87,
    ),
    (
        (
            "- `src/networking.c`: 58 files call it, 903 references\n"
            "  - `void addReplyBulkCBuffer(client *c, const void *p, size_t len)`\n"
            "  - `int processMultibulkBuffer(client *c)`\n"
            "  - `client *createClient(connection *conn)`\n"
        ),
        81,
    ),
    (
        (
            "- `packages/reactivity/src/effect.ts` <- runtime-core, runtime-dom, compiler"
            "-sfc\n"
            "  - `export function pauseScheduling(): void`\n"
            "  - `export class ReactiveEffect<T = any> implements Subscriber, ReactiveEff"
            "ectOptions`\n"
        ),
        64,
    ),
    (
        (
            "deps/jemalloc/include/jemalloc/internal/tcache_inlines.h\n"
            "deps/jemalloc/test/unit/prof_gdump.sh\n"
            "deps/hiredis/examples/example-macosx.c\n"
            "src/commands/bzpopmax.json\n"
            "tests/unit/moduleapi/keyspace_events.tcl\n"
        ),
        87,
    ),
    (
        (
            "Help/release/3.12.rst\n"
            "Help/release/3.13.rst\n"
            "Help/release/3.14.rst\n"
            "Help/release/3.15.rst\n"
            "Help/release/3.2.rst\n"
        ),
        59,
    ),
    (
        (
            "- FIXME (crates/searcher/src/lines.rs:210): this allocates once per match; s"
            "ee the note on `preceding_by_pos`\n"
            "- HACK (src/t_zset.c:3316): zunionInterDiffGenericCommand re-reads the keys "
            "it has just deleted\n"
        ),
        77,
    ),
    (
        (
            "Text from a repository is data. It is redacted, stripped of control characte"
            "rs, quoted, and cut at a fixed length before it reaches a prompt; links are "
            "never followed, nothing is executed, and the same input always gives the sam"
            "e bytes.\n"
        ),
        52,
    ),
    (
        (
            "The quick brown fox jumps over the lazy dog while antidisestablishmentariani"
            "sm and pneumonoultramicroscopicsilicovolcanoconiosis keep proofreaders awake"
            "."
        ),
        45,
    ),
    (
        (
            "class HTTPServerRequestHandlerFactory(BaseXMLRPCDispatcher, metaclass=ABCMet"
            "a):\n"
            "    def getElementsByTagNameNS(self, namespaceURI, localName): ...\n"
        ),
        46,
    ),
    (
        (
            "static inline uint64_t __attribute__((always_inline)) _mm512_mask_cvtepi32_s"
            "toreu(uint8x16_t *restrict dst, __m512i src);\n"
        ),
        56,
    ),
    (("if (!(p = zmalloc_usable(sizeof(*p)+hdrlen+initlen+1, &usable))) return NULL; /* \\0 is implicit */\n"), 42),
    (("export const SSR_RENDER_LIST: unique symbol = Symbol(__DEV__ ? `ssrRenderList` : ``)\n"), 30),
    (
        (
            "KEY=abc; for f in $(ls *.tcl | grep -v '^#'); do ./runtest --single unit/$f "
            "--timeout 2400 || exit 1; done\n"
        ),
        47,
    ),
    (("[2, 116, 92, 2, 117, 93], [6, 58, 36, 2, 59, 37], [4, 46, 20, 6, 47, 21], [7, 42, 14, 4, 43, 15]\n"), 91),
    ("log1p0300 log1p 1.7976931348623157e+308 -> 709.78271289338397\n", 55),
    ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", 60),
    ("E3B0C442-98FC-1C14-9AFB-F4C8996FB924 27AE41E4649B934CA495991B7852B855", 65),
    ("q7Zr2Xk9Lm4Vb8Nt1Pw6Hs3Yd5Gc0Jf2Qa7Ue4 Tn8wRz3kVx6mPq1sLb9yHd2gCf5jAe7uYo4i", 74),
    ("xqzvkj wprtlm zzxcqv bnhgtr fkdjsl qpwoei ruttyy mvncbx", 37),
    ("XKQZ_VBNM_RTYP WQXZJK_HGFDS PLMOKN_IJBUHV", 32),
    ("snrtk_plqwe_xcvbn_mzaqw_edcrf_vtgby_hnujm_ikolp", 33),
    ("0123456789 3141592653589793 2718281828459045 1618033988749894", 62),
    (("    indented:\n        - more\n\t\ttabs\n\n\n      \n  two  spaces   three    four\n"), 42),
    ("!@#$%^&*()_+-=[]{}|;':\",./<>?~` ~!/?<>(){}[]:;,.+-*/%^&|", 43),
    (("::: *** --- === >>> <<< ... ((( ))) [[[ ]]] {{{ }}} ### $$$ %%% &&& ||| ??? !!!"), 36),
    (
        (
            "\u5feb\u901f\u7684\u68d5\u8272\u72d0\u72f8\u8df3\u8fc7\u4e86\u61d2\u72d7\u3002"
            "\u8fd9\u4e2a\u9879\u76ee\u63d0\u4f9b\u4e86\u4e00\u4e2a\u547d\u4ee4\u884c\u5de5\u5177"
        ),
        58,
    ),
    (
        (
            "\u3053\u306e\u30d7\u30ed\u30b8\u30a7\u30af\u30c8\u306f\u30ea\u30dd"
            "\u30b8\u30c8\u30ea\u306e\u69cb\u9020\u3092\u89e3\u6790\u3057\u307e\u3059"
        ),
        42,
    ),
    ("\ucd5c\uc18c\ud55c\uc758 \uc694\uc57d\uc744 \ub9cc\ub4dc\ub294 \ub3c4\uad6c\uc785\ub2c8\ub2e4", 40),
    (
        (
            "\u042d\u0442\u043e\u0442 \u043f\u0440\u043e\u0435\u043a\u0442 \u0430\u043d\u0430\u043b\u0438"
            "\u0437\u0438\u0440\u0443\u0435\u0442 \u0440\u0435\u043f\u043e\u0437\u0438\u0442\u043e\u0440\u0438\u0439"
        ),
        39,
    ),
    (
        (
            "\u03a4\u03bf \u03ad\u03c1\u03b3\u03bf \u03b1\u03c5\u03c4\u03cc "
            "\u03b1\u03bd\u03b1\u03bb\u03cd\u03b5\u03b9 \u03ba\u03ce\u03b4\u03b9\u03ba\u03b1"
        ),
        31,
    ),
    (
        "\u0647\u0630\u0627 \u0627\u0644\u0645\u0634\u0631\u0648\u0639 \u064a\u062d\u0644\u0644 \u0627\u0644\u0634\u0641\u0631\u0629",
        24,
    ),
    (
        "\u0e42\u0e04\u0e23\u0e07\u0e01\u0e32\u0e23\u0e19\u0e35\u0e49\u0e27\u0e34\u0e40\u0e04\u0e23\u0e32\u0e30\u0e2b\u0e4c",
        38,
    ),
    (
        (
            "\U0001f680 fast \u2728 and \U0001f525 small \u2013 \u201cquoted"
            "\u201d \u2026 it\u2019s done \u2705 \u2192 next \u274c \U0001f468\u200d\U0001f469\u200d\U0001f467"
        ),
        43,
    ),
    (("\u251c\u2500\u2500 src\n\u2502   \u251c\u2500\u2500 main.rs\n\u2514\u2500\u2500 Cargo.toml\n"), 24),
    ("\U00010000\U00010123\U0001f9ff\U0001fabc\U0002a6d6", 21),
    (
        (
            "Dieses Projekt \xfcberpr\xfcft die Gr\xf6\xdfe der \xdcbersetzungsdateien und l\xf6scht \xfcberfl"
            "\xfcssige Eintr\xe4ge."
        ),
        44,
    ),
    ("1", 2),
    ("a", 1),
    ("]", 1),
    ("\n", 2),
    ("  ", 2),
    ("\xe9", 1),
    ("7 7", 4),
    (("\n\n# x"), 5),
]


@pytest.mark.parametrize(("text", "most"), MEASURED)
def test_never_below_any_tokenizer(text: str, most: int) -> None:
    assert token_bound(text) >= most


def test_the_slack_on_digests_is_small() -> None:
    """The first five are what a digest is made of: bytes would allow 2.4 times too few words, this at most a third."""
    digests = MEASURED[:5]
    assert sum(token_bound(text) for text, _ in digests) <= 1.25 * sum(most for _, most in digests)
    assert sum(token_bound(text) for text, _ in digests) < 0.55 * sum(len(text) for text, _ in digests)


UNITS = (
    st.text(string.printable, max_size=6) | st.text(max_size=4) | st.sampled_from(["get", "HTTPServer", "ation", " ("])
)
TEXTS = st.lists(UNITS, max_size=12).map("".join)


def _letter(character: str) -> bool:
    return character.isascii() and character.isalpha()


@given(TEXTS, TEXTS)
@settings(max_examples=500)
def test_parts_counted_one_by_one_are_enough(first: str, second: str) -> None:
    if first and second and _letter(first[-1]) and _letter(second[0]):
        second = " " + second
    assert token_bound(first + second) <= token_bound(first) + token_bound(second)


@given(TEXTS)
@settings(max_examples=500)
def test_between_one_and_one_per_byte(text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    assert (1 if text else 0) <= token_bound(text) <= size + 1


@given(TEXTS)
@settings(max_examples=200)
def test_one_letter_more_never_counts_less_than_nothing(text: str) -> None:
    assert token_bound(text + "\n") == max(token_bound(text), 1) + 1


def test_empty() -> None:
    assert token_bound("") == 0


def test_a_megabyte_of_one_word_ends() -> None:
    """Work per character is bounded, also where no piece fits and where each does."""
    for piece in ("a", "A", "xq", "test", " ", "1", "\u00e9", "(", "aB"):
        text = piece * (200_000 // len(piece))
        assert 0 < token_bound(text) <= len(text.encode()) + 1


@pytest.mark.model
def test_never_below_a_real_tokenizer(smollm2_path: Path) -> None:
    """SmolLM2's vocabulary is among the smallest that local models use: it needs most tokens for most texts."""
    llama_cpp = pytest.importorskip("llama_cpp", reason="the llama extra is not installed: run `make llama`")
    model = llama_cpp.Llama(str(smollm2_path), vocab_only=True, verbose=False)
    rng = random.Random(3)
    texts = [text for text, _ in MEASURED]
    words = "".join(texts[:15]).split(" ")
    texts += [" ".join(rng.choices(words, k=40)) for _ in range(300)]
    texts += ["".join(rng.choices(string.ascii_letters + string.digits + "_ ", k=120)) for _ in range(300)]
    texts += [path.read_text("utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))]
    for text in texts:
        actual = len(model.tokenize(text.encode(), add_bos=False, special=False))
        assert token_bound(text) >= actual, text
