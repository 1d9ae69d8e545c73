"""The path picker and the upload of a data file."""

from pathlib import Path

from django.core.files.uploadedfile import SimpleUploadedFile

from jobs.admin import path_picker
from trainers.paths import resolve_path

FOLDER = "/admin/jobs/job/folder/"
UPLOAD = "/admin/jobs/job/upload/"


def names(response):
    return [entry["name"] for entry in response.json()["entries"]]


def test_a_folder_lists_folders_and_data_files_with_their_paths(mei, browse):
    response = browse(mei).get(FOLDER, {"under": "../dataset"})
    assert response.json()["here"] == "../dataset"
    assert {"name": "sft-mini.jsonl", "path": "../dataset/sft-mini.jsonl", "folder": False} in response.json()[
        "entries"
    ]
    assert "jsonl.py" not in names(response)


def test_hidden_files_are_not_listed(mei, browse):
    assert not [name for name in names(browse(mei).get(FOLDER, {"under": ".."})) if name.startswith(".")]


def test_a_folder_outside_the_roots_is_refused(mei, browse):
    client = browse(mei)
    for outside in ("/etc", "../../..", "../dataset/../../../etc"):
        response = client.get(FOLDER, {"under": outside})
        assert response.status_code == 400
        assert "outside the allowed folders" in response.json()["error"]


def test_a_folder_that_only_begins_like_a_root_is_refused(mei, browse, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data_secret").mkdir()
    monkeypatch.setenv("NIGHTSHIFT_ALLOWED_ROOTS", str(tmp_path / "data"))
    client = browse(mei)
    assert client.get(FOLDER, {"under": str(tmp_path / "data")}).status_code == 200
    assert client.get(FOLDER, {"under": str(tmp_path / "data_secret")}).status_code == 400


def test_links_that_lead_outside_are_neither_listed_nor_opened(mei, browse, tmp_path, monkeypatch):
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "inside").mkdir()
    (root / "link").symlink_to(outside)
    monkeypatch.setenv("NIGHTSHIFT_ALLOWED_ROOTS", str(root))
    client = browse(mei)
    assert names(client.get(FOLDER, {"under": str(root)})) == ["inside"]
    assert client.get(FOLDER, {"under": str(root / "link")}).status_code == 400


def test_an_upload_lies_under_the_persons_folder_and_overwrites_nothing(mei, browse, settings):
    client = browse(mei)
    first = client.post(UPLOAD, {"file": SimpleUploadedFile("../my data.jsonl", b"1\n")}).json()["path"]
    second = client.post(UPLOAD, {"file": SimpleUploadedFile("../my data.jsonl", b"2\n")}).json()["path"]
    assert resolve_path(first) == Path(settings.MEDIA_ROOT) / str(mei.pk) / "my_data.jsonl"
    assert resolve_path(first).read_bytes() == b"1\n"
    assert resolve_path(second).read_bytes() == b"2\n"


def test_only_data_files_of_a_bounded_size_are_taken(mei, browse, monkeypatch):
    client = browse(mei)
    assert client.post(UPLOAD, {"file": SimpleUploadedFile("x.py", b"1")}).status_code == 400
    assert client.post(UPLOAD, {}).status_code == 400
    monkeypatch.setattr(path_picker, "UPLOAD_LIMIT", 3)
    assert client.post(UPLOAD, {"file": SimpleUploadedFile("x.jsonl", b"1234")}).status_code == 400


def test_who_may_not_add_jobs_sees_no_folder_and_uploads_nothing(viewer, browse):
    client = browse(viewer)
    assert client.get(FOLDER).status_code == 403
    assert client.post(UPLOAD, {"file": SimpleUploadedFile("x.jsonl", b"1")}).status_code == 403


def test_what_can_be_no_path_is_refused_in_words(mei, browse, tmp_path, monkeypatch):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "inside").mkdir()
    monkeypatch.setenv("NIGHTSHIFT_ALLOWED_ROOTS", str(tmp_path))
    client = browse(mei)
    for no_path in ("a\0b", "a" * 5000):
        response = client.get(FOLDER, {"under": no_path})
        assert response.status_code == 400
        assert "cannot be a path here" in response.json()["error"]
    assert "inside" in names(client.get(FOLDER, {"under": str(tmp_path)}))


def test_an_uploads_name_is_visible_and_fits_every_file_system(mei, browse):
    client = browse(mei)
    for name, kept in ((".jsonl", "data"), ("....jsonl", "data"), ("训" * 80 + ".jsonl", "训" * 60)):
        for _ in range(2):
            path = client.post(UPLOAD, {"file": SimpleUploadedFile(name, b"1\n")}).json()["path"]
            assert Path(path).name.startswith(kept)
            assert path.endswith(".jsonl")
