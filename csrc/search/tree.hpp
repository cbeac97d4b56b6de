// Search trees: Gumbel AlphaZero and PUCT for any number of seats. docs/guides/search.md explains
// the rules; tests/reference/search.py is the same in plain Python.
//
// A tree has a fixed number of nodes, which are written once and never moved, and edges for legal
// actions only. CPU threads, GPU kernels and browsers call the functions of this file, one tree at
// a time. A simulation has two halves, between which a network evaluates the leaf: `select_leaf`
// and `settle`. The leaves of one round of sequential halving are in different subtrees, so that
// they can be evaluated together without changing the result.
#pragma once

#include "search/node.hpp"

namespace sparring {

// One tree of a view.
template <class G>
struct Tree {
  using Action = typename G::Action;
  const TreesView<G>& all;
  i64 index;

  SPARRING_FN const SearchOptions& options() const { return all.options; }
  SPARRING_FN const Setting<G>& setting() const { return *all.setting; }
  SPARRING_FN int seats() const { return setting().shape.seats; }
  SPARRING_FN TreeHead& head() const { return all.head[index]; }
  SPARRING_FN Env<G>& root() const { return all.root[index]; }
  SPARRING_FN Node<G>& node(int at) const { return all.node[index * options().nodes + at]; }
  SPARRING_FN i64 edge_index(int at) const {
    return index * all.edges_each() +
           (at == 0 ? 0 : options().root_width + i64{at - 1} * options().width);
  }
  SPARRING_FN Edge* edges(int at) const { return all.edge + edge_index(at); }
  SPARRING_FN G& state(int at) const {
    return at == 0 ? root().game : all.state[index * options().nodes + at];
  }
  SPARRING_FN f32* logits() const { return all.logit + index * options().root_width; }
  SPARRING_FN f32* gumbels() const { return all.gumbel + index * options().root_width; }
  SPARRING_FN const u8* extra() const {
    return all.extra + index * extra_bytes<G>(setting().config);
  }
  SPARRING_FN bool replays() const { return options().replay != 0; }
  SPARRING_FN bool proves() const {
    if constexpr (kPaysWins<G>)
      return options().prove && !replays() && (setting().active_parts & ~(1u << G::kWinPart)) == 0;
    else
      return false;
  }
  SPARRING_FN u32 episode_of(int simulation) const {
    return root().episode * 0x9E3779B1u + root().length * 0x85EBCA77u +
           static_cast<u32>(simulation) * 0xC2B2AE3Du;
  }
  SPARRING_FN Rng rng(int simulation, u32 drawn) const {
    return Rng(setting().seed, head().game, episode_of(simulation), Stream::kSearch, drawn);
  }

  // Begins a search in `root()`, which the caller has set, with its extra state.
  SPARRING_FN void begin(u32 game, int row, int simulations) const {
    TreeHead& h = head();
    h = TreeHead{};
    h.game = game;
    h.row = row;
    h.simulations = min(simulations, options().nodes - 1);
    h.started = h.settled = -1;  // the evaluation of the root comes first
    h.nodes = 1;
    Env<G>& env = root();
    for (f32& value : env.pending_reward) value = 0;
    for (u16& value : env.skipped) value = 0;
    for (int seat = 0; seat < G::kMaxSeats; ++seat)
      env.player[seat] = static_cast<i16>(seat < seats() ? 0 : kNoPlayer);
    env.policy_seats = static_cast<u32>(seats());
    node(0) = Node<G>{};
    node(0).seat = static_cast<i8>(env.game.seat(row));
    node(0).role = static_cast<u8>(env.game.role(row));
  }

  SPARRING_FN bool finished() const { return head().settled == head().simulations; }

  // Begins the next simulation and returns true; false if it depends on leaves that are not settled
  // yet, or if there is none left. A leaf that needs no evaluation is settled already. `extra` is
  // memory for the extra state of the leaf.
  SPARRING_FN bool select_leaf(Leaf<G>& leaf, u8* leaf_extra) const {
    TreeHead& h = head();
    if (h.started == h.simulations) return false;
    if (h.started < 0) {
      select_root(leaf, leaf_extra);
      return true;
    }
    const bool waits = options().rule == kPuct || h.next == 0;
    if (waits && h.settled < h.started) return false;
    int edge;
    if (options().rule == kPuct) {
      edge = choose_puct(node(0), 0, nullptr).edge;
    } else {
      if (h.next == 0) begin_round();
      edge = h.considered[h.next++];
      if (h.next == h.active) h.next = 0;
    }
    ++h.started;
    leaf.simulation = h.started;
    leaf.evaluate = leaf.expand = 0;
    if (replays())
      descend_by_replay(leaf, leaf_extra, edge);
    else
      descend(leaf, leaf_extra, edge);
    if (leaf.evaluate)
      note_seats(leaf);
    else
      back_up(leaf, nullptr);
    return true;
  }

