"""The session behind a table: undo at any time, closing, several rows, players that fail."""

from __future__ import annotations

import pytest

SETUP = """
const { loadGame } = await import("/app/play/load.js");
const { PERSON, Session, agent, bot } = await import("/app/play/session.js");
const soon = () => new Promise((done) => setTimeout(done, 5));
// A game whose states are counted, so that a test sees whether all were freed.
async function counted(name) {
  const game = await loadGame(name);
  const { native } = game.engine;
  const alive = { count: 0 };
  game.engine.native = {
    ...native,
    state_new: (...given) => (++alive.count, native.state_new(...given)),
    state_clone: (...given) => (++alive.count, native.state_clone(...given)),
    state_free: (...given) => (--alive.count, native.state_free(...given)),
  };
  return { ...game, alive };
}
async function asked(session) {
  while (!session.answer && !session.state.over) await soon();
}
"""


@pytest.fixture(scope="module")
def address(serve):
    return serve()


@pytest.fixture
def try_out(page, address):
    """Run a piece of JavaScript in a page of ours; returns what it returns."""
    page.goto(f"{address}/#/play")
    page.wait_for_selector(".tile")

    def run(script: str):
        return page.evaluate(f"async () => {{ {SETUP} {script} }}")

    return run


def test_undo_takes_back_one_decision_and_the_answer_to_it(try_out):
    found = try_out("""
        const { engine, rules } = await counted("tic_tac_toe");
        const session = new Session(engine, { seed: 1, players: [PERSON, bot(rules, "careful")] });
        session.run();
        await asked(session);
        const first = session.undo();
        session.choose(0);
        await soon(); await asked(session);
        session.choose(session.answer.legal[0]);
        await soon(); await asked(session);
        const two = session.moves.length;
        session.undo();
        await soon(); await asked(session);
        return { first, two, one: session.moves.length, legal: session.answer.legal.length };
    """)
    assert found == {"first": False, "two": 4, "one": 2, "legal": 7}


def test_undo_takes_back_all_actions_of_one_decision(try_out):
    found = try_out("""
        const { engine, rules } = await counted("kuhhandel");
        const players = [bot(rules, "random"), PERSON, bot(rules, "random")];
        const session = new Session(engine, { seed: 1, players });
        const { bidActions } = await import("/games/kuhhandel/wishes.js");
        const { read } = await import("/games/kuhhandel/reading.js");
        const amounts = Array.from({ length: 99 }, (_, at) => 10 * at + 10);
        session.run();
        await asked(session);
        while (read(session.state).phase !== "bid") {
          session.choose(session.answer.legal[0]);
          await soon(); await asked(session);
        }
        const before = session.moves.length;
        const bids = amounts.map((amount) => bidActions(session.state, amount));
        const [first, ...rest] = bids.find((bid) => bid?.length > 1);
        session.choose(first, rest);
        await soon(); await asked(session);
        const made = session.moves.slice(before, before + 2).flat();
        const undone = session.undo();
        await soon(); await asked(session);
        const back = session.moves.length === before;
        return { made, undone, back, wished: [first, ...rest] };
    """)
    assert len(found["wished"]) == 2
    assert found["made"] == found["wished"]
    assert (found["undone"], found["back"]) == (True, True)


def test_undo_after_the_end_goes_on(try_out):
    found = try_out("""
        const { engine, rules } = await counted("kuhn_poker");
        const session = new Session(engine, { seed: 4, players: [PERSON, bot(rules, "caller")] });
        const run = session.run();
        await asked(session);
        session.choose(1);
        await run;
        const ended = session.state.over;
        const undone = session.undo();
        await asked(session);
        const open = !session.state.over && session.moves.length === 0;
        session.choose(1);
        await session.run();
        return { ended, undone, open, again: session.state.over };
    """)
    assert found == {"ended": True, "undone": True, "open": True, "again": True}


def test_undo_while_somebody_thinks_forgets_the_thought(try_out):
    found = try_out("""
        const { engine } = await counted("tic_tac_toe");
        const thoughts = [];
        const slow = { action: () => new Promise((answer) => thoughts.push(answer)) };
        const players = [PERSON, agent("slow", slow)];
        const session = new Session(engine, { seed: 1, players });
        session.run();
        await asked(session);
        session.choose(4);
        await soon();
        const thinking = thoughts.length;
        session.undo();
        const waits = session.moves.length;
        thoughts[0](0);
        await asked(session);
        return { thinking, waits, moves: session.moves.length, legal: session.answer.legal.length };
    """)
    assert found == {"thinking": 1, "waits": 0, "moves": 0, "legal": 9}


