"""My game: a heap of 21, from which two players take one to three; who takes the last one wins.

sparring check my_game.py:MyGame
sparring train my_game.py:MyGame
sparring play my_game.py:MyGame
"""

from sparring.pygames import Block, Flag, Game, Int

MOST_TAKEN, MOST_IN_HEAP = 3, 50
TAKEN = 1


class MyGame(Game):
    """My game: take one to three, the last one wins."""

    seats = 2
    actions = MOST_TAKEN
    state = {"heap": Int(0, MOST_IN_HEAP)}  # besides these: state.seat, state.over
    observation = {
        "heap": Block(1, divisor=MOST_IN_HEAP),
        "left_over": Block(4),
    }
    ends = ("heap taken",)
    flags = {"heap": Flag(21, 1, MOST_IN_HEAP, help="size of the heap at the start", live=True)}
    zero_sum = True

    def reset(state, rng, flags):
        """Begin a game; all fields are 0. rng.below(n) draws from 0 to n - 1."""
        state.heap = flags.heap
        state.seat = rng.below(2)

    def legal(state, mask):
        """Mark the legal actions of state.seat; all are unmarked."""
        for action in range(MOST_TAKEN):
            mask[action] = action < state.heap

    def observe(state, seat, obs):
        """Write what a seat may know; all numbers are 0."""
        obs.heap[0] = state.heap
        obs.left_over[state.heap % 4] = 1

    def step(state, action, rewards):
        """Play an action of state.seat; return 0, or the number of an end from 1 on."""
        me = state.seat
        state.heap -= action + 1
        state.seat = 1 - me
        if state.heap > 0:
            return 0
        rewards[me] = 1
        rewards[1 - me] = -1
        return TAKEN

    def perfect(state, mask, rng):
        """Leave a multiple of four, if there is a way."""
        wanted = state.heap % 4
        return wanted - 1 if wanted else rng.below(min(state.heap, MOST_TAKEN))

    bots = (perfect,)

    def text(state, viewer):
        return f"{state.heap}: {'|' * state.heap}"

    def action_name(action):
        return f"take {action + 1}"
