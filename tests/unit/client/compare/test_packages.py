"""Lists of packages, as pip and conda write them."""

from __future__ import annotations

from runyard.client.compare import packages


def test_what_pip_says() -> None:
    text = (
        "numpy==2.1.0\nPy_YAML==6.0\nnets @ git+https://host.example/nets@0123abc\n"
        "# tools==0.1 was installed from /home/ada/tools\n# nothing else\n"
    )
    assert packages.of_pip(text) == {
        "numpy": "2.1.0", "py-yaml": "6.0", "nets": "git+https://host.example/nets@0123abc",
        "tools": "0.1 was installed from /home/ada/tools",
    }  # fmt: skip


def test_what_conda_says() -> None:
    text = (
        "@EXPLICIT\nhttps://conda.example/linux-64/numpy-2.1.0-py311h1_0.conda#0123\n"
        "https://conda.example/noarch/python-dateutil-2.9.0-pyhd8.tar.bz2\n"
    )
    assert packages.of_conda(text) == {"numpy": "2.1.0-py311h1_0", "python-dateutil": "2.9.0-pyhd8"}
