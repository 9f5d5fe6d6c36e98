"""For projects that were written for LudwigCluster, or Ludwig: their submits, their jobs and their folders.

from runyard.bridges.ludwig import Client

client = Client('your_project_name')
client.submit(src_ps=[Path('src')], data_ps=[Path('corpora')], param2val_list=[{'lr': 0.1}], reps=2)

See docs/howto/from-ludwig.md.
"""

from runyard.bridges.ludwig.client import Client
from runyard.bridges.ludwig.grid import gen_all_param2vals
from runyard.bridges.ludwig.results import gen_param_paths

__all__ = ["Client", "gen_all_param2vals", "gen_param_paths"]
