// Kuhhandel: the table, auctions, cow trades, rewards and observation. Section numbers are those
// of the specification; docs/games/kuhhandel.md lists the flags.
#pragma once

#include "core/bounds.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"
#include "games/kuhhandel/layout.hpp"
#include "games/kuhhandel/money.hpp"

namespace sparring::kuhhandel {

enum Phase : u8 { kTurn, kBid, kTensDigit, kDecide, kPay, kOffer, kRespond, kCounter, kDone };

// Actions (section 12). A number is a hundreds digit, a tens digit or a count of cards.
inline constexpr int kAuction = 0, kTradeFirst = 1, kPass = 41, kMinRaise = 42, kSell = 43,
                     kBuy = 44, kAccept = 45, kCounterAction = 46, kNumberFirst = 47;

// Public events of the history (section 13).
enum Event : i16 {
  kNoEvent,
  kAuctionStart,
  kBidEvent,
  kPassEvent,
  kSold,
  kBought,
  kFree,
  kExposed,
  kTrade,
  kTie,
  kDonkeyEvent
};
inline constexpr int kEvents = 64, kEventBytes = 16;

// Counts of a note that a belief tells apart; higher ones share the last class.
inline constexpr int kCountClasses = 12;

// Reward parts (section 15). The seed's terms pay one per event; the weights are the terms' size.
enum Part {
  kRank,
  kWin,
  kScoreZs,
  kPotential,
  kSeedBroke,
  kSeedRich,
  kSeedAuctionWon,
  kSeedFree,
  kSeedWasPaid,
  kSeedBought,
  kSeedOverraise,
  kSeedQuartet,
  kSeedTradeWon,
  kSeedTradeCheap,
  kSeedTradeLost,
  kSeedTradePaid,
  kSeedTradeLostEarly,
  kSeedFinalWin
};
inline constexpr int kSeedParts = 14;
inline constexpr f32 kSeedWeights[3][kSeedParts] = {
    {-0.2f, 0.05f, 0.1f, 0.2f, 0.1f, -0.05f, -1, 0.5f, 0.1f, 0.1f, -0.1f, 0.15f, -0.1f, 2},
    {0, 0, 0.2f, 0.2f, 0.2f, 0, 0, 1, 0.1f, 0.1f, -0.1f, 0.15f, -0.1f, 2},
    {0, 0, 0, 0, 0, 0, 0, 0.5f, 0, 0, 0, 0, 0, 2}};

// What is counted: animals that others put up, those won by bidding and those kept by paying the
// highest bidder, and the money for both; bids, and those above the own money; offers of a trade,
// and those that are worth nothing; trades; games and the quartets at their ends.
enum Counter {
  kLots,
  kLotsWon,
  kLotsKept,
  kMoneyPaid,
  kBids,
  kBluffBids,
  kOffers,
  kBluffs,
  kTrades,
  kTradesWon,
  kGames,
  kQuartets
};

struct Range {
  int low, high;
};

// What a step needs besides the table.
struct Step {
  const Config& config;
  Result& result;
  u8* history;
};

struct Game {
  using Config = kuhhandel::Config;
  using Action = i32;
  static constexpr int kMaxSeats = kPlayers, kRows = 1, kRoles = 2, kActions = 95;
  static constexpr int kSignedRoles = 1;
  static constexpr int kPerWarp = 16;  // trades between bots are long rows of moves
  static constexpr const char* kParts[] = {"rank",
                                           "win",
                                           "score_zs",
                                           "potential",
                                           "seed_broke",
                                           "seed_rich",
                                           "seed_auction_won",
                                           "seed_free",
                                           "seed_was_paid",
                                           "seed_bought",
                                           "seed_overraise",
                                           "seed_quartet",
                                           "seed_trade_won",
                                           "seed_trade_cheap",
                                           "seed_trade_lost",
                                           "seed_trade_paid",
                                           "seed_trade_lost_early",
                                           "seed_final_win"};
  static constexpr const char* kBots[] = {"thrifty", "dealer"};
  static constexpr const char* kEnds[] = {"all quartets complete", "decision limit"};
  static constexpr const char* kCounters[] = {"lots",   "lots won",   "lots kept", "money paid",
                                              "bids",   "bluff bids", "offers",    "bluffs",
                                              "trades", "trades won", "games",     "quartets"};

