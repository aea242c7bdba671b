"""Tensors of PyTorch become arrays wherever data enter, or get a sentence; PyTorch itself is never imported."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import altmas
from altmas import Pool, Session
from altmas.errors import PoolError
from altmas.items.images import image_bytes, looks_like_image


class Tensor:
    """What PyTorch's tensors do: no array while there is a gradient or a dtype that numpy does not know."""

    def __init__(self, values, dtype="torch.float32", grad=False, layout="torch.strided", device="cpu"):
        self.values, self.dtype, self.grad = np.asarray(values), dtype, grad
        self.layout, self.device = layout, SimpleNamespace(type=device)

    def __len__(self):
        return len(self.values)

    def __array__(self, *_, **__):
        return self.numpy()

    def detach(self):
        return Tensor(self.values, self.dtype, False, self.layout, self.device.type)

    def cpu(self):
        return Tensor(self.values, self.dtype, self.grad, self.layout)

    def float(self):
        return Tensor(self.values.astype(np.float32))

    def numpy(self):
        if self.grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.dtype == "torch.bfloat16" or self.device.type != "cpu":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.values


def made(values, kind):
    """The values as a tensor of that kind: of the stand-in above, or of the real PyTorch where it is installed."""
    if kind == "real":
        torch = pytest.importorskip("torch")
        values = torch.as_tensor(np.asarray(values))
        return values.bfloat16().requires_grad_() if values.dtype.is_floating_point else values
    floats = np.asarray(values).dtype.kind == "f"
    return Tensor(values, "torch.bfloat16" if floats else "torch.int64", floats, device="cuda")


KINDS = pytest.mark.parametrize("kind", ["stand-in", "real"])
PREDICTED = np.arange(12) % 3
NAMES = ["a", "b", "c"]


@KINDS
def test_every_part_of_a_pool_may_be_a_tensor(kind):
    scores = np.full((12, 3), 0.25) + 0.25 * np.eye(3)[PREDICTED]
    pool = Pool(
        made(np.ones((12, 4)), kind),
        made(PREDICTED, kind),
        scores=made(scores, kind),
        classes=NAMES,
        ids=made(np.arange(12), kind),
        slices={"half": made(np.arange(12) % 2, kind)},
        items=made(np.random.default_rng(0).random((12, 3, 8, 8)), kind),
    )
    same = Pool(np.ones((12, 4)), PREDICTED, scores=scores, classes=NAMES, slices={"half": np.arange(12) % 2})
    assert pool.fingerprint == same.fingerprint
    assert looks_like_image(pool.items[3]) and image_bytes(pool.items[3], Path())[1] == "image/png"


@KINDS
def test_lists_of_tensors_and_single_values(kind):
    one_by_one = [made(code, kind) for code in PREDICTED]
    images = [made(np.random.default_rng(k).random((8, 8)), kind) for k in range(12)]
    pool = Pool(predictions=one_by_one, classes=[0, 1, 2], items=images)
    assert pool.predictions.tolist() == PREDICTED.tolist()
    assert all(map(looks_like_image, pool.items))
    session = Session.create(None, pool, method="tradition")
    (query,) = session.ask(1)
    session.tell(made(query.index, kind), made(2, kind))
    assert session.votes(query.id) == {"": 2}
    session.add_model("v2", made(PREDICTED, kind), scores=made(np.eye(3)[PREDICTED], kind))


@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        (Tensor(np.ones((12, 2)), layout="torch.sparse_coo"), r"features is a sparse tensor.*to_dense\(\)"),
        (Tensor(np.ones((12, 2)), device="meta"), "features is a tensor on the device 'meta', which holds no numbers"),
    ],
)
def test_tensors_without_numbers_get_a_sentence(tensor, said):
    with pytest.raises(PoolError, match=said):
        Pool(tensor, PREDICTED)


def test_logits_get_a_sentence():
    logits = Tensor(np.random.default_rng(0).normal(size=(12, 3)))
    with pytest.raises(PoolError, match="of logits take the softmax"):
        Pool(None, PREDICTED, scores=logits, classes=NAMES)
    with pytest.raises(PoolError, match="the argmax of each row"):
        Pool(None, logits, classes=NAMES)


def test_a_pool_of_tensors_is_stored_and_read_again(tmp_path):
    pool = Pool(made(np.ones((12, 4)), "stand-in"), made(PREDICTED, "stand-in"), classes=NAMES)
    altmas.Session.create(tmp_path / "s.altmas", pool, method="tradition").close()
    with altmas.Session.open(tmp_path / "s.altmas") as session:
        assert session.pool.features.shape == (12, 4)