  // Writes row `r` of those that the network evaluates.
  SPARRING_FN void observe_row(const Leaf<G>& leaf, const u8* leaf_extra, int r, u8* row) const {
    call_observe(leaf.env.game, setting().config, options().row_count == 1 ? mover(leaf) : r, row,
                 leaf_extra);
  }

  // Writes all rows that the network evaluates.
  SPARRING_FN void observe(const Leaf<G>& leaf, const u8* leaf_extra, u8* rows) const {
    for (int r = 0; r < options().row_count; ++r)
      observe_row(leaf, leaf_extra, r, rows + i64{r} * setting().shape.obs_bytes);
  }

  // Takes the evaluation of a leaf: outputs of the policy head [row_count, head_width] and values
  // [row_count].
  SPARRING_FN void settle(const OpenLeaf<G>& leaf, const f32* policy, int head_width,
                          const f32* value) const {
    if (leaf.expand) {
      const int seat = mover(leaf);
      Node<G>& at = node(leaf.node);
      at.value = value[options().row_count == 1 ? 0 : seat];
      expand(leaf, policy, head_width);
    }
    if (leaf.simulation == 0) {
      head().started = head().settled = 0;
      if (options().rule == kGumbel) consider();
    } else {
      back_up(leaf, value);
    }
  }

  // Values of a node's edges. With `legal` other edges are left out. PUCT takes the node's own
  // value for edges without visits, everything else the mixed one.
  SPARRING_FN NodeValues values_of(int at, const Legal<G>* legal, bool puct = false) const {
    return values_of(node(at), at, legal, puct);
  }

  // Score of a root edge in sequential halving.
  SPARRING_FN f64 root_score(int edge, const NodeValues& values) const {
    return static_cast<f64>(gumbels()[edge]) + logits()[edge] + values.bonus(edges(0)[edge]);
  }

  // The chosen root edge: one that is proven to win, else the most visited that is not proven to
  // lose.
  SPARRING_FN int decide() const {
    const Edge* e = edges(0);
    const NodeValues values = values_of(0, nullptr);
    int best = 0, best_proof = 0;
    f64 best_score = 0;
    for (int i = 0; i < node(0).edges; ++i) {
      const int proof = proof_of(e[i]);
      const f64 score = options().rule == kGumbel ? root_score(i, values)
                        : e[i].visits             ? static_cast<f64>(e[i].mean)
                                                  : static_cast<f64>(e[i].prior);
      const bool same = proof == best_proof, tied = same && e[i].visits == e[best].visits;
      const bool better = proof > best_proof || (same && e[i].visits > e[best].visits) ||
                          (tied && score > best_score);
      if (i > 0 && !better) continue;
      best = i;
      best_proof = proof;
      best_score = score;
    }
    return best;
  }

  // The improved policy at the root, by edge; returns the value that it has for the mover.
  SPARRING_FN f64 improved(f32* policy) const {
    const Edge* e = edges(0);
    const NodeValues values = values_of(0, nullptr);
    f64 sum = 0, value = 0;
    for (int i = 0; i < node(0).edges; ++i) sum += values.weight(e[i]);
    for (int i = 0; i < node(0).edges; ++i) {
      const f64 share = values.weight(e[i]) / sum;
      value += share * values.completed(e[i]);
      policy[i] = static_cast<f32>(share);
    }
    return value;
  }

  // The edge that is expected to follow: the most visited, the first of equals; where the value is
  // proven, one that proves it. -1 if the node has no visits.
  SPARRING_FN int expected(int at) const {
    const Edge* e = edges(at);
    const bool proven = node(at).status == Status::kProven;
    int best = -1;
    for (int i = 0; i < node(at).edges; ++i) {
      if (proven && !(is_proven(e[i]) && e[i].mean == node(at).value)) continue;
      if (e[i].visits > (best < 0 ? 0 : e[best].visits)) best = i;
    }
    return best;
  }

