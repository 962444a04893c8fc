"""Run code when the pages are built, and show its output below it.

In a page::

    ```{run}
    print(1 + 1)
    ```

shows the code and ``2``. The blocks of a page run from top to bottom and share their names. A
block ``{command}`` holds shell commands, ``manyclass ...`` or ``head FILE``; they run in a
temporary folder of the page. An error in a block fails the build.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"  # pages may import from it
BLOCK = re.compile(r"^```\{(run|command)\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Page:
    """The names and the folder that the blocks of one page share."""

    def __init__(self, name: str):
        self.names: dict[str, Any] = {"__name__": name}
        self._folder = tempfile.TemporaryDirectory()

    def run(self, code: str) -> str:
        """Run Python; returns what it prints, and the value of a last expression."""
        tree = ast.parse(code)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with _captured(self._folder.name) as out:
            exec(compile(tree, "<page>", "exec"), self.names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "<page>", "eval"), self.names)
                if value is not None:
                    print(repr(value))
        return out.getvalue()

    def command(self, lines: str) -> str:
        """Run lines of the command line; returns what they print."""
        with _captured(self._folder.name) as out:
            for line in filter(None, lines.replace("\\\n", " ").splitlines()):
                program, *arguments = shlex.split(line)
                _PROGRAMS[program](arguments)
        return out.getvalue()


def _manyclass(arguments: list[str]) -> None:
    from manyclass.app.cli import main

    status = main(arguments)
    if status:
        raise RuntimeError(f"manyclass {shlex.join(arguments)} ended with status {status}")


def _head(arguments: list[str]) -> None:
    *options, path = arguments
    n = int(options[-1]) if options else 10
    print(*Path(path).read_text().splitlines()[:n], sep="\n")


_PROGRAMS = {"manyclass": _manyclass, "head": _head}


@contextlib.contextmanager
def _captured(folder: str) -> Iterator[io.StringIO]:
    out, before, path = io.StringIO(), os.getcwd(), list(sys.path)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        os.chdir(folder)
        sys.path.insert(0, str(EXAMPLES))
        try:
            with warnings.catch_warnings():
                # As in a session: every warning is shown, without file and line.
                warnings.simplefilter("default")
                warnings.showwarning = _show_warning
                yield out
        finally:
            os.chdir(before)
            sys.path[:] = path


def _show_warning(message, category, *_) -> None:
    print(f"{category.__name__}: {message}")


def blocks_of(text: str) -> list[tuple[str, str]]:
    """Return the kind and the content of every block of a page."""
    return [(kind, content) for kind, content in BLOCK.findall(text)]


def run_page(text: str, name: str) -> list[str]:
    """Run all blocks of a page from top to bottom; returns what each prints."""
    page = Page(name)
    return [getattr(page, kind)(content) for kind, content in blocks_of(text)]


def with_short_lines(text: str, width: int = 90) -> str:
    """Break sentences that are longer than the box of an output, as a terminal does.

    Lines of tables and arrays, with blanks side by side or brackets, stay as they are.
    """
    return "\n".join(
        line if "  " in line.strip() or "[" in line else textwrap.fill(line, width)
        for line in text.split("\n")
    )


def setup(app):
    from docutils import nodes
    from sphinx.util import logging
    from sphinx.util.docutils import SphinxDirective

    logger = logging.getLogger(__name__)

    class Run(SphinxDirective):
        has_content = True
        kind = "run"
        language = "python"

        def run(self):
            code = "\n".join(self.content)
            page = self.env.temp_data.setdefault("run_blocks", Page(self.env.docname))
            try:
                output = getattr(page, self.kind)(code + "\n")
            except (Exception, SystemExit) as error:
                place = self.get_location()
                logger.warning("%s: %s", type(error).__name__, error, location=place)
                output = ""
            shown = [self._block(code, self.language)]
            if output.strip():
                shown.append(self._block(with_short_lines(output.rstrip()), "text", "output"))
            return shown

        def _block(self, text, language, *classes):
            block = nodes.literal_block(text, text, language=language, classes=list(classes))
            self.set_source_info(block)
            return block

    class Command(Run):
        kind = "command"
        language = "console"

        def _block(self, text, language, *classes):
            if language == "console":
                text = "\n".join(f"$ {line}" for line in text.splitlines())
            return super()._block(text, language, *classes)

    app.add_directive("run", Run)
    app.add_directive("command", Command)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
