"""List combiners in the reference from the registry, so that a new one needs no line there.

::

    .. combiners:: manyclass.combiners.coupling.CouplingRule
       :accepts: one-vs-one

is an ``autosummary`` of all registered subclasses of a class, here of those for one-vs-one codes.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from manyclass import combiners

PARENTS = ("manyclass.combiners.coupling",)  # packages that export classes of their modules


def listed(base: str, accepts: str | None = None) -> list[str]:
    """Return the full names of the registered subclasses of a class, in order of registration.

    ``accepts`` limits them to combiners of these codes; a comma separates several. Rules that a
    page registers as an example are not listed.
    """
    module, name = base.rsplit(".", 1)
    parent = getattr(importlib.import_module(module), name)
    wanted = None if accepts is None else [code.strip() for code in accepts.split(",")]
    return [
        public_name(cls)
        for cls in combiners.registered().values()
        if issubclass(cls, parent)
        and cls.__module__.startswith("manyclass.")
        and (wanted is None or cls.accepts in wanted)
    ]


def public_name(cls: type) -> str:
    """Return the name under which users import a class."""
    for parent in PARENTS:
        if cls.__module__.startswith(f"{parent}."):
            if getattr(importlib.import_module(parent), cls.__name__, None) is cls:
                return f"{parent}.{cls.__name__}"
    return f"{cls.__module__}.{cls.__name__}"


def directives_of(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield base and codes of the directives of a page."""
    lines = text.splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith(".. combiners:: "):
            found = below.strip().startswith(":accepts:")
            yield line.split()[-1], below.split(":accepts:")[-1].strip() if found else None


def documented() -> set[str]:
    """Return the full names that the directives of all reference pages list."""
    pages = (Path(__file__).parents[1] / "api").glob("*.rst")
    return {
        name
        for page in pages
        for base, accepts in directives_of(page.read_text())
        for name in listed(base, accepts)
    }


def write_pages(app) -> None:
    """Write the page of every class: ``autosummary`` only looks for its own directive."""
    from sphinx.ext.autosummary.generate import generate_autosummary_docs

    folder = Path(app.srcdir) / "api" / "generated"
    head = ["", ".. autosummary::", f"   :toctree: {folder}", ""]
    with TemporaryDirectory() as temporary:
        source = Path(temporary) / "combiners.rst"
        source.write_text("\n".join([*head, *(f"   {name}" for name in sorted(documented())), ""]))
        generate_autosummary_docs([str(source)], suffix=".rst", app=app, overwrite=True)


def setup(app):
    from docutils.parsers.rst import directives
    from docutils.statemachine import StringList
    from sphinx.ext.autosummary import Autosummary

    class Combiners(Autosummary):
        required_arguments = 1
        option_spec = {"accepts": directives.unchanged}  # noqa: RUF012

        def run(self):
            names = listed(self.arguments[0], self.options.pop("accepts", None))
            self.options["toctree"] = "generated"
            # Names of the current module are given without it.
            own = f"{self.env.ref_context.get('py:module')}."
            lines = [name[len(own) :] if name.startswith(own) else f"~{name}" for name in names]
            self.content = StringList(lines, source=self.env.docname)
            return super().run()

    app.add_directive("combiners", Combiners)
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
