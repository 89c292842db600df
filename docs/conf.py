"""The site: Sphinx reads the Markdown that a repository browser shows, and downloads nothing."""

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import docstrings

project = "discreet"
author = "the discreet authors"
release = metadata.version("discreet")
extensions = ["myst_parser", "sphinx.ext.autodoc"]

exclude_patterns = ["data", "_static"]
source_suffix = {".md": "markdown"}
nitpicky = True
INSIDE = (
    r"discreet\.(agreement\.(beginning|wording)|features|learning|privacy"
    r"|protocol\.(records|role|rounds|verifier)|simulation|trusted)\..*"
)
nitpick_ignore_regex = [
    (r"py:.*", r"(?!discreet\.).*"),  # other libraries are not in this site
    (r"py:.*", r"discreet\.protocol\.replies\.T"),  # any message
    (r"py:.*", INSIDE),  # signatures name them; the reference is of what people call
]

myst_heading_anchors = 3
default_role = "code"  # `name` in a docstring is a name

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_use_type_comments = False
autodoc_preserve_defaults = True
maximum_signature_line_length = 72
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "discreet"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = False
html_copy_source = False
html_domain_indices = False


def setup(app):
    """Our docstrings are plain text: say so to a reader of reStructuredText."""
    app.connect("autodoc-process-docstring", docstrings.as_restructured)
    app.connect("autodoc-process-signature", docstrings.readable)
