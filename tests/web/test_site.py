"""A static site as files: what it allows, what it replaces, and what it leaves alone."""

from __future__ import annotations

import gzip
import json
import re

import numpy as np
import pytest

from sparring.cli import main
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.store.champions import champion_games
from sparring.store.policies import load_policy
from sparring.web import description
from sparring.web.networks import pack_network
from sparring.web.site import EASY, MANIFEST, in_planes, strength_line, write_site

WORD = "kuhn_poker:champion"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if not (description.MODULES / "kuhn_poker.wasm").is_file():
        pytest.skip("no WebAssembly modules here; make web builds them")
    folder = tmp_path_factory.mktemp("space") / "play"
    write_site(folder, [WORD])
    return folder


def test_pages_load_files_beside_them_and_nothing_inline_runs(site):
    for page in (site / "index.html", site / "kuhn_poker" / "index.html"):
        text = page.read_text("utf-8")
        policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
        assert policy.startswith("default-src &#x27;none&#x27;")
        assert "unsafe-inline" not in policy
        assert not re.search(r"<style|<script(?! (?:src|defer src|type=.application/json))", text)
        assert not re.search(r"\son[a-z]+=|\sstyle=", text)
        for address in re.findall(r'(?:src|href)="([^"#?]*)[^"]*"', text):
            assert not re.match(r"/|[a-z]+:", address)
            assert (page.parent / address).exists()


def test_pages_inside_of_a_documentation_lead_to_it(site, tmp_path):
    link = re.compile(r'<a href="([^"]*)">Documentation</a>')
    assert not any(link.search(page.read_text("utf-8")) for page in site.rglob("index.html"))
    inside = tmp_path / "play"
    write_site(inside, [WORD], home="../")
    for page in inside.rglob("index.html"):
        address = link.search(page.read_text("utf-8"))[1]
        assert (page.parent / address).resolve() == tmp_path


@pytest.mark.parametrize(
    ("game", "found", "line"),
    [
        ("kuhn_poker", {"opponent": "nash", "score": 0.01, "low": -0.01, "high": 0.03}, "is level"),
        ("kuhn_poker", {"opponent": "nash", "score": 0.2, "low": 0.1, "high": 0.3}, "wins +0.200"),
        ("laser_hockey", {"opponent": "strong", "win": 0.99972}, "wins 99.97%"),
        ("skull_king", {"opponent": "captain", "win": 0.9017}, "wins 90.2% of games against 3 × "),
        ("cage2", {"opponent": "the challenge", "score": -45.6}, "the winner of that challenge"),
    ],
)
def test_a_card_claims_no_more_than_was_measured(game, found, line):
    rules = {"name": game, "seats": Rules(game).seats}
    about = {"agent": {"name": "champion"}, "strength": [found], "rules": rules}
    assert line in strength_line(about)


def test_cards_begin_with_what_is_easy_to_grasp():
    assert sorted(EASY) == champion_games()


def test_a_network_travels_without_loss():
    packed = pack_network(load_policy(WORD))
    start = packed.index(b"\n") + 1
    sent = gzip.decompress(in_planes(packed))
    planes = np.frombuffer(sent, np.uint8, offset=start).reshape(4, -1)
    assert sent[:start] + planes.T.tobytes() == packed
    assert len(in_planes(packed)) < len(gzip.compress(packed))


def test_the_command_lists_sizes_and_replaces_its_own_files(site, capsys):
    mine, stale = site / "kuhn_poker" / "notes.txt", site / "kuhn_poker" / "stale.bin"
    mine.write_text("mine")
    stale.write_text("old")
    manifest = json.loads((site / MANIFEST).read_text())
    manifest["files"] |= {"kuhn_poker/stale.bin": 3, "../outside": 1}
    (site / MANIFEST).write_text(json.dumps(manifest))
    (site.parent / "outside").write_text("not ours")
    assert main(["export", WORD, "--site", str(site), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["games"] == ["kuhn_poker"]
    assert facts["replaced"] is True
    for name, size in facts["files"].items():
        assert (site / name).stat().st_size == size
    assert mine.read_text() == "mine"
    assert not stale.exists()
    assert (site.parent / "outside").read_text() == "not ours"


def test_other_folders_are_left_alone(tmp_path, capsys):
    (tmp_path / "thesis.md").write_text("mine")
    assert main(["export", WORD, "--site", str(tmp_path)]) == 2
    assert "holds other files and is no site" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.md"]
    assert main(["export", WORD, "--site", str(tmp_path / "thesis.md")]) == 2
    assert "is a file; name a folder" in capsys.readouterr().err


def test_a_file_in_the_way_is_named(site):
    (site / MANIFEST).write_text(json.dumps({"generator": "sparring site", "files": {}}))
    with pytest.raises(ConfigError, match="is no file of a site of sparring"):
        write_site(site, [WORD])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["champion", "--html", "a.html"], "--site is written alone"),
        (["nobody"], "nobody"),
        (["chess:champion"], "chess"),
    ],
)
def test_what_cannot_be_written_is_one_line(words, told, tmp_path, capsys):
    assert main(["export", *words, "--site", str(tmp_path / "new")]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "Traceback" not in error
    assert not (tmp_path / "new" / "index.html").exists()
