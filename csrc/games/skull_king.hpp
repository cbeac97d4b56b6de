// Skull King: the table, the flow of a round, rewards and observation. Section numbers are those
// of the specification; docs/games/skull_king.md lists the flags.
#pragma once

#include "core/bounds.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"
#include "core/goals.hpp"
#include "games/skull_king/cards.hpp"

namespace sparring::skull_king {

enum Phase : u8 { kBid, kCannon, kPlay, kRosiePick, kDiscard, kWager, kHarryBid, kOver };

// Actions (section 15).
inline constexpr int kPlayFirst = 11, kPlayTigressEscape = 85, kRosieFirst = 86, kWagerFirst = 94,
                     kHarryFirst = 97, kGrapeshot = 100;

// What a start leaves to chance.
enum ToDeal : u8 { kNothing, kCardsOnly, kCardsAndLeader };

// Reward parts (section 18).
enum Part {
  kScoreDelta,
  kScoreDeltaZs,
  kRank,
  kWin,
  kScoreFinal,
  kManager,
  kWorker,
  kFlatShaped,
  kAbilityNudge
};

// What is counted in every round: seats that played it, bids kept, tricks above and below the bid,
// points.
enum Counter { kPlayed, kKept, kOverTricks, kUnderTricks, kPoints, kEachRound };

struct Game {
  using Config = skull_king::Config;
  using Action = i32;
  static constexpr int kMaxSeats = 8, kRows = 1, kRoles = 2, kActions = 102;
  static constexpr const char* kParts[] = {"score_delta", "score_delta_zs", "rank",
                                           "win",         "score_final",    "manager",
                                           "worker",      "flat_shaped",    "ability_nudge"};
  static constexpr const char* kBots[] = {"rule_easy", "rule_medium", "rule_hard", "captain"};
  // Bids are goals; a stage is a trick, and the last one the end of the round (section 19).
  static constexpr int kGoalRole = 0, kStages = 16;
  static constexpr const char* kCounters[] = {
      "played 1", "kept 1",   "over 1",   "under 1",   "points 1", "played 2", "kept 2",
      "over 2",   "under 2",  "points 2", "played 3",  "kept 3",   "over 3",   "under 3",
      "points 3", "played 4", "kept 4",   "over 4",    "under 4",  "points 4", "played 5",
      "kept 5",   "over 5",   "under 5",  "points 5",  "played 6", "kept 6",   "over 6",
      "under 6",  "points 6", "played 7", "kept 7",    "over 7",   "under 7",  "points 7",
      "played 8", "kept 8",   "over 8",   "under 8",   "points 8", "played 9", "kept 9",
      "over 9",   "under 9",  "points 9", "played 10", "kept 10",  "over 10",  "under 10",
      "points 10"};

  Cards hand[8], played[8];  // played: this round, current trick included
  Cards stock, gone;         // undealt; discarded through Bendt
  Cards priv[8];             // cards a seat privately knows to be out of play
  i16 bonus[8], total[8];    // capture bonus of this round; points of the game
  u8 trick_token[8], trick_seat[8];
  i8 bid[8];  // -1 until placed
  u8 won[8], sum_bid[8], sum_err[8], void_suits[8], wager[8], cannon[8];
  i8 loot_by[2], loot_with[2];  // alliances, -1 if none
  u8 ghost_order[10];           // ids; the next one is at tricks_done
  u8 phase, actor, leader, first, round, cards, tricks_done, trick_size, follow;
  i8 harry;           // seat that may change its bid, -1 if none
  u8 pending;         // discards still to make
  u8 ghost_next;      // the player who follows the ghost when it leads
  u8 placed;          // bids or loads in
  i8 winning;         // position that would win the trick as it lies, -1 if none
  u8 winning_power;   // its rank while no leviathan or king with mermaid complicates matters
  u8 lead_suit;       // suit of the trick's first suit card, 4 if none
  u8 trick_kinds;     // bit k: a card of kind k lies in the trick
  u8 history[10][8];  // token by trick and seat
  i8 history_leader[10];
  // The last finished round, for learners that relabel it (section 19).
  u8 last_cards;
  i8 last_bid[8];
  u8 last_won[8], last_loot[8], last_loot_exact[8];
  // The episode ends behind it; 0, in older saved states: by configuration. Of a start, its high
  // bits say what is left to chance (ToDeal).
  u8 last_round;
  // Of this round's tricks, 4 bits each: the seat and one more, 0 if nobody. Older saved states
  // have none. No padding behind them: equal states have equal bytes.
  u8 winners[5];
  i16 last_bonus[8], last_points[8];

  SPARRING_FN static Shape shape(const Config& config) {
    const int bytes = (small_bytes(config) + 1) / 2 * 2 + 2 * config.seats();
    return {.seats = config.num_players,
            .actions = config.extended() ? 102 : 86,
            .obs_bytes = padded(bytes)};
  }

  // Length of the one-byte features; the scores follow at the next even offset.
  SPARRING_FN static int small_bytes(const Config& config) {
    const int s = config.seats();
    return table_at(config) + kTableBytes + kSeatBytes * s + later_bytes(config) + 1 + s +
           (config.history ? 10 : 0);
  }

