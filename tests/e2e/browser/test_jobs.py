"""A person submits, watches, cancels and repeats jobs; a worker really runs them."""

import re

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

SMALL = {
    "from_weight": "none",
    "data_path": "../dataset/sft-mini.jsonl",
    "save_dir": "runs/weights",
    "hidden_size": "64",
    "num_hidden_layers": "2",
    "batch_size": "8",
    "num_workers": "0",
    "log_interval": "1",
}


def open_form(page: Page, training_type: str, **values: str) -> None:
    """Open the form of one type, with every group unfolded and ``values`` typed."""
    page.goto(f"jobs/job/add/?_type={training_type}")
    page.evaluate("document.querySelectorAll('#ns-form details').forEach((group) => { group.open = true })")
    for name, value in values.items():
        page.locator(f"#ns-form [name={name}]").fill(value)


def queue_job(page: Page, training_type: str, **values: str) -> int:
    """Submit a job through the form, and return its number."""
    open_form(page, training_type, **values)
    page.get_by_role("button", name="Queue job").click()
    page.wait_for_url(re.compile(r"/job/\d+/change/"))
    return int(page.url.rstrip("/").split("/")[-2])


def test_another_type_keeps_shared_values_and_resets_the_rest(page):
    open_form(page, "sft", learning_rate="0.003", batch_size="5")
    page.select_option("#ns-type", "grpo")
    expect(page.locator("[name=num_generations]")).to_be_visible()
    expect(page.locator("[name=learning_rate]")).to_have_value("0.003")
    expect(page.locator("[name=batch_size]")).to_have_value("5")
    expect(page.locator("[name=max_seq_len]")).to_have_value("66")
    expect(page.locator("[name=from_weight]")).to_have_count(0)


def test_the_preview_follows_what_is_typed(page):
    open_form(page, "grpo")
    preview = page.locator("#ns-preview")
    expect(preview).to_contain_text(
        "--beta 0.02 --num_generations 8 --reasoning 1 --reward_model_path ../../internlm2-1_8b-reward"
    )
    page.locator("[name=beta]").fill("0.5")
    expect(preview).to_contain_text("--beta 0.5 --num_generations 8")


def test_an_error_stands_at_its_field_and_nothing_typed_is_lost(page):
    open_form(page, "sft", batch_size="-3", name="mine")
    page.get_by_role("button", name="Queue job").click()
    expect(page.locator("[data-field=batch_size] .ns-error")).to_contain_text("greater than or equal to 1")
    expect(page.locator("[name=name]")).to_have_value("mine")
    assert "/add/" in page.url


def test_what_a_check_of_the_data_finds_is_in_sight(page):
    page.set_viewport_size({"width": 1300, "height": 900})
    page.goto("jobs/job/add/?_type=sft")
    page.locator("[name=data_path]").fill("../dataset/absent.jsonl")
    page.locator("[data-check=data_path]").click()
    found = page.locator("#ns-check-data_path")
    expect(found).to_contain_text("cannot be read", timeout=30_000)
    page.wait_for_timeout(300)
    bar = page.locator("#ns-form .ns-bar").bounding_box()
    box = found.bounding_box()
    assert box["y"] + box["height"] <= bar["y"], "the bar at the bottom does not hide it"
    page.locator("[name=data_path]").fill("../dataset/sft-mini.jsonl")
    page.locator("[data-check=data_path]").click()
    expect(found).to_contain_text("16845 rows of conversations, 16845 usable.", timeout=30_000)
    found.get_by_role("button", name="Close").click()
    expect(found).to_have_count(0)


def test_a_job_is_submitted_watched_and_its_weights_downloaded(page, tmp_path):
    queue_job(page, "sft", **SMALL, name="watched", max_steps="40")
    log = page.locator("#ns-log")
    expect(log).to_contain_text("$ python -m trainers sft --run_dir runs/", timeout=60_000)
    expect(log).to_contain_text("Epoch:[1/2]", timeout=60_000)
    expect(page.locator("#ns-header")).to_contain_text("Completed", timeout=120_000)
    expect(page.locator("#ns-header")).to_contain_text("step 40 of 40")
    expect(page.locator("#ns-curves canvas").first).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="model/model.safetensors").click()
    weights = tmp_path / "model.safetensors"
    download.value.save_as(weights)
    assert weights.stat().st_size > 100_000


def test_a_default_grpo_job_fails_with_one_clear_line(page):
    page.goto("jobs/job/add/?_type=grpo")
    page.get_by_role("button", name="Queue job").click()
    page.locator("[name=queue_anyway]").check()  # the default reward model is not on this machine
    page.get_by_role("button", name="Queue job").click()
    page.wait_for_url(re.compile(r"/job/\d+/change/"))
    wanted = "--beta 0.02 --num_generations 8 --reasoning 1 --reward_model_path ../../internlm2-1_8b-reward"
    expect(page.locator("#ns-command")).to_contain_text(wanted)
    expect(page.locator("#ns-header")).to_contain_text("Failed", timeout=60_000)
    expect(page.locator("#ns-reason")).to_contain_text("internlm2-1_8b-reward")
    expect(page.locator("#ns-log")).to_contain_text(wanted)


def test_a_running_job_is_cancelled_after_a_question(page):
    queue_job(page, "sft", **SMALL, name="endless", max_steps="100000", epochs="100")
    expect(page.locator("#ns-log")).to_contain_text("Epoch:[1/100]", timeout=60_000)
    page.get_by_role("link", name="Cancel", exact=True).click()
    page.get_by_role("button", name="Cancel the job").click()
    expect(page.locator("#ns-header")).to_contain_text("Cancelled", timeout=30_000)
    expect(page.locator("#ns-header")).to_contain_text("last checkpoint: step")


def test_a_clone_opens_a_filled_form(page):
    queue_job(page, "sft", **SMALL, name="original", max_steps="7", learning_rate="0.0021")
    page.get_by_role("link", name="Clone").click()
    expect(page.locator("#ns-type")).to_have_value("sft")
    expect(page.locator("[name=learning_rate]")).to_have_value("0.0021")
    expect(page.locator("[name=max_steps]")).to_have_value("7")


def test_a_double_click_makes_one_job(page):
    open_form(page, "sft", **SMALL, name="twice", max_steps="1")
    page.get_by_role("button", name="Queue job").dblclick()
    page.wait_for_url(re.compile(r"/job/\d+/change/"))
    page.goto("jobs/job/?q=twice")
    expect(page.locator("#result_list tbody tr")).to_have_count(1)


# The page's own background as red, green and blue, whatever the notation of its style sheet.
BACKGROUND = """() => {
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.fillStyle = getComputedStyle(document.body).backgroundColor;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
}"""


@pytest.mark.parametrize(("colours", "is_dark"), [("dark", True), ("light", False)])
def test_the_pages_follow_the_colours_that_the_reader_prefers(page: Page, is_dark: bool):
    for address in ("jobs/job/", "jobs/job/add/?_type=grpo"):
        page.goto(address)
        expect(page.locator("#ns-form, #result_list, #changelist").first).to_be_visible()
        assert (max(page.evaluate(BACKGROUND)) < 80) == is_dark
