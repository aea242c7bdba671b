"""Texts as embeddings of a small language model that lies on this machine; nothing is fetched from a network.

The only file that knows the extra `embeddings` (sentence-transformers). ALTMAS_EMBEDDING_MODEL names the folder of the
model, which the user chooses and puts there.
"""

import os
from collections.abc import Sequence
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
    folder = model_folder(what)
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    vectors = model.encode(list(texts), batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)
    return np.asarray(vectors, np.float32).round(4)


def model_folder(what: str = "texts") -> Path:
    """Where the model lies; MissingExtra, or PoolError without a model."""
    require("embeddings", f"an embedding of {what}")
    folder = os.environ.get(MODEL, "")
    if not (Path(folder) / "config.json").is_file() or not folder:
        fault = f"{folder} holds no model of sentence-transformers" if folder else f"{MODEL} is not set"
        raise PoolError(
            f"{fault}; set {MODEL} to a folder that holds a model, such as all-MiniLM-L6-v2 saved by "
            f"SentenceTransformer.save"
        )
    return Path(folder)
