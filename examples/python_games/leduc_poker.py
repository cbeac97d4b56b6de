"""Leduc poker in Python: `sparring train examples/python_games/leduc_poker.py:LeducPoker`."""

from sparring.pygames import Block, Flag, Game, Int

FOLD, CALL, RAISE = 0, 1, 2
CARDS, DEALS, MOVES, RAISES, MOST_CHIPS = 6, 120, 4, 2, 13
SHOWDOWN, FOLDED = 1, 2
RANKS = ("jack", "queen", "king")


def card_left(gone, count, pick):
    """Return the card number `pick` of those that are not among the first `count` of `gone`."""
    for card in range(CARDS):
        free = True
        for i in range(count):
            if gone[i] == card:
                free = False
        if free:
            if pick == 0:
                return card
            pick -= 1
    return 0


def winner(cards):
    """Return the seat with the table's rank, else with the higher card; -1: equal cards."""
    first, second, table = cards[0] // 2, cards[1] // 2, cards[2] // 2
    if first == table:
        return 0
    if second == table:
        return 1
    if first == second:
        return -1
    return 0 if first > second else 1


def pay(state, rewards, who):
    """Pay the winner what the other one has put in."""
    stake = 0 if who < 0 else state.chips[1 - who]
    state.won = stake if who == 0 else -stake
    rewards[0] = state.won
    rewards[1] = -state.won


class LeducPoker(Game):
    """Leduc poker: two rounds, one card for both."""

    seats = 2
    actions = 3
    state = {
        "cards": Int(0, CARDS - 1, shape=3),  # of both seats, and of the table
        "moves": Int(FOLD, RAISE, shape=(2, MOVES)),
        "length": Int(0, MOVES, shape=2),
        "chips": Int(1, MOST_CHIPS, shape=2),
        "round": Int(0, 1),
        "raises": Int(0, RAISES),
        "won": Int(-MOST_CHIPS, MOST_CHIPS),  # by the first seat, at the end
    }
    observation = {
        "card": Block(3, names=RANKS),
        "table": Block(3, names=RANKS),
        "first_round": Block((MOVES, 2), names=("call", "raise")),
        "second_round": Block((MOVES, 2), names=("call", "raise")),
        "turn": Block(2, names=("second seat", "to move")),
        "chips": Block(2, divisor=MOST_CHIPS, names=("own", "other")),
    }
    parts = ("chips",)
    ends = ("showdown", "fold")
    flags = {"deal": Flag(-1, -1, DEALS - 1, help="which of the 120 deals; -1: drawn")}
    zero_sum = True

    def reset(state, rng, flags):
        deal = rng.below(DEALS) if flags.deal < 0 else flags.deal
        state.cards[0] = card_left(state.cards, 0, deal // 20)
        state.cards[1] = card_left(state.cards, 1, deal // 4 % 5)
        state.cards[2] = card_left(state.cards, 2, deal % 4)
        state.chips[:] = 1

    def legal(state, mask):
        me = state.seat
        mask[FOLD] = state.chips[1 - me] > state.chips[me]
        mask[CALL] = True
        mask[RAISE] = state.raises < RAISES

    def observe(state, seat, obs):
        for rank in range(3):
            obs.card[rank] = state.cards[seat] // 2 == rank
            obs.table[rank] = state.round == 1 and state.cards[2] // 2 == rank
        for i in range(state.length[0]):
            obs.first_round[i, 0] = state.moves[0, i] == CALL
            obs.first_round[i, 1] = state.moves[0, i] == RAISE
        for i in range(state.length[1]):
            obs.second_round[i, 0] = state.moves[1, i] == CALL
            obs.second_round[i, 1] = state.moves[1, i] == RAISE
        obs.turn[0] = seat == 1
        obs.turn[1] = not state.over and state.seat == seat
        obs.chips[0] = state.chips[seat]
        obs.chips[1] = state.chips[1 - seat]

    def step(state, action, rewards):
        me, now = state.seat, state.round
        state.moves[now, state.length[now]] = action
        state.length[now] += 1
        state.seat = state.length[now] % 2
        if action == FOLD:
            pay(state, rewards, 1 - me)
            return FOLDED
        state.chips[me] = state.chips[1 - me]
        if action == RAISE:
            state.chips[me] += 2 if now == 0 else 4
            state.raises += 1
            return 0
        if state.length[now] < 2:
            return 0
        if now == 1:
            pay(state, rewards, winner(state.cards))
            return SHOWDOWN
        state.round, state.raises, state.seat = 1, 0, 0
        return 0

    def caller(state, mask, rng):
        return CALL

    def solid(state, mask, rng):
        mine = state.cards[state.seat] // 2
        pair = state.round == 1 and mine == state.cards[2] // 2
        strong = pair or (mine == 2 and (state.round == 0 or not mask[FOLD]))
        bluff = mine == 0 and not mask[FOLD] and rng.below(4) == 0
        if (strong or bluff) and mask[RAISE]:
            return RAISE
        weak = mine == 0 if state.round == 0 else not pair and mine < 2
        return FOLD if weak and mask[FOLD] else CALL

    bots = (caller, solid)

    def resample(state, seat, rng):
        if state.over:
            return
        gone = [state.cards[seat], state.cards[2], 0]
        if state.round == 1:
            other = card_left(gone, 2, rng.below(4))
        else:
            other = card_left(gone, 1, rng.below(5))
            gone[1] = other
            state.cards[2] = card_left(gone, 2, rng.below(4))
        state.cards[1 - seat] = other

    def text(state, viewer):
        shown = ["JQK"[card // 2] for card in state.cards]
        table = shown[2] if viewer is None or state.round == 1 else "?"
        lines = [f"table: {table}"]
        for seat in range(2):
            card = shown[seat] if viewer in (None, seat) else "?"
            lines.append(f"seat {seat}: {card}, {state.chips[seat]} chips")
        return "\n".join(lines) + "\n"

    def action_name(action):
        return ("fold", "call", "raise")[action]
