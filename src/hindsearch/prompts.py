"""Prompt templates: files, rendered by sandboxed Jinja, identified by their digest."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path

import jinja2
from jinja2 import StrictUndefined, TemplateError, UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hindsearch.errors import UserError


@dataclass(frozen=True)
class Template:
    """The text of a template file. Values are data: nothing in them is rendered or escaped."""

    name: str
    source: str

    @staticmethod
    def load(name: str) -> "Template":
        """Read a template of the package (``search_r1/prompt.jinja``), or one of your own by its path."""
        own = Path(name).expanduser()
        packaged = files("hindsearch") / "templates" / name
        if own.is_file():
            try:
                return Template(name, own.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                raise UserError(f"template {name} cannot be read: {error}; save it as UTF-8 text") from error
        if packaged.is_file():
            return Template(name, packaged.read_text(encoding="utf-8"))
        raise UserError(f"there is no template {name}, neither as a file nor in the package's templates folder")

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.source.encode()).hexdigest()

    @cached_property
    def _compiled(self) -> jinja2.Template:
        return ImmutableSandboxedEnvironment(undefined=StrictUndefined).from_string(self.source)

    def render(self, **values: object) -> str:
        """Fill the template; an unknown variable in it is a ``UserError``."""
        try:
            return self._compiled.render(values)
        except UndefinedError as error:
            known = ", ".join(sorted(values))
            raise UserError(f"template {self.name}: {error.message}; it may use {known}") from error
        except TemplateError as error:
            raise UserError(f"template {self.name} cannot be rendered: {error.message}") from error
