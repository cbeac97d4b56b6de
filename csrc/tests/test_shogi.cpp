// Shogi's sets of squares against plain walks, legal moves against a slow definition, and what
// always holds, whatever the players do.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/pool.hpp"
#include "core/state.hpp"
#include "games/shogi.hpp"
#include "tests/check.hpp"

using namespace sparring;
using namespace sparring::shogi;
using ShogiGame = shogi::Game;

static_assert(std::has_unique_object_representations_v<ShogiGame>,
              "the state has no padding, so its bytes can be compared");
static_assert(sizeof(ShogiGame) <= 256, "four cache lines");

// Positions that games can be set up with: in check, few pieces, at the end of a declaration.
const char* const kComposed[] = {
    "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1",
    "8k/9/9/9/9/9/9/9/K8 b R2GP 65535", "4k4/9/4P4/9/9/9/9/9/4K4 w r2bg 7",
    "K8/1PP6/GGG6/9/9/9/9/9/8k b RBr 3", "3lkb2R/9/4G4/2K6/9/9/9/9/9 b P2gsnl4p 1"};

Board random_board(Rng& rng) {
  const u64 low = u64{rng.next()} << 32 | rng.next(), high = rng.next();
  return Board{low, high} & Board{u64{rng.next()} << 32 | rng.next(), rng.next()} & kAll;
}

bool is_on_board(int file, int rank) {
  return file >= 0 && file < kSide && rank >= 0 && rank < kSide;
}

Board walked(int from, int d, Board occupied, int max_steps) {
  Board reached{};
  int file = from / kSide + kFileStep[d], rank = from % kSide + kRankStep[d];
  for (int steps = 0; steps < max_steps && is_on_board(file, rank); ++steps) {
    reached |= Board::of(file * kSide + rank);
    if (occupied.has(file * kSide + rank)) break;
    file += kFileStep[d];
    rank += kRankStep[d];
  }
  return reached;
}

template <int D>
void steps_and_slides(Rng& rng) {
  for (int i = 0; i < 200; ++i) {
    const Board occupied = random_board(rng);
    Board stepping{};
    for (Board rest = occupied; rest.any();) stepping |= walked(rest.pop(), D, kAll, 1);
    CHECK(stepped<D>(occupied) == stepping);
    for (int from = 0; from < kSquares; ++from)
      CHECK(slide<D>(from, occupied) == walked(from, D, occupied, kSide));
  }
}

void sets_of_squares() {
  Rng rng(5, 0, 0, Stream::kSampling);
  steps_and_slides<kUp>(rng);
  steps_and_slides<kUpLeft>(rng);
  steps_and_slides<kUpRight>(rng);
  steps_and_slides<kLeft>(rng);
  steps_and_slides<kRight>(rng);
  steps_and_slides<kDown>(rng);
  steps_and_slides<kDownLeft>(rng);
  steps_and_slides<kDownRight>(rng);
  for (int i = 0; i < 1000; ++i) {
    const Board board = random_board(rng);
    Board turned{};
    int count = 0;
    for (Board rest = board; rest.any(); ++count) turned |= Board::of(kLastSquare - rest.pop());
    CHECK(board.rotated() == turned);
    CHECK_EQUAL(board.count(), count);
    CHECK_EQUAL(board.has_one(), count == 1);
  }
}

// Composed positions may have several pawns of a side on one file.
void files_of_pawns() {
  Rng rng(11, 0, 0, Stream::kSampling);
  for (int i = 0; i < 2000; ++i) {
    const Board pawns = i % 2 ? random_board(rng) : random_board(rng) & random_board(rng);
    Board wanted{};
    for (int file = 0; file < kSide; ++file) {
      Board whole{};
      for (int rank = 0; rank < kSide; ++rank) whole |= Board::of(file * kSide + rank);
      if (!(whole & pawns).any()) wanted |= whole;
    }
    CHECK(Position::files_without(pawns) == wanted);
  }
}

Position position_of(const char* sfen) {
  const Sfen read = SfenReader::read(sfen);
  CHECK(read.wrong.empty() && read.unplayable.empty());
  return read.position;
}