  // known[p][j]: the cards that p knows for certain j to hold (section 11.1). A player knows his
  // own hand, so known[j][j] is the hand of j, and there is no other record of it.
  Money known[kPlayers][kPlayers];
  Money in_play;  // all hands together
  Money offer;    // the challenger's pile once it is laid down; still counted in his hand
  Money chosen;   // the pile that the actor is composing; still counted in his hand
  i16 high_tens, last_bid_tens[kPlayers];
  i16 tied_tens;                // both totals of the round that was tied
  i16 quartets_tens[kPlayers];  // sum of the values of complete quartets
  u16 owns[kPlayers];           // bit a: has an animal of kind a
  u16 decisions;
  u8 deck[kDeck];
  u8 animals[kPlayers][kKinds];
  u8 unseen[kKinds];  // still in the deck
  u8 quartets[kPlayers];
  u8 drawn, donkeys;  // cards turned up, donkeys among them
  u8 phase, actor;
  u8 turn;             // the auctioneer or challenger
  i8 lot;              // kind under the hammer, -1 outside auctions
  i8 high_bidder;      // -1 if none
  u8 passed, exposed;  // bits by seat; exposed: showed his money in this auction
  u8 hundreds;         // first half of a jump bid
  i8 target, traded;   // of a trade, the kind as well; -1 outside trades
  u8 stake, ties;      // animals at stake; rounds of this trade that were tied
  u8 pointer;          // denomination that a count is asked for
  u8 events;           // written to the history: up to 63, then 64 + index
  u8 spare[3];         // no padding: equal states have equal bytes

  SPARRING_FN static Shape shape(const Config& config) {
    const int players = config.num_players;
    const int bytes = row_bytes(players) + extra_bytes(config);
    return {.seats = players, .actions = kActions, .obs_bytes = padded(bytes)};
  }

  SPARRING_FN static int extra_bytes(const Config& config) {
    return config.history ? kEvents * kEventBytes : 0;
  }

  SPARRING_FN static f32 default_weight(const Config& config, int part) {
    if (config.reward == kRewardPotential) return part == kRank || part == kPotential;
    if (config.reward < kRewardSeed) return part == config.reward;
    return part < kSeedBroke ? 0 : kSeedWeights[config.reward - kRewardSeed][part - kSeedBroke];
  }

  SPARRING_FN int seat(int) const { return actor; }
  // What to do on a turn, auction or trade, is one role; money is the other's: bids, selling or
  // buying, payments, offers and answers to them.
  SPARRING_FN int role(int) const { return phase == kTurn ? 0 : 1; }
  SPARRING_FN f32 score(const Config&, int at) const {
    return 10.0f * static_cast<f32>(points_tens(at));
  }

  // Section 8: the sum of the quartets' values times their number.
  SPARRING_FN int points_tens(int at) const { return quartets_tens[at] * quartets[at]; }

  SPARRING_FN Money hand(int at) const { return known[at][at]; }

  // Shuffles what has not been drawn, from the top down.
  SPARRING_FN void shuffle(Rng& rng) {
    SPARRING_FOR (int i = drawn; i + 1 < kDeck; ++i) {
      const int j = i + rng.below(kDeck - i);
      const u8 kept = deck[i];
      deck[i] = deck[j];
      deck[j] = kept;
    }
  }

  // Nobody knows the deck, so that it is another one whenever a game begins in a position.
  SPARRING_FN void begin_from(const Config&, const Game& start, Rng& rng) {
    *this = start;
    shuffle(rng);
  }

  // Draws: the shuffle, then the first player.
  SPARRING_FN void reset(const Config& config, Rng& rng, u8* extra) {
    *this = Game{};
    if (config.history) zero_bytes(extra, extra_bytes(config));
    SPARRING_FOR (int i = 0; i < kDeck; ++i) deck[i] = static_cast<u8>(i / 4);
    shuffle(rng);
    SPARRING_FOR (u8& count : unseen) count = 4;
    SPARRING_FOR (int p = 0; p < config.num_players; ++p) {
      in_play += start_hand();
      SPARRING_FOR (int j = 0; j < config.num_players; ++j) known[p][j] = start_hand();
    }
    clear_auction();
    clear_trade();
    turn = actor = static_cast<u8>(rng.below(config.num_players));
  }

