"""Hand in what is missing of two repetitions of each configuration. Run it from this folder."""

from pathlib import Path

from src.params import param2default, param2requests

from runyard.bridges.ludwig import Client

client = Client("ludwig-style", param2default)
client.submit(src_ps=[Path("src")], data_ps=[Path("corpora")], param2requests=param2requests, reps=2)
