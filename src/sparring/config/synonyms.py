"""Names that Stable-Baselines3, CleanRL, PufferLib and RLlib have for our settings."""

from __future__ import annotations

from collections.abc import Collection

from sparring.config.renamed import renamed
from sparring.errors import closest

ANY_ALGO = "ALGO"
"""Placeholder for the algorithm's section: ALGO.lr is ppo.lr, dqn.lr and so on."""
DEFAULT_ALGO = "ppo"
"""The algorithm, if the settings name none."""
GAME = "game"
"""Not a setting: the game is the first argument."""

SYNONYMS: dict[str, str] = {
    "ALGO.lr": "lr learning_rate learning_rates adam_lr optimizer_lr policy_lr actor_lr",
    "sac.critic_lr": "critic_lr q_lr critic_learning_rate",
    "sac.policy_every": "policy_delay policy_frequency policy_freq policy_update_delay",
    "redq.critics": "num_q num_critics n_critics",
    "redq.target_critics": "num_min",
    "qrdqn.quantiles": "n_quantiles num_quantiles num_atoms n_atoms",
    "qrdqn.huber": "kappa",
    "td3.noise": "action_noise exploration_noise expl_noise act_noise",
    "td3.target_noise": "target_policy_noise policy_noise",
    "td3.target_clip": "target_noise_clip noise_clip",
    "ALGO.gamma": "gamma discount discount_factor",
    "ALGO.max_grad_norm": "max_grad_norm grad_clip clip_grad max_gradient_norm",
    "ALGO.tau": "tau polyak polyak_tau",
    "ppo.gae_lambda": "gae_lambda lambda lambda_ gae",
    "ppo.clip": "clip_range clip_coef clip_param clip_eps clip_epsilon clip cliprange",
    "ppo.value_clip": "clip_range_vf vf_clip_coef vf_clip_param clip_vloss",
    "ppo.value_weight": "vf_coef vf_loss_coeff value_coef value_loss_coef vf_loss_coef",
    "ppo.entropy": "ent_coef entropy_coef entropy_coeff entropy_weight ent_weight entropy",
    "ppo.magnet": "kl_coef kl_coeff kl_penalty magnet_coef magnet_weight",
    "ppo.epochs": "n_epochs update_epochs num_epochs num_sgd_iter ppo_epochs epochs",
    "ppo.target_kl": "target_kl kl_target",
    "ppo.minibatch": "batch_size minibatch_size sgd_minibatch_size mini_batch_size minibatch "
    "train_batch_size num_minibatches n_minibatches",
    "replay.capacity": "buffer_size replay_size memory_size replay_capacity capacity",
    "replay.warmup": "learning_starts warmup_steps start_steps num_steps_sampled_before_learning",
    "replay.ratio": "gradient_steps train_freq train_frequency utd replay_ratio training_intensity",
    "replay.n_step": "n_step",
    "dqn.epsilon": "exploration_fraction exploration_final_eps exploration_initial_eps start_e "
    "end_e epsilon eps exploration_rate",
    "dqn.target_every": "target_update_interval target_network_frequency target_update "
    "target_network_update_freq",
    "sac.temperature": "alpha autotune ent_coef_init",
    "collect.steps": "n_steps num_steps rollout_steps rollout_length rollout_fragment_length "
    "horizon bptt_horizon unroll_length steps_per_env steps",
    "collect.games": "n_envs num_envs num_env envs num_environments nenvs total_agents "
    "env_batch_size num_envs_per_worker num_envs_per_env_runner games num_games",
    "net.hidden": "hidden_size hidden_sizes hidden_dim hidden_layers net_arch fcnet_hiddens hidden "
    "layers",
    "net.activation": "activation_fn fcnet_activation activation",
    "net.kind": "policy policy_name network model",
    "net.normalize": "normalize normalize_obs norm_obs obs_norm",
    "decisions": "total_timesteps timesteps n_timesteps total_steps max_timesteps max_steps "
    "num_timesteps total_env_steps env_steps num_env_steps",
    "updates": "iterations num_iterations n_iterations num_updates total_updates "
    "training_iteration",
    "episodes": "n_episodes num_episodes total_episodes max_episodes",
    "minutes": "time duration time_limit max_time time_total_s hours minute",
    "algo": "algorithm alg agent trainer",
    "seed": "random_seed rng_seed",
    "threads": "n_jobs num_threads num_cpus cpus n_threads cores torch_threads",
    "workers": "num_workers n_workers num_rollout_workers num_env_runners",
    "device": "cuda gpu use_gpu use_cuda",
    "devices": "gpus num_gpus num_devices n_gpus",
    "name": "exp_name run_name experiment_name experiment run_id",
    "init": "load_model load_model_path trained_agent pretrained checkpoint load",
    "wandb": "track wandb_project wandb_project_name use_wandb",
    "tensorboard": "tensorboard_log tb",
    "runs": "log_dir logdir log_folder output_dir save_path save_dir local_dir",
    "checkpoint_every_s": "save_freq checkpoint_freq checkpoint_interval save_interval save_model",
    "eval.every_s": "eval_freq evaluation_interval eval_interval",
    "eval.games": "n_eval_episodes eval_episodes evaluation_duration",
    GAME: "game env env_id env_name environment task",
}
"""Our setting -> names in other libraries."""
_SETTINGS = {word: setting for setting, words in SYNONYMS.items() for word in words.split()}
FIRST = "; the game comes first: sparring train skull_king"
REPLAY_NAMES = {"ppo.minibatch": "replay.batch", "ppo.entropy": "sac.temperature"}
"""Settings that algorithms with a replay buffer have instead."""
ALGORITHMS = ("ppo", "dqn", "qrdqn", "sac", "redq", "td3", "gumbel")
LIKE = {"qrdqn": "dqn", "redq": "sac", "td3": "sac"}
"""Algorithms whose settings have the names of those of another one, as far as they have them."""
VALUES = {"gpu": "cuda", "nvidia": "cuda"}
"""Values with other names in other libraries."""


def setting_named(word: str, algo: str = DEFAULT_ALGO) -> str:
    """Return our setting for another library's name ("ppo.lr" for "learning_rate"), "" if none.

    word: with or without a section or dashes: ppo.learning_rate, --learning-rate.
    """
    table, _, key = word.removeprefix("--").replace("-", "_").lower().rpartition(".")
    algo = table if table in ALGORITHMS else algo
    setting = _SETTINGS.get(key, "")
    if algo not in ("ppo", "gumbel"):
        setting = REPLAY_NAMES.get(setting, setting)
    section, dot, rest = setting.partition(".")
    alike = section == LIKE.get(algo, algo)
    return f"{algo if alike or section == ANY_ALGO else section}{dot}{rest}"


def like(
    name: str, known: Collection[str], algo: str = DEFAULT_ALGO, *, python: bool = False
) -> str:
    """Return the end of an error about an unknown setting: the setting that is probably meant.

    known: all settings, as ppo.lr. python: the name was a keyword argument of a call.
    """
    if now := renamed(name):
        return f"; it is now {now!r}"
    setting = setting_named(name, algo)
    if setting == GAME and name not in known:
        return "; the game comes first: train('skull_king', ...)" if python else FIRST
    if setting not in known:
        inner = [one for one in known if one.rpartition(".")[2] == name]
        setting = inner[0] if inner else closest(name, known)
    if not setting:
        return "; `sparring train --help-all` lists them"
    section, dot, key = setting.partition(".")
    return f"; did you mean {f'{section}={{{key!r}: ...}}' if python and dot else repr(setting)}?"
