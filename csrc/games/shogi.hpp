// Shogi on the 9x9 board: a game with its history, ends, rewards and observation. Section numbers
// are those of the specification; docs/games/shogi.md lists actions, observations and options.
#pragma once

#include "core/bounds.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"
#include "games/shogi/keys.hpp"
#include "games/shogi/material.hpp"
#include "games/shogi/position.hpp"

namespace sparring::shogi {

enum Declaration { kNoDeclaration, kPoints27, kPoints24 };
enum AtLimit { kCut, kDraw };
enum Observation { kCompact, kPlanes46 };

struct Config {
  i32 max_plies = 512;
  i32 at_limit = kCut;
  i32 declaration = kPoints27;
  i32 memory = 512;  // positions that repetition looks back on
  i32 observation = kCompact;
  f32 material = 0;  // weight of that part of the reward
};

enum Part { kResult, kMaterial };

// Counted by seat: its own moves and what they do, games and the moves of both sides in them.
enum Counter { kMoves, kCaptures, kDrops, kPromotions, kChecks, kGames, kPlies };
inline constexpr f32 kGainUnit = 1000;

enum End : u8 { kCheckmate, kStalemate, kRepetition, kPerpetual, kDeclared, kLimit };

inline constexpr i8 kNoWinner = -1;

// What a declaration counts (section 1.8).
struct Camp {
  int pieces, points;
};
inline constexpr int kCampPieces = 10, kBigPoints = 5;
inline constexpr int kPointsToWin[2] = {28, 27};   // 27-point rule, by color
inline constexpr int kProWin = 31, kProDraw = 24;  // 24-point rule

enum class Claim { kNone, kWin, kDraw };

struct Game {
  using Config = shogi::Config;
  using Action = i32;
  static constexpr int kMaxSeats = 2, kRows = 1, kRoles = 1, kActions = shogi::kActions;
  static constexpr int kMaxLegal = 593;
  static constexpr const char* kParts[] = {"result", "material"};
  static constexpr int kWinPart = kResult;
  static constexpr const char* kBots[] = {"greedy", "ab2", "ab3"};
  static constexpr const char* kEnds[] = {"checkmate",       "no legal move", "repetition",
                                          "perpetual check", "declaration",   "ply limit"};
  static constexpr const char* kCounters[] = {"moves",  "captures", "drops", "promotions",
                                              "checks", "games",    "plies"};

  Position position;
  Board pinned, allowed;  // of the side to move, see Safety
  u64 key;
  u16 ply;        // moves made
  u16 number;     // of the start position's move, for SFEN
  u16 checks[2];  // by color: moves in a row that gave check
  u8 repeats;     // earlier occurrences of this position
  i8 winner;      // kNoWinner while the game goes on and after a draw
  u8 spare[6];

  SPARRING_FN static Shape shape(const Config& config) {
    return {.seats = 2, .actions = kActions, .obs_bytes = row_bytes(config)};
  }
  SPARRING_FN static int row_bytes(const Config& config);
  SPARRING_FN static int extra_bytes(const Config& config) { return Memory::bytes(config.memory); }

  SPARRING_FN static f32 default_weight(const Config& config, int part) {
    return part == kResult ? 1.0f : config.material;
  }

  SPARRING_FN int seat(int) const { return position.mover; }
  SPARRING_FN int role(int) const { return 0; }
  SPARRING_FN f32 score(const Config&, int at) const {
    return winner == kNoWinner ? 0.0f : winner == at ? 1.0f : -1.0f;
  }

  SPARRING_FN void reset(const Config&, Rng&, u8*) { start_from(start_position(), 1); }

  SPARRING_FN static Position start_position();

  // The memory is cleared when the first move adds to it.
  SPARRING_FN void start_from(const Position& from, int first_number) {
    *this = Game{};
    position = from;
    number = static_cast<u16>(first_number);
    key = key_of(position);
    winner = kNoWinner;
    keep(position.safety());
  }

  SPARRING_FN void keep(const Safety& safe) {
    pinned = safe.pinned;
    allowed = safe.allowed;
    position.in_check = safe.in_check;
  }

  SPARRING_FN Safety safety() const { return {pinned, allowed, position.in_check != 0}; }

  SPARRING_FN void legal(const Config&, int, Legal<Game>& out, const u8*) const {
    pack_boards<kLabels>(position.targets(safety()).of, out.word);
  }

  SPARRING_FN void step(const Config& config, const Action* actions, Rng&, Result& result,
                        u8* extra) {
    Memory memory(extra, config.memory);
    memory.fetch();
    const u64 before = key;
    const Change change = position.make(actions[0] / kSquares, actions[0] % kSquares);
    key ^= key_change(position, change);
    if (result.is_weighted(kMaterial))
      pay(kMaterial, position.mover ^ 1, static_cast<f32>(gain_of(change)) / kGainUnit, result);
    keep(position.safety());
    u16& in_a_row = checks[position.mover ^ 1];
    in_a_row = static_cast<u16>(position.in_check ? in_a_row + 1 : 0);
    memory.add(before, ply++);
    const Repeats found = memory.find(key, ply);
    repeats = static_cast<u8>(found.count);
    judge(config, found, result);
    if (result.recorder.counts) count_move(change, result);
  }

  // Adds this position to the memory, as a step from it does; for search.
  SPARRING_FN void leave(const Config& config, u8* extra) const {
    Memory(extra, config.memory).add(key, ply);
  }