def test_undo_while_a_move_is_shown_waits_for_the_view(try_out):
    found = try_out("""
        const { engine, rules, alive } = await counted("tic_tac_toe");
        const session = new Session(engine, { seed: 1, players: [PERSON, bot(rules, "careful")] });
        let shown = null;
        let seen = null;
        session.animate = (before, move, after) => new Promise((done) => {
          shown = () => { seen = [...after.fields().stones]; done(); };
        });
        session.run();
        await asked(session);
        session.choose(4);
        await soon();
        session.undo();
        await soon();
        shown();
        await asked(session);
        const moves = session.moves.length;
        session.close();
        await session.run();
        return { moves, seen, alive: alive.count };
    """)
    assert found == {"moves": 0, "seen": [16, 0], "alive": 0}


def test_closing_ends_the_wait_and_frees_every_state(try_out):
    found = try_out("""
        const { engine, rules, alive } = await counted("leduc_poker");
        const session = new Session(engine, { seed: 2, players: [PERSON, bot(rules, "solid")] });
        const run = session.run();
        await asked(session);
        session.choose(1);
        await soon(); await asked(session);
        const copy = session.positionAt(1);
        copy.free();
        await session.hint();
        session.close();
        await run;
        session.close();
        return { alive: alive.count, undo: session.undo(), choose: session.choose(1) };
    """)
    assert found == {"alive": 0, "undo": False, "choose": False}


def test_rows_decide_at_once_and_are_taken_back_together(try_out):
    found = try_out("""
        const { engine, rules } = await counted("laser_hockey_discrete");
        const players = [bot(rules, "random"), PERSON];
        const session = new Session(engine, { seed: 5, players });
        session.run();
        const played = [];
        for (let i = 0; i < 2; ++i) {
          for (let step = 0; step < 3; ++step) {
            await asked(session);
            session.choose(step);
            await soon();
          }
          played.push(JSON.stringify(session.moves));
          await asked(session);
          for (let step = 0; step < 3; ++step) session.undo();
          await soon();
        }
        await asked(session);
        return { same: played[0] === played[1], moves: session.moves.length, played: played[0] };
    """)
    assert found["same"], "a bot's draw was not taken back"
    assert found["moves"] == 0


def test_a_player_that_fails_stops_the_game_and_undo_goes_on(try_out):
    found = try_out("""
        const { engine } = await counted("tic_tac_toe");
        let good = false;
        const network = { action() { if (good) return 0; throw new Error("no weights"); } };
        const session = new Session(engine, { seed: 1, players: [PERSON, agent("bad", network)] });
        const heard = [];
        session.trouble = (wrong) => heard.push(wrong.message);
        session.run();
        await asked(session);
        session.choose(4);
        await session.run();
        good = true;
        session.undo();
        await asked(session);
        session.choose(4);
        await soon(); await asked(session);
        return { heard, moves: session.moves };
    """)
    assert found == {"heard": ["no weights"], "moves": [[4], [0]]}


def test_a_game_that_goes_on_knows_what_can_be_taken_back(try_out):
    found = try_out("""
        const { engine, rules } = await counted("tic_tac_toe");
        const players = [PERSON, bot(rules, "careful")];
        const session = new Session(engine, { seed: 1, players, moves: [[4], [0], [8], [2]] });
        session.run();
        await asked(session);
        session.undo();
        await soon(); await asked(session);
        let wrong = "";
        try {
          new Session(engine, { seed: 1, players, moves: [[4], [4]] });
        } catch (error) { wrong = error.message; }
        return { moves: session.moves, wrong };
    """)
    assert found["moves"] == [[4], [0]]
    assert "b2 cannot be played in step 2" in found["wrong"]


def test_mixtures_are_drawn_by_the_seed_with_their_weights(try_out):
    found = try_out("""
        const { drawMember, joinWords, readSeat, writeSeat } = await import("/app/play/lineup.js");
        const members = readSeat("careful=3+ttt/120@sampled=1");
        const drawn = Array.from({ length: 4000 }, (_, seed) => drawMember(members, seed, 1).name);
        const again = Array.from({ length: 4000 }, (_, seed) => drawMember(members, seed, 1).name);
        return {
          same: drawn.join() === again.join(),
          share: drawn.filter((name) => name === "careful").length / 4000,
          written: writeSeat(members),
          members,
          alone: writeSeat(readSeat("careful")),
          joined: [joinWords(["a", "a"]), joinWords(["a", "b"])],
        };
    """)
    assert found["same"]
    assert abs(found["share"] - 0.75) < 0.03
    assert found["written"] == "careful=3+ttt/120@sampled=1"
    assert found["members"][1] == {"name": "ttt/120", "way": "sampled", "weight": 1}
    assert found["alone"] == "careful"
    assert found["joined"] == ["a", "a,b"]
