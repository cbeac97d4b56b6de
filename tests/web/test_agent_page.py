"""An agent's page as bytes: its policy allows what stands in it, and no other file is replaced."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest
import torch

from sparring import Rules
from sparring.cli import main
from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.pools.custom.cache import cached_pool
from sparring.store.policies import save_policy
from sparring.web import description
from sparring.web.agent_page import agent_page


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    torch.manual_seed(0)
    rules = Rules("tic_tac_toe")
    policy = Policy(rules, make_net(rules, NetConfig(hidden=(8,))))
    return save_policy(policy, tmp_path_factory.mktemp("agents") / "small")


@pytest.fixture
def built():
    if not (description.MODULES / "tic_tac_toe.wasm").is_file():
        pytest.skip("no WebAssembly modules here; make web builds them")


def test_the_policy_names_all_that_runs_and_nothing_else(saved, tmp_path, capsys, built):
    page = tmp_path / "agent.html"
    assert main(["export", str(saved), "--html", str(page), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["html"]
    text = page.read_text("utf-8")
    assert facts["bytes"] == page.stat().st_size
    assert facts["replaced"] is False
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    inside = re.findall(r"<(?:script|style)>(.*?)</(?:script|style)>", text, re.S)
    hashes = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in inside]
    assert sorted(re.findall(r"sha256-([^&]+)&#x27;", policy)) == sorted(hashes)
    assert policy.startswith("default-src &#x27;none&#x27;")
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert not re.search(r'(?:src|href)="(?!#|data:)', markup)
    about = json.loads(re.search(r'id="about">(.*?)</script>', text, re.S)[1])
    assert about["rules"]["name"] == "tic_tac_toe"
    assert main(["export", str(saved), "--html", str(page)]) == 0
    assert "in place of the one before" in capsys.readouterr().out


def test_another_file_is_not_replaced(saved, tmp_path, capsys):
    mine = tmp_path / "index.html"
    mine.write_text("my page")
    assert main(["export", str(saved), "--html", str(mine)]) == 2
    assert "exists and is no agent page" in capsys.readouterr().err
    assert mine.read_text() == "my page"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "give --onnx agent.onnx, --html agent.html or both"),
        (["--html", "agent.zip"], "has to end in .html"),
        (["--html", "nowhere/agent.html"], "there is no folder nowhere"),
    ],
)
def test_what_cannot_be_written_is_one_line(saved, words, told, capsys):
    assert main(["export", str(saved), *words]) == 2
    assert told in capsys.readouterr().err


def test_without_modules_the_error_says_what_to_do(saved, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(description, "MODULES", tmp_path / "none")
    assert main(["export", str(saved), "--html", str(tmp_path / "agent.html")]) == 3
    assert "make web" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_networks_that_no_browser_computes_are_refused_by_name(tmp_path, capsys):
    rules = Rules("tic_tac_toe")
    net = make_net(rules, NetConfig(hidden=(8,)), memory=16)
    with_memory = save_policy(Policy(rules, net), tmp_path / "remembering")
    assert main(["export", str(with_memory), "--html", str(tmp_path / "agent.html")]) == 2
    assert "16 bytes of memory behind the observation has no passes" in capsys.readouterr().err
    own = cached_pool("own_envs:make_cards", 1).rules
    policy = Policy(own, make_net(own, NetConfig(hidden=(8,))), name="cards")
    with pytest.raises(ConfigError, match="cards plays the custom environment"):
        agent_page(policy, "cards")
    assert not (tmp_path / "agent.html").exists()
