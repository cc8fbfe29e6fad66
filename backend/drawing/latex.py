"""Texts and tables in LaTeX, for papers."""

from collections.abc import Sequence

from backend.drawing.export_series import printable

_COMMANDS = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "−": "$-$", "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "²": "$^2$", "∞": r"$\infty$",
    "→": r"$\rightarrow$", "₀": "$_0$",
    "ₑ": r"\textsubscript{e}",
    "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "ε": r"$\varepsilon$", "η": r"$\eta$",
    "λ": r"$\lambda$", "τ": r"$\tau$",
} | {character: rf"\{character}" for character in "#$%&_{}"}  # fmt: skip
"""What LaTeX takes for something else, and what its usual fonts lack."""


def latex(text: str) -> str:
    """A text in which nothing is a command: nor is a bracket or a star after the end of the row before."""
    line = printable(text).replace("\n", " ").strip()
    escaped = "".join(_COMMANDS.get(character, character) for character in line)
    return f"{{}}{escaped}" if escaped[:1] in ("[", "*") else escaped


def latex_table(
    name: str, caption: str, titles: Sequence[str], parts: Sequence[Sequence[Sequence[str]]]
) -> str:
    """A table for a paper; it needs the package booktabs.

    Args:
        name: for references to it in the paper.
        caption: what it shows, in LaTeX; so are the cells.
        titles: of the columns.
        parts: rows, with a line above those of each part.
    """
    lines = [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{caption}}}",
        rf"  \label{{tab:{name}}}",
        rf"  \begin{{tabular}}{{l{'r' * (len(titles) - 1)}}}",
        r"    \toprule",
        _row(titles),
    ]
    for rows in filter(None, parts):
        lines += [r"    \midrule", *map(_row, rows)]
    return "\n".join([*lines, r"    \bottomrule", r"  \end{tabular}", r"\end{table}", ""])


def _row(cells: Sequence[str]) -> str:
    return f"    {' & '.join(cells)} \\\\"