  // The first byte of kTableRow: cards and the trick lie before it.
  SPARRING_FN static int table_at(const Config& config) {
    const int s = config.seats();
    return kCards * (config.obs == kCompactObs ? 2 : 1 + s) + kTrickBytes * s;
  }

  // Unsigned bytes behind those of the seats.
  SPARRING_FN static int later_bytes(const Config& config) {
    const int s = config.seats();
    return (config.extended() ? kExtraPhaseBytes + kCards + 1 + kExtraSeatBytes * s : 0) +
           (config.phase_embed ? kStageBytes : 0) + (config.history ? 10 * s : 0);
  }

  // The reward option of section 18; the nudges go with the shaped reward.
  SPARRING_FN static f32 default_weight(const Config& config, int part) {
    return part == config.reward || (part == kAbilityNudge && config.reward == kFlatShaped);
  }

  SPARRING_FN int seat(int) const { return actor; }
  // Bids are the manager's, everything else the worker's (section 19).
  SPARRING_FN int role(int) const { return phase <= kCannon ? 0 : 1; }
  SPARRING_FN f32 score(const Config&, int at) const { return total[at]; }

  SPARRING_FN void reset(const Config& config, Rng& rng) {
    *this = Game{};
    int start = 1;
    if (config.episode == kOneRound)
      start = config.start_round ? config.start_round : draw_round(config, rng);
    last_round = static_cast<u8>(end_of(config, start));
    lead_first(config, start, rng.below(config.num_players));
    deal(config, start, rng);
  }

  // How long the episode is, the flags say as at every reset.
  SPARRING_FN void begin_from(const Config& config, const Game& start, Rng& rng) {
    *this = start;
    const int to_deal = start.last_round >> 4;
    last_round = static_cast<u8>(end_of(config, round));
    if (to_deal == kNothing) return;
    if (to_deal == kCardsAndLeader) lead_first(config, round, rng.below(config.num_players));
    deal(config, round, rng);
  }

  SPARRING_APART SPARRING_FN void legal(const Config& config, int, Legal<Game>& out) const {
    out = Legal<Game>::none();
    switch (phase) {
      case kBid:
        out.word[0] = (u64{2} << cards) - 1;
        break;
      case kPlay:
        set_cards(legal_cards(config), out);
        if (out.test(kPlayFirst + kTigressId)) out.set(kPlayTigressEscape);
        break;
      case kDiscard:
        set_cards(deduped(hand[actor], config), out);
        break;
      case kRosiePick:
        out.word[1] = ((u64{1} << config.num_players) - 1) << (kRosieFirst - 64);
        break;
      case kWager:
        out.word[1] = u64{7} << (kWagerFirst - 64);
        break;
      case kHarryBid:
        SPARRING_FOR (int change = -1; change <= 1; ++change)
          if (bid[actor] + change >= 0 && bid[actor] + change <= cards)
            out.set(kHarryFirst + 1 + change);
        break;
      case kCannon:
        out.set(kGrapeshot);
        out.set(kGrapeshot + 1);
        break;
      default:
        break;
    }
  }

  SPARRING_FN void step(const Config& config, const Action* actions, Rng& rng, Result& result) {
    const int action = actions[0];
    const int by = actor;
    result.add_reward(kFlatShaped, by, 0.1f);
    switch (phase) {
      case kBid:
        place_bid(config, action, result);
        break;
      case kCannon:
        cannon[by] = static_cast<u8>(action - kGrapeshot);
        next_to_commit(config, kPlay);
        break;
      case kPlay:
        if (result.is_weighted(kFlatShaped)) pay_card(action, result);
        lay(config, action == kPlayTigressEscape ? kTigressEscape : action - kPlayFirst + 1);
        if (trick_size == config.seats()) finish_trick(config, rng, result);
        break;
      case kRosiePick:
        leader = static_cast<u8>((by + action - kRosieFirst) % config.num_players);
        result.add_reward(kAbilityNudge, by, leader == by ? 0.1f : -0.05f);
        next_trick(config, rng, result);
        break;
      case kDiscard:
        discard(action - kPlayFirst, result);
        if (pending == 0) next_trick(config, rng, result);
        break;
      case kWager:
        set_wager(10 * (action - kWagerFirst), result);
        next_trick(config, rng, result);
        break;
      case kHarryBid:
        change_bid(action - kHarryFirst - 1, result);
        finish_round(config, rng, result);
        break;
      default:
        break;
    }
    while (phase == kPlay && actor >= config.num_players) {
      const int id = ghost_order[tricks_done];
      lay(config, id == kTigressId ? kTigressEscape : id + 1);
      if (trick_size == config.seats()) finish_trick(config, rng, result);
    }
  }

  SPARRING_FN Cards deduped(Cards set, const Config& config) const {
    if (!config.dedupe) return set;
    keep_lowest(set.word[0], kMermaids.word[0]);
    if (!config.abilities) keep_lowest(set.word[0], kPirates.word[0]);
    keep_lowest(set.word[1], kEscapes.word[1]);
    keep_lowest(set.word[1], kLoots.word[1]);
    return set;
  }

