// What a seat of Kuhhandel may know, as bytes (section 13). Rows are written from front to back in
// whole words; what a word writes too much is overwritten by what follows.
#pragma once

#include "games/kuhhandel.hpp"

namespace sparring::kuhhandel {

SPARRING_FN inline u8* put_two(u8* out, int value) {
  out[0] = static_cast<u8>(value);
  out[1] = static_cast<u8>(value >> 8);
  return out + 2;
}

SPARRING_FN inline int two_at(const u8* from) { return static_cast<i16>(from[0] | from[1] << 8); }

// Bits by seat, turned so that the observer is bit 0.
template <int N>
SPARRING_FN inline u32 turned(u32 bits, int me) {
  return (bits >> me | bits << (N - me)) & ((1u << N) - 1);
}

// N bytes for N seats, and up to 8 - N more.
template <int N>
SPARRING_FN inline void put_seats(u8* out, u32 bits, int me) {
  store8(out, spread8(turned<N>(bits, me)));
}

// The observer's view of a table of N players; the row is written through this class alone.
template <int N>
class View {
 public:
  SPARRING_FN View(const Game& game, int me) : game_(game), me_(me) {}

  SPARRING_FN void write(u8* SPARRING_RESTRICT row) const {
    put_public(row);
    put_money(row);
    zero_bytes(row + at("auction"), at("points", "quartet values") - at("auction"));
    if (game_.is_auction()) put_auction(row);
    if (game_.target >= 0) put_trade(row);
    if (game_.is_composing() && game_.actor == me_) {
      row[at("composing", "asked for 0") + game_.pointer] = 1;
      store8(row + at("composing", "chosen 0"), game_.chosen);
    }
    store8(row + at("composing", "offered 0"), game_.turn == me_ ? game_.offer : 0);
    put_amounts(row);
  }

 private:
  static consteval int at(const char* section) { return byte_of(kRow<N>, section); }
  static consteval int at(const char* section, const char* name) {
    return byte_of(kRow<N>, section, name);
  }

  SPARRING_FN int seat_of(int relative) const { return wrap(relative + me_, N); }

  SPARRING_FN void put_public(u8* row) const {
    store8(row + at("phase"), game_.phase < kDone ? u64{1} << (8 * game_.phase) : 0);
    const bool acts = game_.phase != kDone && game_.actor == me_;
    constexpr int deck = at("deck") - at("to act"), donkeys = at("donkeys") - at("to act");
    store8(row + at("to act"), u64{acts} | static_cast<u64>(kDeck - game_.drawn) << (8 * deck) |
                                   u64{1} << (8 * (donkeys + game_.donkeys)));
    copy_bytes(row + at("unseen"), game_.unseen, kKinds);
    SPARRING_FOR (int r = 0; r < N; ++r)
      copy_bytes(row + at("animals") + r * kKinds, game_.animals[seat_of(r)], kKinds);
    SPARRING_FOR (int r = 0; r < N; ++r)
      row[at("points", "quartets") + r] = game_.quartets[seat_of(r)];
  }

  SPARRING_FN void put_money(u8* row) const {
    store8(row + at("own money"), game_.hand(me_));
    constexpr int bytes = Section("opponent", kOpponentFeatures).bytes();
    constexpr int known_from = byte_of(kOpponentFeatures, "known 0");
    constexpr int unknown = byte_of(kOpponentFeatures, "unknown cards");
    u8* out = row + at("opponent");
    SPARRING_FOR (int r = 1; r < N; ++r, out += bytes) {
      const int seat = seat_of(r);
      const Money known = game_.known[me_][seat];
      const int cards = cards_in(game_.hand(seat)), hidden = cards - cards_in(known);
      store8(out, static_cast<u64>(cards) | known << (8 * known_from) |
                      static_cast<u64>(hidden) << (8 * unknown));
      out[byte_of(kOpponentFeatures, "exact")] = hidden == 0;
    }
  }

  SPARRING_FN void put_auction(u8* row) const {
    row[at("auction") + game_.lot] = 1;
    row[at("auction", "value")] = kQuartetTens[game_.lot];
    row[at("auction", "bid exists")] = game_.high_bidder >= 0;
    if (game_.actor == me_) row[at("auction", "own hundreds")] = game_.hundreds;
    put_seats<N>(row + at("auctioneer"), 1u << game_.turn, me_);
    put_seats<N>(row + at("high bidder"), game_.high_bidder < 0 ? 0 : 1u << game_.high_bidder, me_);
    put_seats<N>(row + at("passed"), game_.passed, me_);
    put_seats<N>(row + at("excluded"), game_.exposed, me_);
  }