  // Whether the value of an edge is exact.
  SPARRING_FN bool is_proven(const Edge& edge) const {
    return proves() && edge.child() != 0 && node(edge.child()).status >= Status::kTerminated;
  }

  SPARRING_FN const Action* joint_of(int at, int edge) const {
    return all.joint + (edge_index(at) + edge) * G::kRows;
  }

  // Loads the position of a node, with the extra state that the moves to it have left.
  SPARRING_FN void load(Leaf<G>& leaf, u8* leaf_extra, int at) const {
    leaf.env = root();
    leaf.env.game = state(at);
    if constexpr (HasExtraState<G> && kStoresPositions<G>) {
      copy_extra(leaf_extra);
      if (at != 0) root().game.leave(setting().config, leaf_extra);
      for (int above = at == 0 ? 0 : node(at).parent; above != 0; above = node(above).parent)
        state(above).leave(setting().config, leaf_extra);
    }
  }

 private:
  // Most edges of a node that is not the root.
  static constexpr int kInnerEdges = kDiscrete<G> ? min(kMaxLegalOf<G>, kMaxWidth) : kMaxWidth;
  // So few edges that a GPU holds those of a node in registers.
  static constexpr int kBlock = 8, kFewActions = 16;
  static constexpr bool kFewEdges = kInnerEdges <= kBlock;

  // Calls `each(i, edge)` for the edges of a node. A GPU reads a block of them at once.
  template <class Each>
  SPARRING_FN void each_edge(int at, int count, Each&& each) const {
    const Edge* e = edges(at);
    const int last = (at == 0 ? options().root_width : options().width) - 1;
    for (int first = 0; kFewEdges ? first == 0 : first < count; first += kBlock) {
      Edge block[kBlock];
      SPARRING_UNROLL (int k = 0; k < kBlock; ++k) block[k] = e[min(first + k, last)];
      SPARRING_UNROLL (int k = 0; k < kBlock; ++k)
        if (first + k < count) each(first + k, block[k]);
    }
  }

  SPARRING_FN NodeValues values_of(const Node<G>& n, int at, const Legal<G>* legal,
                                   bool puct = false) const {
    NodeValues found{.mix = n.value,
                     .low = 0,
                     .high = 0,
                     .best = 0,
                     .sigma = 0,
                     .rescale = options().rescale != 0};
    f64 weighted = 0, mass = 0, low = 0, high = 0;
    u32 visits = 0, most = 0;
    bool any = false, unvisited = false;
    each_edge(at, n.edges, [&](int, const Edge& edge) {
      if (legal && !is_legal(edge, legal)) return;
      if (edge.visits == 0) {
        unvisited = true;
        return;
      }
      const f64 q = static_cast<f64>(edge.mean);
      weighted += edge.prior * q;
      mass += edge.prior;
      visits += edge.visits;
      most = max(most, edge.visits);
      low = any ? min(low, q) : q;
      high = any ? max(high, q) : q;
      any = true;
    });
    if (visits) found.mix = (n.value + visits * weighted / mass) / (1.0 + visits);
    const f64 rest = puct ? static_cast<f64>(n.value) : found.mix;
    if (unvisited || puct) {
      low = any ? min(low, rest) : rest;
      high = any ? max(high, rest) : rest;
    }
    found.low = low;
    found.high = found.best = high;
    found.sigma = (static_cast<f64>(options().c_visit) + most) * options().c_scale;
    return found;
  }

  SPARRING_FN int mover(const Leaf<G>& leaf) const {
    return max(static_cast<int>(leaf.env.game.seat(head().row)), 0);
  }

  SPARRING_FN int mover(const OpenLeaf<G>& leaf) const {
    return max(static_cast<int>(leaf.seat[head().row]), 0);
  }

  SPARRING_FN static void note_seats(Leaf<G>& leaf) {
    for (int r = 0; r < G::kRows; ++r) leaf.seat[r] = static_cast<i8>(leaf.env.game.seat(r));
  }

  SPARRING_FN static bool is_legal(const Edge& edge, const Legal<G>* legal) {
    if constexpr (kDiscrete<G>)
      return legal->test(edge.action());
    else
      return true;
  }

