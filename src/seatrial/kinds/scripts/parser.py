"""Reads shell text into the tree of `syntax`, as bash and POSIX shells do. Runs nothing.

The grammar is that of POSIX with bash's `[[`, `((`, `function`, `select`, arrays, here-strings and process
substitutions. Aliases and extended globs outside of patterns are not read.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from seatrial.kinds.scripts.syntax import (
    AndOr,
    Arithmetic,
    Assignment,
    Block,
    CaseClause,
    Choice,
    Counted,
    For,
    Function,
    Group,
    HereDocument,
    If,
    Literal,
    Loop,
    Node,
    OtherExpansion,
    Pipeline,
    Redirected,
    Redirection,
    Script,
    Simple,
    Word,
)
from seatrial.kinds.scripts.word_parser import (
    Cursor,
    UnreadableScript,
    quote_removed,
    read_array,
    read_document,
    read_regex,
    read_word,
)
from seatrial.model import lazy_re

LENGTH_MAX = 200_000
DECLARES = frozenset(("declare", "export", "local", "readonly", "typeset"))
"""Commands whose arguments are assignments."""
_KEYWORD = lazy_re.compile(
    r"(?:if|then|elif|else|fi|while|until|for|select|case|esac|do|done|function|\{|\}|!|\[\[)(?=[\s;&|()<>]|$)"
)
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_ASSIGNMENT = lazy_re.compile(rf"({_NAME})(\[[^\]\s]*\])?(\+?)=")
_FUNCTION = lazy_re.compile(r"[^\S\n]*\([^\S\n]*\)")
_REDIRECTION = lazy_re.compile(r"(\d+|\{\w+\})?(<<<|<<-|<<|<>|>>|>\||>&|<&|<(?!\()|>(?!\())|(&>>|&>)")
_DO = frozenset(("do", "{"))
"""What begins the body of a `for`."""


@lru_cache(maxsize=256)
def parse(text: str) -> Script:
    """A script as a tree, as far as it can be read."""
    if len(text) > LENGTH_MAX:
        return Script((), is_whole=False)
    reader = _Reader(Cursor(text))
    found: list[AndOr] = []
    try:
        while reader.skip_separators():
            found.append(reader.statement())
    except UnreadableScript:
        return Script(tuple(found), is_whole=False, unread=reader.cursor.line())
    return Script(tuple(found))


def commands_in_text(cursor: Cursor) -> Block:
    """The commands of a substitution, up to its `)`."""
    return _Reader(cursor).parenthesized()


class _Reader(Struct):
    """Reads commands from a cursor."""

    cursor: Cursor

    def statement(self) -> AndOr:
        cursor = self.cursor
        cursor.skip_blanks()
        line, written = cursor.line()
        parts = [("", self.pipeline())]
        while operator := cursor.operator("&&", "||"):
            self.skip_newlines()
            parts.append((operator, self.pipeline()))
        cursor.skip_blanks()
        background = cursor.at("&")
        if not background and not cursor.at_end() and not cursor.at("\n", ";", ")") and not self.keyword():
            raise UnreadableScript
        return AndOr(tuple(parts), background, line, written)

    def block(self, *ends: str) -> Block:
        """Commands up to a keyword that ends them, or up to `)` or `;;` if these are among the ends."""
        found: list[AndOr] = []
        self.cursor.enter()
        while self.skip_separators(*ends):
            if self.keyword() in ends or self.cursor.at(*(end for end in ends if end in (")", ";;", ";&"))):
                break
            found.append(self.statement())
        self.cursor.leave()
        return tuple(found)

    def parenthesized(self) -> Block:
        """The commands up to `)`, which is taken."""
        body = self.block(")")
        self.expect(")")
        return body

    def pipeline(self) -> Pipeline:
        negated = False
        while self.keyword() == "!":
            self.take("!")
            negated = not negated
        stages = [self.node()]
        while self.cursor.operator("|&", "|"):
            self.skip_newlines()
            stages.append(self.node())
        return Pipeline(tuple(stages), negated)

    def node(self) -> Node:
        node = self.compound()
        if node is None:
            return self.simple()
        redirections = self.redirections()
        return Redirected(node, redirections) if redirections else node

    def compound(self) -> Node | None:
        cursor, word = self.cursor, self.keyword()
        match word:
            case "if":
                return self.if_()
            case "while" | "until":
                self.take(word)
                asks = self.block("do")
                return Loop(asks, self.body(), until=word == "until")
            case "for" | "select":
                return self.for_(word)
            case "case":
                return self.case()
            case "{":
                self.take("{")
                body = self.block("}")
                self.take("}")
                return Group(body)
            case "function":
                self.take("function")
                name = self.word().raw
                if found := cursor.match(_FUNCTION):
                    cursor.move(found.end())
                return self.function(name)
        if cursor.at("((") and (arithmetic := cursor.arithmetic("((")) is not None:
            return Arithmetic(arithmetic)
        if cursor.at("("):
            cursor.skip("(")
            return Group(self.parenthesized(), subshell=True)
        if word in ("[[", ""):
            return None
        raise UnreadableScript

    def if_(self) -> If:
        branches: list[tuple[Block, Block]] = []
        otherwise: Block = ()
        self.take("if")
        while True:
            asks = self.block("then")
            self.take("then")
            branches.append((asks, self.block("elif", "else", "fi")))
            if self.keyword() != "elif":
                break
            self.take("elif")
        if self.keyword() == "else":
            self.take("else")
            otherwise = self.block("fi")
        self.take("fi")
        return If(tuple(branches), otherwise)

    def for_(self, word: str) -> For | Counted:
        self.take(word)
        self.cursor.skip_blanks()
        if self.cursor.at("((") and (header := self.cursor.arithmetic("((")) is not None:
            self.skip_separators("do", "{")
            return Counted(self.body(), header)
        name = self.word().raw
        self.skip_newlines()
        words: list[Word] | None = None
        if self.cursor.keyword("in"):
            words = []
            while (found := self.next_word()) is not None:
                words.append(found)
        self.skip_separators("do", "{")
        return For(name, None if words is None else tuple(words), self.body(), selects=word == "select")

    def case(self) -> CaseClause:
        cursor = self.cursor
        self.take("case")
        subject = self.word()
        self.skip_newlines()
        if not cursor.keyword("in"):
            raise UnreadableScript
        choices: list[Choice] = []
        while self.skip_separators() and self.keyword() != "esac":
            cursor.skip("(")
            patterns = [self.word(pattern=True)]
            while cursor.operator("|"):
                patterns.append(self.word(pattern=True))
            self.expect(")")
            body = self.block("esac", ";;", ";&")
            end = cursor.operator(";;&", ";;", ";&")
            choices.append(Choice(tuple(patterns), body, end or ";;"))
        self.take("esac")
        return CaseClause(subject, tuple(choices))

    def body(self) -> Block:
        """`do ... done`; bash also allows braces after `for`."""
        self.skip_separators("do", "{")
        word = self.keyword()
        if word not in _DO:
            raise UnreadableScript
        self.take(word)
        end = "done" if word == "do" else "}"
        body = self.block(end)
        self.take(end)
        return body

    def function(self, name: str) -> Function:
        self.skip_newlines()
        node = self.compound()
        if node is None or not name:
            raise UnreadableScript
        redirections = self.redirections()
        return Function(name, Redirected(node, redirections) if redirections else node)

    def simple(self) -> Simple | Function:
        cursor = self.cursor
        words: list[Word] = []
        assignments: list[Assignment] = []
        redirections: list[Redirection] = []
        while True:
            cursor.skip_blanks()
            if (redirection := self.redirection()) is not None:
                redirections.append(redirection)
            elif (not words or words[0].plain in DECLARES) and (found := cursor.match(_ASSIGNMENT)):
                assignments.append(self.assignment(found))
            elif (word := self.next_word()) is not None:
                words.append(word)
                if word.plain == "[[" and len(words) == 1:
                    words += self.conditional()
                elif len(words) == 1 and not assignments and word.plain and (found := cursor.match(_FUNCTION)):
                    cursor.move(found.end())
                    return self.function(word.raw)
            else:
                break
        if not (words or assignments or redirections):
            raise UnreadableScript
        return Simple(tuple(words), tuple(assignments), tuple(redirections))

    def assignment(self, found: re.Match[str]) -> Assignment:
        cursor = self.cursor
        cursor.move(found.end())
        value = (
            read_array(cursor, commands_in_text)
            if cursor.at("(")
            else (read_word(cursor, commands_in_text) or Word(()))
        )
        if found[2]:  # An element of an array.
            value = Word((OtherExpansion((value,)),), value.raw)
        return Assignment(found[1], value, bool(found[3]))

    def conditional(self) -> list[Word]:
        """The words of `[[ ... ]]`, where operators of the shell are words as well."""
        words: list[Word] = []
        cursor = self.cursor
        while not words or words[-1].plain != "]]":
            cursor.skip_blanks()
            if operator := cursor.operator("&&", "||", "(", ")", "<", ">", "\n"):
                words += [Word((Literal(operator),), operator)] if operator != "\n" else []
            elif words and words[-1].raw == "=~":
                words.append(read_regex(cursor, commands_in_text))
            elif (word := read_word(cursor, commands_in_text, pattern=True)) is not None:
                words.append(word)
            else:
                raise UnreadableScript
        return words

    def redirections(self) -> tuple[Redirection, ...]:
        found = []
        self.cursor.skip_blanks()
        while (redirection := self.redirection()) is not None:
            found.append(redirection)
            self.cursor.skip_blanks()
        return tuple(found)

    def redirection(self) -> Redirection | None:
        cursor = self.cursor
        found = cursor.match(_REDIRECTION)
        if found is None:
            return None
        cursor.move(found.end())
        operator, target = found[2] or found[3], self.word()
        if operator not in ("<<", "<<-"):
            return Redirection(operator, target, descriptor=found[1] or "")
        document, end = HereDocument(), quote_removed(target.raw)

        def then(text: str) -> None:
            document.word = read_document(text, commands_in_text, quoted=end != target.raw, depth=cursor.depth)

        cursor.await_document(end, tabs=operator == "<<-", then=then)
        return Redirection(operator, target, document)

    def word(self, *, pattern: bool = False) -> Word:
        self.cursor.skip_blanks()
        word = read_word(self.cursor, commands_in_text, pattern=pattern)
        if word is None:
            raise UnreadableScript
        return word

    def next_word(self) -> Word | None:
        self.cursor.skip_blanks()
        return read_word(self.cursor, commands_in_text)

    def keyword(self) -> str:
        """The keyword that is next, if any."""
        self.cursor.skip_blanks()
        found = self.cursor.match(_KEYWORD)
        return found[0] if found else ""

    def take(self, keyword: str) -> None:
        if self.keyword() != keyword:
            raise UnreadableScript
        self.cursor.skip(keyword)

    def expect(self, operator: str) -> None:
        if not self.cursor.operator(operator):
            raise UnreadableScript

    def skip_newlines(self) -> None:
        while self.cursor.operator("\n"):
            pass

    def skip_separators(self, *ends: str) -> bool:
        """Over what separates commands, but not over `;;`. Whether anything is left."""
        cursor = self.cursor
        while True:
            cursor.skip_blanks()
            if cursor.at(";;", ";&") or not cursor.operator("\n", ";", "&"):
                return not cursor.at_end()
