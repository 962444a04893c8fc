"""Show results of experiments and benchmarks: ``{tracked}`` includes part of a Markdown file.

::

    ```{tracked} ../experiments/summary/README.md
    :section: What to pick
    Shown instead, if there is no such file or section.
    ```

Without ``section`` the whole file is shown. The path is relative to the folder of the
documentation; images are found beside the file.
"""

from __future__ import annotations

import os
import re
from pathlib import Path


def section_of(text: str, title: str) -> str | None:
    """Return the text below a heading, up to the next heading of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}\s*$", text, re.MULTILINE)
    if found is None:
        return None
    rest = text[found.end() :]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start() if end else None].strip("\n")


def with_images_from(text: str, folder: str) -> str:
    """Return Markdown whose relative links to images lead to a folder."""
    return re.sub(r"(!\[[^\]]*\]\()(?!https?:|/)", rf"\g<1>{folder}/", text)


def without_headings(text: str) -> str:
    """Return Markdown with headings as bold lines, to be included in a section."""
    return re.sub(r"^#+ (.*)$", r"**\1**", text, flags=re.MULTILINE)


def setup(app):
    from docutils.parsers.rst import directives
    from sphinx.util.docutils import SphinxDirective

    class Tracked(SphinxDirective):
        required_arguments = 1
        has_content = True
        option_spec = {"section": directives.unchanged_required}  # noqa: RUF012

        def run(self):
            path = Path(self.env.srcdir, self.arguments[0]).resolve()
            part = None
            if path.exists():
                self.env.note_dependency(str(path))
                text = path.read_text("utf-8")
                title = self.options.get("section")
                part = text if title is None else section_of(text, title)
            if part is None:
                return self.parse_content_to_nodes()
            page = Path(self.env.doc2path(self.env.docname)).parent
            folder = Path(os.path.relpath(path.parent, page)).as_posix()
            return self.parse_text_to_nodes(without_headings(with_images_from(part, folder)))

    app.add_directive("tracked", Tracked)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
