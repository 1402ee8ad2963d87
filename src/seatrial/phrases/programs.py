"""Options of resources as a Pulumi program writes them: in Python, TypeScript or YAML, by the name of its file."""

from __future__ import annotations

PYTHON = (".py",)
TYPESCRIPT = (".ts", ".mts", ".cts", ".js", ".mjs", ".cjs")


def option(file: str, python: str, typescript: str, yaml: str = "") -> str:
    """`opts=pulumi.ResourceOptions(...)`, `{ ... } as its options`, `options: {...}`."""
    if file.endswith(PYTHON):
        return f"opts=pulumi.ResourceOptions({python})"
    if file.endswith(TYPESCRIPT):
        return f"{{ {typescript} }} as its options"
    return f"options: {{{yaml or typescript}}}"
