"""How Sphinx makes the site. scripts/docs runs it on a copy of this folder, where Doxygen's XML lies beside it."""
import ctypes
import os
import sys
from unittest import mock

import numpy  # noqa: F401  before ctypes is changed

ROOT = os.environ["TD_ROOT"]
project = "td"
author = "the td authors"
copyright = "the td authors"
version = release = os.environ["TD_DOCS_VERSION"]

extensions = ["myst_parser", "breathe", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["fortran_reference.md", "julia_reference.md"]  # which other pages include
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
highlight_language = "text"

breathe_projects = {"td": os.environ["TD_DOXYGEN_XML"]}
breathe_default_project = "td"
breathe_domain_by_extension = {"h": "c", "hpp": "cpp"}

# Formulas are set in the reader's browser by KaTeX, of which the site has a copy: only pages with formulas load it.
mathjax_path = "katex/katex.min.js"
mathjax_options = {"defer": "defer"}

html_theme = "furo"
html_title = f"td {version}"
html_static_path = ["static"]
html_css_files = ["katex/katex.min.css", "site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "monokai"

# The Python package's reference is read from its docstrings, without a library: nothing is compiled for the site.
sys.path.insert(0, os.path.join(ROOT, "bindings/python/src"))
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False


library = mock.MagicMock()
library.td_abi_version.return_value = int(os.environ["TD_ABI_VERSION"])
library.td_version.return_value = 0
library.td_option_count.return_value = 0
with mock.patch.object(ctypes, "CDLL", return_value=library):
    import td  # noqa: F401