  SPARRING_APART SPARRING_FN void legal(const Config& config, int, Legal<Game>& out,
                                        const u8*) const {
    out = Legal<Game>::none();
    switch (phase) {
      case kTurn:
        out.word[0] = u64{drawn < kDeck};
        SPARRING_FOR (int k = 1; k < config.num_players; ++k)
          out.word[0] |= static_cast<u64>(owns[actor] & owns[wrap(actor + k, config.num_players)])
                         << (kTradeFirst + kKinds * (k - 1));
        break;
      case kBid: {
        out.word[0] = u64{1} << kPass | u64{1} << kMinRaise;
        const int lowest = high_tens + 2, limit = limit_tens(config, actor);
        if (lowest <= limit) set_numbers({lowest / 10, limit / 10}, out);
        break;
      }
      case kTensDigit:
        set_numbers(tens_digits(config), out);
        break;
      case kDecide:
        out.word[0] = u64{1} << kSell | u64{tens_in(hand(actor)) >= high_tens} << kBuy;
        break;
      case kRespond:
        out.word[0] = u64{1} << kAccept | u64{1} << kCounterAction;
        break;
      case kPay:
      case kOffer:
      case kCounter:
        set_numbers(counts(config), out);
        break;
      default:
        break;
    }
  }

  SPARRING_FN void step(const Config& config, const Action* actions, Rng&, Result& result,
                        u8* extra) {
    Step step{config, result, extra};
    play(step, actions[0]);
    while (is_composing() && pile_is_complete(config)) lay_down(step);
    ++decisions;
    if (phase == kDone) {
      pay_end(config, result);
      result.terminate(0);
    } else if (decisions >= config.max_decisions) {
      reach_limit(step);
    } else {
      pay_return(config, actor, result);
    }
    if (result.recorder.counts && result.over()) count_game(config, result.recorder);
  }

  SPARRING_FN void count_game(const Config& config, const Recorder& recorder) const {
    SPARRING_FOR (int at = 0; at < config.num_players; ++at) {
      recorder.count(kGames, at);
      recorder.count(kQuartets, at, quartets[at]);
    }
  }

  SPARRING_FN void play(Step& step, int action) {
    const int number = action - kNumberFirst;
    switch (phase) {
      case kTurn:
        if (action == kAuction)
          open_auction(step);
        else
          open_trade(step.config, action - kTradeFirst);
        break;
      case kBid:
        if (action == kPass) {
          pass(step, actor);
          ask_next_bidder(step);
        } else if (action == kMinRaise) {
          place_bid(step, high_tens + 1);
        } else {
          open_jump(step, number);
        }
        break;
      case kTensDigit:
        place_bid(step, 10 * hundreds + number);
        break;
      case kDecide:
        if (action == kBuy)
          start_payment(step.config, turn);
        else if (tens_in(hand(high_bidder)) >= high_tens)
          start_payment(step.config, high_bidder);
        else
          expose(step);
        break;
      case kRespond:
        if (action == kAccept)
          accept(step);
        else
          start_pile(kCounter, target);
        break;
      default:
        chosen += money_of(pointer, number);
        break;
    }
  }

  // Section 4, and section 6 for donkeys.
  SPARRING_FN void open_auction(Step& step) {
    lot = static_cast<i8>(deck[drawn++]);
    --unseen[lot];
    note(step, kAuctionStart, turn, -1, lot);
    SPARRING_FOR (int at = 0; step.result.recorder.counts && at < step.config.num_players; ++at)
      if (at != turn) step.result.recorder.count(kLots, at);
    if (lot == kDonkey) pay_out_donkey(step);
    ask_next_bidder(step);
  }

  SPARRING_FN void pay_out_donkey(Step& step) {
    const int players = step.config.num_players;
    const Money card = money_of(2 + donkeys, 1);
    SPARRING_FOR (int p = 0; p < players; ++p) {
      in_play += card;
      SPARRING_FOR (int j = 0; j < players; ++j) known[p][j] += card;
    }
    ++donkeys;
    note(step, kDonkeyEvent, -1, -1, donkeys);
  }

  // The highest bid a seat may make (section 11.2).
  SPARRING_FN int limit_tens(const Config& config, int at) const {
    const bool capped = config.bluff == kForbid || (config.bluff == kCap && exposed >> at & 1);
    return tens_in(capped ? hand(at) : in_play);
  }

  // Digits that complete a jump bid, which is at least 20 above the high bid.
  SPARRING_FN Range tens_digits(const Config& config) const {
    const int from = 10 * hundreds;
    return {max(0, high_tens + 2 - from), min(9, limit_tens(config, actor) - from)};
  }

