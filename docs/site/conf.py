"""Settings of Sphinx for the site; `make docs` builds it."""

project = "seatrial"
html_title = "seatrial"
html_theme = "furo"
extensions = ["myst_parser"]
myst_enable_extensions = ["attrs_block"]
myst_heading_anchors = 3
# Pages also link to stories and source files of the repository; the blocks of stories have words of their own.
suppress_warnings = ["myst.xref_missing", "myst.header", "misc.highlighting_failure", "toc.not_included"]
