"""Notes and tags of runs, written by a page."""

from __future__ import annotations

import json

import pytest

from sparring.cli import main
from web.made_runs import make_run


def test_a_note_and_tags_are_kept_and_shown_to_everybody(client, tmp_path, capsys) -> None:
    make_run(tmp_path, "one")
    given = {"note": "wide net,\nsecond try ", "tags": ["good", "wide", "good"]}
    answer = client.post("/api/runs/one/labels", json=given)
    kept = {"note": "wide net,\nsecond try", "tags": ["good", "wide"]}
    assert (answer.status_code, answer.json()) == (200, {"run": "one", **kept})
    assert kept.items() <= client.get("/api/runs").json()["runs"][0].items()
    assert kept.items() <= client.get("/api/runs/one").json()["overview"].items()
    assert main(["runs", "--runs", str(tmp_path), "--tagged", "wide", "--json"]) == 0
    assert kept.items() <= json.loads(capsys.readouterr().out)["runs"][0].items()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "note is missing"),
        ([], "it is [], not an object"),
        ({"note": 1, "tags": []}, "note is 1, not a note"),
        ({"note": "\x1b[2J", "tags": []}, "no control characters"),
        ({"note": "", "tags": ["two words"]}, "tags[0] is 'two words', not a tag"),
        ({"note": "", "tags": ["x"] * 33}, "a list of at most 32"),
        ({"note": "", "tags": [], "name": "b"}, "name is unknown"),
    ],
)
def test_labels_of_another_shape_are_refused_in_one_line(client, tmp_path, given, told) -> None:
    run = make_run(tmp_path, "one")
    answer = client.post("/api/runs/one/labels", json=given)
    assert answer.status_code == 400
    assert told in answer.json()["error"]
    assert not (run / "labels.json").exists()


def test_labels_where_a_folder_lies_are_refused_in_one_line(client, tmp_path) -> None:
    (make_run(tmp_path, "one") / "labels.json").mkdir()
    answer = client.post("/api/runs/one/labels", json={"note": "x", "tags": []})
    assert (answer.status_code, "cannot write labels.json of one" in answer.text) == (400, True)
