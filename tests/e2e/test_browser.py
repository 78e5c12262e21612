"""The portal as people use it: a real Chromium, the real provider, the real cluster."""

import re
import secrets
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from deploy.demo.client import wait_for
from deploy.demo.scenario import demo_job
from deploy.demo.stack import Stack

pytestmark = pytest.mark.e2e

PATIENCE_MS = 60_000
NARROW = {"width": 390, "height": 844}
WIDE = {"width": 1280, "height": 900}
LINES = re.compile(r"([\d,. ]+) lines?")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium without a window."""
    path = shutil.which("chromium")
    assert path, "Chromium is missing: `make packages` installs it"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh profile. A script error on any page, or a breach of its security policy, fails the test."""
    context = browser.new_context(ignore_https_errors=True, viewport=WIDE)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    shown, errors = context.new_page(), []
    shown.on("pageerror", lambda error: errors.append(str(error)))
    shown.on(
        "console",
        lambda said: errors.append(said.text) if "Content Security Policy" in said.text else None,
    )
    yield shown
    context.close()
    assert errors == []


def sign_in(page: Page, stack: Stack, name: str) -> None:
    """As a person does: the portal sends to the provider and takes back."""
    page.goto(f"{stack.url}/")
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(name)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{stack.url}/**")


def fill_form(page: Page, stack: Stack, name: str, **values: str) -> None:
    """Open the New-job form as somebody who is signed in, and fill what has no default."""
    page.goto(f"{stack.url}/jobs/new/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Image").fill("registry.example/train:1")
    page.get_by_label("Pool").select_option("a100")
    page.get_by_label("CPU per worker").fill("1")
    page.get_by_label("Memory per worker").fill("1Gi")
    if "annotations" in values:
        page.get_by_text("Labels and annotations").click()
    for label, value in values.items():
        page.locator(f"[name={label}]").fill(value)


def log_rows(page: Page) -> Locator:
    """The lines of the log that are drawn now."""
    return page.locator("#logs [data-line-number]")


def test_a_job_from_the_form_to_its_cancellation(healthy_stack: Stack, page: Page) -> None:
    """Submit, see it run without a reload, watch the log grow and the GPU fill, cancel, see it end."""
    sign_in(page, healthy_stack, "alice")
    fill_form(page, healthy_stack, "by hand")
    page.get_by_role("button", name="Submit job").click()
    page.wait_for_url(re.compile(r"/jobs/\d+/$"))
    number = page.url.rstrip("/").rsplit("/", 1)[1]
    state = page.locator("#job-head h1")
    expect(state).to_contain_text("Running")
    expect(log_rows(page).first).to_be_visible()
    count = page.locator("#logs [data-part=lines]")
    expect(count).to_have_text(LINES)
    expect(count).not_to_have_text(count.inner_text())  # it grows by itself

    page.goto(f"{healthy_stack.url}/cluster/")
    cell = page.locator(f".gpumap-cells a[href$='/jobs/{number}/']")
    expect(cell).to_have_class(re.compile("run-used.*is-own"))
    page.goto(f"{healthy_stack.url}/jobs/{number}/")
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Keep").click()
    expect(state).to_contain_text("Running")
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the job").click()
    expect(state).to_contain_text("Cancelled")
    page.goto(f"{healthy_stack.url}/cluster/")
    expect(cell).to_have_count(0)


def test_two_clicks_submit_one_job(healthy_stack: Stack, page: Page) -> None:
    """RW-039 (a): the same page sent twice within 100 ms."""
    name = f"twice {secrets.token_hex(4)}"
    sign_in(page, healthy_stack, "alice")
    fill_form(page, healthy_stack, name, annotations="simulate/run-for=1s")
    page.get_by_role("button", name="Submit job").dblclick()
    page.wait_for_url(re.compile(r"/jobs/\d+/$"))
    page.evaluate(
        """async (form) => {
        const page = await (await fetch("/jobs/new/")).text();
        const fields = new FormData(new DOMParser().parseFromString(page, "text/html").querySelector("form.job-form"));
        for (const [name, value] of Object.entries(form)) fields.set(name, value);
        await Promise.all([1, 2].map(() => fetch("/jobs/new/", { method: "POST", body: fields })));
    }""",
        {
            "name": name + " script",
            "image": "registry.example/train:1",
            "pool": "a100",
            "cpu": "1",
            "memory": "1Gi",
            "annotations": "simulate/run-for=1s",
        },
    )
    jobs = healthy_stack.client("alice").json(f"/api/v1/jobs?q={name}")["results"]
    assert sorted(job["name"] for job in jobs) == [name, f"{name} script"]


def test_a_wrong_value_is_named_at_its_field_and_nothing_typed_is_lost(
    healthy_stack: Stack, page: Page
) -> None:
    sign_in(page, healthy_stack, "alice")
    fill_form(page, healthy_stack, "half a GPU", command="python train.py --name 'run one'", gpus="0.5")
    page.get_by_role("button", name="Submit job").click()
    gpus = page.locator("[name=gpus]")
    expect(gpus).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#id_gpus_error")).to_contain_text("whole")
    expect(gpus).to_have_value("0.5")
    expect(page.locator("[name=command]")).to_have_value("python train.py --name 'run one'")
    expect(page.locator("[name=pool]")).to_have_value("a100")


def test_a_waiting_job_says_why(healthy_stack: Stack, page: Page) -> None:
    """The same cause on the page and in the API."""
    client = healthy_stack.client("charlie")
    wanted = demo_job("c", f"too much {secrets.token_hex(4)}", pool="l4", gpus=4, workers=7)
    job_id = client.post("/api/v1/jobs", wanted)["id"]
    cause = wait_for("a waiting cause", lambda: cause_of(healthy_stack, job_id))
    sign_in(page, healthy_stack, "charlie")
    page.goto(f"{healthy_stack.url}/jobs/{job_id}/")
    panel = page.locator("section.waiting")
    expect(panel).to_contain_text(cause["sentence"])
    expect(panel.locator("code")).to_have_text(cause["code"])
    expect(panel.get_by_role("listitem").first).to_be_visible()  # what would help
    client.post(f"/api/v1/jobs/{job_id}/cancel")
    expect(page.locator("#job-head h1")).to_contain_text("Cancelled")


def cause_of(stack: Stack, job_id: int) -> dict[str, str] | None:
    """Why a job waits as the API says it; None while nobody has thought about it yet."""
    response = stack.client("charlie").get(f"/api/v1/jobs/{job_id}/waiting")
    found: dict[str, str] | None = response.json() if response.status_code == 200 else None
    return found


PAGES_OF_AN_ADMINISTRATOR = (
    "/",
    "/jobs/",
    "/cluster/",
    "/teams/",
    "/teams/a/",
    "/quotas/",
    "/pools/",
    "/tiers/",
    "/groups/",
    "/audit/",
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_scrolls_sideways_on_a_telephone(healthy_stack: Stack, page: Page, scheme: str) -> None:
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    sign_in(page, healthy_stack, "dana")
    shade = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (brightness(shade) > 128) == (scheme == "light"), f"{scheme} mode has the background {shade}"
    for path in PAGES_OF_AN_ADMINISTRATOR:
        answer = page.goto(f"{healthy_stack.url}{path}")
        assert answer is not None
        assert answer.status == 200, path
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], path


def brightness(colour: str) -> float:
    """The mean of red, green and blue of `rgb(…)`, from 0 to 255."""
    return sum(float(each) for each in re.findall(r"[\d.]+", colour)[:3]) / 3


def test_without_javascript_a_job_is_submitted_and_cancelled(healthy_stack: Stack, browser: Browser) -> None:
    context = browser.new_context(ignore_https_errors=True, java_script_enabled=False)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    sign_in(page, healthy_stack, "alice")
    fill_form(page, healthy_stack, "plain")
    page.get_by_role("button", name="Submit job").click()
    page.wait_for_url(re.compile(r"/jobs/\d+/$"))
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("button", name="Cancel the job").click()
    job_id = int(page.url.rstrip("/").rsplit("/", 1)[1])
    client = healthy_stack.client("alice")
    wait_for("the job to end", lambda: client.job(job_id)["state"] == "Cancelled")
    context.close()
