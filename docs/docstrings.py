"""Docstrings as reStructuredText: formulas keep their lines, and no symbol is taken for markup."""

import re

#: A name between backticks, which stays, or a character that would be markup, which is escaped.
MARKUP = re.compile(r"`[^`]+`|[*|\\]|(?<=\w)_(?!\w)")

#: What autodoc spells out, and what the code says. `<factory>` is no Python: Sphinx would cut the
#: whole signature at its commas.
SPELLED_OUT = (
    (re.compile(r"<factory>"), "..."),
    (re.compile(r"~numpy\._typing\S+_Buffer .*?\[complex \| bytes \| str\]"), "ArrayLike"),
    (re.compile(r"~numpy\.ndarray\[.*?~numpy\.dtype\[(.*?)\]\]"), r"NDArray[\1]"),
)


def as_restructured(app, what, name, obj, options, lines: list[str]) -> None:
    """Rewrite the lines of one docstring in place; the arguments are autodoc's."""
    lines[:] = converted(lines)


def readable(app, what, name, obj, options, signature: str | None, returned: str | None):
    """A signature and what it returns, as people write them; the arguments are autodoc's."""
    return _short(signature), _short(returned)


def _short(types: str | None) -> str | None:
    for found, written in SPELLED_OUT if types else ():
        types = found.sub(written, types)
    return types


def converted(lines: list[str]) -> list[str]:
    r"""A paragraph indented by four becomes a literal block; examples stay; the rest is text.

    >>> converted(["The norm:", "", "    |x|_2 <= 1", "", "so |x| is `small`."])
    ['The norm:', '', '::', '', '    |x|_2 <= 1', '', 'so \\|x\\| is `small`.']
    """
    result: list[str] = []
    paragraph, listed, literal = [], False, False
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line)
            continue
        if paragraph:
            listed = paragraph[0].startswith("- ") or (listed and paragraph[0].startswith("  "))
            margin = "  " if listed else ""
            formula = paragraph[0].startswith(margin + "    ")
            if formula and not literal:
                result += [f"{margin}::", ""]
            literal = formula or paragraph[0].lstrip().startswith(">>>")
            result += paragraph if literal else map(_escaped, paragraph)
        result.append("")
        paragraph, literal = [], literal and bool(paragraph)
    return result[:-1]


def _escaped(line: str) -> str:
    return MARKUP.sub(lambda m: m[0] if m[0].startswith("`") else "\\" + m[0], line)