  SPARRING_FN Cards legal_cards(const Config& config) const {
    const Cards held = hand[actor];
    if (follow >= kUndecided) return deduped(held, config);
    const Cards following = held & kSuits[follow];
    if (!following.any()) return deduped(held, config);
    Cards allowed = (held - kNumbered) | following;
    if (config.follow_rule == kSeed) allowed = allowed | (held & kSuits[0]);
    return deduped(allowed, config);
  }

  // The seat at a position of the current trick (section 10 for the ghost's table).
  SPARRING_FN int seat_at(const Config& config, int position) const {
    if (!config.has_ghost()) return wrap(leader + position, config.num_players);
    if (leader == 2) return position == 0 ? 2 : position == 1 ? ghost_next : 1 - ghost_next;
    return position == 0 ? leader : position == 1 ? 2 : 1 - leader;
  }

  SPARRING_FN int relative(const Config& config, int seat, int observer) const {
    return seat >= config.num_players ? seat : wrap(seat - observer, config.num_players);
  }

  SPARRING_FN int need(int seat) const { return bid[seat] - won[seat]; }

  SPARRING_FN bool bids_open() const { return phase != kBid; }

  // Who led the first round, if `leads` leads a later one.
  SPARRING_FN void lead_first(const Config& config, int number, int leads) {
    const int players = config.num_players;
    first = static_cast<u8>((leads + 10 * players - (number - 1)) % players);
  }

  // The last round of an episode that begins with `start`.
  SPARRING_FN static int end_of(const Config& config, int start) {
    return config.episode == kOneRound ? start : config.round_count();
  }

  SPARRING_FN int draw_round(const Config& config, Rng& rng) {
    const int count = config.round_count();
    f64 sum = 0;
    SPARRING_FOR (int r = 0; r < count; ++r) sum += static_cast<f64>(config.round_weights[r]);
    const f64 at = static_cast<f64>(rng.next()) / 4294967296.0 * sum;
    f64 up_to = 0;
    SPARRING_FOR (int r = 0; r < count; ++r) {
      up_to += static_cast<f64>(config.round_weights[r]);
      if (up_to > at) return r + 1;
    }
    return count;
  }

  // Section 14.4, in this order so that every implementation deals the same cards.
  SPARRING_APART SPARRING_FN void deal(const Config& config, int number, Rng& rng) {
    u8 deck[kCards];
    int size = 0;
    if (SPARRING_HOST && config.deck == kFull74)
      for (; size < kCards; ++size) deck[size] = static_cast<u8>(size);
    else
      config.deck_cards().each([&](int id) { deck[size++] = static_cast<u8>(id); });
    open_round(config, number);
    const int seats = config.seats();
    Rng draws = rng;  // a copy that can stay in registers
    int at = 0;
    SPARRING_FOR (int s = 0; s < seats; ++s) {
      Cards held = Cards::none();
      SPARRING_FOR (int i = 0; i < cards; ++i, ++at) {
        const int j = at + draws.below(size - at);
        const u8 id = deck[j];
        deck[j] = deck[at];
        held.set(id);
        if (s >= config.num_players) ghost_order[i] = id;
      }
      hand[s] = held;
      stock = stock - held;
    }
    rng = draws;
  }

  // Clears the table for a round; hands are still to be dealt out of the stock.
  SPARRING_FN void open_round(const Config& config, int number) {
    round = static_cast<u8>(number);
    cards = static_cast<u8>(config.hand_size(number));
    SPARRING_FOR (int s = 0; s < 8; ++s) {
      played[s] = Cards::none();
      priv[s] = Cards::none();
      bonus[s] = 0;
      bid[s] = -1;
      won[s] = void_suits[s] = wager[s] = cannon[s] = 0;
    }
    stock = config.deck_cards();
    gone = Cards::none();
    SPARRING_FOR (int i = 0; i < 2; ++i) loot_by[i] = loot_with[i] = -1;
    if (config.history) {
      zero_bytes(history, sizeof history);
      SPARRING_FOR (i8& led : history_leader) led = -1;
    }
    tricks_done = pending = placed = 0;
    SPARRING_FOR (u8& pair : winners) pair = 0;
    clear_trick();
    harry = -1;
    phase = kBid;
    leader = static_cast<u8>((first + number - 1) % config.num_players);
    actor = leader;
  }

  SPARRING_FN void place_bid(const Config& config, int amount, Result& result) {
    bid[actor] = static_cast<i8>(amount);
    if (result.is_weighted(kFlatShaped)) pay_bid(amount, result);
    next_to_commit(config, config.cannonball ? kCannon : kPlay);
  }

  SPARRING_APART SPARRING_FN void pay_bid(int amount, Result& result) const {
    const int off = absolute(amount - shaped_estimate(hand[actor], cards));
    result.add_reward(kFlatShaped, actor,
                      2.0f * (1.0f - static_cast<f32>(off) / static_cast<f32>(cards)));
  }

