"""Writes scheduler configurations for tests."""

import textwrap

HEAD = "apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n"


def write_config(folder, body="", version="v1", name="scheduler.yaml"):
    path = folder / name
    path.write_text(HEAD.format(version=version) + textwrap.dedent(body))
    return path


def scoring(*plugins, method="", arguments=""):
    """Gives the body of a profile with these (name, weight) score plugins alone."""
    enabled = "".join(f"        - {{name: {name}, weight: {weight}}}\n" for name, weight in plugins)
    share = f"    - {{name: Open-Gpu-Share, args: {{gpuSelMethod: {method}}}}}\n" if method else ""
    config = f"    pluginConfig:\n{share}{arguments}" if share or arguments else ""
    return (
        "percentageOfNodesToScore: 100\nprofiles:\n  - schedulerName: simon-scheduler\n"
        "    plugins:\n      score:\n        disabled: [{name: '*'}]\n        enabled:\n"
        f"{enabled}{config}"
    )


def fit(strategy):
    """Gives the body of a profile whose NodeResourcesFit has this scoring strategy."""
    return (
        "percentageOfNodesToScore: 100\nprofiles:\n  - plugins:\n"
        "      multiPoint: {disabled: [{name: NodeResourcesBalancedAllocation}]}\n"
        "    pluginConfig:\n      - name: NodeResourcesFit\n"
        f"        args: {{scoringStrategy: {strategy}}}\n"
    )
