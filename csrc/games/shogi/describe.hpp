// Shogi for people: names, configuration and state fields, set-up by SFEN, checks. Host only.
#pragma once

#include "games/shogi.hpp"
#include "games/shogi/observation.hpp"
#include "games/shogi/text.hpp"

#if SPARRING_HOST
namespace sparring::shogi {

inline std::vector<Column> square_columns(f32 divisor = 1) {
  std::vector<Column> columns;
  for (int square = 0; square < kSquares; ++square)
    columns.push_back({square_name(square), Type::kU8, divisor});
  return columns;
}

// Names and divisors of the numbers that follow the pieces.
inline std::vector<Column> number_columns() {
  std::vector<Column> columns;
  for (const char* who : {"own ", "other "})
    for (int k = 0; k < kKinds; ++k)
      columns.push_back({std::string(who) + kLetters[k] + " in hand", Type::kU8,
                         static_cast<f32>(kPieceTotal[k])});
  for (const Feature& fact : kFactFeatures) columns.push_back({fact.name, fact.type, fact.divisor});
  return columns;
}

inline Spec Game::spec(const Config& config) {
  std::vector<Block> blocks;
  for (const char* who : {"own ", "other "}) {
    for (int plane = 0; plane < kSidePlanes; ++plane) {
      const std::string piece = plane <= kKing ? std::string{kLetters[plane]}
                                               : std::string{'+', kLetters[plane - kKing - 1]};
      blocks.push_back({who + piece, 1, square_columns()});
    }
  }
  std::vector<Column> numbers = number_columns();
  if (config.observation == kCompact) {
    numbers.push_back({"to move", Type::kU8, 1});
    blocks.push_back({"numbers", 1, numbers});
  } else {
    for (const Column& column : numbers)
      blocks.push_back({column.name, 1, square_columns(column.divisor)});
  }
  return {.name = "shogi",
          .title = "Shogi on the 9x9 board",
          .rules_version = 1,
          .blocks = blocks,
          .role_names = {"player"},
          .board = {kSide, kSide},
          .zero_sum = true,
          .chance = false};
}

inline std::vector<Field> Game::config_fields() {
  return {
      SPARRING_CONFIG(max_plies, 1, 10000, "", "moves of both sides until the game is cut"),
      SPARRING_CONFIG(at_limit, 0, 1, "CUT|DRAW",
                      "CUT truncates at the limit, DRAW ends the game there"),
      SPARRING_CONFIG(declaration, 0, 2, "OFF|POINTS27|POINTS24",
                      "an entered king wins by points; tested when a turn begins"),
      SPARRING_CONFIG(memory, 4, 10000, "",
                      "positions that repetition looks back on; max_plies or more forgets none"),
      SPARRING_CONFIG(observation, 0, 1, "COMPACT|PLANES46",
                      "COMPACT writes hands and counters once, PLANES46 as planes"),
      SPARRING_CONFIG(material, 0, 1, "",
                      "reward for material: a captured rook brings 1.98 times this"),
  };
}

// Boards are shown as words: the side to move first, then the other; kinds as P L N S B R G.
inline std::vector<Field> Game::state_fields() {
  return {
      field<u64[4]>("side", offsetof(Game, position.side)),
      field<u64[2 * kKinds]>("kind", offsetof(Game, position.kind)),
      field<u64[2]>("promoted", offsetof(Game, position.promoted)),
      field<u8[16]>("hand", offsetof(Game, position.hand)),
      field<u8[2]>("king", offsetof(Game, position.king)),
      field<u8>("mover", offsetof(Game, position.mover)),
      field<u8>("in_check", offsetof(Game, position.in_check)),
      SPARRING_STATE(key),
      SPARRING_STATE(ply),
      SPARRING_STATE(checks),
      SPARRING_STATE(repeats),
      SPARRING_STATE(winner),
  };
}

inline std::vector<Stat> Game::stats(const Config&) {
  return {
      {"length", {kPlies}, {kGames}, "moves of a game, both sides together"},
      {"captures", {kCaptures}, {kMoves}, "own moves that capture"},
      {"drops", {kDrops}, {kMoves}, "own moves that drop a piece"},
      {"promotions", {kPromotions}, {kMoves}, "own moves that promote"},
      {"checks", {kChecks}, {kMoves}, "own moves that give check"},
  };
}

// Squares are those of the mover's view; where a move starts depends on the position.
inline std::string Game::action_name(const Config&, int action) {
  static constexpr const char* kNames[kDirections] = {
      "up",   "up left",   "up right",   "left",        "right",
      "down", "down left", "down right", "knight left", "knight right"};
  const int label = action / kSquares;
  const std::string to = square_name(action % kSquares);
  if (label >= kDrop) return std::string{kLetters[label - kDrop], '*'} + to;
  return std::string(kNames[label % kPromote]) + " to " + to + (label >= kPromote ? "+" : "");
}

// The data are the characters of an SFEN. Its position counts as the first of the game.
inline std::string Game::setup(const Config& config, const std::vector<i64>& data) {
  std::string sfen;
  for (const i64 c : data) {
    if (c < ' ' || c > '~') return "an SFEN is made of ASCII characters";
    sfen += static_cast<char>(c);
  }
  const Sfen read = SfenReader::read(sfen);
  if (!read.wrong.empty()) return read.wrong;
  if (!read.unplayable.empty()) return read.unplayable;
  Game fresh;
  fresh.start_from(read.position, read.number);
  if (!fresh.position.can_move(fresh.safety())) return "the side to move has no legal move";
  if (fresh.claimed(config) != Claim::kNone)
    return "the side to move ends the game by declaration; declaration=OFF plays on";
  *this = fresh;
  return {};
}

inline std::string Game::text(const Config&, int) const { return sfen_of(position, number + ply); }

inline void declare_board(const char* name, const Board& board, Bounds& bounds) {
  bounds.any(board.low);
  bounds.within(name, board.high, 0, static_cast<i64>(kAll.high));
}

inline void Game::bounds(const Config& config, Bounds& bounds) const {
  const Position& at = position;
  for (const Board& board : at.side) declare_board("side", board, bounds);
  for (const Board& board : at.kind) declare_board("kind", board, bounds);
  declare_board("promoted", at.promoted, bounds);
  for (const auto& held : at.hand) {
    for (int k = 0; k < kKinds; ++k) bounds.within("hand", held[k], 0, kPieceTotal[k]);
    bounds.spare(held[kKing]);
  }
  bounds.within("king", at.king, 0, kLastSquare);
  bounds.within("mover", at.mover, kBlack, kWhite);
  bounds.within("in_check", at.in_check, 0, 1);
  bounds.spare(at.spare);
  declare_board("pinned", pinned, bounds);
  declare_board("allowed", allowed, bounds);
  bounds.any(key);
  bounds.within("ply", ply, 0, config.max_plies);
  bounds.within("number", number, 1, kMaxNumber);
  bounds.within("checks", checks, 0, config.max_plies);
  bounds.within("repeats", repeats, 0, 3);
  bounds.within("winner", winner, kNoWinner, kWhite);
  bounds.spare(spare);
}

// The memory is empty until the first move, whatever its bytes are. Positions that are gone cannot
// be told from invented ones.
inline const char* Game::check_extra(const Config& config, const u8* extra) const {
  if (ply == 0) return repeats ? "the first position occurred before" : nullptr;
  std::vector<u64> words(static_cast<size_t>(extra_bytes(config)) / sizeof(u64));
  std::memcpy(words.data(), extra, words.size() * sizeof(u64));
  const Memory memory(reinterpret_cast<u8*>(words.data()), config.memory);
  if (!memory.is_whole(ply)) return "the memory's filter does not know the memory";
  return memory.find(key, ply).count == repeats ? nullptr
                                                : "the position did not occur so often before";
}

// Every square of a side has one kind, kings included, and the box has no more pieces.
inline const char* audit_pieces(const Position& at) {
  if ((at.side[kOwn] & at.side[kOther]).any()) return "two pieces on one square";
  if (!at.side[kOwn].has(at.king[kOwn]) || !at.side[kOther].has(at.king[kOther]))
    return "a king stands on a square that is not its side's";
  Board pieces = Board::of(at.king[kOwn]) | Board::of(at.king[kOther]);
  for (int k = 0; k < kKinds; ++k) {
    if ((pieces & at.kind[k]).any()) return "a square has two kinds";
    pieces |= at.kind[k];
    if (at.kind[k].count() + at.hand[kOwn][k] + at.hand[kOther][k] > kPieceTotal[k])
      return "a piece too many";
  }
  if (!(pieces == at.occupied())) return "a piece of no kind";
  const Board golds_and_kings =
      at.kind[kGold] | Board::of(at.king[kOwn]) | Board::of(at.king[kOther]);
  return (at.promoted - (pieces - golds_and_kings)).any() ? "something promoted that cannot"
                                                          : nullptr;
}

// Moves in a row that gave check: no more than a side made, and the last one if there is a check.
inline const char* audit_checks(const Game& game) {
  const int moved = game.position.mover ^ 1;
  if (game.checks[moved] > (game.ply + 1) / 2 || game.checks[moved ^ 1] > game.ply / 2)
    return "a side gave more checks than it made moves";
  if (game.ply > 0 && (game.checks[moved] > 0) != game.position.in_check)
    return "a check was not counted";
  return nullptr;
}

// Section 1.9 once more: who has won, as far as the position tells.
inline const char* audit_winner(const Game& game, const Config& config) {
  const int mover = game.position.mover;
  const bool stuck = !game.position.can_move(game.safety());
  if (!stuck && game.repeats == 3) return nullptr;  // the memory tells who gave check all the time
  const bool claims = !stuck && game.claimed(config) == Claim::kWin;
  const int winner = stuck ? mover ^ 1 : claims ? mover : int{kNoWinner};
  return game.winner == winner ? nullptr : "the winner is not the position's";
}

// What holds in every position; null if all does.
inline const char* Game::audit(const Config& config) const {
  if (const char* wrong = audit_pieces(position)) return wrong;
  if (key != key_of(position)) return "the key is not that of the position";
  const Safety safe = position.safety();
  if (!(safe.pinned == pinned) || !(safe.allowed == allowed) || safe.in_check != position.in_check)
    return "checks and pins are not those of the position";
  if (const char* wrong = why_unplayable(position)) return wrong;
  if (const char* wrong = audit_checks(*this)) return wrong;
  return audit_winner(*this, config);
}

// The tests of section 1.9 without their order.
inline bool Game::ended(const Config& config) const {
  return repeats == 3 || ply >= config.max_plies || claimed(config) != Claim::kNone ||
         !position.can_move(safety());
}

}  // namespace sparring::shogi
#endif  // SPARRING_HOST