  // Bids and loads go round once, then `then` begins.
  SPARRING_FN void next_to_commit(const Config& config, Phase then) {
    actor = static_cast<u8>(wrap(actor + 1, config.num_players));
    if (++placed < config.num_players) return;
    placed = 0;
    phase = then;
    actor = leader;
  }

  SPARRING_APART SPARRING_FN void lay(const Config& config, int token) {
    const int by = actor;
    const int id = token == kTigressEscape ? kTigressId : token - 1;
    const int kind = kToken.kind[token];
    hand[by].clear(id);
    played[by].set(id);
    if (config.abilities)
      SPARRING_FOR (int s = 0; s < config.num_players; ++s) priv[s].clear(id);
    trick_token[trick_size] = static_cast<u8>(token);
    trick_seat[trick_size] = static_cast<u8>(by);
    if (config.history) {
      if (trick_size == 0) history_leader[tricks_done] = static_cast<i8>(by);
      history[tricks_done][by] = static_cast<u8>(token);
    }
    ++trick_size;
    update_winning(config, token);
    if (kind == kSuit) {
      const int suit = kToken.suit[token];
      const bool proves = by < config.num_players && follow < kUndecided && suit != follow &&
                          !(config.follow_rule == kSeed && suit == 0);
      if (proves) void_suits[by] |= static_cast<u8>(1 << follow);
      if (follow == kUndecided) follow = static_cast<u8>(suit);
    } else if (kind > kSuit && follow == kUndecided && config.follow_rule == kOfficial) {
      follow = kNoSuit;
    }
    if (trick_size < config.seats()) actor = static_cast<u8>(seat_at(config, trick_size));
  }

  SPARRING_APART SPARRING_FN void finish_trick(const Config& config, Rng& rng, Result& result) {
    const TrickResult trick = is_plain() ? TrickResult{winning, winning, false}
                                         : resolve(trick_token, trick_size, config);
    const int winner = trick.winner < 0 ? -1 : trick_seat[trick.winner];
    if (result.is_weighted(kFlatShaped) || result.is_weighted(kWorker))
      pay_trick(config, winner, result);
    if (winner >= 0) {
      const Captures taken = captures_of(trick_token, trick_size, trick, config);
      bonus[winner] = static_cast<i16>(bonus[winner] + bonus_points(taken, config));
      ++won[winner];
      winners[tricks_done / 2] |= static_cast<u8>((winner + 1) << tricks_done % 2 * 4);
      if (winner < config.num_players) {
        if (result.is_weighted(kFlatShaped)) pay_captures(taken, winner, result);
        if (!trick.by_whale || config.whale_loot) form_alliances(config, winner);
      }
    }
    if (leader != 2 && config.has_ghost()) ghost_next = static_cast<u8>(1 - leader);
    leader = trick_seat[trick.next_leader];
    const int card = winner < 0 ? 0 : trick_token[trick.winner] - 1;
    ++tricks_done;
    clear_trick();
    actor = leader;
    if (config.abilities && winner >= 0 && winner < config.num_players &&
        use_ability(config, winner, card, rng))
      return;
    next_trick(config, rng, result);
  }

  SPARRING_FN void clear_trick() {
    trick_size = winning_power = trick_kinds = 0;
    winning = -1;
    lead_suit = 4;
    follow = kUndecided;
  }

  // Whether ranks alone decide: no leviathan, and not both king and mermaid.
  SPARRING_FN static bool is_plain(int kinds) {
    constexpr int kBoth = 1 << kKing | 1 << kMermaid;
    return kinds < 1 << kKraken && (kinds & kBoth) != kBoth;
  }
  SPARRING_FN bool is_plain() const { return is_plain(trick_kinds); }

  // Keeps `winning` true after a card was laid; equal to resolve(), without looking back.
  SPARRING_FN void update_winning(const Config& config, int token) {
    const int kind = kToken.kind[token];
    trick_kinds |= static_cast<u8>(1 << kind);
    int power = kToken.power[token];
    if (kind == kSuit) {
      const int suit = kToken.suit[token];
      if (lead_suit == 4) lead_suit = static_cast<u8>(suit);
      power =
          suit == 0 ? 20 + kToken.number[token] : (suit == lead_suit ? kToken.number[token] : 0);
    }
    if (!is_plain()) {
      winning = static_cast<i8>(resolve(trick_token, trick_size, config).winner);
    } else if (trick_size == 1 || power > winning_power) {
      winning = static_cast<i8>(trick_size - 1);
      winning_power = static_cast<u8>(power);
    }
  }

  // Whether a card would win the trick as it lies if it were laid now; no leviathan.
  SPARRING_FN bool would_win(const Config& config, int token) const {
    const int kind = kToken.kind[token];
    if (!is_plain(trick_kinds | 1 << kind)) return resolves_to(config, token);
    if (trick_size == 0) return true;
    if (kind != kSuit) return kToken.power[token] > winning_power;
    const int suit = kToken.suit[token], number = kToken.number[token];
    const bool follows = lead_suit == 4 || suit == lead_suit;
    return (suit == 0 ? 20 + number : follows ? number : 0) > winning_power;
  }

