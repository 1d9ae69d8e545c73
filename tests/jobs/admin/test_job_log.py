"""The log of a job, by offset."""

import zlib

from jobs.admin.job_log import LIMIT, readable, whole_characters
from jobs.models import Job, LogChunk


def write(job, *parts):
    offset = 0
    for part in parts:
        LogChunk.objects.create(job=job, offset=offset, length=len(part), data=zlib.compress(part))
        offset += len(part)


def read(client, job, offset=0):
    response = client.get(f"/admin/jobs/job/{job.pk}/log/", {"offset": offset})
    return response.content.decode(), int(response["X-Next-Offset"]), response


def test_only_new_bytes_travel(boss, job, browse):
    write(job, b"$ python\n", b"step 1\n")
    client = browse(boss)
    text, offset, _ = read(client, job)
    assert (text, offset) == ("$ python\nstep 1\n", 16)
    assert read(client, job, offset)[:2] == ("", 16)
    assert read(client, job, 11)[:2] == ("ep 1\n", 16)


def test_an_answer_is_at_most_64_kib(boss, job, browse):
    write(job, b"a" * 50_000, b"b" * 50_000)
    client = browse(boss)
    text, offset, response = read(client, job)
    assert (len(text), offset, response["X-Log-Size"]) == (LIMIT, LIMIT, "100000")
    assert read(client, job, offset)[0] == "b" * (100_000 - LIMIT)


def test_a_character_that_is_cut_waits_for_its_end(boss, job, browse):
    Job.objects.filter(pk=job.pk).update(status="running")
    word = "学".encode()
    write(job, b"a" + word[:2])
    client = browse(boss)
    assert read(client, job)[:2] == ("a", 1)
    LogChunk.objects.create(job=job, offset=3, length=1, data=zlib.compress(word[2:]))
    assert read(client, job, 1)[:2] == ("学", 4)


def test_a_cut_character_at_the_end_of_a_finished_log_is_replaced(boss, job, browse):
    Job.objects.filter(pk=job.pk).update(status="failed")
    write(job, b"a\xe5\xad")
    assert read(browse(boss), job)[:2] == ("a\ufffd", 3)


def test_a_log_whose_first_bytes_are_missing_begins_where_it_can(boss, job, browse):
    LogChunk.objects.create(job=job, offset=10, length=3, data=zlib.compress(b"abc"))
    assert read(browse(boss), job)[:2] == ("abc", 13)


def test_every_cut_of_a_text_gives_the_same_text():
    content = "a学\x1b[31mred\x1b[0m é😀\n".encode()
    for cut in range(len(content) + 1):
        first = whole_characters(content[:cut])
        assert readable(first) + readable(content[len(first) :]) == "a学red é😀\n"


def test_invalid_bytes_escapes_and_control_characters_are_made_harmless():
    assert readable(b"\xff\x1b]0;title\x07<b>\x00\x1b[1;32mok\x1b[0m\r\n") == "\ufffd<b>ok\n"


def test_the_log_is_plain_text_that_no_browser_interprets(boss, job, browse):
    write(job, b"<script>alert(1)</script>")
    response = read(browse(boss), job)[2]
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["X-Content-Type-Options"] == "nosniff"


def test_the_download_is_every_byte(boss, job, browse):
    write(job, b"one\n", b"\xfftwo\n")
    response = browse(boss).get(f"/admin/jobs/job/{job.pk}/log.txt")
    assert b"".join(response.streaming_content) == b"one\n\xfftwo\n"
    assert response["Content-Disposition"] == f'attachment; filename="job-{job.pk}.log"'


def test_who_may_not_see_jobs_reads_no_log(stranger, job, browse):
    client = browse(stranger)
    assert client.get(f"/admin/jobs/job/{job.pk}/log/").status_code == 403
    assert client.get(f"/admin/jobs/job/{job.pk}/log.txt").status_code == 403


def test_an_offset_that_is_no_number_is_not_found(job, mei, browse):
    client = browse(mei)
    for offset in ("²", "-1", "x", "9" * 5000):
        assert client.get(f"/admin/jobs/job/{job.pk}/log/", {"offset": offset}).status_code == 404


def test_a_character_set_sequence_is_stripped_whole():
    assert readable(b"a\x1b(Bb") == "ab"


def test_an_escape_sequence_that_never_ends_does_not_stop_the_log():
    endless = b"\x1b[" + b"1" * 1000
    assert whole_characters(endless) == endless


def test_a_progress_bar_that_overwrote_itself_is_read_line_by_line():
    assert readable(b"10%\r20%\r\nend") == "10%\n20%\nend"
