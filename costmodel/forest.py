"""A random forest (Breiman, 2001), a baseline that knows its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tilewright.costmodel.files import Data, StoredModel
from tilewright.costmodel.model import log_speed
from tilewright.schedule.features import FEATURE_SCHEMA

__all__ = ["Forest"]


@dataclass(frozen=True)
class Trees:
    """All trees in one array each; a leaf is its own child."""

    roots: NDArray[np.int64]
    children: NDArray[np.int64]  # (n_nodes, 2)
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    value: NDArray[np.float64]
    depth: int

    @classmethod
    def of(cls, forest: Any) -> Trees:
        """Take over what scikit-learn has grown."""
        roots, children, feature, threshold, value = [], [], [], [], []
        start, depth = 0, 0
        for tree in (e.tree_ for e in forest.estimators_):
            roots.append(start)
            leaf = tree.children_left < 0
            own = np.arange(tree.node_count)
            pair = np.column_stack([tree.children_left, tree.children_right])
            children.append(np.where(leaf[:, None], own[:, None], pair) + start)
            feature.append(np.where(leaf, 0, tree.feature))
            threshold.append(tree.threshold)
            value.append(tree.value[:, 0, 0])
            start += tree.node_count
            depth = max(depth, tree.max_depth)
        return cls(
            np.array(roots), np.concatenate(children), np.concatenate(feature), np.concatenate(threshold),
            np.concatenate(value), depth,
        )  # fmt: skip

    def __call__(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """The answer of each tree, shape (n_trees, n)."""
        node = np.repeat(self.roots[:, None], len(x), axis=1)
        row = np.arange(len(x))[None, :]
        for _ in range(self.depth):
            right = x[row, self.feature[node]] > self.threshold[node]
            node = self.children[node, right.astype(np.int64)]
        return self.value[node]

    def to_data(self) -> Data:
        """As JSON values."""
        return {
            "roots": self.roots.tolist(), "children": self.children.tolist(), "feature": self.feature.tolist(),
            "threshold": self.threshold.tolist(), "value": self.value.tolist(), "depth": self.depth,
        }  # fmt: skip

    @classmethod
    def from_data(cls, data: Data) -> Trees:
        """The inverse of `to_data`."""
        roots, children, feature = (
            np.array(data[n], np.int64) for n in ("roots", "children", "feature")
        )
        threshold, value = (np.array(data[n], np.float64) for n in ("threshold", "value"))
        return cls(roots, children, feature, threshold, value, int(data["depth"]))


class Forest(StoredModel):
    """A random forest on log throughput, grown by scikit-learn.

    Parameters
    ----------
    n_trees, min_leaf
        Number of trees, and rows that a leaf needs.
    share : float
        Part of the features that a split may choose from.
    """

    def __init__(
        self,
        *,
        n_trees: int = 48,
        min_leaf: int = 2,
        share: float = 1 / 3,
        seed: int = 0,
        feature_schema: str = FEATURE_SCHEMA,
    ) -> None:
        self.n_trees = n_trees
        self.min_leaf = min_leaf
        self.share = share
        self.seed = seed
        self.feature_schema = feature_schema
        self.trees_: Trees | None = None

    def fit(self, x: NDArray[np.float32], y: NDArray[Any], groups: NDArray[Any]) -> Forest:
        from sklearn.ensemble import RandomForestRegressor

        forest = RandomForestRegressor(
            self.n_trees, min_samples_leaf=self.min_leaf, max_features=self.share, n_jobs=1,
            random_state=self.seed,
        )  # fmt: skip
        self.trees_ = Trees.of(forest.fit(x, log_speed(y)))
        self.n_fitted_ = len(x)
        return self

    def predict(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        if self.trees_ is None:
            return np.zeros(len(x))
        return np.asarray(self.trees_(x).mean(axis=0), dtype=np.float64)

    def uncertainty(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Standard deviation of the trees' answers."""
        if self.trees_ is None:
            return np.zeros(len(x))
        return np.asarray(self.trees_(x).std(axis=0), dtype=np.float64)

    def state(self) -> Data:
        parameters = {"n_trees": self.n_trees, "min_leaf": self.min_leaf, "share": self.share}
        trees = self.trees_.to_data() if self.trees_ else None
        return {**parameters, "seed": self.seed, "trees": trees}

    @classmethod
    def from_state(cls, data: Data) -> Self:
        names = ("n_trees", "min_leaf", "share", "seed")
        model = cls(**{n: data[n] for n in names})
        model.trees_ = Trees.from_data(data["trees"]) if data["trees"] else None
        return model