  SPARRING_FN void open_jump(Step& step, int digit) {
    hundreds = static_cast<u8>(digit);
    const Range digits = tens_digits(step.config);
    if (step.config.auto_forced && digits.low == digits.high)
      place_bid(step, 10 * digit + digits.low);
    else
      phase = kTensDigit;
  }

  SPARRING_APART SPARRING_FN void place_bid(Step& step, int bid_tens) {
    const int raise = bid_tens - high_tens;
    if (raise > 1)
      step.result.add_reward(kSeedOverraise, actor, static_cast<f32>(raise - 1) / 10.0f);
    note(step, kBidEvent, actor, -1, bid_tens);
    step.result.recorder.count(kBids, actor);
    if (step.result.recorder.counts)
      step.result.recorder.count(kBluffBids, actor, bid_tens > tens_in(hand(actor)));
    hundreds = 0;
    high_tens = last_bid_tens[actor] = static_cast<i16>(bid_tens);
    high_bidder = static_cast<i8>(actor);
    if (step.config.pass_mode == kSoft) passed = 0;
    ask_next_bidder(step);
  }

  SPARRING_FN void pass(Step& step, int by) {
    passed |= static_cast<u8>(1 << by);
    note(step, kPassEvent, by);
  }

  // Clockwise from whoever spoke last. Who cannot raise passes unasked: the others must not be
  // able to tell the difference.
  SPARRING_APART SPARRING_FN void ask_next_bidder(Step& step) {
    const int players = step.config.num_players;
    int out = passed | 1 << turn;
    if (high_bidder >= 0) out |= 1 << high_bidder;
    if (step.config.bluff == kExclude) out |= exposed;
    SPARRING_FOR (int k = 1; k <= players; ++k) {
      const int at = wrap(actor + k, players);
      if (out >> at & 1) continue;
      if (limit_tens(step.config, at) > high_tens) {
        actor = static_cast<u8>(at);
        phase = kBid;
        return;
      }
      pass(step, at);
    }
    actor = turn;
    if (high_bidder >= 0) {
      phase = kDecide;
      return;
    }
    note(step, kFree, turn, -1, lot);
    SPARRING_FOR (int at = 0; at < players; ++at)
      step.result.add_reward(kSeedFree, at, at == turn ? 1.0f : -1.0f);
    close_auction(step, turn);
  }

  // A bluff is called: everybody sees the money, and bidding starts anew (K1).
  SPARRING_FN void expose(Step& step) {
    const int by = high_bidder;
    const Money shown = hand(by);
    SPARRING_FOR (int p = 0; p < step.config.num_players; ++p) known[p][by] = shown;
    note(step, kExposed, by, count_of(shown, 0), count_of(shown, 1), count_of(shown, 2),
         count_of(shown, 3), count_of(shown, 4), count_of(shown, 5));
    exposed |= static_cast<u8>(1 << by);
    clear_bids();
    actor = turn;
    ask_next_bidder(step);
  }

  SPARRING_FN void clear_bids() {
    high_tens = 0;
    high_bidder = -1;
    passed = hundreds = 0;
    SPARRING_FOR (i16& bid : last_bid_tens) bid = 0;
  }

  SPARRING_FN void clear_auction() {
    clear_bids();
    lot = -1;
    exposed = 0;
  }

  SPARRING_APART SPARRING_FN void close_auction(Step& step, int owner) {
    add_animals(step, owner, lot, 1);
    clear_auction();
    pass_turn(step.config);
  }

  SPARRING_FN void start_payment(const Config& config, int payer) {
    start_pile(kPay, payer);
    if (config.pay_mode == kChoice) return;
    chosen = auto_payment(hand(payer), high_tens);
    pointer = 0;
  }

  SPARRING_FN void finish_payment(Step& step) {
    const int payer = actor, payee = payer == turn ? high_bidder : turn;
    note(step, payer == turn ? kBought : kSold, payer, payee, high_tens, cards_in(chosen));
    step.result.recorder.count(payer == turn ? kLotsKept : kLotsWon, payer);
    if (step.result.recorder.counts)
      step.result.recorder.count(kMoneyPaid, payer, 10 * tens_in(chosen));
    exchange(step.config, payer, payee, chosen, 0, step.config.open_pay != 0);
    if (payer == turn) {
      step.result.add_reward(kSeedBought, payer, 1);
      step.result.add_reward(kSeedWasPaid, payee, 1);
    } else {
      step.result.add_reward(kSeedAuctionWon, payer, 1);
    }
    clear_pile();
    close_auction(step, payer);
  }

