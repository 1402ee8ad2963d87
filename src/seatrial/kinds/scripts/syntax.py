"""Shell scripts as a tree: words with their expansions, commands, lists, loops, functions. Data only."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct


class Literal(Struct, frozen=True):
    text: str
    quoted: bool = False


class Variable(Struct, frozen=True):
    """`$NAME`, `${NAME}`, `${NAME:-word}`, `${NAME##pattern}`, `${NAME/pattern/text}`, `${NAME:0:3}`, `${#NAME}`."""

    name: str
    quoted: bool = False
    operator: str = ""
    """`-`, `=`, `+` or `?`, also with a colon; `#`, `##`, `%`, `%%`, `/`, `//`, `:`, `^`, `^^`, `,`, `,,`; `length`."""
    word: Word | None = None


class Substitution(Struct, frozen=True):
    """`$(...)`, backticks, or the process substitution `<(...)`."""

    body: Block
    quoted: bool = False
    is_file: bool = False
    """Whether it is a process substitution: the path of a file that holds the output."""


class Arithmetic(Struct, frozen=True):
    """`$((...))`, or the command `((...))`."""

    text: str
    quoted: bool = False


class OtherExpansion(Struct, frozen=True):
    """An expansion whose result is not modelled, such as `${!NAME}` or an array."""

    words: tuple[Word, ...] = ()
    """The words inside it."""
    quoted: bool = False


Piece = Literal | Variable | Substitution | Arithmetic | OtherExpansion


class Word(Struct, frozen=True):
    pieces: tuple[Piece, ...]
    raw: str = ""
    """As it is written."""

    @property
    def quoted(self) -> bool:
        return any(piece.quoted for piece in self.pieces)

    @property
    def plain(self) -> str:
        """Its text, if that is certain and unquoted: only such a word can be a keyword or an option of the shell."""
        literal = all(isinstance(piece, Literal) and not piece.quoted for piece in self.pieces)
        return self.raw if literal else ""


class Assignment(Struct, frozen=True):
    name: str
    value: Word
    appends: bool = False
    """`NAME+=value`"""


class HereDocument(Struct):
    """The text of a here-document, which follows after the end of the line that names it."""

    word: Word = Word(())


class Redirection(Struct, frozen=True):
    operator: str
    target: Word
    document: HereDocument | None = None
    descriptor: str = ""
    """`2` in `2>/dev/null`."""


class Simple(Struct, frozen=True):
    """One command with its assignments and redirections."""

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    redirections: tuple[Redirection, ...] = ()


class If(Struct, frozen=True):
    branches: tuple[tuple[Block, Block], ...]
    otherwise: Block = ()


class Loop(Struct, frozen=True):
    """`while`, or `until`."""

    asks: Block
    body: Block
    until: bool = False


class For(Struct, frozen=True):
    """`for NAME in WORDS`, or `select`. `words` is None without `in`."""

    variable: str
    words: tuple[Word, ...] | None
    body: Block
    selects: bool = False


class Counted(Struct, frozen=True):
    """`for ((...; ...; ...))`"""

    body: Block
    header: str = ""


class Choice(Struct, frozen=True):
    """One branch of a `case`; `end` is `;;`, `;&` or `;;&`."""

    patterns: tuple[Word, ...]
    body: Block
    end: str = ";;"


class CaseClause(Struct, frozen=True):
    subject: Word
    choices: tuple[Choice, ...]


class Group(Struct, frozen=True):
    """`{ ...; }`, or `(...)` in a subshell."""

    body: Block
    subshell: bool = False


class Function(Struct, frozen=True):
    name: str
    body: Node


class Redirected(Struct, frozen=True):
    """A compound command with redirections."""

    node: Node
    redirections: tuple[Redirection, ...]


Node = Simple | If | Loop | For | Counted | CaseClause | Group | Function | Redirected | Arithmetic


class Pipeline(Struct, frozen=True):
    stages: tuple[Node, ...]
    negated: bool = False


class AndOr(Struct, frozen=True):
    """Pipelines, each with the operator before it."""

    parts: tuple[tuple[str, Pipeline], ...]
    background: bool = False
    line: int = 0
    """Where it begins in its script, from 1; 0 inside backticks."""
    text: str = ""
    """That line of the script."""


Block = tuple[AndOr, ...]


class Script(Struct, frozen=True):
    body: Block
    is_whole: bool = True
    """Whether all of it could be read; otherwise `body` ends before what could not."""
    unread: tuple[int, str] = (0, "")
    """The line that could not be read."""


def nodes_in(block: Block) -> Iterator[Node]:
    """All commands of a block, at any depth, without those in substitutions."""
    for statement in block:
        for _, pipeline in statement.parts:
            for stage in pipeline.stages:
                yield from _nodes(stage)


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    match node:
        case If():
            for asks, body in node.branches:
                yield from nodes_in((*asks, *body))
            yield from nodes_in(node.otherwise)
        case Loop():
            yield from nodes_in((*node.asks, *node.body))
        case For() | Counted() | Group():
            yield from nodes_in(node.body)
        case CaseClause():
            for choice in node.choices:
                yield from nodes_in(choice.body)
        case Function():
            yield from _nodes(node.body)
        case Redirected():
            yield from _nodes(node.node)
