"""Tiny random GGUF models, one per kind of attention state, so that the real llama.cpp runs in every test that needs it.

Each has two to four layers, a byte-level vocabulary with the ChatML specials and a 16k context, and evaluates thousands of tokens a
second. What they say is noise; whether a restored state says the same noise is what the tests ask.

    dense      llama: every position kept
    recurrent  mamba: one state, nothing can be dropped
    hybrid     lfm2: short convolutions and one attention layer
    sliding    gemma3: five of six layers see a window of 128 tokens
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np

SPECIALS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# As Qwen's models have it: tools behind the system text, calls between tags.
AGENT_TEMPLATE = (
    "{%- if tools %}<|im_start|>system\n{{ messages[0].content if messages[0].role == 'system' else 'You help.' }}"
    "\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
    "{%- for tool in tools %}\n{{ tool | tojson }}{%- endfor %}\n</tools>\n\nFor each function call, return a json object "
    "with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call><|im_end|>\n'
    "{%- elif messages[0].role == 'system' %}<|im_start|>system\n{{ messages[0].content }}<|im_end|>\n{%- endif %}"
    "{%- for m in messages %}{%- if m.role == 'user' or (m.role == 'system' and not loop.first) %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
    "{%- elif m.role == 'assistant' %}<|im_start|>assistant{%- if m.content %}\n{{ m.content }}{%- endif %}"
    "{%- for call in m.tool_calls %}\n<tool_call>\n"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}\n</tool_call>'
    "{%- endfor %}<|im_end|>\n"
    "{%- elif m.role == 'tool' %}<|im_start|>user\n<tool_response>\n{{ m.content }}\n</tool_response><|im_end|>\n"
    "{%- endif %}{%- endfor %}{%- if add_generation_prompt %}<|im_start|>assistant\n{%- endif %}"
)
# A head of 32, the block size of q8_0 and q4_0: a quantised cache needs it to divide.
_EMBED, _CONTEXT, _HEADS, _KV_HEADS, _FF = 64, 16384, 2, 1, 128
_HEAD = _EMBED // _HEADS


def _byte_texts() -> list[str]:
    """The printable stand-in of each byte in a byte-level BPE vocabulary (the mapping of GPT-2)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (chr(256 + i) for i in range(256))
    return [chr(byte) if byte in plain else next(others) for byte in range(256)]


class _Model:
    def __init__(self, path: Path, architecture: str, seed: int, template: str = TEMPLATE) -> None:
        self.random = np.random.default_rng(seed)
        self.writer = gguf.GGUFWriter(str(path), architecture)
        self.size = 256 + len(SPECIALS)
        add: Any = self.writer
        add.add_tokenizer_model("gpt2")
        add.add_tokenizer_pre("qwen2")
        add.add_token_list([*_byte_texts(), *SPECIALS])
        add.add_token_types([gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL] * len(SPECIALS))
        add.add_token_merges(["a b"])
        add.add_eos_token_id(257)
        add.add_bos_token_id(258)
        add.add_add_bos_token(False)
        add.add_chat_template(template)
        # An agent's head is some 30,000 tokens where a token is a byte.
        add.add_context_length(_CONTEXT if template == TEMPLATE else 4 * _CONTEXT)
        add.add_embedding_length(_EMBED)
        add.add_layer_norm_rms_eps(1e-5)
        add.add_vocab_size(self.size)
        add.add_file_type(0)

    def noise(self, name: str, *shape: int) -> None:
        self.writer.add_tensor(name, (self.random.standard_normal(shape) * 0.08).astype(np.float32))

    def ones(self, name: str, size: int) -> None:
        self.writer.add_tensor(name, np.ones(size, np.float32))

    def tensor(self, name: str, values: Any) -> None:
        self.writer.add_tensor(name, values)

    def attention(self, block: str, *, norms: bool) -> None:
        self.noise(block + "attn_q.weight", _EMBED, _EMBED)
        self.noise(block + "attn_k.weight", _HEAD * _KV_HEADS, _EMBED)
        self.noise(block + "attn_v.weight", _HEAD * _KV_HEADS, _EMBED)
        self.noise(block + "attn_output.weight", _EMBED, _EMBED)
        if norms:
            self.ones(block + "attn_q_norm.weight", _HEAD)
            self.ones(block + "attn_k_norm.weight", _HEAD)

    def feed_forward(self, block: str) -> None:
        self.ones(block + "ffn_norm.weight", _EMBED)
        self.noise(block + "ffn_gate.weight", _FF, _EMBED)
        self.noise(block + "ffn_up.weight", _FF, _EMBED)
        self.noise(block + "ffn_down.weight", _EMBED, _FF)

    def write(self) -> None:
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()