  SPARRING_FN bool is_auction() const { return phase >= kBid && phase <= kPay; }

  SPARRING_FN bool is_composing() const {
    return phase == kPay || phase == kOffer || phase == kCounter;
  }

  SPARRING_FN void start_pile(Phase what, int by) {
    phase = what;
    actor = static_cast<u8>(by);
    chosen = 0;
    pointer = kDenominations;
  }

  SPARRING_FN void clear_pile() {
    chosen = 0;
    pointer = 0;
  }

  // Counts that may be named for the denomination under the pointer (section 11.2). In a payment
  // they reach every minimal set exactly once.
  SPARRING_FN Range counts(const Config& config) const {
    const Money held = hand(actor);
    const Money smaller = below(held, pointer);
    if (phase != kPay) {
      const bool must = !config.empty_offer && chosen == 0 && smaller == 0;
      return {must, count_of(held, pointer)};
    }
    const int owed = high_tens - tens_in(chosen), value = kTens[pointer];
    const int left_over = max(0, owed - tens_in(smaller));
    return {(left_over + value - 1) / value,
            min(count_of(held, pointer), (owed + value - 1) / value)};
  }

  // Moves the pointer to the next count that has to be asked for; true if none is left.
  SPARRING_FN bool pile_is_complete(const Config& config) {
    const Money held = hand(actor);
    const int lowest = phase == kPay;  // payments use no zeros
    while (pointer > lowest) {
      if (phase == kPay && tens_in(chosen) >= high_tens) return true;
      --pointer;
      if (count_of(held, pointer) == 0) continue;
      const Range range = counts(config);
      if (!config.auto_forced || range.low < range.high) return false;
      chosen += money_of(pointer, range.low);
    }
    return phase != kPay || tens_in(chosen) >= high_tens;
  }

  SPARRING_APART SPARRING_FN void lay_down(Step& step) {
    if (phase == kPay) {
      finish_payment(step);
    } else if (phase == kCounter) {
      compare_piles(step);
    } else {
      offer = chosen;
      clear_pile();
      step.result.recorder.count(kOffers, turn);
      if (step.result.recorder.counts)
        step.result.recorder.count(kBluffs, turn, tens_in(offer) == 0);
      // After a tie the target has to counter (K10).
      if (ties) {
        start_pile(kCounter, target);
      } else {
        phase = kRespond;
        actor = static_cast<u8>(target);
      }
    }
  }

  // Section 7.
  SPARRING_FN void open_trade(const Config& config, int choice) {
    target = static_cast<i8>(wrap(turn + 1 + choice / kKinds, config.num_players));
    traded = static_cast<i8>(choice % kKinds);
    stake = min(animals[turn][traded], animals[target][traded]);
    start_pile(kOffer, turn);
  }

  SPARRING_FN void accept(Step& step) {
    exchange_piles(step.config, 0);
    end_trade(step, turn, -1, tens_in(offer));
  }

  SPARRING_FN void compare_piles(Step& step) {
    const int laid = tens_in(offer), countered = tens_in(chosen), cards = cards_in(chosen);
    if (laid != countered || step.config.tie_money == kExchange)
      exchange_piles(step.config, chosen);
    if (laid != countered) {
      end_trade(step, laid > countered ? turn : target, cards, absolute(laid - countered));
    } else if (++ties < step.config.tie_rounds) {
      note(step, kTie, turn, target, cards_in(offer), cards);
      tied_tens = static_cast<i16>(laid);
      offer = 0;
      start_pile(kOffer, turn);
    } else {
      end_trade(step, turn, cards, 0);
    }
  }

  SPARRING_FN void exchange_piles(const Config& config, Money counter) {
    if (config.zeros_return)
      exchange(config, turn, target, without_zeros(offer), without_zeros(counter), false);
    else
      exchange(config, turn, target, offer, counter, false);
  }