  // The same by looking at all cards.
  SPARRING_APART SPARRING_FN bool resolves_to(const Config& config, int token) const {
    u8 trick[8];
    SPARRING_FOR (int i = 0; i < trick_size; ++i) trick[i] = trick_token[i];
    trick[trick_size] = static_cast<u8>(token);
    return resolve(trick, trick_size + 1, config).winner == trick_size;
  }

  // A Loot allies its player with the trick's winner, card by card (section 8).
  SPARRING_FN void form_alliances(const Config& config, int winner) {
    SPARRING_FOR (int i = 0; i < trick_size; ++i) {
      const int which = trick_token[i] - 1 - 72;
      if (which != 0 && which != 1) continue;
      if (trick_seat[i] == winner || trick_seat[i] >= config.num_players) continue;
      loot_by[which] = static_cast<i8>(trick_seat[i]);
      loot_with[which] = static_cast<i8>(winner);
    }
  }

  // True if the winner has something to decide before the next trick (section 9).
  SPARRING_APART SPARRING_FN bool use_ability(const Config& config, int winner, int card,
                                              Rng& rng) {
    if (card == kHarry) harry = static_cast<i8>(winner);
    const bool last = tricks_done == cards;
    if (last && !(card == kRascal && config.rascal_last)) return false;
    if (card < kRosie || card > kJade) return false;
    actor = static_cast<u8>(winner);
    if (card == kRosie) {
      phase = kRosiePick;
    } else if (card == kRascal) {
      phase = kWager;
    } else if (card == kJade) {
      priv[winner] = priv[winner] | stock;
      return false;
    } else {
      pending = static_cast<u8>(min(2, stock.count()));
      SPARRING_FOR (int i = 0; i < pending; ++i) {
        const int id = stock.select(rng.below(stock.count()));
        stock.clear(id);
        hand[winner].set(id);
        priv[winner].clear(id);
      }
      if (pending == 0) return false;
      phase = kDiscard;
    }
    return true;
  }

  SPARRING_FN void next_trick(const Config& config, Rng& rng, Result& result) {
    phase = kPlay;
    actor = leader;
    if (tricks_done < cards) return;
    if (harry >= 0) {
      phase = kHarryBid;
      actor = static_cast<u8>(harry);
      return;
    }
    finish_round(config, rng, result);
  }

  SPARRING_APART SPARRING_FN void discard(int id, Result& result) {
    const int strength = shaped_strength(id);
    f32 nudge = 0;
    if (need(actor) > 0)
      nudge = strength < 300 ? 0.15f : strength > 600 ? -0.15f : 0.0f;
    else
      nudge = strength > 700 ? 0.1f : strength < 400 ? -0.05f : 0.0f;
    result.add_reward(kAbilityNudge, actor, nudge);
    hand[actor].clear(id);
    gone.set(id);
    priv[actor].set(id);
    --pending;
  }

  SPARRING_APART SPARRING_FN void set_wager(int amount, Result& result) {
    wager[actor] = static_cast<u8>(amount);
    const int left = cards - tricks_done;
    const f32 nudge = 0.005f * static_cast<f32>(amount);
    if (need(actor) <= 0) result.add_reward(kAbilityNudge, actor, nudge);
    if (need(actor) > left) result.add_reward(kAbilityNudge, actor, -nudge);
  }

  SPARRING_APART SPARRING_FN void change_bid(int change, Result& result) {
    const int before = absolute(need(actor));
    bid[actor] = static_cast<i8>(bid[actor] + change);
    const int after = absolute(need(actor));
    f32 nudge = 0;
    if (before == 0 && after == 0) nudge = 0.1f;
    if (after == 0 && before > 0) nudge = 0.3f;
    if (after > before) nudge = -0.2f;
    result.add_reward(kAbilityNudge, actor, nudge);
  }

  SPARRING_APART SPARRING_FN void finish_round(const Config& config, Rng& rng, Result& result) {
    const int players = config.num_players;
    int points[8], sum = 0;
    SPARRING_FOR (int s = 0; s < players; ++s) {
      int loot = 0, loot_exact = 0;
      SPARRING_FOR (int i = 0; i < 2; ++i) {
        if (loot_by[i] != s && loot_with[i] != s) continue;
        ++loot;
        loot_exact += need(loot_by[i] == s ? loot_with[i] : loot_by[i]) == 0;
      }
      points[s] = round_points(config, bid[s], won[s], cards, bonus[s], 20 * loot_exact, wager[s],
                               cannon[s] != 0);
      sum += points[s];
      total[s] = static_cast<i16>(total[s] + points[s]);
      sum_bid[s] = static_cast<u8>(sum_bid[s] + bid[s]);
      const int error = absolute(need(s));
      sum_err[s] = static_cast<u8>(sum_err[s] + error);
      last_bid[s] = bid[s];
      last_won[s] = won[s];
      last_bonus[s] = bonus[s];
      last_points[s] = static_cast<i16>(points[s]);
      last_loot[s] = static_cast<u8>(loot);
      last_loot_exact[s] = static_cast<u8>(loot_exact);
      pay_round(s, error, loot_exact, result);
      if (result.recorder.goal_results)
        result.recorder.record_goal(s, goal_result_of(config, s, loot_exact));
      if (result.recorder.counts) count_round(s, points[s], result.recorder);
    }
    last_cards = cards;
    SPARRING_FOR (int s = 0; s < players; ++s) {
      result.add_reward(kScoreDelta, s, static_cast<f32>(points[s]) / 100.0f);
      const f32 others = static_cast<f32>(sum - points[s]) / static_cast<f32>(players - 1);
      result.add_reward(kScoreDeltaZs, s, (static_cast<f32>(points[s]) - others) / 100.0f);
    }
    if (const int last = last_round & 15; round == (last ? last : end_of(config, round))) {
      pay_end(config, result);
      phase = kOver;
      result.terminate();
      return;
    }
    deal(config, round + 1, rng);
  }

