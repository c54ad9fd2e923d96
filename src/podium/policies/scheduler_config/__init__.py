"""A KubeSchedulerConfiguration as a policy: the scheduler that a team runs today.

`configuration` reads the file by way of `section`, `plugin_sets` knows what is enabled by default,
`plugins` writes each score plugin as Python, and `plugin_text` joins them into one policy's text.
What such texts import (`noderesources`, `dot_products`, `mixture`) stands beside this folder: it
is what policy files may import, and its place must not change.
"""

from podium.policies.scheduler_config.configuration import load_scheduler_config

__all__ = ["load_scheduler_config"]
