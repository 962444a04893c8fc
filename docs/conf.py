"""Configuration of the documentation.

python -m sphinx -W --keep-going -b html docs docs/_build/html
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
# One thread: numbers on the pages do not depend on the number of cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import manyclass  # noqa: E402
from experiments import PAPERS  # noqa: E402

project = "manyclass"
author = "The manyclass developers"
copyright = "The manyclass developers"
version = release = manyclass.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "numpydoc",
    "alt_texts",
    "docstrings",
    "mathml",
    "registry",
    "run_blocks",
    "tables",
    "tracked",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_ext", "gallery", "examples", "auto_examples/*.ipynb"]
# Papers without results have no page.
reproduced = [
    paper for paper in PAPERS if (HERE.parent / "experiments" / paper / "README.md").exists()
]
exclude_patterns += [f"papers/{paper}.md" for paper in PAPERS if paper not in reproduced]

# ---------------------------------------------------------------------- Markdown and mathematics

myst_enable_extensions = ["colon_fence", "dollarmath", "substitution"]
myst_substitutions = {
    "paper_pages": "\n".join(["```{toctree}", ":maxdepth: 1", "", "findings", *reproduced, "```"])
}
myst_heading_anchors = 3
html_math_renderer = "mathml"  # rendered by the browser: no network, no script

# ---------------------------------------------------------------------- reference

autosummary_generate = True
# On some systems, names that differ only in case would share a file.
autosummary_filename_map = {"manyclass.codes.Audit": "manyclass.codes.Audit-class"}
autodoc_typehints = "none"  # docstrings say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# ---------------------------------------------------------------------- gallery

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_examples",
    "backreferences_dir": "api/generated/backreferences",
    "doc_module": ("manyclass",),
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "image_srcset": ["2x"],
}
warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive", UserWarning)

# Links to the documentation of other libraries need the network when the pages are built.
if os.environ.get("MANYCLASS_DOCS_LINKS"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "numpy": ("https://numpy.org/doc/stable/", None),
        "sklearn": ("https://scikit-learn.org/stable/", None),
    }

# ---------------------------------------------------------------------- pages

html_theme = "pydata_sphinx_theme"
html_title = "manyclass"
html_static_path = ["_static"]
html_css_files = ["manyclass.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "manyclass"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "navigation_with_keys": False,
}
html_sidebars = {page: [] for page in ("index", "how_it_works", "benchmarks", "glossary")}