  // The pile itself stays hidden: of the challenger's cards only the number is shown, and that
  // only when all of them lie on the table.
  SPARRING_FN void put_trade(u8* row) const {
    row[at("trade") + game_.traded] = 1;
    row[at("trade", "value")] = kQuartetTens[game_.traded];
    row[at("trade", "stake 1")] = game_.stake == 1;
    row[at("trade", "stake 2")] = game_.stake == 2;
    row[at("trade", "offered cards")] = static_cast<u8>(cards_in(game_.offer));
    row[at("trade", "bid again")] = game_.ties > 0;
    put_seats<N>(row + at("challenger"), 1u << game_.turn, me_);
    put_seats<N>(row + at("target"), 1u << game_.target, me_);
  }

  // Everything that needs two bytes, in tens.
  SPARRING_FN void put_amounts(u8* row) const {
    u8* out = row + at("points", "quartet values");
    static_assert(at("points", "score") == at("points", "quartet values") + 2);
    SPARRING_FOR (int r = 0; r < N; ++r) {
      const int seat = seat_of(r);
      out = put_two(put_two(out, game_.quartets_tens[seat]), game_.points_tens(seat));
    }
    static_assert(at("opponent", "known total") == at("own total", "money") + 2);
    out = row + at("own total", "money");
    SPARRING_FOR (int r = 0; r < N; ++r) out = put_two(out, tens_in(game_.known[me_][seat_of(r)]));
    put_two(row + at("auction", "high bid"), game_.high_tens);
    put_two(row + at("auction", "minimum raise"), game_.is_auction() ? game_.high_tens + 1 : 0);
    out = row + at("last bid");
    SPARRING_FOR (int r = 0; r < N; ++r) out = put_two(out, game_.last_bid_tens[seat_of(r)]);
    const bool trades = game_.turn == me_ || game_.target == me_;
    put_two(row + at("trade", "tied at"), trades ? game_.tied_tens : 0);
    put_two(row + at("composing", "chosen total"), game_.actor == me_ ? tens_in(game_.chosen) : 0);
    put_two(row + at("composing", "price"), game_.phase == kPay ? game_.high_tens : 0);
  }

  const Game& game_;
  int me_;
};

// The ring of public events, the latest first, seats relative to the observer.
SPARRING_FN inline void put_history(const Config& config, const Game& game, int me, u8* out,
                                    const u8* extra) {
  const int players = config.num_players, count = min<int>(game.events, kEvents);
  SPARRING_FOR (int i = 0; i < count; ++i, out += kEventBytes) {
    const u8* entry = extra + kEventBytes * ((game.events - 1 - i) % kEvents);
    copy_bytes(out, entry, kEventBytes);
    const auto turn_seat = [&](int byte) {
      const int at = two_at(entry + byte);
      if (at >= 0) put_two(out + byte, wrap(at - me, players));
    };
    const int event = two_at(entry + byte_of(kEventFeatures, "event"));
    turn_seat(byte_of(kEventFeatures, "by"));
    if (event != kExposed) turn_seat(byte_of(kEventFeatures, "other"));
    if (event == kTrade) turn_seat(byte_of(kEventFeatures, "e"));
  }
  zero_bytes(out, (kEvents - count) * kEventBytes);
}

// A loop of its own for every number of players, so that all lengths are fixed. Code for a GPU is
// made for one number.
SPARRING_APART SPARRING_FN inline void Game::observe(const Config& config, int me, u8* out,
                                                     const u8* extra) const {
#if defined(SPARRING_SEATS)
  View<SPARRING_SEATS>(*this, me).write(out);
#else
  switch (config.num_players) {
    case 3:
      View<3>(*this, me).write(out);
      break;
    case 4:
      View<4>(*this, me).write(out);
      break;
    default:
      View<5>(*this, me).write(out);
      break;
  }
#endif
  if (config.history) put_history(config, *this, me, out + row_bytes(config.num_players), extra);
}

}  // namespace sparring::kuhhandel
