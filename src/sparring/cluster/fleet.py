"""A learner with the actors that play for it: processes of this machine, or of a cluster."""

from __future__ import annotations

from sparring.cluster.actors.crew import Crew
from sparring.cluster.actors.learner import FleetPPO, demand_fleet, places_of
from sparring.cluster.actors.processes import ProcessCrew
from sparring.cluster.actors.weights import FlatWeights
from sparring.config import TrainConfig
from sparring.learn.plan import Plan
from sparring.nets.make import make_net
from sparring.nets.net import asked_heads
from sparring.training.planning.settings import written


def make_learner(config: TrainConfig, plan: Plan) -> FleetPPO:
    """Return the learner of a run with actors."""
    demand_fleet(config, plan)
    crew = make_crew(config, plan)
    try:
        return FleetPPO(crew, config.fleet, plan)
    except BaseException:
        crew.close()
        raise


def make_crew(config: TrainConfig, plan: Plan) -> Crew:
    """Start the actors of a run: processes of this machine, or anywhere in a cluster."""
    if config.cluster:
        from sparring.cluster.ray.crew import ray_crew

        return ray_crew(config.cluster, written(config), places_of(config), config.fleet)
    heads = asked_heads(plan.rules, plan.heads)
    net = make_net(plan.rules, plan.net, heads=heads, memory=plan.memory)
    places = places_of(config)
    return ProcessCrew(written(config), places, config.fleet, FlatWeights(net).size)
