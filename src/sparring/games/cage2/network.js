// CAGE-2's network as a page needs it: names, what blue may know of a position, and what is true.
// Hosts, ports and decoys have the numbers of csrc/games/cage2/network.hpp.

export const HOSTS = [
  "Defender",
  "Enterprise0",
  "Enterprise1",
  "Enterprise2",
  "Op_Host0",
  "Op_Host1",
  "Op_Host2",
  "Op_Server0",
  "User0",
  "User1",
  "User2",
  "User3",
  "User4",
];
export const USER0 = 8;
export const OP_SERVER = 7;
// As the map has them: who leads to whom stands near each other.
export const SUBNETS = [
  { name: "User", hosts: [8, 9, 10, 11, 12] },
  { name: "Enterprise", hosts: [2, 1, 3, 0] },
  { name: "Operational", hosts: [4, 5, 6, 7] },
];
// Where a host that red has taken leads it: [from, to].
export const WAYS = [
  [9, 2],
  [10, 2],
  [11, 1],
  [12, 1],
  [3, 7],
];
const RED_SUBNETS = ["User", "Enterprise", "Operational"];
const PORTS = [21, 25, 3390, 443, 80, 139, 3389, 22];
const SERVICES = ["FTP", "SMTP", "SQL", "HTTPS", "HTTP", "SMB", "RDP", "SSH"];
const EXPLOITS = [
  "FTP traversal",
  "Haraka RCE",
  "SQL injection",
  "HTTPS RFI",
  "HTTP RFI",
  "EternalBlue",
  "BlueKeep",
  "SSH brute force",
];
const GENUINE = [0x80, 0x80, 0xf8, 0xf8, 0x80, 0x80, 0x80, 0x80, 0x81, 0x81, 0x60, 0x5a, 0x9e];
const WINDOWS = 0x070c;
const COSTS = [0.1, 1, 1, 1, 0.1, 0.1, 0.1, 1, 0, 0.1, 0.1, 0.1, 0.1];
// Vsftpd looks at a port that is always free and opens 80: a slip of the simulator.
export const DECOYS = {
  Apache: { port: 4 },
  Femitter: { port: 0, system: "Windows" },
  HarakaSMPT: { port: 1, system: "Linux" },
  Smss: { port: 5, system: "Windows" },
  SSHD: { port: 7 },
  Svchost: { port: 6, system: "Windows" },
  Tomcat: { port: 3 },
  Vsftpd: { port: 4, system: "Linux" },
};
const ACTIVITIES = ["none", "scan", "none", "exploit"];
const LABELS = ["no", "unknown", "user", "privileged"];
const REDS = ["B_line", "Meander", "a red that sleeps"];
const RED_ACTIONS = ["sleep", "sweep", "scan", "exploit", "escalate", "impact"];
const NONE = 0xff;

export function systemOf(host) {
  return (WINDOWS >> host) & 1 ? "Windows" : "Linux";
}

export function servicesOf(host) {
  return named(GENUINE[host]);
}

export function costOf(host) {
  return COSTS[host];
}

// A set of ports as ["HTTP 80", ...].
function named(mask) {
  const found = PORTS.map((port, bit) => ((mask >> bit) & 1 ? `${SERVICES[bit]} ${port}` : null));
  return found.filter(Boolean);
}

// What blue sees and did itself; nothing in here is hidden from it.
export function readSeen(state) {
  const fields = state.fields();
  const seen = fields.seen[0];
  return {
    step: fields.steps[0],
    total: fields.total_tenths[0] / 10,
    hosts: HOSTS.map((_, host) => {
      const bits = Number((seen >> BigInt(4 * host)) & 15n);
      return {
        activity: ACTIVITIES[bits & 3],
        label: LABELS[bits >> 2],
        decoyMask: fields.decoy_ports[host],
        decoys: named(fields.decoy_ports[host]),
      };
    }),
  };
}

// What only onlookers may know, and blue when all is over.
export function readTruth(state) {
  const fields = state.fields();
  const user = fields.removable[0] | fields.stuck[0];
  const flags = fields.flags[0];
  return {
    red: REDS[fields.red[0]],
    levels: HOSTS.map((_, host) =>
      (fields.privileged[0] >> host) & 1 ? "privileged" : (user >> host) & 1 ? "user" : "none",
    ),
    malware: HOSTS.map((_, host) => Boolean((fields.malware[0] >> host) & 1)),
    service: flags & 1 ? (flags & 2 ? "running" : "running, out of red's reach") : "stopped",
    move: readRedMove(fields),
  };
}

function readRedMove(fields) {
  const action = RED_ACTIONS[fields.red_action[0]];
  const at = fields.red_target[0];
  const target = at === NONE ? "" : action === "sweep" ? RED_SUBNETS[at] : HOSTS[at];
  const succeeded = Boolean(fields.flags[0] & 32);
  const exploit = fields.red_port[0] === NONE ? "" : ` with ${EXPLOITS[fields.red_port[0]]}`;
  const quiet = fields.red_noticed[0] === 0 ? ", unnoticed" : "";
  const words =
    action === "sleep"
      ? "sleeps"
      : `${action} ${target}${exploit}${quiet}: ${succeeded ? "succeeded" : "failed"}`;
  return { host: action === "sweep" || at === NONE ? null : at, succeeded, words };
}

// "Restore User1" as { family, host }; Sleep and Monitor have no host.
export function splitAction(name) {
  const [family, host] = name.split(" ");
  return { name, family, host: host ? HOSTS.indexOf(host) : -1 };
}

// Whether a decoy would open something on a host, as far as its owner knows; why not otherwise.
export function whyNoDecoy(family, host, mask) {
  const decoy = DECOYS[family.replace("Decoy", "")];
  if (!decoy) return null; // the next of a list
  if (decoy.system && decoy.system !== systemOf(host)) return `needs ${decoy.system}`;
  if (((GENUINE[host] | mask) >> decoy.port) & 1) return `port ${PORTS[decoy.port]} is in use`;
  return null;
}

export function decoyWords(family) {
  const decoy = DECOYS[family.replace("Decoy", "")];
  return decoy ? `${SERVICES[decoy.port]} ${PORTS[decoy.port]}` : "the next of its list";
}
