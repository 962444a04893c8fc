"""Read docstrings literally: bars are absolute values, and ``n_`` is a name, not a link.

Members inherited from scikit-learn, tuples and Python are left out.
"""

from __future__ import annotations

import re

MARKED = re.compile(r"(``.*?``|`[^`]*`_*|\*\*.*?\*\*|\[\w+\]_)")


def plain(line: str) -> str:
    """Return a line of a docstring, with accidental markup in its plain text escaped."""
    parts = MARKED.split(line)
    for i in range(0, len(parts), 2):  # marked text is at odd positions
        parts[i] = re.sub(r"(?<!\\)\|", r"\\|", parts[i])
        parts[i] = re.sub(r"(?<=\w)_(?=[,)])", r"\\_", parts[i])
    return "".join(parts)


def escape(app, what, name, obj, options, lines: list[str]) -> None:
    in_doctest = False
    for i, line in enumerate(lines):
        in_doctest = bool(line.strip()) and (in_doctest or line.lstrip().startswith(">>>"))
        if not in_doctest:
            lines[i] = plain(line)


def skip_foreign(app, what, name, member, skip, options) -> bool | None:
    owner = getattr(getattr(member, "fget", member), "__module__", None) or ""
    inherited = owner.startswith("sklearn.") or name in {"count", "index"}
    machinery = name.startswith("set_") and name.endswith("_request")
    return True if inherited or machinery or name == "get_metadata_routing" else None


def setup(app):
    app.connect("autodoc-process-docstring", escape, priority=900)  # after numpydoc
    app.connect("autodoc-skip-member", skip_foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
