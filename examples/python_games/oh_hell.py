"""Oh Hell in Python: `sparring train examples/python_games/oh_hell.py:OhHell`.

Four players bid how many tricks they will take, in rounds of 1, 2, 3 ... cards. The card that is
turned up after the deal names the trump. Who takes exactly what was bid gets 10 points and one for
each trick, all others get nothing. The last one to bid may not make the bids come out even.
"""

from sparring.pygames import Block, Flag, Game, Int

SEATS, CARDS, SUITS, RANKS, MOST = 4, 52, 4, 13, 7
DECK, PLAYED = 0, SEATS + 1  # holders of a card besides seat + 1
BIDDER, PLAYER = 0, 1
BONUS = 10
PLAYED_OUT = 1


def suit(card):
    return card // RANKS


def deal(state, rng):
    """Deal a round: `round + 1` cards for each seat, then the trump card."""
    for card in range(CARDS):
        state.holder[card] = DECK
    for seat in range(SEATS):
        for _ in range(state.round + 1):
            state.holder[draw_card(state, rng)] = seat + 1
        state.bid[seat] = -1
        state.taken[seat] = 0
        state.trick[seat] = -1
    state.trump = draw_card(state, rng)
    state.holder[state.trump] = PLAYED
    state.lead = (state.round + 1) % SEATS
    state.seat = state.lead
    state.role = BIDDER


def draw_card(state, rng):
    """Draw a card of the deck."""
    left = 0
    for card in range(CARDS):
        left += state.holder[card] == DECK
    pick = rng.below(left)
    for card in range(CARDS):
        if state.holder[card] == DECK:
            if pick == 0:
                return card
            pick -= 1
    return 0


def cards_of(state, seat, of_suit):
    """Return how many cards of a suit a seat holds."""
    count = 0
    for card in range(of_suit * RANKS, (of_suit + 1) * RANKS):
        count += state.holder[card] == seat + 1
    return count


def beats(card, best, trump):
    """Whether a card takes the trick from the best one so far."""
    if suit(card) == suit(best):
        return card > best
    return suit(card) == trump


def bids_made(state):
    made = 0
    for seat in range(SEATS):
        made += state.bid[seat] >= 0
    return made


def forbidden_bid(state):
    """Return the bid that would make the bids come out even; -1: every bid is allowed."""
    if bids_made(state) < SEATS - 1:
        return -1
    total = 0
    for seat in range(SEATS):
        total += max(state.bid[seat], 0)
    return state.round + 1 - total


def finish_trick(state):
    """Give the trick to its best card, whose seat leads."""
    best = state.trick[state.lead]
    taker = state.lead
    for i in range(1, SEATS):
        seat = (state.lead + i) % SEATS
        if beats(state.trick[seat], best, suit(state.trump)):
            best, taker = state.trick[seat], seat
    for seat in range(SEATS):
        state.trick[seat] = -1
    state.taken[taker] += 1
    state.lead = taker
    state.seat = taker


def score_round(state, rewards, counts):
    for seat in range(SEATS):
        kept = state.taken[seat] == state.bid[seat]
        points = BONUS + state.bid[seat] if kept else 0
        state.points[seat] += points
        rewards.points[seat] = points
        rewards.kept[seat] = kept
        counts.bids[seat] = 1
        counts.kept[seat] = kept