void sequences_are_counted() {
  struct Line {
    const char* sfen;
    int depth;
    u64 nodes;
  };
  for (const Line& line :
       {Line{kStart, 4, 719731},
        Line{"l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1", 2, 28684},
        Line{"R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1", 2, 105677},
        Line{"k8/9/4l4/9/b7+b/9/2N1S1S2/9/+r1G1K1G1r b NL3Pgsl4p 1", 2, 54963},
        Line{"7k1/1P1L5/1S1N1R1B1/2P1S1N2/9/2n1s1p2/1b1r1n1s1/5l1p1/1K7 w - 1", 3, 64989},
        Line{"4R2gk/9/7G1/9/9/9/9/9/K8 b P 1", 4, 107602},
        Line{"3lkb2R/9/4G4/2K6/9/9/9/9/9 b P2gsnl4p 1", 3, 176682}})
    CHECK_EQUAL(perft(position_of(line.sfen), line.depth), line.nodes);
}

// A move is legal if it does not leave the own king attacked: said once more, the slow way. Drops
// of pawns that mate are left to the counted sequences.
void legal_moves_keep_the_king_safe() {
  Rng rng(6, 0, 0, Stream::kSampling);
  for (int game = 0; game < 40; ++game) {
    Position at = ShogiGame::start_position();
    for (int ply = 0; ply < 200; ++ply) {
      const Safety safe = at.safety();
      const Targets legal = at.targets(safe);
      Targets anything{};  // as if nothing was pinned and no check had to be answered
      Safety careless{Board::none(), kAll - at.side[kOwn], false};
      at.add_board_moves(careless, anything);
      for (int label = 0; label < kDrop; ++label) {
        for (Board rest = anything.of[label]; rest.any();) {
          const int to = rest.pop();
          if (to == at.king[kOther]) continue;
          Position after = at;
          const Change change = after.make(label, to);
          CHECK(change.kind != kKing);
          after.turn();
          CHECK_EQUAL(legal.of[label].has(to), !after.safety().in_check);
        }
      }
      const std::vector<int> actions = actions_of(legal);
      if (actions.empty()) break;
      const int action = actions[static_cast<size_t>(rng.below(static_cast<int>(actions.size())))];
      at.make(action / kSquares, action % kSquares);
    }
  }
}

void the_mask_is_the_targets() {
  Rng rng(7, 0, 0, Stream::kSampling);
  for (int i = 0; i < 200; ++i) {
    Targets targets;
    for (Board& board : targets.of) board = random_board(rng);
    Legal<ShogiGame> mask;
    pack_boards<kLabels>(targets.of, mask.word);
    CHECK_EQUAL(mask.count(), targets.count());
    for (const int action : actions_of(targets)) CHECK(mask.test(action));
  }
}

void memory_finds_what_a_plain_search_finds() {
  Rng rng(8, 0, 0, Stream::kSampling);
  for (const int positions : {4, 7, 64, 512}) {
    std::vector<u64> extra(static_cast<size_t>(Memory::bytes(positions)) / 8, ~u64{0});
    Memory memory(reinterpret_cast<u8*>(extra.data()), positions);
    std::vector<u64> keys;
    for (int at = 0; at < 600; ++at) {
      const u64 key = mixed(static_cast<u64>(rng.below(60)));
      Repeats wanted{};
      for (int distance = 4; distance <= std::min(at, positions); distance += 2)
        if (keys[static_cast<size_t>(at - distance)] == key && wanted.count < 3)
          wanted = {wanted.count + 1, distance};
      if (at > 0) {
        const Repeats found = memory.find(key, at);
        CHECK_EQUAL(found.count, wanted.count);
        CHECK_EQUAL(found.distance, wanted.distance);
      }
      memory.add(key, at);
      keys.push_back(key);
    }
  }
}

