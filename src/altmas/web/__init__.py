"""The oracle is a person: a page that shows what a session asks and writes down what people answer."""

from altmas.web.app import create_app
from altmas.web.serving import serve

__all__ = ["create_app", "serve"]