def dense(path: Path, *, seed: int = 1, template: str = TEMPLATE) -> Path:
    """A llama with two layers."""
    model = _Model(path, "llama", seed, template)
    add: Any = model.writer
    add.add_block_count(2)
    add.add_feed_forward_length(_FF)
    add.add_head_count(_HEADS)
    add.add_head_count_kv(_KV_HEADS)
    add.add_rope_dimension_count(_HEAD)
    model.noise("token_embd.weight", model.size, _EMBED)
    model.ones("output_norm.weight", _EMBED)
    model.noise("output.weight", model.size, _EMBED)
    for i in range(2):
        model.ones(f"blk.{i}.attn_norm.weight", _EMBED)
        model.attention(f"blk.{i}.", norms=False)
        model.feed_forward(f"blk.{i}.")
    model.write()
    return path


def recurrent(path: Path, *, seed: int = 2) -> Path:
    """A mamba with two layers."""
    inner, state, kernel, rank = 2 * _EMBED, 16, 4, 4
    model = _Model(path, "mamba", seed)
    add: Any = model.writer
    add.add_block_count(2)
    add.add_feed_forward_length(0)
    add.add_head_count(0)
    add.add_ssm_conv_kernel(kernel)
    add.add_ssm_inner_size(inner)
    add.add_ssm_state_size(state)
    add.add_ssm_time_step_rank(rank)
    model.noise("token_embd.weight", model.size, _EMBED)
    model.ones("output_norm.weight", _EMBED)
    model.noise("output.weight", model.size, _EMBED)
    for i in range(2):
        block = f"blk.{i}."
        model.ones(block + "attn_norm.weight", _EMBED)
        model.noise(block + "ssm_in.weight", 2 * inner, _EMBED)
        model.noise(block + "ssm_conv1d.weight", inner, kernel)
        model.noise(block + "ssm_conv1d.bias", inner)
        model.noise(block + "ssm_x.weight", rank + 2 * state, inner)
        model.noise(block + "ssm_dt.weight", inner, rank)
        model.noise(block + "ssm_dt.bias", inner)
        decay = -np.abs(model.random.standard_normal((inner, state)) * 0.08) - 0.1
        model.tensor(block + "ssm_a", decay.astype(np.float32))
        model.ones(block + "ssm_d", inner)
        model.noise(block + "ssm_out.weight", _EMBED, inner)
    model.write()
    return path


def hybrid(path: Path, *, seed: int = 3, template: str = TEMPLATE) -> Path:
    """An lfm2 with four layers, the third with attention."""
    kernel, kv_heads = 3, [0, 0, _KV_HEADS, 0]
    model = _Model(path, "lfm2", seed, template)
    add: Any = model.writer
    add.add_block_count(4)
    add.add_feed_forward_length(_FF)
    add.add_head_count(_HEADS)
    add.add_head_count_kv(kv_heads)
    add.add_rope_dimension_count(_HEAD)
    add.add_uint32("lfm2.shortconv.l_cache", kernel)
    add.add_rope_freq_base(1e6)
    model.noise("token_embd.weight", model.size, _EMBED)
    model.ones("token_embd_norm.weight", _EMBED)
    for i in range(4):
        block = f"blk.{i}."
        model.ones(block + "attn_norm.weight", _EMBED)
        model.feed_forward(block)
        if kv_heads[i]:
            model.attention(block, norms=True)
        else:
            model.noise(block + "shortconv.conv.weight", _EMBED, kernel)
            model.noise(block + "shortconv.in_proj.weight", 3 * _EMBED, _EMBED)
            model.noise(block + "shortconv.out_proj.weight", _EMBED, _EMBED)
    model.write()
    return path


def sliding(path: Path, *, seed: int = 4) -> Path:
    """A gemma3 with six layers, of which llama.cpp lets the last see everything."""
    model = _Model(path, "gemma3", seed)
    add: Any = model.writer
    add.add_block_count(6)
    add.add_feed_forward_length(_FF)
    add.add_head_count(_HEADS)
    add.add_head_count_kv(_KV_HEADS)
    add.add_key_length(_HEAD)
    add.add_value_length(_HEAD)
    add.add_rope_freq_base(1e6)
    add.add_sliding_window(128)
    model.noise("token_embd.weight", model.size, _EMBED)
    model.ones("output_norm.weight", _EMBED)
    for i in range(6):
        block = f"blk.{i}."
        model.ones(block + "attn_norm.weight", _EMBED)
        model.attention(block, norms=True)
        model.ones(block + "post_attention_norm.weight", _EMBED)
        model.feed_forward(block)
        model.ones(block + "post_ffw_norm.weight", _EMBED)
    model.write()
    return path


def adapter(path: Path, *, seed: int = 5, rank: int = 2) -> Path:
    """A LoRA adapter for the dense model: the queries of both layers."""
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(rank))
    for i in range(2):
        for part, shape in (("a", (rank, _EMBED)), ("b", (_EMBED, rank))):
            values = random.standard_normal(shape).astype(np.float32)
            writer.add_tensor(f"blk.{i}.attn_q.weight.lora_{part}", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


KINDS: dict[str, Callable[[Path], Path]] = {
    "dense": dense,
    "recurrent": recurrent,
    "hybrid": hybrid,
    "sliding": sliding,
    "agent": functools.partial(dense, template=AGENT_TEMPLATE),
    "agent-hybrid": functools.partial(hybrid, template=AGENT_TEMPLATE),
}