  SPARRING_FN void copy_extra(u8* to) const {
    if (const int bytes = extra_bytes<G>(setting().config)) copy_extra_state(to, extra(), bytes);
  }

  SPARRING_FN void select_root(Leaf<G>& leaf, u8* leaf_extra) const {
    head().started = 0;
    head().next = 0;
    leaf.env = root();
    leaf.node = leaf.simulation = 0;
    leaf.evaluate = leaf.expand = 1;
    copy_extra(leaf_extra);
    find_turn(leaf.env, setting(), leaf_extra, leaf.legal);
    note_seats(leaf);
  }

  // Sequential halving

  // Draws Gumbel noise and takes the edges with the largest sums of noise and logit.
  SPARRING_FN void consider() const {
    TreeHead& h = head();
    const int edge_count = node(0).edges;
    Rng draws = rng(0, static_cast<u32>(h.row) << 20);
    for (int i = 0; i < edge_count; ++i) {
      f64 noise = 0;
      if (options().noise) {
        const f64 u = (static_cast<f64>(draws.next()) + 0.5) * (1.0 / 4294967296.0);
        noise = -ln_of(-ln_of(u));
      }
      gumbels()[i] = static_cast<f32>(noise);
    }
    h.active = max(min(min(options().considered, edge_count), h.simulations), 1);
    int kept = 0;
    for (int i = 0; i < edge_count; ++i) {  // insertion into a sorted list of `active` edges
      const f64 score = static_cast<f64>(gumbels()[i]) + logits()[i];
      int at = kept;
      for (; at > 0 && score > first_score(h.considered[at - 1]); --at)
        if (at < h.active) h.considered[at] = h.considered[at - 1];
      if (at < h.active) h.considered[at] = static_cast<u16>(i);
      kept = min(kept + 1, h.active);
    }
    h.phases = 1;
    for (int reach = 2; reach < h.active; reach *= 2) ++h.phases;
    h.rounds = 0;
  }

  SPARRING_FN f64 first_score(int edge) const {
    return static_cast<f64>(gumbels()[edge]) + logits()[edge];
  }

  // Begins a round in which every considered edge is visited once. Between two phases half of them
  // are dropped.
  SPARRING_FN void begin_round() const {
    TreeHead& h = head();
    if (h.started > 0) {
      if (--h.rounds > 0) return;
      sort_considered();
      if (h.active > 1) h.active = max(2, h.active / 2);
    }
    h.rounds = max(1, h.simulations / (h.phases * h.active));
  }

  SPARRING_FN void sort_considered() const {
    TreeHead& h = head();
    const NodeValues values = values_of(0, nullptr);
    for (int i = 1; i < h.active; ++i) {
      const u16 edge = h.considered[i];
      const f64 score = root_score(edge, values);
      int at = i;
      for (; at > 0; --at) {
        const u16 other = h.considered[at - 1];
        const f64 others = root_score(other, values);
        if (others > score || (others == score && other < edge)) break;
        h.considered[at] = other;
      }
      h.considered[at] = edge;
    }
  }

  // Descent

  // An edge of a node and what it links to.
  struct Choice {
    int edge = -1;
    u32 link = 0;
  };

  SPARRING_FN Choice choose(const Node<G>& n, int at, const Legal<G>* legal) const {
    return options().rule == kPuct ? choose_puct(n, at, legal) : choose_improved(n, at, legal);
  }

  // The edge whose share of visits is furthest below its share of the improved policy; -1 if none
  // is legal.
  SPARRING_FN Choice choose_improved(const Node<G>& n, int at, const Legal<G>* legal) const {
    if (n.visits == 0 && !legal) return most_probable(n, at);
    const NodeValues values = values_of(n, at, legal);
    f64 weight[kFewEdges ? kBlock : kInnerEdges], sum = 0;
    u32 visits = 0;
    const f64 unvisited = exp_of(values.sigma * (values.scaled(values.mix)) -
                                 values.sigma * values.scaled(values.best));
    each_edge(at, n.edges, [&](int i, const Edge& edge) {
      weight[i] = -1;
      if (legal && !is_legal(edge, legal)) return;
      weight[i] = edge.visits ? values.weight(edge) : edge.prior * unvisited;
      sum += weight[i];
      visits += edge.visits;
    });
    const f64 per_sum = 1.0 / sum, per_visit = 1.0 / (1.0 + visits);
    Choice best;
    f64 best_score = 0;
    each_edge(at, n.edges, [&](int i, const Edge& edge) {
      if (weight[i] < 0) return;
      const f64 score = weight[i] * per_sum - edge.visits * per_visit;
      if (best.edge >= 0 && score <= best_score) return;
      best = {i, edge.link};
      best_score = score;
    });
    return best;
  }

