"""Whose a run folder is, and when an attempt must not go on from one."""

import pytest
from django.utils import timezone

from jobs.models import Host, Job, Worker
from jobs.services.attempts import requeue_attempt
from jobs.services.claim import claim_next
from jobs.services.hosts import home_id
from jobs.worker.run_folder import add_line, owner_of, prepare_folder, tell_start_over
from tests.jobs.rows import queued, worker

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def here(settings, tmp_path, monkeypatch):
    """This process works on the state folder of host ``a``; ``b`` has another."""
    monkeypatch.setenv("NIGHTSHIFT_HOME", str(tmp_path))
    settings.NIGHTSHIFT_HOME = tmp_path
    settings.NIGHTSHIFT_CHECKPOINT_PATIENCE = 0.0
    Host.objects.create(name="a", home=home_id())
    Host.objects.create(name="b", home="another")


def on(host):
    """Return the next attempt of the one job, on that host, whose worker is the only one that runs."""
    name = f"cpu@{host}"
    if not Worker.objects.filter(name=name).exists():
        made = worker(name, key=f"cpu:{host}")
        Worker.objects.filter(pk=made.pk).update(host=host)
        made.device.host = host
        made.device.save()
    Worker.objects.exclude(name=name).update(stopped_at=timezone.now())
    Worker.objects.filter(name=name).update(stopped_at=None)
    return claim_next(Worker.objects.get(name=name))


def ends(attempt, *, checkpoint=None):
    """Put the job back, with a checkpoint at that step on the attempt's host."""
    if checkpoint:
        Job.objects.update(checkpoint_step=checkpoint, checkpoint_host=attempt.worker.host)
    requeue_attempt(attempt, "drained", cause="stopped")


def ran_here(*, checkpoint):
    attempt = on("a")
    folder = prepare_folder(attempt)
    (folder / "log.txt").write_text("of attempt 1\n")
    (folder / "result.json").write_text('{"exit_code": 3}')
    ends(attempt, checkpoint=checkpoint)
    return folder


def test_the_first_attempt_sets_aside_what_a_job_of_its_number_left(tmp_path):
    job = queued()
    folder = tmp_path / "runs" / str(job.pk)
    folder.mkdir(parents=True)
    (folder / "log.txt").write_text("of an earlier database")
    assert prepare_folder(on("a")) == folder
    assert [path.name for path in folder.iterdir()] == ["attempt"]
    [aside] = [path for path in folder.parent.iterdir() if path != folder]
    assert (aside / "log.txt").read_text() == "of an earlier database"


@pytest.mark.parametrize("checkpoint", [10, None])
def test_the_next_attempt_on_this_host_goes_on_from_the_folder_but_not_from_its_result(checkpoint):
    queued()
    folder = ran_here(checkpoint=checkpoint)
    assert owner_of(folder) == 1
    assert prepare_folder(on("a")) == folder
    assert (owner_of(folder), (folder / "log.txt").exists(), (folder / "result.json").exists()) == (2, True, False)


@pytest.mark.parametrize("checkpoint", [20, None])
def test_a_folder_older_than_what_another_host_did_since_is_set_aside(checkpoint):
    queued()
    folder = ran_here(checkpoint=10)
    ends(on("b"), checkpoint=checkpoint)
    prepare_folder(on("a"))
    assert [path.name for path in folder.iterdir()] == ["attempt"]


def test_the_folder_that_holds_the_newest_checkpoint_is_kept_although_another_host_tried_since():
    queued()
    folder = ran_here(checkpoint=10)
    ends(on("b"))
    Job.objects.update(checkpoint_step=10, checkpoint_host="a")  # as if b had ended before it could start over
    assert prepare_folder(on("a")) == folder
    assert (folder / "log.txt").read_text() == "of attempt 1\n"


def test_a_start_from_the_beginning_is_told_in_the_log(tmp_path):
    queued()
    ran_here(checkpoint=10)
    attempt = on("b")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    add_line(folder, "before")
    tell_start_over(attempt, folder)
    told = "[starts over: the checkpoint at step 10 is on a, not on b]"
    assert (folder / "log.txt").read_text().splitlines() == ["[before]", told]
    assert "--from_resume" not in attempt.command or attempt.command[attempt.command.index("--from_resume") + 1] == "0"


@pytest.mark.parametrize(
    ("outcome", "code", "changed", "kept"),
    [
        ("lost", 0, False, True),
        ("drained", 0, False, True),
        ("lost", 3, False, False),
        ("lost", 0, True, False),
        ("failed", 0, False, False),
    ],
)
def test_a_success_that_was_never_recorded_is_kept_for_the_next_attempt_of_the_same_command(
    outcome, code, changed, kept
):
    queued()
    folder = ran_here(checkpoint=10)
    (folder / "model").mkdir()
    (folder / "result.json").write_text(f'{{"exit_code": {code}}}')
    Job.objects.get().attempts.update(outcome=outcome)
    if changed:
        Job.objects.update(command=[*Job.objects.get().command, "--epochs", "9"])
    prepare_folder(on("a"))
    assert ((folder / "result.json").exists(), owner_of(folder)) == (kept, 2)
