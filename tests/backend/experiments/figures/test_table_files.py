import csv
import io

from backend.experiments.figures import table_files
from backend.experiments.figures.tables import Column, Table, TableCell, TableRow


def test_csv_of_a_table_has_units_and_intervals() -> None:
    columns = [Column("Method", "", "name"), Column("Pong", "speed-up", "ours", unit="×")]
    row = TableRow("16 threads", [TableCell(12.5, 11.0, 14.0, 5, 6)])
    assert table_files.table_csv(
        Table(columns, [row], [TableRow("Mean", [TableCell(None)])])
    ).splitlines() == [
        "Method,Pong (×),Pong: lower bound (95 %),Pong: upper bound (95 %),Pong: runs in,Pong: runs planned",
        "name,ours: speed-up,,,,",
        "16 threads,12.5,11.0,14.0,5,6",
        "Mean,,,,,",
    ]


def test_no_two_columns_of_a_csv_have_one_name() -> None:
    columns = [
        Column("Environment", "", "name"),
        Column("PAAC nips", "no-op starts; best of 3", "ours"),
        Column("PAAC nips", "no-op starts; Clemente et al.", "published"),
        Column("human", "human starts; Nair et al.", "published"),
        Column("human", "no-op starts; Nair et al.", "published"),
    ]
    table = Table(columns, [TableRow("Pong", [TableCell(float(n)) for n in range(4)])], [])
    [names, *_] = csv.reader(io.StringIO(table_files.table_csv(table)))
    assert names == [
        "Environment", "PAAC nips", "PAAC nips, published, no-op starts", "human, published, human starts",
        "human, published, no-op starts",
    ]  # fmt: skip


def test_latex_of_a_table_tells_columns_of_equal_titles_apart_and_has_no_command_of_a_name() -> None:
    columns = [
        Column("Method", "", "name"),
        Column("Pong", "no-op starts; 100 % of A_C", "ours", unit="×"),
        Column("Q*bert", "Mnih et al.", "published"),
        Column("Pong", "Mnih et al.", "published"),
    ]
    cells = [TableCell(1234.5678, 1200.0, -1.5), TableCell(0.0001), TableCell(7, n=1, planned=3)]
    rows = [TableRow("\t[best] \\input{a} & #1, λ", cells)]
    table = Table(columns, rows, [TableRow("Mean", [TableCell(None), TableCell(-2), TableCell(3)])])
    assert table_files.table_latex(table, "raw", "All ${runs}$.").splitlines() == [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"  \centering",
        r"  \caption{All \$\{runs\}\$. In brackets: 95 \% confidence intervals. "
        r"\textsuperscript{1}no-op starts; 100 \% of A\_C. \textsuperscript{2}published, Mnih et al.}",
        r"  \label{tab:raw}",
        r"  \begin{tabular}{lrrr}",
        r"    \toprule",
        r"    Method & Pong ($\times$)\textsuperscript{1} & Q*bert\textsuperscript{2} & "
        r"Pong\textsuperscript{2} \\",
        r"    \midrule",
        r"    {}[best] \textbackslash{}input\{a\} \& \#1, $\lambda$ & 1,234.57 [1,200, $-$1.5] & "
        r"1e$-$4 & 7 (1 of 3 runs) \\",
        r"    \midrule",
        r"    Mean & – & $-$2 & 3 \\",
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
