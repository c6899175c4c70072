"""Settings of the documentation site; `make docs` builds it."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

from offline_inventories import compiled  # noqa: E402

from fedhh.version import __version__  # noqa: E402 - found by the lines above

project = "fedhh"
author = "fedhh developers"
release = version = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "myst_nb",
    "fedhh_reference",
    "explorer_page",
]
exclude_patterns = ["_build", "_ext", "_inventories"]
# Single back-ticks in docstrings are names, with a link where the name is on the site.
default_role = "py:obj"
smartquotes = False  # options begin with two hyphens

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # the notebook was run when it was committed, see tests/test_notebook.py

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Columns", "params_style")]

# Nothing here asks the network; links lead there when a reader follows them.
intersphinx_mapping = compiled(HERE / "_inventories", HERE / "_build" / ".inventories")

html_theme = "furo"
html_title = f"fedhh {release}"
html_static_path = ["_static"]
html_css_files = ["fedhh.css"]
html_extra_path = ["_build/.explorer"]  # made by explorer_page
html_copy_source = False
html_show_sourcelink = False
