// Searches of many trees to Python; see search/search.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bind/bound_state.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

// A search as Python holds it: it takes an evaluation only for the rows that it has selected.
class BoundSearch {
 public:
  BoundSearch(const Rules& rules, std::unique_ptr<AnySearch> search, i64 trees, int simulations)
      : rules_(rules), trees_(trees), simulations_(simulations), search_(std::move(search)) {}

  AnySearch& operator*() const { return *search_; }
  AnySearch* operator->() const { return search_.get(); }

  void begin_pool(const BoundPool& pool, In<i64> rows, In<i32> simulations) {
    constexpr Call call("Search.begin_pool");
    check_same(call, pool.rules, rules_);
    AnyPool& games = pool.started(call);
    const i64 count = call.between(call.size(rows, "rows"), "the number of rows", 1, trees_);
    const i64* row = call.take(rows, "rows", count);
    const i32* wanted = call.take(simulations, "simulations", count);
    const AnyPoolState& state = games.state();
    const StateBytes bytes = state.bytes();
    std::vector<SearchRoot> roots;
    for (i64 i = 0; i < count; ++i) {
      call.index(row[i], "row", pool.rows());
      call.between(wanted[i], "simulations", 0, simulations_);
      call.demand(games.seat[row[i]] >= 0, "no seat is to act in a row");
      const i64 game = row[i] / games.rows();
      roots.push_back({.setting = bytes.setting,
                       .env = bytes.envs + game * bytes.env_bytes,
                       .extra = state.extra.data() + game * state.extra_bytes(),
                       .game = games.options().first_game + static_cast<u32>(game),
                       .row = static_cast<int>(row[i] % games.rows()),
                       .simulations = wanted[i]});
    }
    begin(roots, false);
  }

  void begin_state(const BoundState& state, int row, int simulations, bool keep) {
    constexpr Call call("Search.begin_state");
    check_same(call, state.rules(), rules_);
    state.row(call, row);
    call.between(simulations, "simulations", 0, simulations_);
    call.demand(state->seat(row) >= 0, "no seat is to act");
    const std::vector<u8> extra = state->extra();
    begin({root_of(state, extra, row, simulations)}, keep);
  }

  // worlds: states that look alike to the seat that decides.
  void begin_worlds(const std::vector<const BoundState*>& worlds, int row, In<f64> weights) {
    constexpr Call call("Search.begin_worlds");
    const i64 count = call.between(static_cast<i64>(worlds.size()), "worlds", 1, simulations_);
    const f64* weight = call.take(weights, "weights", count);
    std::vector<std::vector<u8>> extra;
    std::vector<SearchRoot> roots;
    for (const BoundState* world : worlds) {
      call.demand(world != nullptr, "None is no world");
      check_same(call, world->rules(), rules_);
      world->row(call, row);
      call.demand((*world)->seat(row) >= 0 && (*world)->seat(row) == (*worlds[0])->seat(row),
                  "another seat decides in a world, or none");
      call.demand((*world)->legal(row) == (*worlds[0])->legal(row),
                  "other actions are legal in a world");
      extra.push_back((*world)->extra());
    }
    for (size_t i = 0; i < worlds.size(); ++i) {
      call.demand(weight[i] > 0, "a weight must be above 0");
      roots.push_back(root_of(*worlds[i], extra[i], row, simulations_));
    }
    selected_ = 0;
    evaluated_ = false;
    search_->begin_worlds(roots, {weight, weight + count});
  }

  void believe(In<f32> weights) {
    constexpr Call call("Search.believe");
    const int each = belief_size(rules_);
    call.demand(each > 0, "the game takes no belief");
    search_->believe(call.take(weights, "weights", search_->roots * each));
  }

  void set_step(f32 eta, f32 alpha) {
    Call("Search.set_step").demand(eta >= 0 && alpha >= 0, "eta and alpha are at least 0");
    search_->set_step(eta, alpha);
  }

  i64 select() {
    constexpr Call call("Search.select");
    call.demand(search_->roots > 0, "no search has begun");
    call.demand(selected_ == 0, "selected rows were not evaluated; call expand first");
    nb::gil_scoped_release released;
    return selected_ = search_->select();
  }

  void expand(In<f32> policy, In<f32> value) {
    constexpr Call call("Search.expand");
    const f32* head = call.take(policy, "policy", selected_ * search_->head_width);
    const f32* values = call.take(value, "value", selected_);
    nb::gil_scoped_release released;
    search_->expand(head, values);
    selected_ = 0;
    evaluated_ = true;
  }

  void results(Out<f32> policy, Out<i32> visits, Out<f32> q, Out<f32> value, Out<i32> chosen,
               Out<f32> numbers) const {
    constexpr Call call("Search.results");
    check_evaluated(call);
    const i64 roots = search_->roots, all = roots * search_->choices;
    search_->results(call.take(policy, "policy", all), call.take(visits, "visits", all),
                     call.take(q, "q", all), call.take(value, "value", roots),
                     call.take(chosen, "chosen", roots),
                     call.take(numbers, "numbers", all * rules_.game->box()));
  }

