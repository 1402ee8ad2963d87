"""Fixes: edits of the user's own files, each proven by rehearsing the whole trial again.

`fixers/` proposes edits, one module per hazard; `proving` tries them; `writing` writes files. Nothing here rehearses:
`check` passes the function that does.
"""