  SPARRING_FN Choice most_probable(const Node<G>& n, int at) const {
    Choice best;
    f32 most = 0;
    each_edge(at, n.edges, [&](int i, const Edge& edge) {
      if (i > 0 && edge.prior <= most) return;
      best = {i, edge.link};
      most = edge.prior;
    });
    return best;
  }

  SPARRING_FN Choice choose_puct(const Node<G>& n, int at, const Legal<G>* legal) const {
    const NodeValues values = values_of(n, at, legal, true);
    u32 visits = 0;
    each_edge(at, n.edges, [&](int, const Edge& edge) {
      if (!legal || is_legal(edge, legal)) visits += edge.visits;
    });
    const f64 c_puct = options().c_puct, root = square_root(static_cast<f64>(max(visits, 1u)));
    Choice best;
    f64 best_score = 0;
    each_edge(at, n.edges, [&](int i, const Edge& edge) {
      if (legal && !is_legal(edge, legal)) return;
      const f64 q =
          values.scaled(edge.visits ? static_cast<f64>(edge.mean) : static_cast<f64>(n.value));
      const f64 score = q + c_puct * edge.prior * root / (1.0 + edge.visits);
      if (best.edge >= 0 && score <= best_score) return;
      best = {i, edge.link};
      best_score = score;
    });
    return best;
  }

  SPARRING_FN static f64 square_root(f64 x) {
#if defined(__CUDA_ARCH__)
    return __dsqrt_rn(x);
#else
    return __builtin_sqrt(x);
#endif
  }

  // Links an edge to a new node, and returns its number and what is known of it.
  SPARRING_FN int add_child(int parent, Choice at, Node<G>& n) const {
    const int child = head().nodes++;
    edges(parent)[at.edge].link = at.link | static_cast<u32>(child) << kActionBits;
    n = Node<G>{};
    n.parent = parent;
    n.parent_edge = static_cast<u16>(at.edge);
    return child;
  }

  // Plays actions until the next decision: `apply_actions` without bots, whose code would be the
  // largest part of a GPU's kernel. The rules are called in one place, so that they are inlined
  // once.
  SPARRING_FN Result play(Leaf<G>& leaf, u8* leaf_extra, Action* actions, f32* reward) const {
    Env<G>& env = leaf.env;
    Result result = result_into(reward, setting(), env.player);
    for (u32 decisions_left = kMaxUnasked;; --decisions_left) {
      step_rules(env, setting(), head().game, leaf_extra, actions, result);
      if (result.over()) return result;
      const Turn turn = find_turn(env, setting(), leaf_extra, leaf.legal);
      if (turn == Turn::kPolicies) return result;
      if (decisions_left == 0) {
        result.stuck = true;
        return result;
      }
      for (int r = 0; r < G::kRows; ++r) {
        actions[r] = Action{};
        if constexpr (kDiscrete<G>)
          if (turn == Turn::kForced && env.game.seat(r) >= 0) actions[r] = leaf.legal[r].lowest();
      }
    }
  }

  // Plays an edge in the leaf's environment and keeps the rewards in its child `n`. role: of the
  // parent.
  SPARRING_FN Result play_edge(Leaf<G>& leaf, u8* leaf_extra, int parent, Choice at, int role,
                               Node<G>& n) const {
    Action actions[G::kRows]{};
    if constexpr (kJointActions<G>) {
      for (int r = 0; r < G::kRows; ++r) actions[r] = joint_of(parent, at.edge)[r];
    } else {
      actions[head().row] = Edge::action_of(at.link);
    }
    f32 reward[G::kMaxSeats * G::kRoles]{};
    const Result result = play(leaf, leaf_extra, actions, reward);
    const int roles = counts_of<G>(setting().config).roles;
    SPARRING_UNROLL (int seat = 0; seat < G::kMaxSeats; ++seat)
      n.reward[seat] = reward[seat * roles + role];
    return result;
  }