  void check_evaluated(const Call& call) const {
    call.demand(selected_ == 0 && evaluated_, "no search has begun, or it waits for an evaluation");
  }
  i64 tree(const Call& call, i64 tree) const { return call.index(tree, "tree", search_->roots); }

 private:
  static SearchRoot root_of(const BoundState& state, const std::vector<u8>& extra, int row,
                            int simulations) {
    return {.setting = state->setting(),
            .env = state->env(),
            .extra = extra.data(),
            .game = state->number(),
            .row = row,
            .simulations = simulations};
  }

  void begin(const std::vector<SearchRoot>& roots, bool keep) {
    const bool settled = selected_ == 0 && evaluated_;
    selected_ = 0;
    evaluated_ = false;
    search_->begin(roots, keep && settled);
  }

  Rules rules_;
  i64 trees_;
  int simulations_;
  std::unique_ptr<AnySearch> search_;
  i64 selected_ = 0;
  bool evaluated_ = false;  // the roots
};

SearchOptions options_of(const Call& call, int rule, i64 nodes, int considered, int width,
                         int samples, f32 c_visit, f32 c_scale, f32 c_puct, f32 gamma, bool rescale,
                         bool prove, bool noise, bool squash) {
  SearchOptions options;
  options.rule = call.index(rule, "rule", 2);
  options.nodes = call.between(nodes, "nodes", 2, kMaxNodes);
  options.considered = call.between(considered, "considered", 1, kMaxConsidered);
  options.width = call.between(width, "width", 2, kMaxWidth);
  options.samples = call.between(samples, "samples", 2, kMaxWidth);
  options.c_visit = c_visit;
  options.c_scale = c_scale;
  options.c_puct = c_puct;
  options.gamma = gamma;
  options.rescale = rescale;
  options.prove = prove;
  options.noise = noise;
  options.squash = squash;
  return options;
}

std::unique_ptr<BoundSearch> make_search(const Rules& rules, i64 trees, u64 seed, int threads,
                                         bool open_cards, int rule, i64 nodes, int considered,
                                         int width, int samples, f32 c_visit, f32 c_scale,
                                         f32 c_puct, f32 gamma, bool rescale, bool prove,
                                         bool noise, bool squash) {
  constexpr Call call("make_search");
  call.between(trees, "trees", 1, i64{1} << 24);
  call.between(threads, "threads", 1, kMaxThreads);
  const bool hides = rules.game->hides() && !open_cards;
  call.demand(!hides || rules.shape().seats == 1,
              "the game hides cards, which a search of its state would see");
  SearchOptions options = options_of(call, rule, nodes, considered, width, samples, c_visit,
                                     c_scale, c_puct, gamma, rescale, prove, noise, squash);
  options.resample = hides;
  auto search = rules.game->make_search(rules.config.data(), options, trees, seed, threads);
  return std::make_unique<BoundSearch>(rules, std::move(search), trees, options.nodes - 1);
}

WorldsOptions worlds_options(const Call& call, i64 playouts, int considered, int least,
                             int horizon) {
  WorldsOptions options;
  options.playouts = call.between(playouts, "playouts", 1, kMaxNodes);
  options.considered = call.between(considered, "considered", 2, kMaxConsidered);
  options.least = call.between(least, "least", 1, kMaxNodes);
  options.horizon = call.between(horizon, "horizon", 0, 1 << 20);
  return options;
}

std::unique_ptr<BoundSearch> make_worlds(const Rules& rules, i64 roots, u64 seed, int threads,
                                         i64 playouts, int considered, int least, int horizon,
                                         f32 eta, f32 alpha, f32 caution, f32 gamma,
                                         const std::vector<f32>& gamma_into, bool noise) {
  constexpr Call call("make_worlds");
  call.between(roots, "roots", 1, i64{1} << 24);
  call.between(threads, "threads", 1, kMaxThreads);
  WorldsOptions options = worlds_options(call, playouts, considered, least, horizon);
  const size_t roles = static_cast<size_t>(rules.game->roles());
  call.demand(gamma_into.empty() || (gamma_into.size() == roles && roles <= size_t{kMaxRoles}),
              "gamma_into needs one discount for each role");
  call.demand(eta >= 0 && alpha >= 0 && caution >= 0, "eta, alpha and caution are at least 0");
  options.eta = eta;
  options.alpha = alpha;
  options.caution = caution;
  options.gamma = gamma;
  for (size_t role = 0; role < size_t{kMaxRoles}; ++role)
    options.into[role] = role < gamma_into.size() ? gamma_into[role] : gamma;
  options.noise = noise;
  auto search = rules.game->make_worlds(rules.config.data(), options, roots, seed, threads);
  call.demand(search != nullptr, "the game hides nothing, or its actions are continuous");
  return std::make_unique<BoundSearch>(rules, std::move(search), roots, options.playouts);
}

}  // namespace

