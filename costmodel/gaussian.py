"""A Gaussian process (Rasmussen & Williams, 2006): few rows, honest uncertainty."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tilewright.costmodel.files import Data, StoredModel
from tilewright.costmodel.model import log_speed
from tilewright.costmodel.scaling import Scaling
from tilewright.schedule.features import FEATURE_SCHEMA

__all__ = ["GaussianProcess"]

Matrix = NDArray[np.float64]


class GaussianProcess(StoredModel):
    """A Gaussian process on log throughput; its scale and noise are fitted by scikit-learn.

    The kernel is a Matern one with nu = 5/2 on standardised features.

    Parameters
    ----------
    limit : int
        Rows that are kept, drawn at random with the best always among them: time grows with the cube.
    """

    def __init__(
        self, *, limit: int = 300, seed: int = 0, feature_schema: str = FEATURE_SCHEMA
    ) -> None:
        self.limit = limit
        self.seed = seed
        self.feature_schema = feature_schema
        self.scaling_: Scaling | None = None
        self.rows_: Matrix = np.empty((0, 0))
        self.weights_: Matrix = np.empty(0)
        self.solver_: Matrix = np.empty((0, 0))  # inverse of the lower Cholesky factor
        self.kernel_: tuple[float, float, float] = (1.0, 1.0, 0.0)  # length, signal and mean

    def fit(self, x: NDArray[np.float32], y: NDArray[Any], groups: NDArray[Any]) -> GaussianProcess:
        from threadpoolctl import threadpool_limits

        keep = self._kept(np.asarray(y, dtype=np.float64))
        self.scaling_ = Scaling.of(x)
        self.rows_ = self.scaling_(x[keep])
        values = log_speed(y)[keep]
        with threadpool_limits(1):  # a core that is timing must stay free
            length, signal, noise = self._scales(values)
            self.kernel_ = (length, signal, float(values.mean()))
            covariance = self._kernel(self.rows_) + noise * np.eye(len(keep))
            self.solver_ = np.linalg.inv(np.linalg.cholesky(covariance))
            self.weights_ = self.solver_.T @ (self.solver_ @ (values - values.mean()))
        self.n_fitted_ = len(x)
        return self

    def _kept(self, y: Matrix) -> NDArray[np.intp]:
        if len(y) <= self.limit:
            return np.arange(len(y))
        best = np.argsort(-y, kind="stable")[: self.limit // 2]
        rest = np.setdiff1d(np.arange(len(y)), best)
        some = np.random.default_rng(self.seed).permutation(rest)[: self.limit - len(best)]
        return np.sort(np.concatenate([best, some]))

    def _scales(self, values: Matrix) -> tuple[float, float, float]:
        """Length, signal and noise variance of largest likelihood; a guess for constant values."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        variance = float(values.var())
        usual = float(np.sqrt(self.rows_.shape[1]))
        if len(values) < 4 or variance < 1e-12:
            return usual, max(variance, 1e-6), max(0.1 * variance, 1e-6)
        kernel = ConstantKernel(variance, (variance / 100, variance * 100)) * Matern(
            usual, (usual / 20, usual * 20), nu=2.5
        ) + WhiteKernel(0.05 * variance, (1e-4 * variance, variance))
        process = GaussianProcessRegressor(kernel, random_state=self.seed)
        with warnings.catch_warnings():  # a scale at its bound is still a scale
            warnings.simplefilter("ignore", ConvergenceWarning)
            process.fit(self.rows_, values - values.mean())
        signal, length, noise = np.exp(process.kernel_.theta)
        return float(length), float(signal), float(noise)

    def _kernel(self, rows: Matrix) -> Matrix:
        """Covariances with the training rows, shape (n, n_kept)."""
        from scipy.spatial.distance import cdist

        length, signal, _ = self.kernel_
        d = np.sqrt(5.0) / length * cdist(rows, self.rows_)
        return np.asarray(signal * (1 + d + d * d / 3) * np.exp(-d))

    def predict(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        if self.scaling_ is None:
            return np.zeros(len(x))
        # a sum for each row, not a matrix product, whose rounding depends on the number of rows
        scores = (self._kernel(self.scaling_(x)) * self.weights_).sum(axis=1) + self.kernel_[2]
        return np.asarray(scores, dtype=np.float64)

    def uncertainty(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Posterior standard deviation of the noiseless log throughput."""
        if self.scaling_ is None:
            return np.zeros(len(x))
        explained = np.square(self._kernel(self.scaling_(x)) @ self.solver_.T).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(self.kernel_[1] - explained, 0.0)))

    def state(self) -> Data:
        arrays = {"rows": self.rows_, "weights": self.weights_, "solver": self.solver_}
        return {
            **{n: a.tolist() for n, a in arrays.items()}, "kernel": list(self.kernel_), "limit": self.limit,
            "seed": self.seed, "scaling": self.scaling_.to_data() if self.scaling_ else None,
        }  # fmt: skip

    @classmethod
    def from_state(cls, data: Data) -> Self:
        model = cls(limit=data["limit"], seed=data["seed"])
        model.rows_, model.weights_, model.solver_ = (
            np.array(data[n], dtype=np.float64) for n in ("rows", "weights", "solver")
        )
        model.kernel_ = tuple(data["kernel"])
        model.scaling_ = Scaling.from_data(data["scaling"]) if data["scaling"] else None
        return model
