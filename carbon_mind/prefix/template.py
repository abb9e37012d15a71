"""A model's own chat template, rendered as its authors meant it and as llama.cpp's server does it.

The template is a program inside a downloaded file, so it runs in Jinja's sandbox: no attribute of a Python object is reachable.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from carbon_mind.errors import ModelProblem
from carbon_mind.values import Message

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""For a model without a template of its own; llama.cpp falls back to the same."""


class TemplateRefused(ModelProblem):
    """The template cannot be compiled or refuses these messages."""

    code = "model-template"


@functools.lru_cache(maxsize=8)
def _compiled(source: str) -> Any:
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def raise_exception(message: str) -> NoReturn:
        raise jinja2.TemplateError(message)

    # trim_blocks and lstrip_blocks as in Hugging Face transformers, for which templates are written.
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = raise_exception
    # A clock in the prefix would change its tokens every day: templates that ask for it get a fixed one.
    environment.globals["strftime_now"] = lambda _format: ""
    try:
        return environment.from_string(source)
    except jinja2.TemplateError as broken:
        raise TemplateRefused(f"the model's chat template does not compile: {broken}") from broken


def render(
    source: str | None,
    messages: Sequence[Message],
    *,
    bos_token: str,
    eos_token: str,
    tools: Sequence[Mapping[str, Any]] = (),
    add_generation_prompt: bool = True,
) -> str:
    """The prompt text of a chat; `tools` are JSON schemas as the chat API has them. Raises TemplateRefused."""
    import jinja2

    try:
        text = _compiled(source or CHATML).render(
            messages=[{"role": message.role, "content": message.content} for message in messages],
            add_generation_prompt=add_generation_prompt,
            bos_token=bos_token,
            eos_token=eos_token,
            tools=[dict(tool) for tool in tools] or None,
        )
    except (jinja2.TemplateError, TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as refused:
        raise TemplateRefused(f"the model's chat template refuses the messages: {refused}") from refused
    return str(text)