std::vector<u64> digests(int threads, bool planes, int steps) {
  shogi::Config config;
  config.observation = planes ? kPlanes46 : kCompact;
  config.max_plies = 120;
  Pool<ShogiGame> pool(config, {.games = 48, .seed = 9, .threads = threads});
  pool.reset();
  std::vector<i32> actions(48);
  std::vector<u64> sums;
  for (int step = 0; step < steps; ++step) {
    pool.sample(0, actions.data());
    CHECK(pool.accept(0, actions.data()).game < 0);
    pool.step_all();
    sums.push_back(pool.digest());
    CHECK(pool.state().audit().empty());
  }
  return sums;
}

void any_number_of_threads_plays_the_same_games() {
  CHECK(digests(1, false, 250) == digests(3, false, 250));
  CHECK(digests(1, true, 150) == digests(2, true, 150));
}

void bots_play_legal_moves() {
  constexpr int kBotCount = static_cast<int>(std::size(ShogiGame::kBots));
  for (int bot = 1; bot <= kBotCount; ++bot) {
    State<ShogiGame> state({}, static_cast<u64>(bot), 0, false, {1, 0});
    for (int ply = 0; ply < 60 && state.seat(0) >= 0; ++ply) {
      const i32 action = static_cast<i32>(state.ask(ply % 2 ? bot : 0, 0)[0]);
      CHECK(state.apply(&action).game < 0);
      CHECK_TEXT(state.check(), "");
    }
  }
}

// Games to their end from many positions under many options: every position on the way would be
// loaded again.
void positions_of_games_are_sound() {
  for (int i = 0; i < 60; ++i) {
    shogi::Config config;
    config.max_plies = i % 4 ? 150 : 400;
    config.at_limit = i / 2 % 2;
    config.declaration = i % 3;
    config.memory = i % 5 ? 4 + i : 512;
    State<ShogiGame> state(config, static_cast<u64>(i), 0, false, {1, 0});
    if (i % 2) {
      const std::string sfen = kComposed[static_cast<size_t>(i / 2) % std::size(kComposed)];
      CHECK_TEXT(state.setup({sfen.begin(), sfen.end()}), "");
    }
    CHECK_TEXT(state.check(), "");
    while (state.seat(0) >= 0) {
      const i32 action = static_cast<i32>(state.ask(i % 7 == 0, 0)[0]);
      CHECK(state.apply(&action).game < 0);
      CHECK_TEXT(state.check(), "");
    }
  }
}

// What is left of a position whose key, checks and pins are made to fit.
ShogiGame fitting(ShogiGame game) {
  game.key = key_of(game.position);
  game.keep(game.position.safety());
  return game;
}

ShogiGame game_of(const char* sfen) {
  ShogiGame game;
  game.start_from(SfenReader::read(sfen).position, 1);
  return game;
}

void crafted_positions_are_refused() {
  const shogi::Config config;
  const std::vector<u8> extra(static_cast<size_t>(ShogiGame::extra_bytes(config)));
  const auto wrong = [&](const ShogiGame& game) {
    return check_position(game, config, extra.data());
  };
  const ShogiGame start = game_of(kStart);
  CHECK_TEXT(wrong(start), "");
  // A king that may capture the other one would put it into a hand, behind the kinds of pieces.
  CHECK_TEXT(wrong(game_of("9/9/9/4k4/4K4/9/9/9/9 b P 1")), "the kings touch");
  CHECK_TEXT(wrong(game_of("9/9/4k4/9/4K4/9/4R4/9/4r4 b - 1")), "");
  CHECK_TEXT(wrong(game_of("9/9/4k4/9/4R4/9/4K4/9/9 b - 1")),
             "the side that is not to move is in check");
  CHECK_TEXT(wrong(game_of("P8/9/4k4/9/9/9/4K4/9/9 b - 1")),
             "a piece stands where it can never move again");
  CHECK_TEXT(wrong(game_of("9/9/4k4/9/P8/9/P3K4/9/9 b - 1")), "a side has two pawns on one file");

  ShogiGame odd = start;
  std::swap(odd.position.king[kOwn], odd.position.king[kOther]);
  CHECK_TEXT(wrong(fitting(odd)), "a king stands on a square that is not its side's");
  odd = start;
  odd.position.promoted = Board::of(odd.position.king[kOwn]);
  CHECK_TEXT(wrong(fitting(odd)), "something promoted that cannot");
  odd = start;
  odd.position.hand[kOwn][kKing] = 1;
  CHECK_TEXT(wrong(fitting(odd)), "spare is not in 0..0");
  odd = start;
  odd.position.king[kOther] = kSquares;
  CHECK_TEXT(wrong(odd), "king is not in 0..80");
  odd = start;
  odd.position.hand[kOwn][kPawn] = 1;
  CHECK_TEXT(wrong(fitting(odd)), "a piece too many");
  odd = start;
  odd.winner = kWhite;
  CHECK_TEXT(wrong(odd), "the winner is not the position's");
  odd = start;
  odd.checks[kBlack] = 1;
  CHECK_TEXT(wrong(odd), "a side gave more checks than it made moves");
  odd = start;
  odd.ply = static_cast<u16>(config.max_plies);
  CHECK_TEXT(wrong(odd), "the memory's filter does not know the memory");
}

