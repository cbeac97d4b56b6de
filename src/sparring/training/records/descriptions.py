"""What every metric of a run means: for the reference, and for who shows curves."""

from __future__ import annotations

from fnmatch import fnmatchcase

METRICS: dict[str, dict[str, str]] = {
    "charts": {
        "SPS": "Decisions of the learner per second, in this update.",
        "samples_per_s": "Samples trained per second; one decision may be trained on many times.",
        "decisions": "Decisions of the learner since the run began: what budgets and schedules "
        "count.",
        "episodes": "Games finished since the run began.",
        "games": "Games finished in this update.",
        "score": "Mean final score of the learner's seats in these games; the return in a custom "
        "environment. In self-play of a zero-sum game it says nothing: one seat wins what "
        "another loses.",
        "length": "Mean length of these games in decisions, those of bots and forced ones "
        "included.",
        "forced": "Decisions with one legal action that were played without the network "
        "(skip_forced).",
        "opponent_rows": "Decisions of frozen opponents since the run began.",
        "cpu_share": "Processor time per second: cores at work.",
        "gpu_busy": "Share of the time in which the GPU computes; low: the rest waits for the CPU.",
        "machine_share": "Share of what this machine can do that the run reaches.",
        "simulations_per_s": "Simulations of searches per second.",
        "phase": "Number of the curriculum's phase, from 1.",
    },
    "eval": {
        "strength": "What the best checkpoint is chosen by: the mean win share over the opponents, "
        "or the score with one seat.",
        "score": "Mean score over the opponents.",
        "score_per_hour": "Gain of eval/score per hour since the first evaluation, where a game is "
        "not zero-sum.",
        "games": "Games that an evaluation in a custom environment played in time.",
        "exploitability": "Mean gain of a best response over the seats (NashConv per seat), exact, "
        "in games with a small tree. 0: an equilibrium.",
        "*/win": "Win share against this opponent; ties count by share. `previous best` is the "
        "best checkpoint so far.",
        "*/low": "Lower end of the 95 % interval of the win share.",
        "*/high": "Upper end of the 95 % interval of the win share.",
        "*/score": "Mean score against this opponent; `alone` with one seat.",
    },
    "losses": {
        "policy_loss": "Loss of the policy: PPO's clipped objective; Gumbel's cross-entropy with "
        "the improved policy, at best target_entropy; for SAC and TD3 what the actor minimizes.",
        "value_loss": "Squared error of values, in units of learning/value_scale.",
        "entropy": "Entropy of the policy in nats. It falls as the policy decides; near 0 early, "
        "the policy has stopped exploring.",
        "approx_kl": "Approximate KL divergence of the new policy from the one that played. Above "
        "ppo.target_kl the update ends early.",
        "clipfrac": "Share of samples whose probability ratio is clipped. 0.1 to 0.3 is usual; "
        "higher: lower ppo.lr or ppo.epochs.",
        "explained_variance": "Share of the variance of returns that values explain. 1: all; 0 or "
        "less: values say nothing.",
        "grad_norm": "Norm of the gradient before it is clipped.",
        "critic_loss": "Loss of the critics (SAC, TD3), or of the critic that sees what is hidden.",
        "q_loss": "Loss of DQN's values of actions.",
        "q": "Mean value of the actions that were played (DQN from rollouts).",
        "quantile_loss": "Quantile Huber loss of QR-DQN.",
        "td_error": "Mean absolute error of values against their targets.",
        "target_entropy": "Entropy of the policies that the search improved.",
        "search_changed": "Share of full searches whose best action is not the policy's.",
        "magnet_kl": "KL divergence of the policy from the magnet.",
        "reference_kl": "KL divergence of the policy from the clone that it started from.",
        "hindsight": "Cross-entropy of the relabeled actions.",
        "wdl": "Cross-entropy of win, draw and loss.",
        "score": "Squared error of the final score.",
        "hidden": "Cross-entropy of what is hidden, mean over items.",
        "hidden_accuracy": "Share of hidden items predicted correctly.",
        "opponents": "Cross-entropy of the others' next actions.",
        "opponents_accuracy": "Share of the others' next actions predicted correctly.",
        "imitation_policy": "Imitation: negative log-likelihood of the demonstrated actions.",
        "imitation_value": "Imitation: squared error of values.",
    },
    "learning": {
        "lr": "Learning rate.",
        "critic_lr": "Learning rate of the critics.",
        "gamma": "Discount per decision.",
        "entropy_weight": "Weight of the entropy bonus.",
        "epsilon": "Share of random actions (DQN, QR-DQN).",
        "noise": "Standard deviation of the noise on actions (TD3).",
        "temperature": "Temperature: weight of the entropy (SAC).",
        "simulations": "Simulations of a full search.",
        "full_searches": "Samples with a full search, which have a policy target.",
        "simulated": "Simulations of this update's searches.",
        "evaluations": "Positions that the network evaluated for searches.",
        "value_scale": "Unit of values: what one output of the value head stands for.",
        "optimizer_steps": "Optimizer steps in this update.",
        "samples": "Samples of this update.",
        "decisions": "Decisions of the learner in this update.",
        "native": "1: the update runs in native code; 0: in torch.",
        "replay_ratio": "Samples trained per decision.",
        "steps_per_decision": "Optimizer steps per decision.",
        "replay_fill": "Share of the replay buffer that is full.",
        "replay_age": "Mean age of the samples, in decisions.",
        "examples": "Relabeled examples of this update (hindsight).",
        "left_out": "Samples beyond the room of the update's graph on a GPU.",
        "cuts_dropped": "Truncated games on a GPU that could not be learned from.",
    },
    "phases": {
        "stepping": "Share of the time: games are stepped, observations written.",
        "inference": "Share of the time: the network chooses actions.",
        "select": "Share of the time: searches choose leaves and step them.",
        "evaluate": "Share of the time: the network evaluates leaves.",
        "settle": "Share of the time: trees take what the network says.",
        "transfer": "Share of the time: rows are copied to and from the network's device.",
        "advantage": "Share of the time: returns and advantages.",
        "replay": "Share of the time: the replay buffer takes decisions.",
        "sampling": "Share of the time: samples are drawn from the replay buffer.",
        "update": "Share of the time: losses, gradients, optimizer.",
        "rollout": "Share of the time: the whole rollout, where it is one graph on a GPU.",
        "other": "Share of the time: everything else.",
    },
    "distributed": {
        "lag_mean": "Mean age of the rollouts' weights, in updates.",
        "lag_max": "Greatest age of the rollouts' weights, in updates.",
        "actor_idle": "Share of the time in which actors wait for the learner.",
        "learner_idle": "Share of the time in which the learner waits for actors.",
        "rollouts": "Rollouts in this update.",
        "queued": "Finished rollouts that wait.",
        "restarts": "Actors that were started again since the run began.",
        "lost": "Rollouts that were lost with an actor.",
        "unfinished": "Games longer than collect.steps, with distributed.whole_episodes.",
        "rho_mean": "V-trace: mean importance weight of late decisions.",
        "rho_clipped": "V-trace: share of importance weights that are clipped.",
    },
    "league": {
        "snapshots": "Past selves that are kept.",
        "past": "Share of the points against past selves since the last snapshot.",
    },
    "curriculum": {
        "reward/*": "Weight of a part of the reward.",
        "flag/*": "A flag of the game; of a list, each number.",
        "opponents/*": "Share of the games with these opponents.",
    },
    "imitation": {
        "accuracy": "Share of held-out decisions whose action is the most probable one.",
        "error": "Mean absolute error of continuous actions in held-out decisions.",
        "cross_entropy": "Negative log-likelihood of the actions of held-out decisions.",
        "explained_variance": "Share of the variance of held-out returns that values explain.",
    },
    "stats": {
        "*": "Statistic of the game, such as kept bids; the page of the game describes it.",
    },
}
"""Descriptions by group and name; `*` stands for any part of a name."""
GROUPS = {
    "charts": "Progress and speed.",
    "eval": "Strength: matches beside training, at the update whose policy was evaluated.",
    "losses": "Losses, means over the optimizer steps of the update.",
    "learning": "Settings as they are now, and counts of the update.",
    "phases": "Where the time of an update goes; the shares add up to 1.",
    "distributed": "With actors or replicas.",
    "league": "With a league.",
    "curriculum": "With phases: what they change.",
    "imitation": "Imitation before self-play, at update numbers below 0.",
    "stats": "Statistics of play, with the games that have some.",
}
"""What the metrics of a group have in common."""


def describe(name: str) -> str:
    """Return what a metric means, "" for one that a callback or a custom loss has named.

    A learner with a network per role adds the role: losses/entropy/manager.
    """
    group, _, rest = name.partition("/")
    known = METRICS.get(group, {})
    for one in (rest, rest.rpartition("/")[0]):
        if found := known.get(one):
            return found
    return next((text for shape, text in known.items() if fnmatchcase(rest, shape)), "")