  // `countered` is the number of the target's cards, -1 if it accepted.
  SPARRING_APART SPARRING_FN void end_trade(Step& step, int winner, int countered, int price_tens) {
    const int loser = winner == turn ? target : turn;
    note(step, kTrade, turn, target, traded, stake, cards_in(offer), countered, winner);
    pay_trade(step.result, winner, loser, price_tens);
    step.result.recorder.count(kTrades, winner);
    step.result.recorder.count(kTrades, loser);
    step.result.recorder.count(kTradesWon, winner);
    animals[loser][traded] = static_cast<u8>(animals[loser][traded] - stake);
    if (animals[loser][traded] == 0) owns[loser] ^= static_cast<u16>(1 << traded);
    add_animals(step, winner, traded, stake);
    clear_trade();
    pass_turn(step.config);
  }

  SPARRING_FN void clear_trade() {
    target = traded = -1;
    stake = ties = 0;
    tied_tens = 0;
    offer = 0;
    clear_pile();
  }

  // Cards change hands, and everybody's record with them (section 11.1). Both piles are laid down
  // before either is taken up, so what was given is subtracted first. Who does not see the cards
  // has to assume the worst for every denomination.
  SPARRING_APART SPARRING_FN void exchange(const Config& config, int a, int b, Money from_a,
                                           Money from_b, bool open) {
    const Money any_from_a = static_cast<Money>(cards_in(from_a)) * kEachOne;
    const Money any_from_b = static_cast<Money>(cards_in(from_b)) * kEachOne;
    SPARRING_FOR (int p = 0; p < config.num_players; ++p) {
      Money* of = known[p];
      if (open || p == a || p == b) {
        of[a] = less(of[a], from_a) + from_b;
        of[b] = less(of[b], from_b) + from_a;
      } else {
        of[a] = less(of[a], any_from_a);
        of[b] = less(of[b], any_from_b);
      }
    }
  }

  SPARRING_APART SPARRING_FN void add_animals(Step& step, int at, int kind, int count) {
    u8& held = animals[at][kind];
    held = static_cast<u8>(held + count);
    owns[at] |= static_cast<u16>(1 << kind);
    if (held < 4) return;
    const int before = points_tens(at);
    ++quartets[at];
    quartets_tens[at] = static_cast<i16>(quartets_tens[at] + kQuartetTens[kind]);
    step.result.add_reward(kPotential, at, static_cast<f32>(points_tens(at) - before) / 1000.0f);
    if (drawn < kDeck) step.result.add_reward(kSeedQuartet, at, 1);
  }

  // To the left; who can do nothing is skipped (K13), and if nobody can, the game is over.
  SPARRING_APART SPARRING_FN void pass_turn(const Config& config) {
    const int players = config.num_players;
    SPARRING_FOR (int k = 1; k <= players; ++k) {
      const int at = wrap(turn + k, players);
      if (drawn < kDeck || can_trade(config, at)) {
        turn = actor = static_cast<u8>(at);
        phase = kTurn;
        return;
      }
    }
    phase = kDone;
  }

  SPARRING_FN bool can_trade(const Config& config, int at) const {
    int others = 0;
    SPARRING_FOR (int p = 0; p < config.num_players; ++p)
      if (p != at) others |= owns[p];
    return owns[at] & others;
  }

  // K14. A game that is cut stays as it is, so that a learner can estimate what was to come. One
  // that is scored is over: bids and piles are taken back, the animal under the hammer is nobody's.
  SPARRING_FN void reach_limit(Step& step) {
    if (step.config.at_limit == kScore) {
      phase = kDone;
      clear_bids();
      exposed = 0;
      clear_trade();
      pay_end(step.config, step.result);
      step.result.terminate(1);
    } else {
      SPARRING_FOR (int at = 0; at < step.config.num_players; ++at)
        pay_return(step.config, at, step.result);
      step.result.truncate(1);
    }
  }

  // What is due when a seat is to decide again or the game ends: the seed looks at the money, and
  // the potential of section 15 is discounted. (Its growth was paid when it happened: together
  // that is g * F(now) - F(then), between any two decisions of a seat.)
  SPARRING_FN void pay_return(const Config& config, int at, Result& result) const {
    if (config.potential_gamma != 1)
      result.add_reward(kPotential, at,
                        (config.potential_gamma - 1) * static_cast<f32>(points_tens(at)) / 1000.0f);
    if (!result.is_weighted(kSeedBroke) && !result.is_weighted(kSeedRich)) return;
    const int own = tens_in(hand(at));
    if (own == 0) result.add_reward(kSeedBroke, at, 1);
    if (2 * own > tens_in(in_play)) result.add_reward(kSeedRich, at, 1);
  }

