"""The trainable ReLU transformer against Section 2.2's formulas, written as loops."""

from __future__ import annotations

import torch

from driftformer.models.relu_transformer import ReLUTransformer, causal


def test_relu_transformer_computes_the_formulas_of_section_2_2() -> None:
    torch.manual_seed(0)
    width, heads, tokens = 8, 2, 6
    model = ReLUTransformer(width, heads, layers=2).double().requires_grad_(False)
    given = torch.randn(1, tokens, width, dtype=torch.double)
    hidden = given[0].clone()
    for layer in model.layers:
        query, key, value = layer.queries_keys_values.weight.view(3, heads, width // heads, width)
        out = layer.out.weight.view(width, heads, width // heads)
        attended = hidden.clone()
        for i in range(tokens):
            for m in range(heads):
                for j in range(i + 1):
                    score = torch.relu((query[m] @ hidden[i]) @ (key[m] @ hidden[j]))
                    attended[i] += score * (out[:, m] @ (value[m] @ hidden[j])) / (i + 1)
        hidden = attended + torch.relu(attended @ layer.first.weight.T) @ layer.second.weight.T
    assert torch.allclose(model(given, causal(tokens, tokens, given.device), None)[0], hidden, atol=1e-10)
