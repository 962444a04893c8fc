"""Write formulas as MathML with the converter of docutils: pages need no script and no network."""

from __future__ import annotations

from docutils.utils.math import latex2mathml
from sphinx.errors import ExtensionError


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def convert(tex: str, as_block: bool) -> str:
    try:
        return latex2mathml.tex2mathml(tex, as_block=as_block)
    except Exception as error:
        raise ExtensionError(f"formula {tex!r} cannot be converted: {error}") from error


def visit_inline(self, node) -> None:
    from docutils.nodes import SkipNode

    self.body.append(f'<span class="math">{convert(node.astext(), False)}</span>')
    raise SkipNode


def visit_block(self, node) -> None:
    from docutils.nodes import SkipNode

    self.body.append(f'<div class="formula">{convert(node.astext(), True)}</div>\n')
    raise SkipNode