  SPARRING_APART SPARRING_FN void pay_card(int action, Result& result) const {
    const int id = action == kPlayTigressEscape ? kTigressId : action - kPlayFirst;
    const int strength = shaped_strength(id);
    if (need(actor) > 0)
      result.add_reward(kFlatShaped, actor, strength > 600 ? 1.0f : strength < 300 ? -0.5f : 0.0f);
    else if (need(actor) == 0)
      result.add_reward(kFlatShaped, actor, strength < 400 ? 0.5f : strength > 700 ? -0.3f : 0.0f);
  }

  // Needs are those before the trick is counted; a destroyed trick is lost by everybody.
  SPARRING_APART SPARRING_FN void pay_trick(const Config& config, int winner,
                                            Result& result) const {
    const int left = cards - tricks_done - 1;
    SPARRING_FOR (int s = 0; s < config.num_players; ++s) {
      const int want = need(s);
      f32 flat = 0;
      if (s == winner) {
        flat = want > 0 ? 3.0f : want == 0 ? -2.0f : 0.0f;
      } else {
        if (want == 0) flat = 1.5f;
        if (want > 0) flat = want > left ? 0.0f : -1.0f;
      }
      result.add_reward(kWorker, s, worker_trick(want, left, s == winner));
      result.add_reward(kFlatShaped, s, flat);
    }
  }

  SPARRING_FN void pay_captures(const Captures& taken, int winner, Result& result) const {
    result.add_reward(
        kFlatShaped, winner,
        0.3f * static_cast<f32>(taken.fourteens) + 0.5f * static_cast<f32>(taken.black_fourteens) +
            0.5f * static_cast<f32>(taken.mermaids) + 0.7f * static_cast<f32>(taken.pirates) +
            1.0f * static_cast<f32>(taken.kings));
  }

  SPARRING_FN void pay_round(int s, int error, int loot_exact, Result& result) const {
    result.add_reward(kWorker, s, worker_round(error));
    result.add_reward(kManager, s, manager_round(error, bid[s], cards));
    f32 flat = error == 0 ? 5.0f : error == 1 ? 2.0f : error == 2 ? -1.0f : -5.0f;
    if (error == 0) flat += 2.0f * static_cast<f32>(loot_exact);
    result.add_reward(kFlatShaped, s, flat);
  }

  SPARRING_FN void count_round(int s, int points, const Recorder& recorder) const {
    const int base = kEachRound * (round - 1), missing = need(s);
    recorder.count(base + kPlayed, s);
    if (missing == 0) recorder.count(base + kKept, s);
    if (missing < 0) recorder.count(base + kOverTricks, s, -missing);
    if (missing > 0) recorder.count(base + kUnderTricks, s, missing);
    recorder.count(base + kPoints, s, points);
  }

  // Tied seats share: the average rank, the win, the mean of the shaped places (section 11).
  SPARRING_APART SPARRING_FN void pay_end(const Config& config, Result& result) const {
    const int players = config.num_players;
    SPARRING_FOR (int s = 0; s < players; ++s) {
      int better = 0, equal = 0;
      SPARRING_FOR (int other = 0; other < players; ++other) {
        better += total[other] > total[s];
        equal += total[other] == total[s];
      }
      const f32 rank = static_cast<f32>(better) + 0.5f * static_cast<f32>(equal - 1);
      result.add_reward(kRank, s, 1.0f - 2.0f * rank / static_cast<f32>(players - 1));
      result.add_reward(
          kWin, s,
          (better == 0 ? 1.0f / static_cast<f32>(equal) : 0.0f) - 1.0f / static_cast<f32>(players));
      result.add_reward(kScoreFinal, s, static_cast<f32>(total[s]) / 300.0f);
      f32 places = 0;
      SPARRING_FOR (int place = better; place < better + equal; ++place)
        places += place == 0 ? 10.0f : place == 1 ? 3.0f : place == 2 ? -2.0f : -5.0f;
      result.add_reward(kFlatShaped, s, places / static_cast<f32>(equal));
    }
  }