  SPARRING_FN void count_move(const Change& change, const Result& result) const {
    const Recorder& recorder = result.recorder;
    const int by = position.mover ^ 1;
    recorder.count(kMoves, by);
    if (change.captured != kNoKind) recorder.count(kCaptures, by);
    if (change.drop) recorder.count(kDrops, by);
    if (change.promotes) recorder.count(kPromotions, by);
    if (position.in_check) recorder.count(kChecks, by);
    for (int at = 0; result.over() && at < 2; ++at) {
      recorder.count(kGames, at);
      recorder.count(kPlies, at, ply);
    }
  }

  // Section 1.9: the tests in their order.
  SPARRING_FN void judge(const Config& config, const Repeats& found, Result& result) {
    const int mover = position.mover;
    if (!position.can_move(safety()))
      return end(position.in_check ? kCheckmate : kStalemate, mover ^ 1, result);
    if (found.count == 3) return end_repetition(found.distance / 2, result);
    const Claim claim = claimed(config);
    if (claim != Claim::kNone)
      return end(kDeclared, claim == Claim::kWin ? mover : int{kNoWinner}, result);
    if (ply < config.max_plies) return;
    if (config.at_limit == kCut)
      result.truncate(kLimit);
    else
      result.terminate(kLimit);
  }

  SPARRING_FN void end(End why, int by, Result& result) {
    winner = static_cast<i8>(by);
    if (by != kNoWinner) pay(kResult, by, 1.0f, result);
    result.terminate(why);
  }

  // What one seat is paid, the other loses.
  SPARRING_FN static void pay(Part part, int to, f32 amount, Result& result) {
    if (amount == 0) return;
    result.add_reward(part, to, amount);
    result.add_reward(part, to ^ 1, -amount);
  }

  // Section 1.7: who gave check with each of his moves since the first occurrence loses; if both
  // or none did, nobody does.
  SPARRING_FN void end_repetition(int moves_each, Result& result) {
    const bool black = checks[kBlack] >= moves_each, white = checks[kWhite] >= moves_each;
    if (black == white)
      end(kRepetition, kNoWinner, result);
    else
      end(kPerpetual, black ? kWhite : kBlack, result);
  }

  // Section 1.8, for the side to move.
  SPARRING_FN Claim claimed(const Config& config) const {
    if (config.declaration == kNoDeclaration || position.in_check ||
        !kZone.has(position.king[kOwn]))
      return Claim::kNone;
    const Camp own = camp();
    if (own.pieces < kCampPieces) return Claim::kNone;
    if (config.declaration == kPoints27)
      return own.points >= kPointsToWin[position.mover] ? Claim::kWin : Claim::kNone;
    return own.points >= kProWin    ? Claim::kWin
           : own.points >= kProDraw ? Claim::kDraw
                                    : Claim::kNone;
  }

  // Own pieces in the other's camp, the king left out; their points and those in hand.
  SPARRING_FN Camp camp() const {
    const Board own = (position.side[kOwn] & kZone) - Board::of(position.king[kOwn]);
    const Board big = own & (position.kind[kBishop] | position.kind[kRook]);
    const u8* held = position.hand[kOwn];
    int points = own.count() + (kBigPoints - 1) * (big.count() + held[kBishop] + held[kRook]);
    for (int k = 0; k < kKinds; ++k) points += held[k];
    return {own.count(), points};
  }

  SPARRING_FN void observe(const Config& config, int me, u8* out, const u8* extra) const;

  SPARRING_FN Action act(int bot, const Config& config, int row, const Legal<Game>& legal, Rng& rng,
                         const u8* extra) const;

#if SPARRING_HOST
  static Spec spec(const Config& config);
  static std::vector<Stat> stats(const Config& config);
  static std::vector<Field> config_fields();
  static std::vector<Field> state_fields();
  static std::string action_name(const Config& config, int action);
  std::string setup(const Config& config, const std::vector<i64>& data);
  void bounds(const Config& config, Bounds& bounds) const;
  const char* check_extra(const Config& config, const u8* extra) const;
  const char* audit(const Config& config) const;
  bool ended(const Config& config) const;
  std::string text(const Config& config, int viewer) const;
#endif
};

static_assert(sizeof(Game) == 240, "the state has no padding");

SPARRING_FN inline Position Game::start_position() {
  constexpr u16 kBackRank[kSide] = {kLance, kKnight, kSilver, kGold, kKing,
                                    kGold,  kSilver, kKnight, kLance};
  Position start{};
  for (int file = 0; file < kSide; ++file) {
    const Board pair = Board::of(kSide * file) | Board::of(kSide * file + 8);
    if (kBackRank[file] != kKing) start.kind[kBackRank[file]] |= pair;
  }
  start.side[kOther] = kRankA | rank_board(2);
  start.side[kOwn] = rank_board(6) | kRankI;
  start.kind[kPawn] = rank_board(2) | rank_board(6);
  constexpr int kRookOwn = kSide * 1 + 7, kBishopOwn = kSide * 7 + 7;
  start.side[kOwn] |= Board::of(kRookOwn) | Board::of(kBishopOwn);
  start.side[kOther] |= Board::of(kLastSquare - kRookOwn) | Board::of(kLastSquare - kBishopOwn);
  start.kind[kRook] = Board::of(kRookOwn) | Board::of(kLastSquare - kRookOwn);
  start.kind[kBishop] = Board::of(kBishopOwn) | Board::of(kLastSquare - kBishopOwn);
  start.king[kOwn] = kSide * 4 + 8;
  start.king[kOther] = kSide * 4;
  return start;
}

}  // namespace sparring::shogi

#include "games/shogi/bots.hpp"
#include "games/shogi/describe.hpp"
#include "games/shogi/observation.hpp"
