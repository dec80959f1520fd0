"""From problems to a policy: collection (alg_0), labels (alg_B), pretraining, fine-tuning on regret."""