  // Four players are the usual table: on a CPU their loops have fixed lengths.
  SPARRING_FN void observe(const Config& config, int me, u8* out) const {
    if (SPARRING_HOST && config.num_players == 4)
      observe_table<4>(config, me, out);
    else
      observe_table<0>(config, me, out);
  }

  template <int N>
  SPARRING_APART SPARRING_FN void observe_table(const Config& config, int me,
                                                u8* SPARRING_RESTRICT out) const {
    const int players = N ? N : config.num_players, seats = N ? N : config.seats();
    const auto seat_of = [&](int r) { return r >= players ? r : wrap(r + me, players); };
    expand_bits_over(hand[me], out);
    out += kCards;
    if (config.obs == kCompactObs) {
      Cards all = played[0];
      SPARRING_FOR (int s = 1; s < seats; ++s) all = all | played[s];
      expand_bits_over(all, out);
      out += kCards;
    } else {
      SPARRING_FOR (int r = 0; r < seats; ++r, out += kCards)
        expand_bits_over(played[seat_of(r)], out);
    }
    SPARRING_FOR (int i = 0; i < kTrickBytes * seats + kTableBytes; i += 16)
      zero_bytes(out + i, 16);
    SPARRING_FOR (int i = 0; i < trick_size; ++i)
      copy_bytes(out + kTrickBytes * relative(config, trick_seat[i], me),
                 kToken.feature[trick_token[i]], kTrickBytes);
    out += kTrickBytes * seats;
    out[byte_of(kTableRow, "follow") + follow] = 1;
    if (phase == kBid) out[byte_of(kTableRow, "phase", "bid")] = 1;
    if (phase == kPlay) out[byte_of(kTableRow, "phase", "play")] = 1;
    if (round) out[byte_of(kTableRow, "round") + round - 1] = 1;
    out[byte_of(kTableRow, "progress", "cards")] = cards;
    out[byte_of(kTableRow, "progress", "tricks done")] = tricks_done;
    out[byte_of(kTableRow, "progress", "tricks left")] = static_cast<u8>(cards - tricks_done);
    if (bid[me] >= 0) out[byte_of(kTableRow, "own bid") + bid[me]] = 1;
    out += kTableBytes;
    const bool open = bids_open(), open_bids = config.open_bids != 0;
    const int winner = winning < 0 ? -1 : trick_seat[winning];
    const int leads = leader, acts = phase == kOver ? -1 : actor;
    const bool looted = loot_by[0] >= 0 || loot_by[1] >= 0;
    i8 needs[8]{};
    int over = 0;
    static_assert(kSeatBytes == 16);
    SPARRING_FOR (int r = 0; r < seats; ++r, out += kSeatBytes) {
      const int s = seat_of(r);
      const bool player = s < players;
      const int placed_bid = bid[s];
      const bool known = (placed_bid >= 0) & (open | (r == 0) | open_bids);
      const u32 shown = known ? static_cast<u32>(placed_bid) : 0, took = won[s];
      u64 low = 0, high = 0;
      const auto put = [&](int byte, u64 value) {
        (byte < 8 ? low : high) |= value << (8 * (byte & 7));
      };
      put(seat_byte("bid known"), known);
      put(seat_byte("bid"), shown);
      put(seat_byte("won"), took);
      put(seat_byte("exact"), known && took == shown);
      put(seat_byte("over"), known && took > shown);
      put(seat_byte("bonus in tens"), static_cast<u32>(bonus[s]) / 10);
      put(seat_byte("void black"), void_suits[s] & 1u);
      put(seat_byte("void green"), void_suits[s] >> 1 & 1u);
      put(seat_byte("void purple"), void_suits[s] >> 2 & 1u);
      put(seat_byte("void yellow"), void_suits[s] >> 3 & 1u);
      put(seat_byte("leads"), s == leads);
      put(seat_byte("wins trick now"), s == winner);
      put(seat_byte("allied loots"), static_cast<u64>(looted ? allied(s, me) : 0));
      put(seat_byte("to act"), s == acts);
      put(seat_byte("bids of finished rounds"), sum_bid[s]);
      put(seat_byte("errors of finished rounds"), sum_err[s]);
      store8(out, low);
      store8(out + 8, high);
      needs[r] = static_cast<i8>(known ? placed_bid - static_cast<int>(took) : 0);
      over += player ? placed_bid : 0;
    }
    if (config.extended()) out = observe_extension(config, me, out);
    if (config.phase_embed) {
      out[byte_of(kStageFeatures, "early")] = round <= 3;
      out[byte_of(kStageFeatures, "mid")] = round >= 4 && round <= 6;
      out[byte_of(kStageFeatures, "late")] = round >= 7;
      out += kStageBytes;
    }
    if (config.history) {
      SPARRING_FOR (int t = 0; t < 10; ++t)
        SPARRING_FOR (int r = 0; r < seats; ++r) *out++ = history[t][seat_of(r)];
    }
    // Signed bytes, then the scores as 16 bits at the next even offset.
    *out++ = static_cast<u8>(open ? over - cards : 0);
    SPARRING_FOR (int r = 0; r < seats; ++r) *out++ = static_cast<u8>(needs[r]);
    if (config.history) {
      SPARRING_FOR (int t = 0; t < 10; ++t) {
        const int led = history_leader[t];
        *out++ = static_cast<u8>(led < 0 ? -1 : relative(config, led, me));
      }
    }
    if (small_bytes(config) & 1) *out++ = 0;
    SPARRING_FOR (int r = 0; r < seats; ++r, out += 2) {
      const int s = seat_of(r);
      const i16 points = s < players ? total[s] : i16{0};
      out[0] = static_cast<u8>(points);
      out[1] = static_cast<u8>(points >> 8);
    }
  }

