"""Singular vectors where LAPACK's faster way gives up."""

import numpy as np
import pytest

from discreet.learning import singular


@pytest.mark.parametrize("shape", [(9, 4), (4, 9)])
def test_the_slower_way_finds_the_same(shape, monkeypatch):
    matrix = np.random.default_rng(0).standard_normal(shape)
    fast, tried = singular.thin_svd(matrix), []
    whole = singular.svd

    def gives_up(given, *, full_matrices, lapack_driver="gesdd"):
        tried.append(lapack_driver)
        if lapack_driver == "gesdd":
            raise np.linalg.LinAlgError("SVD did not converge")
        return whole(given, full_matrices=full_matrices, lapack_driver=lapack_driver)

    monkeypatch.setattr(singular, "svd", gives_up)
    left, values, right = singular.thin_svd(matrix)
    assert tried == ["gesdd", "gesvd"]
    assert np.allclose(left * values @ right, matrix)
    assert np.allclose(values, fast[1])
    assert (left.shape, right.shape) == (fast[0].shape, fast[2].shape)
