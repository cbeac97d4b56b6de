// Laser hockey with discrete actions in a browser: the same rink, one push at a time.

import { rinkPage } from "/games/laser_hockey/page.js";

const RULES = [
  "In every step of 0.02 s a player does one thing: push along one axis, turn, or shoot. Keys that are held together take turns.",
];

export const page = rinkPage(RULES, (session) => {
  const [fineness] = [session.rules.settings.fineness].flat();
  const owed = session.players.map(() => [0, 0, 0]);
  return (wish, seat) => discreteAction(wish, fineness - 1, owed[seat]);
});

// Requested x, y and torque accumulate; the largest is acted on next, with the nearest available
// strength.
function discreteAction({ x, y, torque, shoot }, levels, owed) {
  if (shoot) return 1 + 6 * levels;
  [x, y, torque].forEach((wanted, axis) => {
    owed[axis] = wanted === 0 ? 0 : Math.max(-2, Math.min(2, owed[axis] + wanted));
  });
  const sizes = owed.map(Math.abs);
  const axis = sizes.indexOf(Math.max(...sizes));
  const level = Math.min(levels, Math.round(sizes[axis] * levels));
  if (level === 0) return 0;
  const sign = Math.sign(owed[axis]);
  owed[axis] -= (sign * level) / levels;
  return (2 * axis + (sign > 0 ? 1 : 0)) * levels + level;
}
