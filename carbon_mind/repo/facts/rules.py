"""Rules that a project states in words: "never edit X by hand", from contributing guides and notes for coding tools.

A stranger's sentence is quoted as data, whole or not at all. Only a plain prohibition about code, files, commits or
commands gets through: a verb of a list of ours behind the "not", a subject that can be worked on, nothing that refers
to a sentence left behind, and nothing that reads as if it spoke to a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from carbon_mind.repo.facts.context import Context, Wants, directory, join, ours
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.prose import Sentence, sentences
from carbon_mind.repo.facts.text import clean, plain_path
from carbon_mind.safety import block
from carbon_mind.safety.secrets import redact
from carbon_mind.values import ProjectFacts, RepoPath

__all__ = ["RULE", "WANTS", "facts", "normal", "own_text", "rules"]

WANTS = Wants(tree=True)
RULE = "rule: "
MAX_RULES = 5
MAX_RULE = 140
MAX_NESTED = 6

_NOTES = ("CLAUDE.md", ".claude/CLAUDE.md", ".cursorrules", ".github/copilot-instructions.md")
_GUIDES = tuple(
    join(folder, stem + suffix)
    for folder in ("", ".github", "docs")
    for stem in ("CONTRIBUTING", "contributing", "Contributing")
    for suffix in (".md", ".rst", ".txt", "")
)

_VERBS = (
    "edit hand-edit modify change touch commit push force-push add use run remove delete rename move import "
    "install introduce create write put place bump update upgrade call include merge rebase squash amend format "
    "reformat mock skip disable check copy hard-code hardcode depend rely prefix separate silence suppress log "
    "print throw return catch swallow expose export declare define mix access invoke reference build test publish "
    "ship regenerate mutate override break store pin vendor wrap inline replace convert bypass implement "
    "instantiate inherit extend append insert assign allocate pass raise combine bundle duplicate contain edited "
    "modified changed touched committed pushed added used run removed deleted renamed moved imported installed "
    "published included called mocked skipped disabled exposed exported"
)
_ADVERBS = "manually directly ever also simply blindly just be either even locally"
_NOT = re.compile(
    r"(?:(?:\A(?:(?:if|when|before|after)\s[^,.;]{3,80},\s)?|[;:,]\s|\s[-–—]\s|"  # noqa: RUF001
    r"\b(?:please|but|and|so|then)\s)"
    r"(?:please\s)?(?:do\snot|don't|never)|\b(?:must\snot|must\snever|mustn't|should\snever))"
    rf"(?:\s(?:{_ADVERBS.replace(' ', '|')}))*\s(?:{_VERBS.replace(' ', '|')})\b(?!-)"
    r"|(?:\A|,\s)never\s(?=§)",
    re.IGNORECASE,
)
_TOPIC = re.compile(
    r"\b(?:files?|code|codebase|commits?|branch(?:es)?|tests?|dependenc(?:y|ies)|imports?|functions?|class(?:es)?|"
    r"methods?|modules?|packages?|crates?|variables?|comments?|macros?|tabs|whitespace|indentation|snapshots?|"
    r"fixtures?|director(?:y|ies)|folders?|changelog|migrations?|schemas?|apis?|structs?|headers?|lock ?files?|"
    r"mocks?|exceptions?|warnings?|globals?|constants?|commands?|paths?|wildcards?|"
    r"generated|builds?|compiler|runtime)\b",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?<![\w:/])(?:[\w.@-]+/[\w./*-]*|\.?[\w-]+\.[a-z]{1,5}\b)")
# Prohibitions of behaviour, of reports and of paperwork; and sentences whose subject stands in another sentence.
_ELSEWHERE = re.compile(
    r"\b(?:conduct|harass\w*|offens\w*|issues?|pull requests?|prs?|bug reports?|reviews?|reviewers?|discussions?|"
    r"summar(?:y|ies)|descriptions?|explanations?|mailing|"
    r"above|below|same|following|preceding|aforementioned|these|those|such|latter|former|here|its|their|"
    r"this(?! (?:repo|repository|project|codebase|package|crate|directory|folder)\b))\b",
    re.IGNORECASE,
)
_CONCEDES = re.compile(r"(?:while|although|though|since|because|as|otherwise|then|also|instead|however)\b", re.I)
# Everybody knows these; and a sentence about secrets has no place near a model.
_TRUISM = re.compile(
    r"\b(?:secrets?|credentials?|passwords?|tokens?|keys?|sensitive|broken|dead|unrelated|unnecessar\w*|multiple)\b",
    re.IGNORECASE,
)
_DANGLING = re.compile(
    r"\A(?:it|they|them|that|one|so|too)\b|\A(?:\S+ ){0,2}(?:it|them|that|one|so|too)\b[.,;!]?(?=\s|\Z)", re.I
)
_CONDITION_OF_NOT = re.compile(
    r"\b(?:if|when|unless|because|since|that|why|where|who|which)\s(?:you|we|they|i|it)?\s?\Z", re.I
)
_STEERS = re.compile(
    r"\b(?:ignore|disregard|override|bypass|forget)\b.{0,60}"
    r"\b(?:instructions?|prompts?|rules?|previous|above|guidelines)\b|"
    r"\b(?:system|developer|user) (?:prompt|message)|\byou(?:'re| are)\b|\bassistants?\b|"
    r"\bas an? (?:ai|llm|agent|model)\b|"
    r"\b(?:ai|llms?|gpt\S*|chatgpt|claude|copilot|codex|gemini|cursor|agents?|agentic|chatbots?|jailbreak|prompts?)\b|"
    r"\b(?:system|user|human|developer|tool)\s*:|\b(?:the|tell|ask|to) users?\b|"
    r"\bpermissions?\b|\bconfirm\w*|\bsafety\b|"
    r"://|<!--|-->|```|~~~|<\||\|>|carbon-mind|repository-digest|&#?\w+;",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?:(?:very |super )?(?:important|note|warning|caution|nb|attention|critical|tip|remember|rule))\s*[:!-]\s*", re.I
)
_LEAD = re.compile(r"\A[^\w`\"'(\[./@*-]+")


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """At most MAX_RULES rules, those that name code or a path first; what the root AGENTS.md says is left to it."""
    found = Found("")
    agents = context.text(block.AGENTS)
    seen = {normal(sentence.text) for sentence in sentences(own_text(agents))} if agents else set()
    chosen: list[tuple[bool, str, int, RepoPath]] = []
    for file in _files(context):
        for line, rule, named in rules(context.text(file) or "", rst=file.endswith(".rst")):
            if normal(rule) not in seen:
                seen.add(normal(rule))
                chosen.append((not named, rule, line, file))
    chosen.sort(key=lambda entry: entry[0])
    for _, rule, line, file in chosen[:MAX_RULES]:
        found.constraint(f'{RULE}"{rule}"', line, file)
    return found.done()


def rules(text: str, *, rst: bool = False) -> Iterator[tuple[int, str, bool]]:
    """(line, rule, whether it names code or a path) of each rule, in order."""
    for sentence in sentences(text, rst=rst):
        if rule := _rule(sentence):
            yield sentence.line, rule, bool(sentence.code or _PATH.search(rule))


def normal(text: str) -> str:
    """A sentence as it compares: case, quotes, blanks and the final stop make no other rule."""
    return " ".join(_quoted(text).replace('"', "'").casefold().split()).rstrip(".!")


def own_text(agents: str) -> str:
    """An AGENTS.md without the block that we manage: what we wrote there is not the repository's word.

    "" when the markers are damaged, because then nobody can tell which part is ours.
    """
    text = block.strip(agents.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
    return "" if block.BEGIN.decode() in text or block.END.decode() in text else text


def _files(context: Context) -> Iterator[RepoPath]:
    yield from (RepoPath(path) for path in (*_NOTES, *_GUIDES) if context.has(path))
    nested = [path for name in ("AGENTS.md", "CLAUDE.md") for path in context.named(name)]
    nested = [path for path in nested if directory(path) not in {"", ".claude"} and ours(path)]
    nested = [path for path in nested if plain_path(path)]
    yield from sorted(nested, key=lambda path: (path.count("/"), path))[:MAX_NESTED]


def _straight(text: str) -> str:
    return text.replace("’", "'").replace("‘", "'").replace("“", '"').replace("”", '"')  # noqa: RUF001


def _quoted(text: str) -> str:
    """A sentence without the bullet sign or label in front of it: "Note: never ..."."""
    text = _LEAD.sub("", _straight(text))
    label = _LABEL.match(text)
    return text[label.end() :] if label else text


def _rule(sentence: Sentence) -> str:
    """The sentence as it is quoted, or ""."""
    rule = _quoted(sentence.text)
    # What is invisible here may be read elsewhere: such a sentence is not repaired, it is left out.
    if not rule or clean(rule) != rule or len(rule) > MAX_RULE or rule[-1] in "?:,;(" or rule.endswith("..."):
        return ""
    words = _quoted(sentence.prose)
    match = _NOT.search(words)
    if (
        not match
        or "?" in words
        or _CONCEDES.match(words)
        or _ELSEWHERE.search(words)
        or _TRUISM.search(words)
        or _STEERS.search(rule)
        or not _balanced(words)
    ):
        return ""
    before = words[: match.start()]
    if before.count("(") > before.count(")"):  # an aside is about what stands around it
        return ""
    if _DANGLING.match(words[match.end() :].lstrip()) or _CONDITION_OF_NOT.search(before):
        return ""
    if not (sentence.code or _PATH.search(rule) or _TOPIC.search(words)) or redact(rule) != rule:
        return ""
    return rule.replace('"', "'")


def _balanced(text: str) -> bool:
    return text.count("(") == text.count(")") and text.count('"') % 2 == 0 and "`" not in text and "**" not in text
