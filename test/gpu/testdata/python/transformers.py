"""Stands in for transformers. Its cache is twice as large as a Llama's if CACHE_IS_LARGE is set."""
import json
import os
from types import SimpleNamespace

import torch

__version__ = "5.0.0"


class AutoConfig:
    @staticmethod
    def from_pretrained(path):
        with open(os.path.join(path, "config.json")) as f:
            return SimpleNamespace(**json.load(f))


class _Llama:
    def __init__(self, m):
        self.m = m

    def to(self, device, dtype):
        m, keys = self.m, self.m.num_key_value_heads * self.m.head_dim
        layer = m.hidden_size * (2 * m.num_attention_heads * m.head_dim + 2 * keys + 3 * m.intermediate_size + 2)
        self.weights = torch.empty(2 * m.vocab_size * m.hidden_size + m.num_hidden_layers * layer + m.hidden_size, dtype)
        return self

    def model(self, ids, use_cache):
        keys = self.m.num_key_value_heads * self.m.head_dim * self.m.num_hidden_layers
        times = 4 if "CACHE_IS_LARGE" in os.environ else 2
        return SimpleNamespace(past_key_values=torch.empty(times * keys * (ids.size // torch.long), torch.bfloat16), last_hidden_state=torch.empty(1))


class AutoModelForCausalLM:
    @staticmethod
    def from_config(config):
        return _Llama(config)