  SPARRING_FN void enter(Node<G>& n, const Env<G>& env) const {
    const int seat = env.game.seat(head().row);
    n.seat = static_cast<i8>(max(seat, 0));
    n.role = static_cast<u8>(seat < 0 ? 0 : env.game.role(head().row));
  }

  // Follows stored positions from a root edge to a leaf.
  SPARRING_FN void descend(Leaf<G>& leaf, u8* leaf_extra, int edge) const {
    if constexpr (kStoresPositions<G>) {
      int at = 0;
      Node<G> n = node(0);
      Choice next{edge, edges(0)[edge].link};
      while (const int child = Edge::child_of(next.link)) {
        at = leaf.node = child;
        n = node(at);
        if (n.status == Status::kTerminated || n.status == Status::kProven) return;
        if (n.status == Status::kTruncated) {
          load(leaf, leaf_extra, at);
          leaf.evaluate = 1;
          return;
        }
        next = choose(n, at, nullptr);
      }
      load(leaf, leaf_extra, at);
      const int role = n.role;
      leaf.node = add_child(at, next, n);
      const Result result = play_edge(leaf, leaf_extra, at, next, role, n);
      n.status = result.terminated                  ? Status::kTerminated
                 : result.truncated || result.stuck ? Status::kTruncated
                                                    : Status::kOpen;
      enter(n, leaf.env);
      node(leaf.node) = n;
      state(leaf.node) = leaf.env.game;
      leaf.evaluate = n.status != Status::kTerminated;
      leaf.expand = n.status == Status::kOpen;
    }
  }

  // What the seat cannot see is drawn anew, so that no simulation knows it.
  SPARRING_FN void resample_hidden(Leaf<G>& leaf) const {
    if constexpr (kResamples<G>) {
      if (!options().resample) return;
      // As State::resample_hidden draws, with a seed of its own.
      Rng draws(~setting().seed, head().game, episode_of(leaf.simulation), Stream::kChance);
      leaf.env.game.resample_hidden(setting().config, mover(leaf), draws);
    }
  }

  // Plays from the root with the chance of this simulation, as far as the tree reaches.
  SPARRING_FN void descend_by_replay(Leaf<G>& leaf, u8* leaf_extra, int edge) const {
    leaf.env = root();
    leaf.env.episode = episode_of(leaf.simulation);
    copy_extra(leaf_extra);
    resample_hidden(leaf);
    Choice next{edge, edges(0)[edge].link};
    for (int at = 0;;) {
      int child = Edge::child_of(next.link);
      if (child == 0) {
        Node<G> fresh;
        child = add_child(at, next, fresh);
        node(child) = fresh;
      }
      Node<G>& n = node(child);
      const Result result = play_edge(leaf, leaf_extra, at, next, node(at).role, n);
      at = leaf.node = child;
      if (result.terminated) return;
      leaf.evaluate = 1;
      if (result.truncated || result.stuck) return;
      if (n.edges == 0) {
        enter(n, leaf.env);
        leaf.expand = 1;
        return;
      }
      if (n.seat != mover(leaf)) return;
      next = choose(n, at, &leaf.legal[head().row]);
      if (next.edge < 0) return;
      leaf.evaluate = 0;
    }
  }

  // Expansion

  SPARRING_FN const f32* head_of(const f32* policy, int head_width, int seat) const {
    return policy + (options().row_count == 1 ? 0 : i64{seat} * head_width);
  }

  SPARRING_FN void expand(const OpenLeaf<G>& leaf, const f32* policy, int head_width) const {
    if constexpr (kDiscrete<G>) {
      const int row = head().row;
      expand_discrete(leaf, head_of(policy, head_width, mover(leaf)), leaf.legal[row]);
      if constexpr (G::kRows > 1) draw_others(leaf, policy, head_width);
    } else {
      expand_box(leaf, policy, head_width);
    }
  }

