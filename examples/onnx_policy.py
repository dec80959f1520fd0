"""A policy that `driftformer export drift --out drift.onnx` wrote, played with numpy and onnxruntime alone."""

import numpy as np
import onnxruntime


class Policy:
    def __init__(self, path, seed=0):
        self.session, self.rng = onnxruntime.InferenceSession(path), np.random.default_rng(seed)
        shapes = {given.name: given.shape for given in self.session.get_inputs()}
        self.state = np.zeros((1, shapes["state"][1]))  # all that it knows: keep it with np.save
        self.nothing = (np.zeros(shapes["played"][1]), np.nan)
        self.news = []

    def act(self, features):
        """The arm to play and its probability; `features` are [arms, dim]."""
        for played, reward in self.news or [self.nothing]:
            given = {"features": [features], "played": [played], "reward": [reward], "state": self.state}
            (likely,), self.state = self.session.run(None, {name: np.array(one, float) for name, one in given.items()})
        self.news = []
        arm = self.rng.choice(len(likely), p=likely)
        return arm, likely[arm]

    def update(self, played, reward):
        """The features of an arm that was played, and what came of it: at once, late, or never."""
        self.news.append((played, float(reward)))