  SPARRING_APART SPARRING_FN u8* observe_extension(const Config& config, int me, u8* out) const {
    zero_bytes(out, kExtraPhaseBytes);
    constexpr int kSlot[] = {-1,
                             byte_of(kExtraPhaseFeatures, "cannon"),
                             -1,
                             byte_of(kExtraPhaseFeatures, "rosie"),
                             byte_of(kExtraPhaseFeatures, "discard"),
                             byte_of(kExtraPhaseFeatures, "wager"),
                             byte_of(kExtraPhaseFeatures, "harry"),
                             -1};
    if (kSlot[phase] >= 0) out[kSlot[phase]] = 1;
    out += kExtraPhaseBytes;
    expand_bits(priv[me], kCards, out);
    out += kCards;
    *out++ = pending;
    SPARRING_FOR (int r = 0; r < config.seats(); ++r, out += kExtraSeatBytes) {
      const int s = absolute_seat(config, r, me);
      const bool loaded = s == me || phase > kCannon;
      out[byte_of(kExtraSeatFeatures, "wager")] = wager[s];
      out[byte_of(kExtraSeatFeatures, "harry armed")] = s == harry;
      out[byte_of(kExtraSeatFeatures, "cannonball")] = static_cast<u8>(loaded ? cannon[s] : 0);
    }
    return out;
  }

  SPARRING_FN int absolute_seat(const Config& config, int relative_seat, int me) const {
    return relative_seat >= config.num_players ? relative_seat
                                               : wrap(relative_seat + me, config.num_players);
  }

  SPARRING_FN int allied(int seat, int me) const {
    int count = 0;
    SPARRING_FOR (int i = 0; i < 2; ++i)
      count += seat != me && ((loot_by[i] == seat && loot_with[i] == me) ||
                              (loot_by[i] == me && loot_with[i] == seat));
    return count;
  }

  SPARRING_FN static void keep_lowest(u64& word, u64 group) {
    const u64 held = word & group;
    word ^= held & (held - 1);
  }

  SPARRING_FN static void set_cards(const Cards& set, Legal<Game>& out) {
    out.word[0] = set.word[0] << kPlayFirst;
    out.word[1] = set.word[1] << kPlayFirst | set.word[0] >> (64 - kPlayFirst);
  }

  SPARRING_FN Action act(int bot, const Config& config, int row, const Legal<Game>& legal,
                         Rng& rng) const;

  // Goals, see core/goals.hpp.
  SPARRING_FN int tricks_of(int seat) const;
  SPARRING_FN u32 goal_result_of(const Config& config, int seat, int loot_exact) const;
  SPARRING_FN static GoalDecision goal_decision(const Config& config, const u8* obs);
  SPARRING_FN static int desired_goal(u32 goal_result);
  SPARRING_FN static int achieved_goal(u32 goal_result);
  SPARRING_FN static int goal_action(int goal) { return goal; }
  SPARRING_FN static void set_goal(const Config& config, u8* obs, int goal);
  SPARRING_FN static f32 goal_reward(const Config& config, const f32* weight, int role, u32 record,
                                     int goal, int from, int to);
  SPARRING_FN static bool is_goal_reward(int part) {
    return part == kScoreDelta || part == kManager || part == kWorker;
  }

  // belief: log-weights [card, seat relative to `me`], null: all deals are equally likely.
  SPARRING_FN void resample_hidden(const Config& config, int me, Rng& rng,
                                   const f32* belief = nullptr);
  SPARRING_FN static constexpr int belief_size(const Config& config) {
    return kCards * config.num_players;
  }

#if SPARRING_HOST
  static Spec spec(const Config& config);
  static std::vector<Stat> stats(const Config& config);
  static std::vector<Field> config_fields();
  static std::vector<Field> state_fields();
  static std::string action_name(const Config& config, int action);
  static std::string invalid(const Config& config);
  static std::string hindsight_unsupported_reason(const Config& config);
  std::string setup(const Config& config, const std::vector<i64>& data);
  void bounds(const Config& config, Bounds& bounds) const;
  const char* audit(const Config& config) const;
  bool ended(const Config&) const { return phase == kOver; }
#endif
};

}  // namespace sparring::skull_king

#include "games/skull_king/audit.hpp"
#include "games/skull_king/bots.hpp"
#include "games/skull_king/describe.hpp"
#include "games/skull_king/goals.hpp"
#include "games/skull_king/hidden.hpp"
