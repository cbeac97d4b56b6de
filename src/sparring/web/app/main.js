// The pages under `sparring serve`.

import { startFrame } from "/app/frame.js";
import { comparePage } from "/app/pages/compare.js";
import { leaguePage } from "/app/pages/league.js";
import { playPage } from "/app/pages/play.js";
import { replayPage, replaysPage } from "/app/pages/replay.js";
import { runPage } from "/app/pages/run.js";
import { runsPage } from "/app/pages/runs.js";

// The token has become a cookie; it is to stand neither in the address nor in the history.
if (location.search) history.replaceState(history.state, "", location.pathname + location.hash);

const PAGES = {
  runs: { show: (host, at) => (at.path.length ? runPage : runsPage)(host, at), nav: "runs" },
  compare: { show: comparePage, nav: "runs" },
  league: { show: leaguePage, nav: "runs" },
  play: { show: playPage, nav: "play" },
  replay: { show: replayPage, nav: "replays" },
  replays: { show: replaysPage, nav: "replays" },
};

startFrame(PAGES, "runs");