  SPARRING_FN void expand_discrete(const OpenLeaf<G>& leaf, const f32* logit,
                                   const Legal<G>& legal) const {
    const bool is_root = leaf.node == 0;
    const int limit = is_root ? options().root_width : options().width;
    Edge* const e = edges(leaf.node);
    const Cut cut = cut_at(logit, legal, limit);
    const auto each_kept = [&](auto&& call) {
      int count = 0, ties = cut.ties;
      each_legal(legal, logit, [&](int action, f32 x) {
        if (count == limit || x < cut.lowest || (x == cut.lowest && ties-- <= 0)) return;
        call(count++, action, static_cast<f64>(x) - cut.top);
      });
      return count;
    };
    f64 sum = 0;
    const int count = each_kept([&](int, int, f64 above) { sum += exp_of(above); });
    each_kept([&](int i, int action, f64 above) {
      const f32 prior = max(static_cast<f32>(exp_of(above) / sum), kMinPrior);
      e[i] = {prior, 0, 0, static_cast<u32>(action)};
      if (is_root) logits()[i] = static_cast<f32>(above);
    });
    node(leaf.node).edges = static_cast<u16>(count);
  }

  // Calls `each(action, logit)` for legal actions. A GPU reads a few logits together.
  template <class Each>
  SPARRING_FN static void each_legal(const Legal<G>& legal, const f32* logit, Each&& each) {
    if constexpr (G::kActions <= kFewActions) {
      f32 read[max(G::kActions, 1)];
      SPARRING_UNROLL (int action = 0; action < G::kActions; ++action) read[action] = logit[action];
      SPARRING_UNROLL (int action = 0; action < G::kActions; ++action)
        if (legal.test(action)) each(action, read[action]);
    } else {
      legal.each([&](int action) { each(action, logit[action]); });
    }
  }

  // Which logits are kept: those above `lowest`, and so many that equal it.
  struct Cut {
    f64 top;
    f32 lowest;
    int ties;
  };

  SPARRING_FN static Cut cut_at(const f32* logit, const Legal<G>& legal, int limit) {
    f32 largest[kInnerEdges] = {};
    const bool cuts = limit <= kInnerEdges && legal.count() > limit;
    int kept = 0;
    f32 top = -3.4e38f, lowest = -3.4e38f;
    each_legal(legal, logit, [&](int, f32 x) {
      top = max(top, x);
      if (!cuts || (kept == limit && x <= largest[limit - 1])) return;
      int at = min(kept, limit - 1);
      for (; at > 0 && largest[at - 1] < x; --at) largest[at] = largest[at - 1];
      largest[at] = x;
      kept = min(kept + 1, limit);
    });
    if (!cuts) return {top, lowest, G::kActions};
    lowest = largest[limit - 1];
    int ties = 0;
    for (int i = 0; i < limit; ++i) ties += largest[i] == lowest;
    return {top, lowest, ties};
  }

  // Draws the actions of the other rows for every edge, by their policies.
  SPARRING_FN void draw_others(const OpenLeaf<G>& leaf, const f32* policy, int head_width) const {
    const int own = head().row, at = leaf.node;
    Rng draws = rng(leaf.simulation, 0x40000000u | static_cast<u32>(own) << 20);
    for (int i = 0; i < node(at).edges; ++i) {
      Action* actions = all.joint + (edge_index(at) + i) * G::kRows;
      for (int r = 0; r < G::kRows; ++r) {
        const int seat = leaf.seat[r];
        actions[r] = Action{};
        if (r == own)
          actions[r] = edges(at)[i].action();
        else if (seat >= 0)
          actions[r] = draw_action<G>(head_of(policy, head_width, seat), leaf.legal[r], draws);
      }
    }
  }

  // Edges with sampled actions of all rows; the first holds the means.
  SPARRING_FN void expand_box(const OpenLeaf<G>& leaf, const f32* policy, int head_width) const {
    const int at = leaf.node, count = options().samples;
    Rng draws = rng(leaf.simulation, 0x40000000u | static_cast<u32>(head().row) << 20);
    for (int i = 0; i < count; ++i) {
      edges(at)[i] = {static_cast<f32>(1.0 / count), 0, 0, static_cast<u32>(i)};
      if (at == 0) logits()[i] = 0;
      Action* actions = all.joint + (edge_index(at) + i) * G::kRows;
      for (int r = 0; r < G::kRows; ++r) {
        const int seat = leaf.seat[r];
        actions[r] = Action{};
        if (seat >= 0) draw_box(head_of(policy, head_width, seat), i > 0, draws, actions[r]);
      }
    }
    node(at).edges = static_cast<u16>(count);
  }