// Puts a piece elsewhere, gives it another kind or side, promotes it, takes it away, fills a hand.
void disturb(Position& at, Rng& rng) {
  const Board from = Board::of(rng.below(kSquares)), to = Board::of(rng.below(kSquares));
  const int who = rng.below(2), kind = rng.below(kKinds);
  const auto carry = [&](Board& set) { set = (set & from).any() ? (set - from) | to : set; };
  switch (rng.below(6)) {
    case 0:
      for (Board& set : at.side) carry(set);
      for (Board& set : at.kind) carry(set);
      return carry(at.promoted);
    case 1:
      at.king[who] = static_cast<u8>(to.first());
      if (rng.below(2)) at.side[who] |= to;
      return;
    case 2:
      for (Board& set : at.kind) set = set - from;
      at.kind[kind] |= from & at.occupied();
      return;
    case 3:
      at.promoted ^= rng.below(2) ? from & at.occupied() : from;
      return;
    case 4:
      for (Board& set : at.side) set = set - from;
      for (Board& set : at.kind) set = set - from;
      return;
    default:
      at.hand[who][rng.below(8)] = static_cast<u8>(rng.below(4));
  }
}

// Positions that nobody set up but whose key, checks and pins fit: refused, or played to the end
// by every bot.
void disturbed_positions_are_refused_or_played() {
  shogi::Config config;
  config.max_plies = 40;
  int accepted = 0;
  for (int number = 0; number < 300; ++number) {
    Rng rng(21, static_cast<u32>(number), 0, Stream::kSampling);
    State<ShogiGame> state(config, static_cast<u64>(number), 0, false, {1, 1});
    for (int ply = number % 30; ply > 0 && state.seat(0) >= 0; --ply) {
      const i32 action = static_cast<i32>(state.ask(0, 0)[0]);
      CHECK(state.apply(&action).game < 0);
    }
    ShogiGame game;
    std::memcpy(static_cast<void*>(&game), state.game_bytes(), sizeof game);
    for (int changes = 1 + rng.below(3); changes > 0; --changes) disturb(game.position, rng);
    game.ply = game.checks[0] = game.checks[1] = game.repeats = 0;
    game = fitting(game);
    std::vector<u8> extra = state.extra();
    if (!check_position(game, config, extra.data()).empty()) continue;
    ++accepted;
    Rng chance(0, 0, 0, Stream::kChance);
    f32 reward[2]{}, weight[2] = {1, 1};
    Result result{.reward = reward, .weight = weight, .roles = 1, .active_parts = 3};
    std::vector<u8> row(static_cast<size_t>(ShogiGame::row_bytes(config)));
    while (!result.over()) {
      Legal<ShogiGame> legal;
      game.legal(config, 0, legal, extra.data());
      const i32 action = game.act(game.ply % 3, config, 0, legal, rng, extra.data());
      CHECK(legal.test(action));
      game.observe(config, 0, row.data(), extra.data());
      game.step(config, &action, chance, result, extra.data());
      CHECK_TEXT(check_position(game, config, extra.data(), result.over()), "");
    }
  }
  CHECK(accepted > 30 && accepted < 270);
}

