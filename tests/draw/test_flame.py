"""A flame graph is one file that needs nothing else, with every function in it."""

from __future__ import annotations

import json
import re

from sparring.draw.charts.flame import KINDS, FlameBlock, draw_flame, flatten


def tree(stacks: int, depth: int) -> FlameBlock:
    """Stacks that share no function but the first."""
    root = FlameBlock("all", "", "root", total=stacks)
    for stack in range(stacks):
        block = root
        for level in range(depth):
            block = block.inner(f"f{stack}<{level}>", f"m{stack}.py", list(KINDS)[level % 7])
            block.total += 1
    return root


def test_blocks_come_behind_those_that_they_are_in() -> None:
    root = FlameBlock("all", "", "root", total=5)
    outer = root.inner("outer", "a.py", "yours")
    outer.total, outer.lines = 5, {3: 1, 4: 4}
    for name, total in (("small", 1), ("large", 3)):
        outer.inner(name, "b.py", "torch").total = total
    plain = flatten(root)
    assert [plain["functions"][at][0] for at in plain["which"]] == [
        "all",
        "outer",
        "large",
        "small",
    ]
    assert plain["parents"] == [-1, 0, 1, 1]
    assert plain["totals"] == [5, 5, 3, 1]
    assert plain["lines"] == [0, 4, 0, 0]


def test_the_page_is_whole_and_asks_nobody() -> None:
    """5,000 stacks; nothing in it is loaded from anywhere, and no name ends the script."""
    page = draw_flame(tree(5_000, 4), "</script><b>a game</b>", ["1 & 2"])
    assert not re.search(r"https?:|//[a-z]|src=|href=|@import|url\(|fetch\(", page)
    assert not re.search(r"@[A-Z]+@", page)
    assert "&lt;/script&gt;" in page
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert data
    plain = json.loads(data[1])
    names = {name for name, *_ in plain["functions"]}
    assert names == {"all"} | {f"f{stack}<{level}>" for stack in range(5_000) for level in range(4)}
    assert len(plain["parents"]) == 1 + 4 * 5_000