  SPARRING_FN void draw_box(const f32* gaussian, bool sampled, Rng& draws, Action& action) const {
    constexpr int kNumbers = static_cast<int>(sizeof(Action) / sizeof(f32));
    f32* const numbers = reinterpret_cast<f32*>(&action);
    for (int i = 0; i < kNumbers; ++i) {
      f64 x = gaussian[i];
      if (sampled) {
        const f32 log_std = min(max(gaussian[kNumbers + i], kMinLogStd), kMaxLogStd);
        x += exp_of(log_std) * draw_normal(draws);
      }
      if (options().squash) x = 1.0 - 2.0 / (exp_of(2.0 * min(max(x, -20.0), 20.0)) + 1.0);
      numbers[i] = x == x ? min(max(static_cast<f32>(x), -1.0f), 1.0f) : 0.0f;
    }
  }

  SPARRING_FN static f64 draw_normal(Rng& draws) {
    const f64 u = (static_cast<f64>(draws.next()) + 1.0) * (1.0 / 4294967296.0);
    const f64 turn = static_cast<f64>(draws.next()) * (1.0 / 4294967296.0);
    const f64 radius = square_root(-2.0 * ln_of(u));
    return radius * sincos_of(static_cast<f32>(turn * 6.283185307179586)).cos;
  }

  // Backup

  // Adds the returns of a simulation to the edges on its way. Without values the simulation has
  // ended where the value is exact.
  SPARRING_FN void back_up(const OpenLeaf<G>& leaf, const f32* value) const {
    f64 returns[G::kMaxSeats] = {};
    if (value && options().row_count > 1) {
      SPARRING_UNROLL (int seat = 0; seat < G::kMaxSeats; ++seat)
        if (seat < seats()) returns[seat] = value[seat];
    } else if (value) {
      give(returns, mover(leaf), value[0]);
    } else if (node(leaf.node).status == Status::kProven) {
      give(returns, node(leaf.node).seat, node(leaf.node).value);
    }
    const bool proves_values = proves();
    int at = leaf.node;
    for (Node<G> n = node(at); at != 0;) {
      Edge& stored = edges(n.parent)[n.parent_edge];
      Node<G> above = node(n.parent);  // a GPU reads node and edge together
      Edge edge = stored;
      f64 gained = 0;  // by the mover above
      SPARRING_UNROLL (int seat = 0; seat < G::kMaxSeats; ++seat) {
        const bool decided = G::kRows > 1 || seat == above.seat;
        returns[seat] =
            n.reward[seat] + (decided ? options().gamma * returns[seat] : returns[seat]);
        if (seat == above.seat) gained = returns[seat];
      }
      const bool exact = proves_values && n.status >= Status::kTerminated;
      const f64 sum = static_cast<f64>(edge.mean) * edge.visits + gained;
      ++edge.visits;
      edge.mean = static_cast<f32>(exact ? gained : sum / edge.visits);
      stored = edge;
      node(n.parent).visits = ++above.visits;
      at = n.parent;
      n = above;
      if (exact && at != 0 && prove(at)) {
        n = node(at);
        give(returns, n.seat, n.value);
      }
    }
    ++head().settled;
  }

  // What one of two seats gains, the other loses; a single seat gains alone.
  SPARRING_FN void give(f64* returns, int to, f64 value) const {
    SPARRING_UNROLL (int seat = 0; seat < G::kMaxSeats; ++seat)
      returns[seat] = seat == to ? value : -value;
  }

  // Proves a node if an edge wins or the values of all are exact; returns whether it did.
  SPARRING_FN bool prove(int at) const {
    Node<G>& n = node(at);
    const bool may_lack_actions = options().width < options().root_width;
    bool known = !may_lack_actions || n.edges < options().width;
    f32 best = -3.4e38f;
    each_edge(at, n.edges, [&](int, const Edge& edge) {
      // Read in any case, the root's in place of none: a GPU does not wait for each.
      const Status status = node(edge.child()).status;
      if (edge.child() != 0 && status >= Status::kTerminated)
        best = max(best, edge.mean);
      else
        known = false;
    });
    if (best <= 0 && !known) return false;
    n.status = Status::kProven;
    n.value = best;
    return true;
  }

  // 1: proven to win; -1: proven to lose.
  SPARRING_FN int proof_of(const Edge& edge) const {
    return !is_proven(edge) ? 0 : (edge.mean > 0) - (edge.mean < 0);
  }
};

}  // namespace sparring
