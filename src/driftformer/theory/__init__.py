"""The paper's proofs as running code: every construction with explicit weights, checked against what it stands for."""
