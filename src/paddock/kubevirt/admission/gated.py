"""Kinds that have a machine in them: the server's own KubeVirt object turns the feature gates of the engine on and off."""

from paddock.kubevirt.kinds import gates
from paddock.kubevirt.rules.gates import offered
from paddock.server.resources.declared import DeclaredPipeline
from paddock.server.resources.pipeline import Pipeline
from paddock.server.resources.strategy import CustomStrategy, WriteContext


class GatedStrategy(CustomStrategy):
    """The rules of gates hold as `developerConfiguration` of the KubeVirt object says at the moment of a write."""

    def judge(self, pipeline: Pipeline, context: WriteContext) -> Pipeline:
        """The pipeline under the gates that are on and off."""
        installations = dict(context.view.noted("kubevirts.kubevirt.io", gates.of_installation))
        cluster = installations.get(("kubevirt", "kubevirt"))
        if cluster is None or not (cluster.on or cluster.off) or not isinstance(pipeline, DeclaredPipeline):
            return pipeline
        return pipeline.under(offered(cluster.on), cluster.off)
