"""Boards: reaching them, asking them what they are, and the tables of what fits together on them.

    with connect(read_address("root@10.0.0.7")) as board:
        facts = read_probe(board.run(["sh", "-s"], given=probe_script().encode()).text)
    for finding in judge(facts).findings: ...
"""

from vitrify.boards.facts import Facts, probe_script, read_probe
from vitrify.boards.judging import Judged, judge
from vitrify.boards.tables import Table, table_of, tables

__all__ = ["Facts", "Judged", "Table", "judge", "probe_script", "read_probe", "table_of", "tables"]