// The bytes beside a game: its filter knows every position that is kept, and the count of the
// present one is theirs.
void a_crafted_memory_is_refused() {
  shogi::Config config;
  State<ShogiGame> state(config, 1, 0, false, {1, 0});
  for (int ply = 0; ply < 12; ++ply) {  // both rooks go back and forth
    const char* move = ply % 4 < 2 ? "2h3h" : "3h2h";
    ShogiGame game;
    std::memcpy(static_cast<void*>(&game), state.game_bytes(), sizeof game);
    const std::vector<int> legal = state.legal(0);
    const std::string wanted = game.position.mover == kBlack ? move : ply % 4 < 2 ? "8b7b" : "7b8b";
    const auto found = std::find_if(legal.begin(), legal.end(), [&](int action) {
      return usi_of(game.position, action) == wanted;
    });
    CHECK(found != legal.end());
    const i32 action = *found;
    CHECK(state.apply(&action).game < 0);
    if (ply != 7) continue;
    std::memcpy(static_cast<void*>(&game), state.game_bytes(), sizeof game);
    std::vector<u8> extra = state.extra();
    CHECK_EQUAL(int{game.repeats}, 2);
    CHECK_TEXT(check_position(game, config, extra.data()), "");
    game.repeats = 0;
    CHECK_TEXT(check_position(game, config, extra.data()),
               "the position did not occur so often before");
    std::memset(extra.data(), 0, 8 * Memory::kFilterWords);
    CHECK_TEXT(check_position(game, config, extra.data()),
               "the memory's filter does not know the memory");
  }
  CHECK(state.seat(0) < 0);  // the fourth occurrence ends the game
  CHECK_TEXT(state.check(), "");
}

// Alpha-beta finds the values that trying everything finds.
int tried_out(const Position& at, int plies) {
  if (plies == 0) return best_gain(at);
  int best = kNever;
  for (const int action : actions_of(at.targets(at.safety()))) {
    Position after = at;
    after.make(action / kSquares, action % kSquares);
    const int value = -tried_out(after, plies - 1);
    const int gain = gain_of(at, action / kSquares, action % kSquares);
    best = std::max(best, std::abs(value) > 20000 ? value : gain + value);
  }
  return best == kNever ? kMated - plies : best;
}

void alpha_beta_finds_the_best_value(int plies) {
  Rng rng(10, 0, 0, Stream::kBots);
  State<ShogiGame> state({}, 4, 0, false, {1, 0});
  for (int ply = 0; ply < 90 && state.seat(0) >= 0; ++ply) {
    const i32 action = static_cast<i32>(state.ask(0, 0)[0]);
    if (ply % 6 == 5) {
      Position at = position_of(state.text(-1).c_str());
      Search search(at, at.targets(at.safety()), plies);
      const int chosen = search.best_action(rng);
      const int gain = gain_of(at, chosen / kSquares, chosen % kSquares);
      const int wanted = tried_out(at, plies);
      at.make(chosen / kSquares, chosen % kSquares);
      const int value = -tried_out(at, plies - 1);
      CHECK_EQUAL(std::abs(value) > 20000 ? value : gain + value, wanted);
    }
    CHECK(state.apply(&action).game < 0);
  }
}

int main() {
  CHECK_EQUAL(bounds_of(ShogiGame{}, {}).first_undeclared(), sizeof(ShogiGame));
  sets_of_squares();
  files_of_pawns();
  sequences_are_counted();
  legal_moves_keep_the_king_safe();
  the_mask_is_the_targets();
  memory_finds_what_a_plain_search_finds();
  any_number_of_threads_plays_the_same_games();
  bots_play_legal_moves();
  positions_of_games_are_sound();
  crafted_positions_are_refused();
  disturbed_positions_are_refused_or_played();
  a_crafted_memory_is_refused();
  alpha_beta_finds_the_best_value(1);  // ab2, whose second ply is the best gain
  alpha_beta_finds_the_best_value(2);  // ab3
}