class OhHell(Game):
    """Oh Hell: bid your tricks and take exactly so many."""

    seats = SEATS
    actions = CARDS + MOST + 1  # cards, then bids
    state = {
        "holder": Int(DECK, PLAYED, shape=CARDS),
        "bid": Int(-1, MOST, shape=SEATS),
        "taken": Int(0, MOST, shape=SEATS),
        "trick": Int(-1, CARDS - 1, shape=SEATS),
        "points": Int(0, MOST * (BONUS + MOST), shape=SEATS),
        "trump": Int(0, CARDS - 1),
        "lead": Int(0, SEATS - 1),
        "round": Int(0, MOST - 1),
        "rounds": Int(1, MOST),
    }
    observation = {
        "hand": CARDS,
        "gone": CARDS,
        "trick": (SEATS, CARDS),  # by seats from one's own on, as all that follow
        "bid": Block((SEATS, 2), divisor=MOST, names=("made", "tricks")),
        "taken": Block(SEATS, divisor=MOST),
        "points": Block(SEATS, divisor=50, dtype="int16"),
        "trump": SUITS,
        "phase": Block(2, names=("bid", "play")),
        "cards": Block(1, divisor=MOST),
    }
    roles = ("bidder", "player")
    role_features = (("phase.bid",), ("phase.play",))
    parts = {"points": 0.1, "kept": 0.0}
    flags = {"rounds": Flag(MOST, 1, MOST, help="rounds of a game", live=True)}
    counters = ("bids", "kept")
    stats = {"bid_kept": ("kept", "bids", "bids that came true")}

    def reset(state, rng, flags):
        state.rounds = flags.rounds
        deal(state, rng)

    def legal(state, mask):
        me = state.seat
        if state.role == BIDDER:
            forbidden = forbidden_bid(state)
            for bid in range(state.round + 2):
                mask[CARDS + bid] = bid != forbidden
            return
        led = -1 if state.lead == me else suit(state.trick[state.lead])
        follows = led >= 0 and cards_of(state, me, led) > 0
        for card in range(CARDS):
            if state.holder[card] == me + 1:
                mask[card] = not follows or suit(card) == led

    def observe(state, seat, obs):
        for card in range(CARDS):
            obs.hand[card] = state.holder[card] == seat + 1
            obs.gone[card] = state.holder[card] == PLAYED
        for i in range(SEATS):
            other = (seat + i) % SEATS
            if state.trick[other] >= 0:
                obs.trick[i, state.trick[other]] = 1
            if state.bid[other] >= 0:
                obs.bid[i, 0] = 1
                obs.bid[i, 1] = state.bid[other]
            obs.taken[i] = state.taken[other]
            obs.points[i] = state.points[other]
        obs.trump[suit(state.trump)] = 1
        obs.phase[state.role] = 1
        obs.cards[0] = state.round + 1

    def step(state, action, rewards, rng, counts):
        me = state.seat
        if state.role == BIDDER:
            state.bid[me] = action - CARDS
            state.seat = (me + 1) % SEATS
            if bids_made(state) == SEATS:
                state.role, state.seat = PLAYER, state.lead
            return 0
        state.trick[me] = action
        state.holder[action] = PLAYED
        state.seat = (me + 1) % SEATS
        if state.seat != state.lead:
            return 0
        finish_trick(state)
        tricks = 0
        for seat in range(SEATS):
            tricks += state.taken[seat]
        if tricks <= state.round:
            return 0
        score_round(state, rewards, counts)
        if state.round + 1 == state.rounds:
            return PLAYED_OUT
        state.round += 1
        deal(state, rng)
        return 0

    def score(state, seat):
        return state.points[seat]

    def careful(state, mask, rng):
        """Bids its trumps, then plays the lowest card that is allowed."""
        me = state.seat
        if state.role == BIDDER:
            bid = cards_of(state, me, suit(state.trump))
            other = bid - 1 if bid else bid + 1
            return CARDS + (bid if mask[CARDS + bid] else other)
        lowest = -1
        for card in range(CARDS):
            if mask[card] and (lowest < 0 or card % RANKS < lowest % RANKS):
                lowest = card
        return lowest

    bots = (careful,)

    def resample(state, seat, rng):
        """Deal the cards anew that the seat has not seen."""
        held = [0] * SEATS
        for card in range(CARDS):
            holder = state.holder[card]
            if holder not in (DECK, PLAYED, seat + 1):
                held[holder - 1] += 1
                state.holder[card] = DECK
        for other in range(SEATS):
            for _ in range(held[other]):
                state.holder[draw_card(state, rng)] = other + 1

    def valid(state):
        """Whether hands, bids and tricks fit together."""
        if state.round >= state.rounds or state.trump < 0:
            return False
        if state.role == BIDDER and forbidden_bid(state) > state.round + 1:
            return False
        held = 0
        for card in range(CARDS):
            held += state.holder[card] == state.seat + 1
        return state.over or held > 0

    def text(state, viewer):
        def name(card):
            return "23456789TJQKA"[card % RANKS] + "CDHS"[card // RANKS]

        lines = [f"round {state.round + 1}, trump {name(state.trump)}"]
        for seat in range(SEATS):
            hand = " ".join(name(c) for c in range(CARDS) if state.holder[c] == seat + 1)
            shown = hand if viewer in (None, seat) else "?"
            table = name(state.trick[seat]) if state.trick[seat] >= 0 else "-"
            bid = state.bid[seat] if state.bid[seat] >= 0 else "-"
            lines.append(
                f"seat {seat}: bid {bid}, took {state.taken[seat]}, {state.points[seat]} points, "
                f"plays {table}, holds {shown}"
            )
        return "\n".join(lines) + "\n"

    def action_name(action):
        if action >= CARDS:
            return f"bid {action - CARDS}"
        return "23456789TJQKA"[action % RANKS] + "CDHS"[action // RANKS]