void bind_search(nb::module_& m) {
  nb::class_<BoundSearch>(m, "Search", "Trees that are searched together.")
      .def("begin_pool", &BoundSearch::begin_pool, "pool"_a, "rows"_a, "simulations"_a)
      .def("begin_state", &BoundSearch::begin_state, "state"_a, "row"_a, "simulations"_a,
           "keep"_a = false)
      .def("begin_worlds", &BoundSearch::begin_worlds, "worlds"_a, "row"_a, "weights"_a)
      .def("believe", &BoundSearch::believe, "weights"_a)
      .def("set_step", &BoundSearch::set_step, "eta"_a, "alpha"_a)
      .def("select", &BoundSearch::select, "Select leaves; return the number of rows to evaluate.")
      .def("expand", &BoundSearch::expand, "policy"_a, "value"_a)
      .def("results", &BoundSearch::results, "policy"_a, "visits"_a, "q"_a, "value"_a, "chosen"_a,
           "numbers"_a)
      .def("line",
           [](const BoundSearch& s, i64 tree) {
             s.check_evaluated(Call("Search.line"));
             return s->line(s.tree(Call("Search.line"), tree));
           })
      .def(
          "edges",
          [](const BoundSearch& s, i64 tree, int node) {
            constexpr Call call("Search.edges");
            s.tree(call, tree);
            call.index(node, "node", s->nodes(tree));
            std::vector<std::tuple<int, f32, u32, f32, int>> found;
            for (const EdgeReport& e : s->edges(tree, node))
              found.emplace_back(e.action, e.prior, e.visits, e.q, e.child);
            return found;
          },
          "Action, prior, visits, mean return and child of a node's edges.")
      .def("nodes", [](const BoundSearch& s,
                       i64 tree) { return s->nodes(s.tree(Call("Search.nodes"), tree)); })
      .def("simulations",
           [](const BoundSearch& s, i64 tree) {
             return s->settled(s.tree(Call("Search.simulations"), tree));
           })
      .def_prop_ro("choices", [](const BoundSearch& s) { return s->choices; })
      .def_prop_ro("head_width", [](const BoundSearch& s) { return s->head_width; })
      .def_prop_ro("obs", [](nb::handle_t<BoundSearch> h) {
        if (!nb::inst_ready(h))
          throw nb::type_error("Search: the object was never made; call make_search");
        AnySearch& s = **nb::inst_ptr<BoundSearch>(h);  // writable, as torch wants its rows
        return nb::ndarray<nb::numpy, u8>(
            s.obs.data(), {static_cast<size_t>(s.max_rows), static_cast<size_t>(s.row_bytes)}, h);
      });
  m.def("make_search", &make_search, "rules"_a, "trees"_a, "seed"_a = 0, "threads"_a = 1,
        "open_cards"_a = false, "rule"_a = 0, "nodes"_a = 65, "considered"_a = 16, "width"_a = 32,
        "samples"_a = 16, "c_visit"_a = 50.0f, "c_scale"_a = 1.0f, "c_puct"_a = 1.25f,
        "gamma"_a = 1.0f, "rescale"_a = false, "prove"_a = true, "noise"_a = false,
        "squash"_a = false);
  m.def(
      "search_bytes",
      [](const Rules& rules, i64 nodes, int width, int samples) {
        SearchOptions options;
        options.nodes = Call("search_bytes").between(nodes, "nodes", 2, kMaxNodes);
        options.width = width;
        options.samples = samples;
        return rules.game->search_bytes(rules.config.data(), options);
      },
      "rules"_a, "nodes"_a, "width"_a = 32, "samples"_a = 16, "Bytes of a tree.");
  m.def("make_worlds", &make_worlds, "rules"_a, "roots"_a, "seed"_a = 0, "threads"_a = 1,
        "playouts"_a = 64, "considered"_a = 16, "least"_a = 1, "horizon"_a = 0, "eta"_a = 1.0f,
        "alpha"_a = 0.0f, "caution"_a = 0.0f, "gamma"_a = 1.0f, "gamma_into"_a = std::vector<f32>{},
        "noise"_a = false);
  m.def(
      "worlds_bytes",
      [](const Rules& rules, i64 playouts, i64 roots) {
        constexpr Call call("worlds_bytes");
        call.between(roots, "roots", 1, i64{1} << 24);
        return rules.game->worlds_bytes(rules.config.data(),
                                        worlds_options(call, playouts, 2, 1, 0), roots);
      },
      "rules"_a, "playouts"_a, "roots"_a, "Bytes of one of so many roots.");
}

}  // namespace sparring
