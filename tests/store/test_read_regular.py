"""Files of a run's folder may be anything: none of them blocks a reader or fills its memory."""

import os
import socket
from pathlib import Path

import pytest

from sparring.store.files import check_regular, read_regular


def test_a_file_is_read_up_to_the_bound(tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    file.write_bytes(b"12345")
    assert read_regular(file) == b"12345"
    assert read_regular(file, 5) == b"12345"
    assert check_regular(file, 5) == 5
    with pytest.raises(OSError, match="5 bytes, at most 4 are read"):
        read_regular(file, 4)
    with pytest.raises(OSError, match="5 bytes, at most 4 are read"):
        check_regular(file, 4)


@pytest.mark.parametrize(
    "kind", ["fifo", "folder", "socket", "endless device", "missing", "circle"]
)
def test_what_is_no_file_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's name is short
    path = Path("odd")
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    elif kind == "endless device":
        path.symlink_to("/dev/zero")
    elif kind == "circle":
        path.symlink_to(path)
    for read in (read_regular, lambda path: check_regular(path, 10)):
        with pytest.raises(OSError, match="odd"):
            read(path)
    with pytest.raises(OSError, match="odd"):
        read_regular(path, within=tmp_path)


@pytest.mark.parametrize("name", ["a\0b", "a\udcff\ud800", "n" * 300])
def test_a_name_that_no_file_can_have_is_no_other_exception(tmp_path: Path, name: str) -> None:
    for within in (None, tmp_path):
        with pytest.raises(OSError, match="name"):
            read_regular(tmp_path / name, within=within)
        with pytest.raises(OSError, match="name"):
            check_regular(tmp_path / name, 1, within=within)


def test_a_file_without_a_size_is_empty() -> None:
    """Those of /proc say that they are empty, and some of them never end."""
    assert read_regular(Path("/proc/self/status")) == b""


def test_links_are_followed_within_the_folder_alone(tmp_path: Path) -> None:
    run, other = tmp_path / "run", tmp_path / "other"
    run.mkdir()
    other.mkdir()
    for folder in (run, other):
        (folder / "data").write_bytes(b"x")
    (run / "inner").symlink_to("data")
    (run / "outer").symlink_to(other / "data")
    (run / "folder").symlink_to(other)
    (tmp_path / "linked").symlink_to(run)
    assert read_regular(run / "inner", within=run) == b"x"
    assert read_regular(tmp_path / "linked" / "inner", within=tmp_path / "linked") == b"x"
    for path in (run / "outer", run / "folder" / "data", run / ".." / "other" / "data"):
        assert read_regular(path) == b"x"
        with pytest.raises(PermissionError, match="leaves"):
            read_regular(path, within=run)
