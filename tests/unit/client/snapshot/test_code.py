"""Code as git sees it: what belongs to a snapshot, and what is recorded of where it came from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runyard import errors
from runyard.client.run_inputs import find_checkout
from runyard.client.snapshot import Camera
from runyard.client.snapshot.git import without_credentials
from tests.unit.client.snapshot.conftest import NOBODY, Git, as_nobody, code, paths, write


def test_tracked_and_new_files_without_ignored_ones(checkout: Path, camera: Camera) -> None:
    write(checkout, {"new.py": "x", "runs/1/log": "y", "best.ckpt": "z", "lib/deep/er.py": ""})
    assert paths(code(checkout, camera)) == [".gitignore", "lib/deep/er.py", "lib/nets.py", "new.py", "train.py"]


def test_the_bytes_are_those_of_now_and_not_of_the_commit(checkout: Path, camera: Camera) -> None:
    before = code(checkout, camera).tree.digest
    write(checkout, {"train.py": "print(2)\n"})
    taken = code(checkout, camera)
    assert taken.tree.digest != before
    (source,) = [path for digest, path in taken.sources().items() if path.name == "train.py"]
    assert source.read_text() == "print(2)\n"


def test_a_clean_checkout_is_recorded(checkout: Path, camera: Camera, git: Git) -> None:
    git("remote", "add", "origin", "https://ada:secret-token@host.example/lab/nets.git")
    found = code(checkout, camera).git
    assert found is not None
    assert (found.head, found.branch, found.dirty, found.diff) == (
        git("rev-parse", "HEAD").strip(),
        "main",
        False,
        None,
    )
    assert found.remote == "https://host.example/lab/nets.git"


def test_changes_are_recorded_with_their_diff(checkout: Path, camera: Camera) -> None:
    write(checkout, {"train.py": "print(2)\n"})
    taken = code(checkout, camera)
    assert taken.git is not None
    assert taken.git.dirty
    assert b"-print(1)\n+print(2)\n" in taken.texts()[taken.git.diff or ""]


def test_a_new_file_makes_it_dirty_without_a_diff(checkout: Path, camera: Camera) -> None:
    write(checkout, {"new.py": "x"})
    found = code(checkout, camera).git
    assert found is not None
    assert (found.dirty, found.diff) == (True, None)


def test_a_checkout_without_a_commit_a_branch_or_a_remote(project: Path, camera: Camera, git: Git) -> None:
    git("init")
    write(project, {"train.py": "x"})
    git("add", ".")
    found = code(project, camera).git
    assert found is not None
    assert (found.head, found.branch, found.remote, found.dirty, found.diff) == (None, "main", None, True, None)


def test_a_detached_head_has_no_branch(checkout: Path, camera: Camera, git: Git) -> None:
    git("checkout", "--detach")
    found = code(checkout, camera).git
    assert found is not None
    assert found.branch is None


def test_the_remote_is_the_one_that_the_branch_follows(checkout: Path, camera: Camera, git: Git) -> None:
    git("remote", "add", "origin", "git@host.example:lab/nets.git")
    git("remote", "add", "mine", "ssh://ada:pw@other.example/nets.git")
    git("config", "branch.main.remote", "mine")
    found = code(checkout, camera).git
    assert found is not None
    assert found.remote == "ssh://ada@other.example/nets.git"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ghp_token@host.example/x.git", "https://host.example/x.git"),
        ("https://u:p@host.example:8443/x.git?private_token=s#f", "https://host.example:8443/x.git"),
        ("http://u:p%40ss@host.example/x", "http://host.example/x"),
        ("git@host.example:lab/x.git", "git@host.example:lab/x.git"),
        ("ssh://git:secret@host.example:22/x.git", "ssh://git@host.example:22/x.git"),
        ("/srv/git/x.git", "/srv/git/x.git"),
        ("file:///srv/git/x.git", "file:///srv/git/x.git"),
        ("https://u:p@[bad/x", "[bad/x"),
    ],
)
def test_no_credentials_are_kept(url: str, shown: str) -> None:
    assert without_credentials(url) == shown


def test_a_deleted_file_is_not_part_of_it(checkout: Path, camera: Camera) -> None:
    (checkout / "train.py").unlink()
    taken = code(checkout, camera)
    assert paths(taken) == [".gitignore", "lib/nets.py"]
    assert taken.git is not None
    assert taken.git.dirty


def test_a_folder_that_became_a_link_is_a_link(checkout: Path, camera: Camera) -> None:
    (checkout / "lib").rename(checkout / "lib2")
    (checkout / "lib").symlink_to("lib2")
    taken = code(checkout, camera)
    assert paths(taken) == [".gitignore", "lib2/nets.py", "train.py"]
    assert [(link.path, link.target) for link in taken.tree.links] == [("lib", "lib2")]


def test_submodules_and_checkouts_inside_are_part_of_it(
    checkout: Path, camera: Camera, git: Git, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    write(other, {"util.py": "u", ".gitignore": "junk\n"})
    git("init", at=other)
    git("add", ".", at=other)
    git("commit", "-m", "other", at=other)
    git("submodule", "add", str(other), "vendor/other")
    git("clone", str(other), "nested")
    write(checkout, {"vendor/other/junk": "j", "vendor/other/new.py": "n"})
    taken = paths(code(checkout, camera))
    assert [path for path in taken if path.startswith("vendor/")] == [
        "vendor/other/.gitignore", "vendor/other/new.py", "vendor/other/util.py",
    ]  # fmt: skip
    assert "nested/util.py" in taken


def test_a_submodule_that_was_not_fetched_is_nothing(checkout: Path, camera: Camera, git: Git, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write(other, {"util.py": "u"})
    git("init", at=other)
    git("add", ".", at=other)
    git("commit", "-m", "other", at=other)
    git("submodule", "add", str(other), "vendor/other")
    git("submodule", "deinit", "-f", "vendor/other")
    assert not [path for path in paths(code(checkout, camera)) if path.startswith("vendor/")]


def test_a_folder_below_the_top_is_a_project_of_its_own(checkout: Path, camera: Camera) -> None:
    write(checkout, {"lib/nets.py": "changed", "outside.py": "new"})
    taken = code(checkout / "lib", camera)
    assert paths(taken) == ["nets.py"]
    assert b"outside" not in taken.diff


def test_a_folder_that_git_ignores_is_read_as_it_is(checkout: Path, camera: Camera) -> None:
    write(checkout, {"runs/try/train.py": "", "runs/try/__pycache__/x.pyc": ""})
    assert paths(code(checkout / "runs/try", camera)) == ["train.py"]


def test_a_list_of_paths(checkout: Path, camera: Camera) -> None:
    write(checkout, {"README.md": "", "lib/new.py": "", "runs/1/settings.json": "{}", "best.ckpt": "c"})
    assert paths(code(checkout, camera, "lib", "train.py")) == ["lib/nets.py", "lib/new.py", "train.py"]
    assert paths(code(checkout, camera, "lib", "runs/1", "best.ckpt")) == [
        "best.ckpt", "lib/nets.py", "lib/new.py", "runs/1/settings.json",
    ]  # fmt: skip
    assert paths(code(checkout, camera, str(checkout / "train.py"))) == ["train.py"]


def test_names_that_git_would_read_as_patterns(checkout: Path, camera: Camera) -> None:
    write(checkout, {":(top)x": "1", "*.py": "2", "a b.py": "3", "ünï.py": "4"})
    assert paths(code(checkout, camera, "*.py")) == ["*.py"]
    assert {":(top)x", "a b.py", "ünï.py"} <= set(paths(code(checkout, camera)))


def test_what_the_project_says_for_itself_stays_out(checkout: Path, camera: Camera) -> None:
    write(checkout, {".runyardignore": "# ours\nlib\n*.md\n/docs/raw\n", "a/b.md": "", "docs/raw/x": "", "docs/y": ""})
    assert paths(code(checkout, camera)) == [".gitignore", ".runyardignore", "docs/y", "train.py"]


def test_an_ignore_rule_that_takes_back_is_refused(checkout: Path, camera: Camera) -> None:
    write(checkout, {".runyardignore": "*.py\n!train.py\n"})
    with pytest.raises(errors.InvalidInput, match="line 2"):
        code(checkout, camera)


def test_folders_that_are_sent_as_data_are_no_code(checkout: Path, camera: Camera) -> None:
    write(checkout, {"corpora/a.txt": "a", "corpora2/b.txt": "b"})
    assert "corpora2/b.txt" in paths(code(checkout, camera, without=["corpora"]))
    assert "corpora/a.txt" not in paths(code(checkout, camera, without=["corpora"]))


def test_modes_and_links(checkout: Path, camera: Camera) -> None:
    write(checkout, {"run.sh": "#!/bin/sh\n"})
    (checkout / "run.sh").chmod(0o755)
    (checkout / "latest").symlink_to("run.sh")
    (checkout / "lib/up").symlink_to("../train.py")
    (checkout / "absolute").symlink_to(checkout / "lib")
    tree = code(checkout, camera).tree
    assert [file.path for file in tree.files if file.executable] == ["run.sh"]
    assert dict(tree.links) == {"latest": "run.sh", "lib/up": "../train.py", "absolute": "lib"}


def test_git_is_asked_about_this_folder_whatever_a_hook_says(
    checkout: Path, camera: Camera, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no-index"))
    assert "train.py" in paths(code(checkout, camera))


def test_without_the_program_git_nothing_is_guessed(
    checkout: Path, camera: Camera, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(errors.InvalidInput, match="without the program git") as caught:
        code(checkout, camera)
    assert "--no-code" in caught.value.fix


def test_what_git_complains_about_is_told(checkout: Path, camera: Camera) -> None:
    (checkout / ".git/HEAD").write_text("nonsense")
    with pytest.raises(errors.InvalidInput, match="git cannot read"):
        code(checkout, camera)


def test_a_plain_folder_is_read_without_what_tools_make(project: Path, camera: Camera) -> None:
    write(project, {
        "train.py": "", "sub/.hidden": "", "__pycache__/x.pyc": "", "sub/__pycache__/y.pyc": "", ".venv/bin/python": "",
        "env/pyvenv.cfg": "", "env/lib/x.py": "", "node_modules/m.js": "",
    })  # fmt: skip
    taken = code(project, camera)
    assert paths(taken) == ["sub/.hidden", "train.py"]
    assert taken.git is None


def test_finding_the_checkout_above(checkout: Path, tmp_path: Path) -> None:
    assert find_checkout(checkout / "lib") == checkout
    assert find_checkout(tmp_path) is None or not (tmp_path / ".git").exists()


@pytest.mark.component("root")
def test_a_folder_that_git_cannot_read(public: Path, git: Git) -> None:
    """git goes on without it, with a warning; its files would be missing."""
    git("init", at=public)
    write(public, {"closed/secret.py": "s", "train.py": ""})
    for place in (public, *public.rglob("*")):
        os.chown(place, NOBODY, NOBODY)
    (public / "closed").chmod(0)
    with as_nobody(), pytest.raises(errors.InvalidInput, match="the folder closed cannot be read"):
        code(public, Camera())


@pytest.mark.component("root")
def test_a_checkout_of_somebody_else_is_refused_with_gits_own_advice(checkout: Path, camera: Camera) -> None:
    os.chown(checkout, 12345, 12345)
    with pytest.raises(errors.InvalidInput, match="dubious ownership") as caught:
        code(checkout, camera)
    assert caught.value.fix.startswith("git config --global --add safe.directory")
