import pytest

from podium.errors import InputError, MissingError, UsageError
from podium.traces.openb.fetch import fetch_openb
from podium.traces.openb.files import CITATION, openb_index
from support.file_server import running_file_server
from support.traces import originals


@pytest.fixture
def server():
    with running_file_server() as running:
        yield running


@pytest.fixture
def served(server):
    """A server that has the original files."""
    folder = originals()
    for file in openb_index().files:
        server.files[file.file_name] = (folder / file.file_name).read_bytes()
    return server


@pytest.mark.openb
def test_all_files_are_downloaded_and_checked(served, tmp_path):
    seen = []
    paths = fetch_openb(
        tmp_path / "new/folder", lambda *told: seen.append(told), base_url=served.url
    )
    assert len(paths) == 26
    assert all(path.read_bytes() == served.files[path.name] for path in paths)
    name, done, size = seen[-1]
    assert name == paths[-1].name
    assert done == size == paths[-1].stat().st_size


@pytest.mark.openb
def test_files_that_are_there_are_not_downloaded_again(served, tmp_path):
    paths = fetch_openb(tmp_path, base_url=served.url)
    served.asked.clear()
    paths[3].write_bytes(b"changed")
    paths[5].unlink()
    fetch_openb(tmp_path, base_url=served.url)
    assert served.asked == [paths[3].name, paths[5].name]
    assert paths[3].read_bytes() == served.files[paths[3].name]


@pytest.mark.openb
def test_a_body_that_ends_early_is_missing_data(served, tmp_path):
    name = openb_index().files[0].file_name
    served.cut.add(name)
    with pytest.raises(MissingError, match=r"ended after|cannot be downloaded") as caught:
        fetch_openb(tmp_path, base_url=served.url)
    assert name in caught.value.where
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_checksum_is_an_input_error_and_nothing_stays(server, tmp_path):
    first = openb_index().files[0]
    server.files[first.file_name] = b"x" * first.size_bytes
    with pytest.raises(InputError, match="the checksum is") as caught:
        fetch_openb(tmp_path, base_url=server.url)
    assert first.file_name in caught.value.where
    assert list(tmp_path.iterdir()) == []


def test_a_download_larger_than_the_file_is_left_at_once(server, tmp_path):
    first = openb_index().files[0]
    server.files[first.file_name] = b"x" * (first.size_bytes + (64 << 20))
    seen = []
    with pytest.raises(InputError, match="the download is larger than") as caught:
        fetch_openb(tmp_path, lambda _name, done, _size: seen.append(done), base_url=server.url)
    assert max(seen, default=0) <= first.size_bytes
    assert first.file_name in caught.value.where
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_the_server_lacks_is_missing_data(server, tmp_path):
    with pytest.raises(MissingError, match="cannot be downloaded") as caught:
        fetch_openb(tmp_path, base_url=server.url)
    assert caught.value.exit_code == 3


def test_without_a_network_the_error_says_what_to_do(tmp_path):
    with running_file_server() as stopped:
        url = stopped.url
    with pytest.raises(MissingError, match="cannot be downloaded") as caught:
        fetch_openb(tmp_path, base_url=url)
    assert caught.value.exit_code == 3
    assert "by hand" in caught.value.hint
    assert "PODIUM_TRACES" in caught.value.hint


def test_a_folder_that_cannot_be_made_is_a_usage_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot create the folder"):
        fetch_openb(tmp_path / "file" / "folder")


def test_files_come_from_one_commit_of_the_source(tmp_path):
    asked = []

    def refuse(url, timeout):
        asked.append((url, timeout))
        raise OSError("no network in this test")

    with pytest.raises(MissingError):
        fetch_openb(tmp_path, opener=refuse)
    (url, timeout), *more = asked
    assert url == (
        "https://raw.githubusercontent.com/alibaba/clusterdata/"
        "7a6c496e4f4b6ce6150be8f881cb051bf2abff42/cluster-trace-gpu-v2023/csv/"
        "openb_node_list_all_node.csv"
    )
    assert timeout > 0
    assert more == []


def test_the_citation_names_the_paper():
    assert "Beware of Fragmentation" in CITATION
    assert "USENIX ATC 2023" in CITATION
