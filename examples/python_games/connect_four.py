"""Connect Four in Python: `sparring train examples/python_games/connect_four.py:ConnectFour`."""

from sparring.pygames import Game, Int

COLUMNS, ROWS = 7, 6
DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))
FOUR_IN_A_ROW, BOARD_FULL = 1, 2


def length(board, row, column, down, right):
    """Return how many stones of one color lie in a line through a cell."""
    color, count = board[row, column], 1
    for sign in (-1, 1):
        r, c = row + sign * down, column + sign * right
        while 0 <= r < ROWS and 0 <= c < COLUMNS and board[r, c] == color:
            count += 1
            r, c = r + sign * down, c + sign * right
    return count


class ConnectFour(Game):
    """Connect Four: four in a row win."""

    seats = 2
    actions = COLUMNS
    state = {"board": Int(0, 2, shape=(ROWS, COLUMNS)), "height": Int(0, ROWS, shape=COLUMNS)}
    observation = {"own": (ROWS, COLUMNS), "other": (ROWS, COLUMNS), "turn": 1}
    ends = ("four in a row", "board full")
    board = (ROWS, COLUMNS)
    zero_sum = True
    chance = False

    def reset(state, rng):
        state.seat = 0  # all other fields are 0

    def legal(state, mask):
        for column in range(COLUMNS):
            mask[column] = state.height[column] < ROWS

    def observe(state, seat, obs):
        for row in range(ROWS):
            for column in range(COLUMNS):
                stone = state.board[row, column]
                obs.own[row, column] = stone == seat + 1
                obs.other[row, column] = stone == 2 - seat
        obs.turn[0] = state.seat == seat and not state.over

    def step(state, action, rewards):
        me = state.seat
        row = state.height[action]
        state.board[row, action] = me + 1
        state.height[action] += 1
        state.seat = 1 - me
        for down, right in DIRECTIONS:
            if length(state.board, row, action, down, right) >= 4:
                rewards[me] = 1
                rewards[1 - me] = -1
                return FOUR_IN_A_ROW
        for column in range(COLUMNS):
            if state.height[column] < ROWS:
                return 0  # the game goes on
        return BOARD_FULL

    def text(state, viewer):
        rows = (" ".join(".XO"[stone] for stone in row) for row in state.board[::-1])
        return "\n".join(rows) + "\n"

    def action_name(action):
        return "abcdefg"[action]