  SPARRING_FN void pay_trade(Result& result, int winner, int loser, int price_tens) const {
    const f32 count = stake, paid = static_cast<f32>(price_tens) / 50.0f;
    result.add_reward(kSeedTradeWon, winner, count);
    result.add_reward(kSeedTradeCheap, winner, max(0.0f, 1.0f - paid));
    result.add_reward(kSeedTradeLost, loser, count);
    result.add_reward(kSeedTradePaid, loser, min(1.0f, paid));
    if (drawn < kDeck) result.add_reward(kSeedTradeLostEarly, loser, 1);
  }

  // Tied seats share: the average rank, the win (section 15).
  SPARRING_APART SPARRING_FN void pay_end(const Config& config, Result& result) const {
    const int players = config.num_players;
    int sum = 0;
    SPARRING_FOR (int at = 0; at < players; ++at) sum += points_tens(at);
    SPARRING_FOR (int at = 0; at < players; ++at) {
      const int own = points_tens(at);
      int better = 0, equal = 0;
      SPARRING_FOR (int other = 0; other < players; ++other) {
        better += points_tens(other) > own;
        equal += points_tens(other) == own;
      }
      const f32 rank = static_cast<f32>(better) + 0.5f * static_cast<f32>(equal - 1);
      result.add_reward(kRank, at, 1.0f - 2.0f * rank / static_cast<f32>(players - 1));
      result.add_reward(
          kWin, at,
          (better == 0 ? 1.0f / static_cast<f32>(equal) : 0.0f) - 1.0f / static_cast<f32>(players));
      const f32 others = static_cast<f32>(sum - own) / static_cast<f32>(players - 1);
      result.add_reward(kScoreZs, at, (static_cast<f32>(own) - others) / 1000.0f);
      if (better == 0) result.add_reward(kSeedFinalWin, at, 1);
      pay_return(config, at, result);
    }
  }

  // Adds to the ring of public events; seats are absolute there.
  SPARRING_FN void note(Step& step, Event event, int by, int other = -1, int a = 0, int b = 0,
                        int c = 0, int d = 0, int e = 0) {
    if (step.config.history) write_event(step, event, by, other, a, b, c, d, e);
  }

  SPARRING_APART SPARRING_FN void write_event(Step& step, Event event, int by, int other, int a,
                                              int b, int c, int d, int e) {
    u8* entry = step.history + kEventBytes * (events % kEvents);
    store8(entry, four(event, by, other, a));
    store8(entry + 8, four(b, c, d, e));
    events = static_cast<u8>(events == 2 * kEvents - 1 ? kEvents : events + 1);
  }

  // Numbers of 16 bits, the first in the lowest bytes.
  SPARRING_FN static u64 four(int a, int b, int c, int d) {
    return u64{static_cast<u16>(a)} | u64{static_cast<u16>(b)} << 16 |
           u64{static_cast<u16>(c)} << 32 | u64{static_cast<u16>(d)} << 48;
  }

  SPARRING_FN static void set_numbers(Range range, Legal<Game>& out) {
    const u64 numbers = (u64{2} << range.high) - (u64{1} << range.low);
    out.word[0] |= numbers << kNumberFirst;
    out.word[1] |= numbers >> (64 - kNumberFirst);
  }

  SPARRING_APART SPARRING_FN void observe(const Config& config, int me, u8* out,
                                          const u8* extra) const;

  SPARRING_FN Action act(int bot, const Config& config, int row, const Legal<Game>& legal, Rng& rng,
                         const u8* extra) const;

  // belief: log-weights [other seat relative to `me`, note, count], null: every unknown card is
  // equally likely everywhere.
  SPARRING_FN void resample_hidden(const Config& config, int me, Rng& rng,
                                   const f32* belief = nullptr);
  SPARRING_FN static constexpr int belief_size(const Config& config) {
    return (config.num_players - 1) * kDenominations * kCountClasses;
  }

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
  bool ended(const Config& config) const {
    return phase == kDone || decisions >= config.max_decisions;
  }
#endif
};

}  // namespace sparring::kuhhandel

#include "games/kuhhandel/audit.hpp"
#include "games/kuhhandel/bots.hpp"
#include "games/kuhhandel/describe.hpp"
#include "games/kuhhandel/hidden.hpp"
#include "games/kuhhandel/observation.hpp"
